//! How fast addresses are given: agents, against a bare client that writes the same objects. `make bench` gives it the agent
//! that is shipped, and builds this as a release.

#[path = "address_figures/bare.rs"]
mod bare;
#[path = "address_figures/load.rs"]
mod load;
#[path = "address_figures/provided.rs"]
mod provided;
#[path = "address_figures/stuck.rs"]
mod stuck;
#[path = "address_figures/watched.rs"]
mod watched;

use bare::Bare;
use load::{Load, Measured, drive, percent};
use std::collections::BTreeMap;
use std::time::Duration;
use tests::agent::Agent;
use tests::node::{Node, Nodes};
use tests::plugin::{Plugin, Sandbox};

const CALLERS: usize = 16;
const ROUNDS: usize = 3;
const TENTHS: usize = 10;
const BUDGET: Duration = Duration::from_secs(100);

/// Addresses of a pool.
fn size() -> usize {
    std::env::var("POOL_SIZE").ok().and_then(|size| size.parse().ok()).unwrap_or(5_000)
}

/// Whether what is measured is what is shipped, and so has to keep what is promised.
pub fn promised() -> bool {
    std::env::var_os("AGENT_BINARY").is_some()
}

/// The pods of a node that still need addresses, and who calls for them.
struct Side {
    pods: Vec<Sandbox>,
    plugins: Vec<Plugin>,
}

async fn sides(stage: &Nodes, nodes: &[Node; 2], pool: &str, count: usize) -> [Side; 2] {
    let each = async |node: &Node| {
        let pods = stage.generated_pods("shop-6d4cf56db6-", count / nodes.len(), &node.name, pool).await;
        let mut plugins = Vec::new();
        for _ in 0..CALLERS {
            plugins.push(Plugin::dial(&node.socket()).await.expect("it listens"));
        }
        Side { pods, plugins }
    };
    [each(&nodes[0]).await, each(&nodes[1]).await]
}

/// Both agents give so many their addresses.
async fn agents(sides: &mut [Side; 2], count: usize, load: Load) -> Measured {
    let both = sides.iter_mut().map(async |Side { pods, plugins }| {
        let pods = pods.split_off(pods.len() - count / 2);
        let add = async |n: usize| {
            plugins[n % CALLERS].add(&pods[n], BUDGET).await.map(drop).map_err(|why| format!("{why:?}"))
        };
        drive(pods.len(), load, add).await
    });
    Measured::of(futures::future::join_all(both).await.concat())
}

/// CPU time, in seconds.
#[derive(Default)]
struct Spent {
    server: f64,
    agents: f64,
}

impl Spent {
    async fn so_far(stage: &Nodes, agents: &[Agent]) -> Self {
        let (_, _, server) = stage.server.sent("none").await;
        Self { server, agents: agents.iter().map(|agent| agent.process.cpu()).sum() }
    }

    fn add(&mut self, after: &Self, before: &Self) {
        self.server += after.server - before.server;
        self.agents += after.agents - before.agents;
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of a test")]
    fn each(&self, of: usize) -> String {
        let [server, agents] = [self.server, self.agents].map(|seconds| seconds * 1_000.0 / of as f64);
        format!("API server {server:.2} ms, agents {agents:.2} ms")
    }
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
    agents(&mut sides(&stage, &nodes, "warm", 200).await, 200, Load::Closed(CALLERS)).await.whole();
    let bare = Bare::like(&stage, &nodes).await;

    let size = size();
    let (mut begins, mut ends, mut rates, mut costs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let pool = format!("pool-{round}");
        let last = size - 1;
        stage.pool(&pool, &format!("10.{round}.0.0-10.{round}.{}.{}", last / 256, last % 256)).await;
        let mut pods = sides(&stage, &nodes, &pool, size).await;
        let mut both = bare.start(100 + round, size / TENTHS, Load::Closed(CALLERS));
        let (mut parts, mut b, mut asked) = (Vec::new(), Measured::default(), BTreeMap::new());
        let (mut ours, mut theirs) = (Spent::default(), Spent::default());
        // In turn, so that what else the machine does meets both.
        for _ in 0..TENTHS {
            let (answered, begin) = (stage.server.answered().await, Spent::so_far(&stage, &agents_run).await);
            parts.push(agents(&mut pods, size / TENTHS, Load::Closed(CALLERS)).await);
            let between = Spent::so_far(&stage, &agents_run).await;
            for (key, count) in difference(&stage.server.answered().await, &answered) {
                *asked.entry(key).or_default() += count;
            }
            b.then(both.write().await);
            ours.add(&between, &begin);
            theirs.add(&Spent::so_far(&stage, &agents_run).await, &between);
        }
        let end = parts.pop().expect("ten").rate();
        let mut a = Measured::default();
        for part in parts {
            a.then(part);
        }
        a.whole();
        b.whole();
        let (begin, rate) = (a.rate(), b.rate());
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
        println!("  CPU per address: {}; with the bare client: {}", ours.each(size), theirs.each(size));
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
    let paced_load = Load::Paced(pace / 2.0);
    let a = agents(&mut sides(&stage, &nodes, "warm", paced).await, paced, paced_load).await;
    let b = bare.start(240, paced, paced_load).write().await;
    println!(
        "at {pace:.0}/s: agents p50 {:.1?}, p99 {:.1?}; bare p50 {:.1?}, p99 {:.1?}",
        a.at(50),
        a.at(99),
        b.at(50),
        b.at(99)
    );
    drop(agents_run);
    let mut kept = Kept::default();
    for (writes, refused, lists) in costs {
        kept.check((1.999..=2.001).contains(&writes), format!("two writes of an address; {writes}"));
        kept.check(refused <= 0.25, format!("a refused create for every fourth address; {refused} of each"));
        kept.check(lists <= 0.01, format!("a list for a hundred addresses; {lists} of each"));
    }
    kept.check(b1 >= 0.8, format!("four fifths of the bare rate to 90 %; {}", percent(b1)));
    kept.check(e1 >= 0.5, format!("half of it from there; {}", percent(e1)));
    kept.check(a.at(99) <= b.at(99) * 3, format!("p99 within three times that of the bare pair; {:.1?}", a.at(99)));
    kept.end();
}

/// What was promised and is not so. All of it is told, at the end.
#[derive(Default)]
pub struct Kept(Vec<String>);

impl Kept {
    /// `what` was promised.
    pub fn check(&mut self, kept: bool, what: String) {
        if !kept {
            self.0.push(what);
        }
    }

    /// Fails if what is measured is what is shipped.
    pub fn end(self) {
        assert!(!promised() || self.0.is_empty(), "promised and missed: {:#?}", self.0);
    }
}
