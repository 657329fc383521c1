//! Prints what the agent costs and how fast it answers, on the cluster that it runs on. Fails only if nothing could be
//! measured; machines differ.

use std::time::{Duration, Instant};
use tests::cluster::{CHANGING, Cluster, ETH1_NIC, MATCHING, SUB_ENI, dev_cluster, in_node};

const ROUNDS: usize = 20;

#[tokio::test]
async fn figures() {
    let cluster = Cluster::installed().await;
    cluster.until_allocatable(MATCHING, SUB_ENI, Some("256")).await;
    println!("{:<58} {:>10} {:>10}", format!("{ROUNDS} rounds each, Node status period 1 s"), "median", "max");

    let mut spans = Vec::new();
    for round in 0..ROUNDS {
        let (label, shown) = if round % 2 == 0 { ("value", "256") } else { ("other", "0") };
        let started = Instant::now();
        cluster.label(CHANGING, "key", Some(label)).await;
        cluster.until_allocatable(CHANGING, SUB_ENI, Some(shown)).await;
        spans.push(started.elapsed());
    }
    print("label changed -> Node object", spans);

    let mut spans = Vec::new();
    for round in 0..ROUNDS {
        let (change, shown) = if round % 2 == 0 { ("add-nic", "10k") } else { ("del-nic", "0") };
        let started = Instant::now();
        dev_cluster(&[change, CHANGING, "ext9"]);
        cluster.until_allocatable(CHANGING, "spidernet.io/ext9-nic", Some(shown)).await;
        spans.push(started.elapsed());
    }
    print("NIC added or removed -> Node object", spans);

    let mut spans = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        dev_cluster(&["restart-kubelet", "--kill", MATCHING]);
        cluster.until_registered(MATCHING, &[SUB_ENI, ETH1_NIC]).await;
        spans.push(started.elapsed());
    }
    print("kubelet killed -> both resources registered (its start too)", spans);

    let agent = in_node(MATCHING, "pgrep -f '^/usr/bin/spiderpool-agent '");
    let status = in_node(MATCHING, &format!("grep VmRSS /proc/{agent}/status"));
    println!("agent, memory: {}", status.split_whitespace().skip(1).collect::<Vec<_>>().join(" "));
    let ticks = || {
        let stat = in_node(MATCHING, &format!("cat /proc/{agent}/stat"));
        let fields: Vec<u64> = stat.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // utime and stime, the 14th and 15th field; two of those before are no numbers.
        fields[11] + fields[12]
    };
    let (before, idle) = (ticks(), Duration::from_secs(30));
    tokio::time::sleep(idle).await;
    println!("agent, CPU while idle: {} ms in {idle:?}", (ticks() - before) * 10);
}

fn print(what: &str, mut spans: Vec<Duration>) {
    spans.sort();
    let (median, max) = (spans[spans.len() / 2], spans[spans.len() - 1]);
    println!("{what:<58} {:>7} ms {:>7} ms", median.as_millis(), max.as_millis());
}
