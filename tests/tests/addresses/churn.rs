//! Pods come and go while whatever serves them is killed.

use futures::StreamExt;
use kube::api::DeleteParams;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};
use tests::addresses::{attachment, bridge, of_pools, pool, until_consistent, until_free};
use tests::cluster::{CHANGING, Cluster, MATCHING, OTHER, dev_cluster, in_node, networked};
use tests::multus;
use tests::process::run;

const NODES: [&str; 3] = [MATCHING, CHANGING, OTHER];
/// Pods at one time; the pool has a few addresses less.
const PODS: usize = 30;
const ADDRESSES: usize = 26;
/// Unless `CHURN_MINUTES` says otherwise, as `make soak` does.
const LASTS: u64 = 1;

/// A generator of numbers that a seed repeats (Steele and others, "Fast splittable pseudorandom number generators", 2014).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % (limit as u64)).unwrap_or_default()
    }
}

/// A number that the caller set.
fn told(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
}

fn seed() -> u64 {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    told("CHURN_SEED").unwrap_or_else(now)
}

/// Kills one of them, by pid, with SIGKILL.
fn kill(chance: &mut Chance) -> String {
    let node = NODES[chance.below(NODES.len())];
    match chance.below(5) {
        0 => {
            dev_cluster(&["restart-apiserver", "--kill"]);
            "API server".to_owned()
        }
        1 => {
            dev_cluster(&["restart-kubelet", "--kill", node]);
            format!("kubelet of {node}")
        }
        n => {
            let program = if n == 2 { "controller" } else { "agent" };
            let kill = format!("for pid in $(pgrep -f '^/usr/bin/spiderpool-{program} '); do kill -9 $pid; done; true");
            in_node(node, &kill);
            format!("{program} on {node}")
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_killed_the_same_addresses_are_everywhere() {
    let seed = seed();
    println!("seed {seed}; CHURN_SEED={seed} repeats the choices");
    let cluster = Cluster::installed().await;
    multus::install(&[]);
    pool("churn", "10.83.0.0/24", &format!("10.83.0.10-10.83.0.{}", 9 + ADDRESSES), json!({}));
    attachment("churn", bridge("br-churn"), of_pools(&["churn"]));

    let mut chance = Chance(seed);
    let mut live = BTreeSet::new();
    let (mut made, mut killed) = (0_u32, Vec::new());
    let lasts = Duration::from_mins(told("CHURN_MINUTES").unwrap_or(LASTS));
    let begin = Instant::now();
    while begin.elapsed() < lasts {
        // Errors of an API server that is just being killed: the next round is another try.
        while live.len() < PODS {
            let name = format!("churn-{made}");
            if cluster.create(networked(&name, "default/churn")).await.is_err() {
                break;
            }
            made += 1;
            live.insert(name);
        }
        killed.push(kill(&mut chance));
        for _ in 0..PODS / 4 {
            let at = chance.below(live.len().max(1));
            let Some(name) = live.iter().nth(at).cloned() else { break };
            let how =
                if chance.below(4) == 0 { DeleteParams::default().grace_period(0) } else { DeleteParams::default() };
            if cluster.pods().delete(&name, &how).await.is_ok() {
                live.remove(&name);
            }
        }
    }
    let mut kills: BTreeMap<&str, usize> = BTreeMap::new();
    for who in &killed {
        *kills.entry(who).or_default() += 1;
    }
    println!("{made} pods made in {:.0?}; killed: {kills:?}", begin.elapsed());

    // No more pods than addresses, so that each has to end with one.
    let extra: Vec<_> = live.iter().skip(ADDRESSES).cloned().collect();
    futures::stream::iter(&extra)
        .for_each(async |name| drop(cluster.pods().delete(name, &DeleteParams::default()).await))
        .await;
    for name in live.iter().take(ADDRESSES) {
        cluster.until_phase(name, "Running").await;
    }
    let begin = Instant::now();
    let held = until_consistent(&cluster, &["10.83."], Duration::from_mins(7)).await;
    println!(
        "{} addresses, the same in API, pods and namespaces, {:.1?} after all pods ran",
        held.len(),
        begin.elapsed()
    );
    assert_eq!(held.len(), live.len().min(ADDRESSES));
    run("kubectl", ["delete", "pod", "--all", "--wait=false"]);
    until_free(&["10.83."], Duration::from_mins(6)).await;
    run("kubectl", ["delete", "spiderippool", "churn", "--timeout=60s"]);
}
