//! Prints how fast the agent answers on a real cluster, and what it costs. What the project promises is asserted.

use anyhow::ensure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tests::cluster::{CHANGING, Cluster, ETH1_NIC, MATCHING, SOON, SUB_ENI, dev_cluster, in_node};
use tests::wait;

const ROUNDS: usize = 20;
const PROMISED: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures() {
    let cluster = Cluster::installed().await;
    cluster.until_kubelet_offers(MATCHING, SUB_ENI, 256).await;
    cluster.label(CHANGING, "key", Some("other")).await;
    cluster.until_kubelet_offers(CHANGING, SUB_ENI, 0).await;
    println!("{:<66} {:>10} {:>10}", format!("{ROUNDS} rounds each"), "median", "max");

    let watch = Watch::on(&cluster, CHANGING, ETH1_NIC, 10_000);
    let (mut kubelet, mut object) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (label, count, shown) = if round % 2 == 0 { ("value", 256, "256") } else { ("other", 0, "0") };
        cluster.label(CHANGING, "key", Some(label)).await;
        let started = Instant::now();
        cluster.until_kubelet_offers(CHANGING, SUB_ENI, count).await;
        kubelet.push(started.elapsed());
        cluster.until_allocatable(CHANGING, SUB_ENI, Some(shown)).await;
        object.push(started.elapsed());
    }
    let label = print("label changed -> kubelet (PodResources)", kubelet);
    print("label changed -> Node object, at this cluster's status period", object);

    let mut kubelet = Vec::new();
    for round in 0..ROUNDS {
        let (change, count) = if round % 2 == 0 { ("add-nic", 10_000) } else { ("del-nic", 0) };
        dev_cluster(&[change, CHANGING, "ext9"]);
        let started = Instant::now();
        cluster.until_kubelet_offers(CHANGING, "spidernet.io/ext9-nic", count).await;
        kubelet.push(started.elapsed());
    }
    let nic = print("NIC added or removed (command returned) -> kubelet", kubelet);
    watch.never_below();

    // Before kubelets are killed: one that starts may take pods on before it has cleared up after those that are gone.
    let rounds = 50;
    let started = Instant::now();
    for _ in 0..rounds {
        // Not all 256: a kubelet may count a pod that is gone from the API for an instant longer.
        cluster.create_pod("round", SUB_ENI, 100).await;
        cluster.until_phase("round", "Running").await;
        cluster.delete_pods(&["round"]).await;
    }
    println!(
        "{rounds} pods, one after the other, each with 100 of 256 devices: {:.0?}, none failed",
        started.elapsed()
    );
    cluster.until_agent_says(MATCHING, "devices_in_use{resource=\"spidernet.io/sub-eni\"} 0").await;
    println!("devices in use after: 0");

    let mut spans = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        dev_cluster(&["restart-kubelet", "--kill", MATCHING]);
        cluster.until_registered(MATCHING, &[SUB_ENI, ETH1_NIC]).await;
        spans.push(started.elapsed());
    }
    print("kubelet killed -> both resources registered (its start included)", spans);

    let agent = in_node(MATCHING, "pgrep -f '^/usr/bin/spiderpool-agent daemon'");
    let status = in_node(MATCHING, &format!("grep VmRSS /proc/{agent}/status"));
    println!("agent, memory: {}", status.split_whitespace().skip(1).collect::<Vec<_>>().join(" "));
    let ticks = || {
        let stat = in_node(MATCHING, &format!("cat /proc/{agent}/stat"));
        let after_name = stat.rsplit_once(") ").expect("a name").1;
        after_name.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>()
    };
    let (before, idle) = (ticks(), Duration::from_secs(30));
    tokio::time::sleep(idle).await;
    println!("agent, CPU while idle: {} ms in {idle:?}", (ticks() - before) * 10);
    assert!(label <= PROMISED && nic <= PROMISED, "promised: {PROMISED:?}");
}

/// Looks every 100 ms whether a resource that has nothing to do with a change keeps its count.
struct Watch {
    stop: Arc<AtomicBool>,
    looks: Arc<AtomicUsize>,
    looking: tokio::task::JoinHandle<()>,
}

impl Watch {
    fn on(cluster: &Cluster, node: &'static str, resource: &'static str, count: usize) -> Self {
        let (stop, looks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (cluster, stopped, looked) = (cluster.clone(), Arc::clone(&stop), Arc::clone(&looks));
        #[allow(clippy::disallowed_methods, reason = "it ends with the test")]
        let looking = tokio::spawn(async move {
            while !stopped.load(Ordering::Relaxed) {
                let found = cluster.kubelet_allocatable(node, resource).await.expect("the kubelet answers");
                assert_eq!(found, count, "{resource} on {node}");
                looked.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        Self { stop, looks, looking }
    }

    fn never_below(self) {
        self.stop.store(true, Ordering::Relaxed);
        assert!(!self.looking.is_finished(), "the other resource was disturbed");
        println!("meanwhile the other resource kept its count in {} looks", self.looks.load(Ordering::Relaxed));
    }
}

/// Prints median and maximum; the maximum.
fn print(what: &str, mut spans: Vec<Duration>) -> Duration {
    spans.sort();
    let (median, max) = (spans[spans.len() / 2], spans[spans.len() - 1]);
    println!("{what:<66} {:>7} ms {:>7} ms", median.as_millis(), max.as_millis());
    max
}

/// What `nodeStatusUpdateFrequency` means for users; the cluster is started with the one to be measured.
#[tokio::test]
async fn node_object() {
    let cluster = Cluster::installed().await;
    let mut spans = Vec::new();
    for round in 0..10 {
        let (label, shown) = if round % 2 == 0 { ("value", "256") } else { ("other", "0") };
        let started = Instant::now();
        cluster.label(CHANGING, "key", Some(label)).await;
        wait::until("the Node object", SOON, async || {
            let found = cluster.allocatable(CHANGING, SUB_ENI).await;
            ensure!(found.as_deref() == Some(shown), "it is {found:?}");
            Ok(())
        })
        .await;
        spans.push(started.elapsed());
    }
    print("label changed -> Node object, 10 rounds", spans);
}
