//! How fast the controller answers: it on one core, `h2load` on the other, TLS as an API server speaks it. `make bench`
//! gives it the program that is shipped.

use futures::StreamExt;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use tests::answer::annotated;
use tests::api_server::{CONTROLLER, Request};
use tests::controller::{Controller, Stage};
use tests::process::{attempt, run};

const ATTACHMENTS: usize = 1_000;
const NAMESPACES: usize = 10_000;

/// One core of the controller's, the other for who asks.
const SERVER: &str = "0";
const CLIENT: &str = "1";

#[tokio::test(flavor = "multi_thread")]
async fn figures() {
    let stage = Stage::set().await;
    stage.grant().await;
    stage.namespace("spiderpool").await;
    let started = Instant::now();
    let namespaces = futures::stream::iter(0..NAMESPACES).for_each_concurrent(50, async |n| {
        stage.namespace(&format!("team-{n}")).await;
    });
    namespaces.await;
    let attachments = futures::stream::iter(0..ATTACHMENTS).for_each_concurrent(50, async |n| {
        let spec =
            json!({"cniType": "vlan", "vlan": {"master": [format!("eth{}", n % 4)], "ippools": {"ipv4": ["pool"]}}});
        stage.attachment("spiderpool", &format!("vlan-{n}"), spec).await;
    });
    attachments.await;
    println!("{NAMESPACES} namespaces and {ATTACHMENTS} attachments made in {:.0?}", started.elapsed());
    let started = Instant::now();
    let controller = stage.ready_controller(&Stage::conf()).await;
    println!("controller start -> ready: {:.0?}", started.elapsed());
    run("taskset", ["-a", "-c", "-p", SERVER, &controller.process.id().to_string()]);

    // The lease is read from time to time, whatever is asked.
    let counts = |request: &Request| request.verb == "get" && !request.uri.contains("/leases/");
    let gets = || stage.server.requests_of(CONTROLLER).into_iter().filter(counts).count();
    let before = gets();
    let body = stage.folder.path().join("review.json");
    std::fs::write(&body, review().to_string()).expect("writable");
    println!("one question: {} bytes, 1 network", review().to_string().len());

    // As fast as it can, over the few connections that an API server keeps.
    let load = Load { stage: &stage, controller: &controller, body: &body };
    load.run(&["-n", "2000", "-c", "2", "-m", "16"]);
    let fast = load.run(&["-n", "30000", "-c", "4", "-m", "16"]);
    println!("closed loop: {:.0} answers/s, p99 {:.1} ms", fast.per_second, fast.p99);
    let open = load.run(&["-n", "5000", "-c", "1", "-m", "100", "--rps", "500"]);
    println!(
        "open loop at 500/s: median {:.2} ms, p99 {:.2} ms, slowest {:.1} ms",
        open.median, open.p99, open.slowest
    );
    let started = Instant::now();
    let new = load.run(&["-n", "2000", "-c", "2000", "-r", "250"]);
    let took = started.elapsed();
    println!("2000 new TLS connections, one answer each: {took:.1?}, p99 of the answer {:.1} ms", new.p99);

    let status = std::fs::read_to_string(format!("/proc/{}/status", controller.process.id())).expect("it runs");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    let kib: f64 = resident.trim().trim_end_matches(" kB").parse().expect("a number");
    println!("memory after all that: {:.1} MiB", kib / 1024.0);
    let read = gets() - before;
    println!("requests to the API server meanwhile, but for the watches: {read}");
    assert_eq!(read, 0);
    if std::env::var_os("CONTROLLER_BINARY").is_some() {
        assert!(fast.per_second >= 3_000.0, "promised: 3000 answers a second");
        assert!(open.p99 < 5.0, "promised: p99 below 5 ms at 500/s");
        assert!(took.as_secs_f64() < 10.0, "promised: 2000 connections in 10 s");
        assert!(kib < 40.0 * 1024.0, "promised: below 40 MiB");
    }
}

/// A pod as a Deployment's controller makes it.
fn review() -> Value {
    let mut pod = annotated("spiderpool/vlan-7");
    pod["metadata"]["labels"] = json!({"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": "shop-1", "pod-template-hash": "6d4cf56db6"});
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "shop-6d4cf56db6", "uid": "6f0d0a51-3b0d-4a3c-9d8a-27d0a7c2a1f0", "controller": true, "blockOwnerDeletion": true}]);
    let env: Vec<Value> = (0..30)
        .map(|n| json!({"name": format!("SETTING_{n}"), "value": format!("value of setting number {n}")}))
        .collect();
    pod["spec"]["containers"][0]["env"] = env.into();
    pod["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}});
    pod["spec"]["volumes"] = json!([{"name": "kube-api-access-x7k2p", "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}]);
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "namespace": "team-9999", "operation": "CREATE", "dryRun": false, "object": pod,
        "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller", "groups": ["system:serviceaccounts", "system:authenticated"]},
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }})
}

struct Load<'a> {
    stage: &'a Stage,
    controller: &'a Controller,
    body: &'a Path,
}

/// What `h2load` measured, in milliseconds.
struct Measured {
    per_second: f64,
    median: f64,
    p99: f64,
    slowest: f64,
}

impl Load<'_> {
    fn run(&self, arguments: &[&str]) -> Measured {
        let log = self.stage.folder.path().join("h2load.tsv");
        let _ = std::fs::remove_file(&log);
        let mut load = Command::new("taskset");
        load.args(["-c", CLIENT, "h2load", "--header=content-type: application/json"]);
        load.arg(format!("--data={}", self.body.display())).arg(format!("--log-file={}", log.display()));
        let output = attempt(load.args(arguments).arg(format!("{}/mutate--v1-pod", self.controller.url)));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains(" 0 failed, 0 errored, 0 timeout"), "{text}");
        // Start in µs since the epoch, status, time to the answer in µs.
        let log = std::fs::read_to_string(&log).expect("a log");
        let lines: Vec<Vec<u64>> =
            log.lines().map(|line| line.split('\t').filter_map(|field| field.parse().ok()).collect()).collect();
        assert!(lines.iter().all(|line| line[1] == 200), "an answer is no success");
        let mut times: Vec<u64> = lines.iter().map(|line| line[2]).collect();
        times.sort_unstable();
        let first = lines.iter().map(|line| line[0]).min().expect("answers");
        let last = lines.iter().map(|line| line[0] + line[2]).max().expect("answers");
        let at = |percent: usize| milliseconds(times[(times.len() * percent / 100).min(times.len() - 1)]);
        Measured {
            per_second: f64::from(u32::try_from(times.len()).expect("few")) / (milliseconds(last - first) / 1000.0),
            median: at(50),
            p99: at(99),
            slowest: at(100),
        }
    }
}

fn milliseconds(micros: u64) -> f64 {
    f64::from(u32::try_from(micros).expect("less than an hour")) / 1000.0
}
