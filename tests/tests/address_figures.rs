//! How fast addresses are given: agents, against a bare client that writes the same objects. `make bench` gives it the agent
//! that is shipped, and builds this as a release.

#[path = "address_figures/bare.rs"]
mod bare;
#[path = "address_figures/load.rs"]
mod load;
#[path = "address_figures/stuck.rs"]
mod stuck;
#[path = "address_figures/watched.rs"]
mod watched;

use bare::Bare;
use load::{Load, Measured, drive, percent};
use std::collections::BTreeMap;
use std::time::Duration;
use tests::node::{Node, Nodes};
use tests::plugin::Plugin;

const CALLERS: usize = 16;
const ROUNDS: usize = 3;
const BUDGET: Duration = Duration::from_secs(100);

/// Addresses of a pool.
fn size() -> usize {
    std::env::var("POOL_SIZE").ok().and_then(|size| size.parse().ok()).unwrap_or(5_000)
}

/// Whether what is measured is what is shipped, and so has to keep what is promised.
pub fn promised() -> bool {
    std::env::var_os("AGENT_BINARY").is_some()
}

/// Both agents give `count` addresses of a pool.
async fn agents(stage: &Nodes, nodes: &[Node; 2], pool: &str, count: usize, load: Load) -> Measured {
    let each = count / nodes.len();
    let mut parts = Vec::new();
    for node in nodes {
        let pods = stage.generated_pods("shop-6d4cf56db6-", each, &node.name, pool).await;
        let mut plugins = Vec::new();
        for _ in 0..CALLERS {
            plugins.push(Plugin::dial(&node.socket()).await.expect("it listens"));
        }
        parts.push((pods, plugins));
    }
    let sides = parts.iter().map(|(pods, plugins)| {
        drive(pods.len(), load, async |n| {
            let plugin = &plugins[n % CALLERS];
            plugin.add(&pods[n], BUDGET).await.map(drop).map_err(|why| format!("{why:?}"))
        })
    });
    Measured::of(futures::future::join_all(sides).await.concat())
}

fn difference(after: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let grown = |(key, count): (&String, &u64)| (key.clone(), count - before.get(key).copied().unwrap_or_default());
    after.iter().map(grown).filter(|(_, count)| *count > 0).collect()
}

fn count(requests: &BTreeMap<String, u64>, of: &[&str]) -> u64 {
    requests.iter().filter(|(key, _)| of.iter().any(|prefix| key.starts_with(prefix))).map(|(_, count)| count).sum()
}

#[expect(clippy::cast_precision_loss, reason = "counts of a test")]
fn per(count: u64, of: usize) -> f64 {
    count as f64 / of as f64
}

/// Lowest, middle and highest.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_against_a_bare_client() {
    let stage = Nodes::set().await;
    let nodes = [stage.node("a").await, stage.node("b").await];
    let agents_run = [nodes[0].ready_agent().await, nodes[1].ready_agent().await];
    stage.pool("warm", "10.200.0.0-10.200.255.255").await;
    agents(&stage, &nodes, "warm", 200, Load::Closed(CALLERS)).await.whole();
    let bare = Bare::like(&stage, &nodes).await;
    bare.write(250, 200, Load::Closed(CALLERS)).await;

    let size = size();
    let (mut begins, mut ends, mut rates, mut costs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let pool = format!("pool-{round}");
        let last = size - 1;
        stage.pool(&pool, &format!("10.{round}.0.0-10.{round}.{}.{}", last / 256, last % 256)).await;
        let before = stage.server.answered().await;
        let a = agents(&stage, &nodes, &pool, size, Load::Closed(CALLERS)).await;
        a.whole();
        let asked = difference(&stage.server.answered().await, &before);
        let b = bare.write(100 + round, size, Load::Closed(CALLERS)).await;
        b.whole();
        let (begin, end, rate) = (a.rate(0, 90), a.rate(90, 100), b.rate(0, 100));
        println!(
            "round {round}: agents {begin:.0}/s to 90 % full, {end:.0}/s from there, p99 {:.0?}; bare {rate:.0}/s, p99 {:.0?}: {:.0} % and {:.0} %",
            a.at(99),
            b.at(99),
            begin / rate * 100.0,
            end / rate * 100.0
        );
        let writes = count(
            &asked,
            &["POST spideripallocations 201", "POST spiderendpoints 201", "PATCH spiderendpoints 200", "PUT spiderip"],
        );
        let refused = count(&asked, &["POST spideripallocations 409"]);
        let lists = count(&asked, &["LIST spideripallocations"]);
        println!(
            "  per address: {:.3} writes, {:.3} refused creates, {:.4} lists, {:.2} reads; all: {asked:?}",
            per(writes, size),
            per(refused, size),
            per(lists, size),
            per(count(&asked, &["GET "]), size)
        );
        costs.push((per(writes, size), per(refused, size), per(lists, size)));
        begins.push(begin / rate);
        ends.push(end / rate);
        rates.push(rate);
    }
    let ((b0, b1, b2), (e0, e1, e2)) = (spread(begins), spread(ends));
    println!(
        "to 90 %: {} ({} to {}) of the bare rate; from there: {} ({} to {})",
        percent(b1),
        percent(b0),
        percent(b2),
        percent(e1),
        percent(e0),
        percent(e2)
    );

    // At the same pace, a third of what the bare client can.
    let pace = spread(rates).1 / 3.0;
    let paced = size.min(1_000);
    let a = agents(&stage, &nodes, "warm", paced, Load::Paced(pace / 2.0)).await;
    let b = bare.write(240, paced, Load::Paced(pace / 2.0)).await;
    println!(
        "at {pace:.0}/s: agents p50 {:.1?}, p99 {:.1?}; bare p50 {:.1?}, p99 {:.1?}",
        a.at(50),
        a.at(99),
        b.at(50),
        b.at(99)
    );
    drop(agents_run);
    if promised() {
        for (writes, refused, lists) in costs {
            assert!((1.999..=2.001).contains(&writes), "promised: two writes of an address, not {writes}");
            assert!(refused <= 0.25, "promised: a refused create for every fourth address, not {refused} of each");
            assert!(lists <= 0.01, "promised: a list for a hundred addresses, not {lists} of each");
        }
        assert!(b1 >= 0.8, "promised: four fifths of the bare rate to 90 %");
        assert!(e1 >= 0.5, "promised: half of it from there");
        assert!(a.at(99) <= b.at(99) * 3, "promised: p99 within three times that of the bare pair");
    }
}
