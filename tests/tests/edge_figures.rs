//! Figures of the kubelet edge against a fake kubelet: what the agent alone costs. `make bench` runs them with the
//! program that is shipped (`AGENT_BINARY`); a limit that the project promises is asserted.

use proto::deviceplugin::{AllocateRequest, ContainerAllocateRequest};
use std::time::{Duration, Instant};
use tests::agent::{Agent, conf};
use tests::kubelet::{FakeKubelet, dial};

const SOON: Duration = Duration::from_mins(1);
const RESOURCES: usize = 8;
const DEVICES: usize = 10_000;

fn name(n: usize) -> String {
    format!("example.com/r{n}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures() {
    let root = tempfile::tempdir().expect("a folder");
    let rules: Vec<String> =
        (0..RESOURCES).map(|n| format!("{{resourceName: {}, defaultMaxCount: {DEVICES}}}", name(n))).collect();
    let rules = format!("[{}]", rules.join(", "));
    let mut kubelet = FakeKubelet::started(&root.path().join("device-plugins"));

    let started = Instant::now();
    let agent = Agent::alone(root.path(), &rules);
    all(&kubelet, &[0; RESOURCES]).await;
    println!(
        "agent start -> {RESOURCES} resources of {DEVICES} devices registered and read: {:.0?}",
        started.elapsed()
    );

    let mut spans = Vec::new();
    for _ in 0..20 {
        let before: [usize; RESOURCES] = std::array::from_fn(|n| kubelet.registrations(&name(n)));
        kubelet.restart().await;
        let at = Instant::now();
        all(&kubelet, &before).await;
        spans.push(at.elapsed());
    }
    print("new kubelet.sock -> all registered and read, 20 rounds", &mut spans);
    let (median, slowest) = (spans[spans.len() / 2], spans[spans.len() - 1]);
    assert!(median < Duration::from_secs(2), "whatever the machine and the build, nobody waits for a poll: {spans:?}");

    let mut spans = Vec::new();
    for round in 0..20_usize {
        let count = DEVICES - 1 - round % 2;
        let changed = rules.replacen(&DEVICES.to_string(), &count.to_string(), 1);
        let at = Instant::now();
        Agent::reconfigure(root.path(), &conf(root.path(), &changed));
        kubelet.until_allocatable(&name(0), count, SOON).await;
        spans.push(at.elapsed());
    }
    print("conf.yml changed -> list at the kubelet, 20 rounds", &mut spans);

    let mut client = dial(&kubelet.endpoint(&name(1))).await.expect("dials");
    let mut spans = Vec::new();
    for n in 0..2_000 {
        let devices_ids = vec![format!("sub-eni-{}", n % DEVICES)];
        let request = AllocateRequest { container_requests: vec![ContainerAllocateRequest { devices_ids }] };
        let at = Instant::now();
        client.allocate(request).await.expect("ours");
        spans.push(at.elapsed());
    }
    spans.sort();
    let p99 = spans[spans.len() * 99 / 100];
    println!("Allocate, 2000 calls: median {:.0?}, p99 {p99:.0?}", spans[spans.len() / 2]);

    let (memory, before) = (memory_kib(&agent), cpu_ms(&agent));
    let idle = Duration::from_secs(10);
    tokio::time::sleep(idle).await;
    println!("memory: {:.1} MiB; CPU while idle: {} ms in {idle:?}", memory / 1024.0, cpu_ms(&agent) - before);
    for n in 1..RESOURCES {
        assert_eq!(kubelet.allocatable(&name(n)), Some(DEVICES));
    }
    if std::env::var_os("AGENT_BINARY").is_some() {
        assert!(slowest < Duration::from_millis(500), "promised: 500 ms");
        assert!(p99 < Duration::from_millis(2), "promised: 2 ms");
        assert!(memory < 25.0 * 1024.0, "promised: 25 MiB");
    }
}

async fn all(kubelet: &FakeKubelet, registrations: &[usize; RESOURCES]) {
    tests::wait::until("all resources", SOON, async || {
        let ready = |n: usize| {
            kubelet.registrations(&name(n)) > registrations[n] && kubelet.allocatable(&name(n)) == Some(DEVICES)
        };
        if (0..RESOURCES).all(ready) { Ok(()) } else { Err("not yet") }
    })
    .await;
}

fn print(what: &str, spans: &mut [Duration]) {
    spans.sort();
    println!("{what}: median {:.0?}, max {:.0?}", spans[spans.len() / 2], spans[spans.len() - 1]);
}

fn memory_kib(agent: &Agent) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", agent.process.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn cpu_ms(agent: &Agent) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", agent.process.id())).expect("it runs");
    let after_name = stat.rsplit_once(") ").expect("a name").1;
    let ticks = after_name.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
    ticks.sum::<u64>() * 10
}
