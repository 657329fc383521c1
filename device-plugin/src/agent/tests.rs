use super::*;
use crate::agent::answer::tests::both_families;
use hyper_util::rt::TokioIo;
use ipam_core::{Add, AddError, Answer, Del, Failed, Host, Interface, NotYet, Pod, Step};
use k8s_api::conf::Detection;
use proto::agent::agent_client::AgentClient;
use proto::agent::{
    AddRequest, Attachment, CheckRequest, DelRequest, Fault, GcRequest, GetRequest, StatusRequest,
    add_response::Outcome,
};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tonic::Request;
use tonic::transport::{Channel, Endpoint};

/// Flows that do as they are told.
struct FakeIpam {
    asked: watch::Sender<Vec<Asked>>,
    ended: watch::Sender<usize>,
    gcs: watch::Sender<usize>,
    dels: Mutex<Vec<Del>>,
    /// A flow needs one to end.
    go: Semaphore,
    detection: watch::Sender<Detection>,
    ready: bool,
}

impl FakeIpam {
    fn new(go: usize) -> Arc<Self> {
        Arc::new(Self {
            asked: watch::Sender::default(),
            ended: watch::Sender::default(),
            gcs: watch::Sender::default(),
            dels: Mutex::default(),
            go: Semaphore::new(go),
            detection: watch::Sender::default(),
            ready: true,
        })
    }

    async fn until_asked(&self, count: usize) {
        let mut asked = self.asked.subscribe();
        let wait = asked.wait_for(|asked| asked.len() >= count);
        timeout(Duration::from_secs(10), wait).await.expect("asked in time").expect("lives");
    }
}

impl Ipam for FakeIpam {
    async fn add(&self, asked: Asked) -> Result<Answer, Failed> {
        let name = asked.add.pod.name.clone();
        self.asked.send_modify(|all| all.push(asked));
        if name == "slow" {
            progress::at(Step::ReadPod);
            tokio::time::sleep(Duration::from_secs(9)).await;
            progress::at(Step::Reserve);
        }
        self.go.acquire().await.expect("open").forget();
        assert_ne!(name, "panics");
        self.ended.send_modify(|ended| *ended += 1);
        let error = AddError::NotYet(NotYet::NotSynced);
        if name == "later" { Err(Failed { error, undo: None }) } else { Ok(both_families()) }
    }

    async fn undo(&self, _: ipam_core::Undo) {}

    async fn del(&self, del: Del) {
        self.dels.lock().expect("no panic").push(del);
        self.go.acquire().await.expect("open").forget();
        self.ended.send_modify(|ended| *ended += 1);
    }

    async fn check(&self, add: Add, cidrs: Vec<String>) -> Result<(), String> {
        if cidrs == ["172.91.0.7/24"] { Ok(()) } else { Err(format!("{} has other addresses", add.interface)) }
    }

    async fn gc(&self, _: String, in_use: Vec<Del>) -> Result<(), String> {
        self.gcs.send_modify(|gcs| *gcs += 1);
        self.go.acquire().await.expect("open").forget();
        self.ended.send_modify(|ended| *ended += 1);
        if in_use.is_empty() { Err("nothing is in use".to_owned()) } else { Ok(()) }
    }

    async fn get(&self, _: Pod) -> Result<Vec<Interface>, String> {
        Ok(vec![both_families()])
    }

    fn detection(&self) -> Detection {
        *self.detection.borrow()
    }

    fn ready(&self) -> Result<(), String> {
        if self.ready { Ok(()) } else { Err("not synced".to_owned()) }
    }
}

/// An edge that serves.
struct Stage {
    folder: tempfile::TempDir,
    machine: Arc<Machine>,
    ipam: Arc<FakeIpam>,
    stop: CancellationToken,
    serving: JoinSet<Result<(), tonic::transport::Error>>,
}

impl Stage {
    async fn begin(go: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("id"), "an-id").expect("writes");
        let id = folder.path().join("id");
        let places = Places { boot_id: id, state: folder.path().join("state") };
        let machine =
            Arc::new(Machine::open(&places, "machine-id".to_owned(), CancellationToken::new()).expect("usable"));
        let uid = std::fs::metadata(folder.path()).expect("there").uid();
        let socket = Socket::listen(&path(folder.path()), uid).await.expect("listens");
        let (ipam, stop) = (FakeIpam::new(go), CancellationToken::new());
        let mut serving = JoinSet::new();
        serving.spawn(serve(socket, ipam.clone(), machine.clone(), || Duration::from_secs(10), stop.clone()));
        Self { folder, machine, ipam, stop, serving }
    }

    async fn client(&self) -> AgentClient<Channel> {
        let path = path(self.folder.path());
        let connect = tower::service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        let endpoint = Endpoint::from_static("http://localhost");
        AgentClient::new(endpoint.connect_with_connector(connect).await.expect("connects"))
    }

    async fn add(&self, pod: &str) -> Result<proto::agent::Interface, Fault> {
        outcome(self.client().await.add(request(pod)).await.expect("an answer").into_inner())
    }

    async fn ended(mut self) {
        let ended = timeout(Duration::from_secs(5), self.serving.join_next()).await.expect("ends in time");
        ended.expect("was started").expect("no panic").expect("no error");
        assert!(!path(self.folder.path()).exists(), "the socket is removed");
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join("s")
}

