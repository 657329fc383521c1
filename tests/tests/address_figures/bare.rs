//! Two processes that write pairs of objects and do nothing else: what an API server gives at the best.

use crate::CALLERS;
use crate::load::{Done, Load, Measured, drive};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
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

    /// Both processes, for addresses of 10.`net`.0.0/16, `count` each time that they are told to write.
    pub fn start(&self, net: usize, count: usize, load: Load) -> Writers {
        let each = count / self.sides.len();
        let pace = if let Load::Paced(rate) = load { rate } else { 0.0 };
        let start = |(n, (kubeconfig, allocation, endpoint)): (usize, &(PathBuf, Value, Value))| {
            Writer::start(
                &json!({"kubeconfig": kubeconfig, "allocation": allocation, "endpoint": endpoint, "net": net, "from": n * APART, "count": each, "pace": pace}),
            )
        };
        Writers(self.sides.iter().enumerate().map(start).collect())
    }
}

/// Between the first addresses of both.
const APART: usize = 1 << 15;

/// Both processes.
pub struct Writers(Vec<Writer>);

impl Writers {
    /// As many pairs as they were started for.
    pub async fn write(&mut self) -> Measured {
        let mut writers = std::mem::take(&mut self.0);
        let ended = tokio::task::spawn_blocking(move || {
            for writer in &mut writers {
                writer.begin();
            }
            let done = writers.iter_mut().flat_map(Writer::until_ready).collect();
            (writers, done)
        });
        let (writers, done) = ended.await.expect("both end");
        self.0 = writers;
        Measured::of(done)
    }
}

/// This program once more, as a process of its own, until it is dropped.
struct Writer {
    child: Child,
    says: BufReader<std::process::ChildStdout>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.child.stdin.take();
        self.child.wait().expect("a child can be waited for");
    }
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
        let says = BufReader::new(child.stdout.take().expect("piped"));
        let mut writer = Self { child, says };
        writer.until_ready();
        writer
    }

    fn begin(&mut self) {
        self.child.stdin.as_mut().expect("piped").write_all(b"\n").expect("it reads");
    }

    fn until_ready(&mut self) -> Vec<Done> {
        let mut done = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.says.read_line(&mut line).expect("readable") > 0, "a writer ended");
            if line.contains("READY") {
                return done;
            }
            let Some(line) = line.trim_end_matches('\n').strip_prefix("DONE ") else { continue };
            let mut fields = line.splitn(3, ' ');
            let mut micros = || fields.next().and_then(|field| field.parse().ok()).map(Duration::from_micros);
            let (ended, took) = micros().zip(micros()).expect("two numbers");
            done.push(Done { ended, took, failed: fields.next().filter(|text| !text.is_empty()).map(str::to_owned) });
        }
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
    let pace = task["pace"].as_f64().filter(|pace| *pace > 0.0);
    let load = pace.map_or(Load::Closed(CALLERS), Load::Paced);
    println!("READY");
    let mut done_so_far = from;
    while std::io::stdin().read_line(&mut String::new()).expect("readable") > 0 {
        let first = done_so_far;
        done_so_far += count;
        let done = drive(count, load, async |n| {
            let at = first + n;
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
        println!("READY");
    }
}
