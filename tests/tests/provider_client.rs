//! The provider's client against a provider: what each kind of answer comes to, and what goes over the wire.

use ipam_core::http::{HttpProvider, Servers, Target};
use ipam_core::{Bound, Call, Deadline, Outcome, Pod, Provider as _};
use provider_sim::{Identity, Options, Settings, Token};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tests::provider::Provider;

const LIMIT: Duration = Duration::from_secs(2);

fn client(url: &str, credentials: Option<PathBuf>) -> HttpProvider {
    runtime::install_crypto();
    let client = HttpProvider::new(runtime::since_boot, Box::new(|_, _, _| ()));
    let target = Target { url: url.parse().expect("a URL"), credentials, insecure_skip_verify: false };
    client.set(Servers { limit: LIMIT, named: BTreeMap::from([("it".to_owned(), target)]) });
    client
}

fn call(address: &str, pod: &str, left: Option<Duration>) -> Call {
    Call {
        server: "it".to_owned(),
        pod: Pod { namespace: "default".to_owned(), name: pod.to_owned(), uid: format!("uid-{pod}") },
        node: "n".to_owned(),
        parent_nic_mac: "fa:16:3e:11:22:33".to_owned(),
        address: address.parse().expect("an address"),
        subnet: "10.0.0.0/24".to_owned(),
        deadline: Deadline::new(runtime::since_boot(), LIMIT, left),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Answered,
    Rejected,
    Unsent,
    Unknown,
}
use Class::{Answered, Rejected, Unknown, Unsent};

fn class<T>(outcome: Outcome<T>) -> (Class, String) {
    match outcome {
        Outcome::Answered(_) => (Answered, String::new()),
        Outcome::Rejected(why) => (Rejected, why),
        Outcome::Unsent(why) => (Unsent, why),
        Outcome::Unknown(why) => (Unknown, why),
    }
}

/// Kind of fault, what it comes to at allocate and at release, and what is said at allocate.
fn faults() -> Vec<(Value, Class, Class, &'static str)> {
    let status = |code: u16| json!({"kind": "status", "code": code, "body": "no \u{7}way"});
    let timed_out = "provider-interaction timeout: IaaS allocate API call exceeded configured timeout 2s";
    let mut all = vec![
        (json!({"kind": "status-after", "code": 500}), Rejected, Rejected, "returned status 500"),
        (json!({"kind": "cut-before"}), Unknown, Unknown, "iaas allocate API call failed"),
        (json!({"kind": "cut-before", "reset": true}), Unknown, Unknown, "iaas allocate API call failed"),
        (json!({"kind": "cut-after"}), Unknown, Unknown, "iaas allocate API call failed"),
        (json!({"kind": "partial-status-line"}), Unknown, Unknown, "iaas allocate API call failed"),
        (json!({"kind": "cut-mid-answer"}), Unknown, Answered, "failed to read allocate response"),
        (json!({"kind": "late", "ms": 500}), Unknown, Unknown, "iaas allocate API call failed"),
        (json!({"kind": "proxy-504", "ms": 500}), Unknown, Unknown, "returned status 504"),
        (json!({"kind": "hang"}), Unknown, Unknown, timed_out),
        (json!({"kind": "hang-after"}), Unknown, Unknown, timed_out),
        (json!({"kind": "slow", "ms": 300}), Answered, Answered, ""),
        (json!({"kind": "endless-body"}), Unknown, Answered, ""),
        (json!({"kind": "huge-body", "bytes": 3_000_000}), Unknown, Answered, "longer than 1048576 bytes"),
        (json!({"kind": "garbage"}), Rejected, Answered, "failed to unmarshal allocate response"),
        (json!({"kind": "empty"}), Rejected, Answered, "failed to unmarshal allocate response"),
        (json!({"kind": "missing"}), Rejected, Answered, "does not contain IP"),
        (json!({"kind": "extra"}), Rejected, Answered, "contains unknown IP"),
        (json!({"kind": "duplicate"}), Rejected, Answered, "more than once"),
        (json!({"kind": "wrong-subnet"}), Rejected, Answered, "subnet"),
        (json!({"kind": "wrong-address-spelling"}), Rejected, Answered, "which is no address"),
        (json!({"kind": "bad-mac"}), Rejected, Answered, "macAddress"),
        (json!({"kind": "vlan-out-of-range", "vlan": 5000}), Rejected, Answered, "vlanId 5000"),
        (json!({"kind": "no-vlan"}), Answered, Answered, ""),
        (json!({"kind": "no-mac"}), Answered, Answered, ""),
        (json!({"kind": "redirect", "code": 307}), Unknown, Unknown, "returned status 307"),
    ];
    for (code, class) in [
        (400, Rejected),
        (401, Rejected),
        (404, Rejected),
        (409, Rejected),
        (429, Rejected),
        (500, Rejected),
        (501, Rejected),
    ] {
        all.push((status(code), class, class, "no way"));
    }
    for code in [408, 499, 502, 503, 504] {
        all.push((status(code), Unknown, Unknown, "no way"));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn each_answer_comes_to_what_the_specification_says() {
    let provider = Provider::start().await;
    let client = client(&provider.url, None);
    let each = faults().into_iter().enumerate().map(|(n, (fault, allocate, release, says))| {
        let (pod, address) = (format!("pod-{n}"), format!("10.0.0.{}", n + 10));
        provider.faults(&json!([{"match": {"podName": pod}, "fault": fault}]));
        let client = &client;
        async move {
            let (came, text) = class(client.allocate(&call(&address, &pod, None)).await);
            assert_eq!(came, allocate, "allocate {fault}: {text}");
            assert!(text.contains(says), "{fault}: {text:?} must say {says:?}");
            assert!(text.chars().count() < 500 && !text.contains(char::is_control), "{text:?}");
            let (came, text) = class(client.release(&call(&address, &pod, None)).await);
            assert_eq!(came, release, "release {fault}: {text}");
        }
    });
    futures::future::join_all(each).await;
}

#[tokio::test]
async fn what_is_sent_keeps_the_contract_and_connections_are_used_again() {
    let provider = Provider::start().await;
    let client = client(&format!("{}/", provider.url), None);
    for n in 1..20 {
        let call = call(&format!("10.0.0.{n}"), "a", None);
        let bound = client.allocate(&call).await;
        let Outcome::Answered(Bound { mac: Some(_), vlan: Some(_) }) = bound else { panic!("{bound:?}") };
        assert_eq!(client.release(&call).await, Outcome::Answered(()));
    }
    let records = provider.cloud.records(0);
    assert_eq!(records.len(), 38);
    let budgets: Vec<_> = records.iter().filter_map(|one| one.budget_ms).collect();
    assert_eq!(budgets.len(), records.len(), "each says what time there is");
    assert!(budgets.iter().all(|budget| (1_000..=2_000).contains(budget)), "{budgets:?}");
    assert!(provider.bound().is_empty());
    let connections = provider.connections();
    assert!(connections <= 2, "{connections} connections for {} calls, one after the other", records.len());
}

#[tokio::test]
async fn time_is_the_callers_or_that_of_one_call() {
    let provider = Provider::start().await;
    provider.faults(&json!([{"fault": {"kind": "hang"}}]));
    let client = client(&provider.url, None);
    let began = Instant::now();
    let (came, text) = class(client.allocate(&call("10.0.0.1", "a", Some(Duration::from_millis(400)))).await);
    assert_eq!(came, Unknown);
    assert_eq!(text, "parent budget exhausted: IaaS allocate API call cancelled by parent context deadline");
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
    let budget = provider.cloud.records(0)[0].budget_ms.expect("said");
    assert!((1..=400).contains(&budget), "{budget}");
    let (came, text) = class(client.release(&call("10.0.0.1", "a", Some(Duration::ZERO))).await);
    assert!(matches!(came, Unsent | Unknown), "{text}");
    assert_eq!(provider.cloud.records(0).len(), 1, "nothing is sent past the deadline");
}

#[tokio::test]
async fn what_never_left_is_no_answer_of_the_provider() {
    let provider = Provider::start().await;
    let client = client("http://127.0.0.1:9", None);
    let (came, text) = class(client.allocate(&call("10.0.0.1", "a", None)).await);
    assert_eq!((came, text.contains("nothing was sent")), (Unsent, true), "{text}");
    let other = Call { server: "http://elsewhere".to_owned(), ..call("10.0.0.1", "a", None) };
    let (came, text) = class(client.release(&other).await);
    assert_eq!((came, text.contains("formerServers")), (Unsent, true), "{text}");
    assert!(client.serves("it") && !client.serves("http://elsewhere"));
    assert!(provider.cloud.records(0).is_empty());
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    /// A certificate and its key.
    fn issue(&self, folder: &Path) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("names");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        std::fs::write(folder.join("tls.crt"), certificate.pem()).expect("written");
        std::fs::write(folder.join("tls.key"), key.serialize_pem()).expect("written");
    }
}

#[tokio::test]
async fn both_sides_show_who_they_are_and_may_change_it() {
    let (server, ours) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (of_server, of_clients) = (Authority::new(), Authority::new());
    of_server.issue(server.path());
    let at = |name: &str| server.path().join(name);
    std::fs::write(at("clients.crt"), of_clients.0.pem()).expect("written");
    std::fs::write(at("token"), "secret").expect("written");
    let provider = Provider::of(Options {
        listen: ([127, 0, 0, 1], 0).into(),
        settings: Settings::default(),
        tls: Some(Identity { certificate: at("tls.crt"), key: at("tls.key"), client_ca: Some(at("clients.crt")) }),
        token: Some(Token(at("token"))),
    })
    .await;
    let client = client(&provider.url, Some(ours.path().to_owned()));
    let ask = async || class(client.release(&call("10.0.0.1", "a", None)).await);
    let (came, text) = ask().await;
    assert_eq!(came, Unsent, "nobody knows the server's authority: {text}");
    std::fs::write(ours.path().join("ca.crt"), of_server.0.pem()).expect("written");
    let (came, text) = ask().await;
    assert!(matches!(came, Unsent | Unknown), "the server does not know us: {came:?} {text}");
    of_clients.issue(ours.path());
    let (came, text) = ask().await;
    assert_eq!((came, text.contains("401")), (Rejected, true), "{text}");
    std::fs::write(ours.path().join("token"), "secret\n").expect("written");
    assert_eq!(ask().await.0, Answered);
    std::fs::write(at("token"), "another").expect("written");
    assert_eq!(ask().await.0, Rejected);
    std::fs::write(ours.path().join("token"), "another").expect("written");
    assert_eq!(ask().await.0, Answered, "credentials are those of now");
    std::fs::write(ours.path().join("ca.crt"), "no certificate").expect("written");
    let (came, text) = ask().await;
    assert_eq!((came, text.contains("ca.crt")), (Unsent, true), "{text}");
    std::fs::remove_file(ours.path().join("tls.key")).expect("there");
    let (_, text) = ask().await;
    assert!(text.contains("one of tls.crt and tls.key is missing") && !text.contains("another"), "{text}");
}