fn attachment(pod: &str) -> Attachment {
    let pod = proto::agent::Pod { namespace: "ns".to_owned(), name: pod.to_owned(), uid: "uid".to_owned() };
    let (container_id, interface) = ("c-1".to_owned(), "net1".to_owned());
    Attachment { container_id, interface, network: "a-net".to_owned(), netns: None, pod: Some(pod) }
}

fn request(pod: &str) -> Request<AddRequest> {
    Request::new(AddRequest { attachment: Some(attachment(pod)), ..AddRequest::default() })
}

fn outcome(response: proto::agent::AddResponse) -> Result<proto::agent::Interface, Fault> {
    match response.outcome.expect("an outcome") {
        Outcome::Interface(interface) => Ok(interface),
        Outcome::Fault(fault) => Err(fault),
    }
}

#[tokio::test]
async fn every_verb_reaches_the_flows() {
    let stage = Stage::begin(100).await;
    assert_eq!(stage.add("pod").await.expect("given").vlan, 7);
    assert_eq!(stage.add("later").await.expect_err("not yet").code, 11);
    let mut client = stage.client().await;
    let check = |cidr: &str| CheckRequest { attachment: Some(attachment("pod")), cidrs: vec![cidr.to_owned()] };
    assert_eq!(client.check(check("172.91.0.7/24")).await.expect("answers").into_inner().fault, None);
    let fault = client.check(check("172.91.0.8/24")).await.expect("answers").into_inner().fault.expect("a fault");
    assert_eq!((fault.code, fault.msg.as_str()), (100, "net1 has other addresses"));
    assert_eq!(client.status(StatusRequest {}).await.expect("answers").into_inner().fault, None);
    assert!(client.gc(GcRequest::default()).await.expect("answers").into_inner().fault.is_some());
    let got = client.get(GetRequest::default()).await.expect("answers").into_inner();
    assert_eq!(got.interfaces[0].addresses.len(), 2);
    client.del(DelRequest { attachment: Some(attachment("pod")) }).await.expect("answers");
    client.del(DelRequest::default()).await.expect("a DEL of nothing is done");
    assert_eq!(stage.ipam.dels.lock().expect("no panic").len(), 1);
    let noted = std::fs::read_to_string(stage.folder.path().join("state/boot-an-id/dels.log"));
    assert_eq!(noted.expect("a file"), "+c-1\n", "remembered");
}

#[tokio::test]
async fn what_to_detect_is_told_with_each_answer_as_it_is_then() {
    let stage = Stage::begin(100).await;
    let mut client = stage.client().await;
    for detection in [Detection::default(), Detection { ip_conflict: true, gateway: false }] {
        stage.ipam.detection.send_replace(detection);
        let detect = client.add(request("pod")).await.expect("answers").into_inner().detect.expect("told");
        assert_eq!((detect.ip_conflict, detect.gateway), (detection.ip_conflict, false));
    }
    assert_eq!(client.add(request("later")).await.expect("answers").into_inner().detect, None, "nothing was given");
}

#[tokio::test]
async fn the_deadline_is_the_callers_or_100_seconds() {
    let stage = Stage::begin(100).await;
    for (given, seconds) in [(Some(55), 55), (Some(1000), 100), (None, 100)] {
        let mut request = request("pod");
        if let Some(given) = given {
            request.set_timeout(Duration::from_secs(given));
        }
        let before = stage.machine.now();
        outcome(stage.client().await.add(request).await.expect("answers").into_inner()).expect("given");
        let left = stage.ipam.asked.borrow().last().expect("asked").add.deadline.saturating_sub(before);
        let (least, most) = (Duration::from_secs(seconds), Duration::from_secs(seconds + 5));
        assert!((least..most).contains(&left), "{given:?}: {left:?}");
    }
}

#[tokio::test]
async fn a_panic_of_a_flow_is_one_answer_and_no_end() {
    let stage = Stage::begin(100).await;
    assert_eq!(stage.add("panics").await.expect_err("a fault of ours").code, 100);
    assert!(stage.add("pod").await.is_ok());
}

#[tokio::test]
async fn a_stopping_agent_ends_its_flows_and_begins_none() {
    let stage = Stage::begin(0).await;
    let mut client = stage.client().await;
    let mut callers = JoinSet::new();
    callers.spawn(async move { outcome(client.add(request("pod")).await.expect("an answer").into_inner()) });
    stage.ipam.until_asked(1).await;
    stage.stop.cancel();
    let fault = stage.add("another").await.expect_err("refused");
    assert_eq!((fault.code, fault.msg.as_str()), (11, "the node agent is stopping"));
    stage.ipam.go.add_permits(1);
    assert!(callers.join_next().await.expect("there").expect("no panic").is_ok(), "the first has its answer");
    stage.ended().await;
}

