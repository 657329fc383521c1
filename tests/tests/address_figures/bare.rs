//! Two processes that write pairs of objects and do nothing else: what an API server gives at the best.

use crate::CALLERS;
use crate::load::{Done, Load, Measured, drive};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tests::answer::send;
use tests::node::{ALLOCATIONS, ENDPOINTS, Node, Nodes};

/// What both are told, in the environment.
const TASK: &str = "BARE_TASK";

/// The pairs, as agents wrote them.
pub struct Bare {
    sides: Vec<(PathBuf, Value, Value)>,
}

impl Bare {
    /// Of each node one pair that its agent wrote is the pattern.
    pub async fn like(stage: &Nodes, nodes: &[Node; 2]) -> Self {
        let get =
            async |path: &str| send(&stage.admin, "GET", path, "application/json", Vec::new()).await.expect("answers");
        let list = get(ALLOCATIONS).await.accepted()["items"].as_array().cloned().expect("a list");
        let mut sides = Vec::new();
        for node in nodes {
            let held = list.iter().find(|one| one["spec"]["node"]["name"] == node.name.as_str()).expect("one of each");
            let pod = held["spec"]["pod"]["name"].as_str().expect("a name");
            let shown = get(&format!("{ENDPOINTS}/{pod}")).await.accepted().clone();
            let plain = |object: &Value, metadata: Value| {
                let mut plain = object.clone();
                plain["metadata"] = metadata;
                plain
            };
            let kept = json!({"annotations": shown["metadata"]["annotations"], "ownerReferences": shown["metadata"]["ownerReferences"], "namespace": "default"});
            sides.push((node.kubeconfig.clone(), plain(held, json!({})), plain(&shown, kept)));
        }
        Self { sides }
    }

    /// `count` pairs with addresses of 10.`net`.0.0/16, half of them by each process.
    pub async fn write(&self, net: usize, count: usize, load: Load) -> Measured {
        let each = count / self.sides.len();
        let mut writers: Vec<Writer> = self.sides.iter().enumerate().map(|(n, (kubeconfig, allocation, endpoint))| {
            let pace = if let Load::Paced(rate) = load { rate } else { 0.0 };
            Writer::start(&json!({"kubeconfig": kubeconfig, "allocation": allocation, "endpoint": endpoint, "net": net, "from": n * each, "count": each, "pace": pace}))
        }).collect();
        let ended = tokio::task::spawn_blocking(move || {
            for writer in &mut writers {
                writer.begin();
            }
            writers.into_iter().flat_map(Writer::end).collect()
        });
        Measured::of(ended.await.expect("both end"))
    }
}

/// This program once more, as a process of its own.
struct Writer {
    child: Child,
    says: BufReader<std::process::ChildStdout>,
}

impl Writer {
    fn start(task: &Value) -> Self {
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(std::env::current_exe().expect("a test knows its own program"))
            .args(["--exact", "bare::writer", "--ignored", "--nocapture"])
            .env(TASK, task.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut says = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("READY") {
            line.clear();
            assert!(says.read_line(&mut line).expect("readable") > 0, "a writer ended before it began");
        }
        Self { child, says }
    }

    fn begin(&mut self) {
        self.child.stdin.as_mut().expect("piped").write_all(b"\n").expect("it reads");
    }

    fn end(mut self) -> Vec<Done> {
        let lines = self.says.by_ref().lines().map(|line| line.expect("readable"));
        let done = lines.filter_map(|line| {
            let mut fields = line.strip_prefix("DONE ")?.splitn(3, ' ').map(str::to_owned);
            let mut micros = || fields.next()?.parse().ok().map(Duration::from_micros);
            let (ended, took) = (micros()?, micros()?);
            Some(Done { ended, took, failed: fields.next().filter(|text| !text.is_empty()) })
        });
        let done = done.collect();
        assert!(self.child.wait().expect("a child can be waited for").success());
        done
    }
}

#[tokio::test]
#[ignore = "a process that another test starts"]
async fn writer() {
    runtime::install_crypto();
    let Some(task) = std::env::var(TASK).ok() else { return };
    let task: Value = serde_json::from_str(&task).expect("JSON");
    let number = |at: &str| usize::try_from(task[at].as_u64().expect("a number")).expect("small");
    let (net, from, count) = (number("net"), number("from"), number("count"));
    let kubeconfig = Kubeconfig::read_from(task["kubeconfig"].as_str().expect("a path")).expect("readable");
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("valid");
    config.default_retry = false;
    let client = Client::try_from(config).expect("a client");
    println!("READY");
    std::io::stdin().read_line(&mut String::new()).expect("a word to begin");
    let pace = task["pace"].as_f64().filter(|pace| *pace > 0.0);
    let load = pace.map_or(Load::Closed(CALLERS), Load::Paced);
    let done = drive(count, load, async |n| {
        let at = from + n;
        let address = format!("10.{net}.{}.{}", at / 256, at % 256);
        let mut allocation = task["allocation"].clone();
        allocation["metadata"]["name"] = address.clone().into();
        allocation["spec"]["address"] = address.clone().into();
        let mut endpoint = task["endpoint"].clone();
        endpoint["metadata"]["name"] = format!("bare-{net}-{at}").into();
        endpoint["status"]["current"]["ips"][0]["ipv4"] = format!("{address}/8").into();
        for (path, object) in [(ALLOCATIONS, allocation), (ENDPOINTS, endpoint)] {
            let answer = send(&client, "POST", path, "application/json", object.to_string().into_bytes()).await;
            match answer {
                Ok(answer) if answer.status == 201 => {}
                other => return Err(format!("{other:?}").replace('\n', " ")),
            }
        }
        Ok(())
    })
    .await;
    for Done { ended, took, failed } in done {
        println!("DONE {} {} {}", ended.as_micros(), took.as_micros(), failed.unwrap_or_default());
    }
}