#[tokio::test]
async fn an_agent_with_nothing_in_hand_is_gone_at_once() {
    let stage = Stage::begin(0).await;
    let _idle = stage.client().await;
    stage.stop.cancel();
    let started = std::time::Instant::now();
    stage.ended().await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

fn asked(pod: &str) -> Asked {
    let here = request::Here { netns: None, boot_id: String::new(), deadline: Duration::ZERO };
    request::add(request(pod).into_inner(), here).expect("good")
}

async fn add(flows: &Flows<FakeIpam>, pod: &str) -> Result<Answer, Fault> {
    flows.add(asked(pod), tokio::time::Instant::now(), deadline::LONGEST).await
}

/// k8snetworkplumbingwg/whereabouts#172: one call used up the time of all, and nobody could tell which.
#[tokio::test(start_paused = true)]
async fn who_waited_in_vain_hears_what_took_the_time() {
    let ipam = FakeIpam::new(0);
    let flows = Flows::new(ipam.clone(), CancellationToken::new());
    for (left, waits) in [(100, 99_500), (10, 9_500), (1, 900)] {
        let began = tokio::time::Instant::now();
        let fault = flows.add(asked("slow"), began, Duration::from_secs(left)).await.expect_err("nothing lets it end");
        assert_eq!((fault.code, began.elapsed().as_millis()), (11, waits), "before the caller's own limit");
        let last = if left > 9 { "reserving an address takes" } else { "reading the pod takes" };
        assert!(fault.msg.starts_with(&format!("parent budget exhausted: {last}")), "{}", fault.msg);
        let end = format!("; cancelled by parent context deadline ({left}s)");
        assert!(fault.msg.ends_with(&end), "{}", fault.msg);
        assert_eq!(fault.msg.contains("reading the pod took 9.0s"), left > 9, "{}", fault.msg);
    }
    assert_eq!(flows.running(), 3, "they go on");
    ipam.go.add_permits(3);
    flows.ended().await;
    assert_eq!(*ipam.ended.borrow(), 3);
}

/// Below the socket, where it is certain when the caller is gone.
#[tokio::test]
async fn an_add_goes_on_when_its_caller_hangs_up() {
    let ipam = FakeIpam::new(0);
    let flows = Flows::new(ipam.clone(), CancellationToken::new());
    let mut add = Box::pin(add(&flows, "pod"));
    tokio::select! {
        ended = &mut add => panic!("nothing let it end: {ended:?}"),
        () = ipam.until_asked(1) => {}
    }
    drop(add);
    assert_eq!(flows.running(), 1);
    ipam.go.add_permits(1);
    flows.ended().await;
    assert_eq!(*ipam.ended.borrow(), 1);
}

/// What it frees would stand half-way, with nobody who goes on.
#[tokio::test]
async fn a_gc_goes_on_when_its_caller_hangs_up_and_is_the_only_one() {
    let ipam = FakeIpam::new(0);
    let flows = Flows::new(ipam.clone(), CancellationToken::new());
    let mut begun = ipam.gcs.subscribe();
    let mut gc = Box::pin(flows.gc("a-net".to_owned(), Vec::new()));
    tokio::select! {
        ended = &mut gc => panic!("nothing let it end: {ended:?}"),
        begun = begun.wait_for(|gcs| *gcs == 1) => drop(begun.expect("lives")),
    }
    drop(gc);
    assert_eq!(flows.gc("a-net".to_owned(), Vec::new()).await.expect_err("one at a time").code, 11);
    ipam.go.add_permits(1);
    flows.ended().await;
    assert_eq!(*ipam.ended.borrow(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_comes_when_all_is_full_comes_again() {
    const MORE: usize = flows::ADDS + 44;
    let ipam = FakeIpam::new(0);
    let flows = Flows::new(ipam.clone(), CancellationToken::new());
    let mut callers = JoinSet::new();
    for _ in 0..MORE {
        let flows = flows.clone();
        callers.spawn(async move { add(&flows, "pod").await.map_err(|fault| fault.code) });
    }
    let mut codes = Vec::new();
    while flows.running() + codes.len() < MORE {
        codes.push(callers.join_next().await.expect("the surplus").expect("no panic").expect_err("full"));
    }
    assert_eq!(codes, [11; MORE - flows::ADDS]);
    ipam.go.add_permits(flows::ADDS);
    let given = callers.join_all().await;
    assert!(given.len() == flows::ADDS && given.iter().all(Result::is_ok));
    assert_eq!(flows.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_del_is_waited_for_5_seconds_or_2() {
    let del = || Del { container_id: "c".to_owned(), interface: "net1".to_owned(), pod_uid: String::new() };
    for (ready, seconds) in [(true, 5), (false, 2)] {
        let ipam = FakeIpam::new(0);
        let ipam = Arc::new(FakeIpam { ready, ..Arc::into_inner(ipam).expect("the only one") });
        let flows = Flows::new(ipam.clone(), CancellationToken::new());
        let started = tokio::time::Instant::now();
        flows.del(del()).await;
        assert_eq!(started.elapsed().as_secs(), seconds);
        assert_eq!(flows.running(), 1, "it goes on");
        ipam.go.add_permits(1);
        flows.ended().await;
    }
}
