//! The plugin `spiderpool`, the agent and an API server, as they are; no kubelet and no runtime but this one. Faults that others
//! had: each test names the public report.

mod relay;
mod stage;

use anyhow::ensure;
use futures::future::join_all;
use relay::{Relay, Stop};
use serde_json::json;
use stage::{Plugin, SOON, Stage};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tests::agent::{Agent, conf};
use tests::wait;

/// cilium/cilium#10065, k8snetworkplumbingwg/ovs-cni#106, k8snetworkplumbingwg/multus-cni#887.
#[tokio::test]
async fn a_del_without_a_namespace_frees_once_and_nothing_of_whoever_comes_after() {
    let stage = Stage::set(1).await;
    let agent = stage.agent();
    let [first, second] = [stage.pod("a").await, stage.pod("b").await];
    let first = first.plugin(&stage, "c-1", "net1");
    let address = first.until_added().await;
    let gone = [None, Some(""), Some("/run/netns/removed"), Some("/etc/hostname")];
    for netns in gone {
        let (code, msg) = first.clone().netns(netns).add().expect_err("no namespace");
        assert!(code == 4 && msg.contains("CNI_NETNS"), "{code}: {msg}");
    }
    assert_eq!(stage.held().await, [("a".to_owned(), address.clone())], "nothing came of them");
    stage.delete_pod("a").await;
    for netns in gone {
        first.clone().netns(netns).del();
    }
    assert!(stage.held().await.is_empty(), "the first of them has freed it");
    let second = second.plugin(&stage, "c-2", "net1");
    assert_eq!(second.until_added().await, address, "the pool has no other");
    for _ in 0..3 {
        first.clone().before(&address).del();
    }
    assert_eq!(stage.held().await, [("b".to_owned(), address)]);
    drop(agent);
}

/// containerd/containerd#5438: killed in the middle of an ADD, at ten points of what is said; no DEL comes, and the pod is
/// tried again with another sandbox.
#[tokio::test]
async fn a_plugin_killed_in_an_add_costs_no_second_address() {
    let stage = Stage::set(40).await;
    let _agent = stage.agent();
    // What a whole ADD says, in both directions.
    let whole = stage.pod("whole").await.plugin(&stage, "c-w", "net1");
    whole.until_added().await;
    let relay = Relay::open(&stage, Stop::Never);
    whole.clone().socket(relay.path()).add().expect("the same again");
    let (said, heard) = relay.ended();
    assert!(said > 100 && heard > 100, "{said} and {heard} bytes");
    let points = [0, 1, 3, 5, 8].map(|tenth| Stop::Said(said * tenth / 10));
    let points = points.into_iter().chain([0, 1, 3, 5, 8].map(|tenth| Stop::Heard(heard * tenth / 10)));
    let mut addresses = BTreeSet::new();
    for (at, stop) in points.enumerate() {
        let name = format!("a-{at}");
        let pod = stage.pod(&name).await;
        let relay = Relay::open(&stage, stop);
        let mut killed = pod.plugin(&stage, &format!("c-{at}"), "net1").socket(relay.path()).begin();
        relay.until_stopped();
        killed.kill().expect("runs");
        killed.wait().expect("ends");
        drop(relay);
        let retried = pod.plugin(&stage, &format!("d-{at}"), "net1");
        let address = retried.until_added().await;
        wait::until(format!("one address of {name}, {stop:?}"), SOON, async || {
            let held: Vec<_> = stage.held().await.into_iter().filter(|(pod, _)| *pod == name).collect();
            ensure!(held == [(name.clone(), address.clone())], "{held:?}, and {address} was given");
            Ok(())
        })
        .await;
        addresses.insert(address);
        stage.delete_pod(&name).await;
        retried.del();
    }
    assert!(addresses.len() > 1, "by chance from a pool of forty");
    wait::until("all but one to be free", SOON, async || {
        let held = stage.held().await;
        ensure!(held.len() == 1, "{held:?}");
        Ok(())
    })
    .await;
}

/// aws/amazon-vpc-cni-k8s#711: an agent that had just started gave addresses of running pods. It is killed while thirty ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_killed_while_pods_start_gives_no_address_twice() {
    let stage = Stage::set(60).await;
    let agent = stage.agent();
    let mut plugins = Vec::new();
    for n in 0..60 {
        plugins.push(stage.pod(&format!("a-{n}")).await.plugin(&stage, &format!("c-{n}"), "net1"));
    }
    let (running, starting) = plugins.split_at(30);
    let mut given = join_all(running.iter().map(Plugin::until_added)).await;
    let restarted = async {
        wait::until("the first of thirty to have one", SOON, async || {
            let held = stage.held().await.len();
            ensure!(held > 30, "{held}");
            Ok(())
        })
        .await;
        drop(agent);
        stage.agent()
    };
    let (more, _agent) = futures::join!(join_all(starting.iter().map(Plugin::until_added)), restarted);
    given.extend(more);
    assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), 60, "{given:?}");
    let held: BTreeSet<_> = stage.held().await.into_iter().map(|(_, address)| address).collect();
    assert_eq!(held, given.iter().cloned().collect::<BTreeSet<_>>());
    // Asked once more by their runtimes, all have what they had.
    assert_eq!(join_all(plugins.iter().map(Plugin::until_added)).await, given);
}

/// The same: before it has read what pods have, it gives nothing, and lets nobody wait.
#[tokio::test]
async fn an_agent_that_has_not_read_its_allocations_says_so_at_once() {
    let stage = Stage::bare().await;
    let _agent = stage.agent();
    let plugin = stage.pod("a").await.plugin(&stage, "c-1", "net1");
    wait::until("the agent to answer", SOON, async || {
        let (code, msg) = plugin.add().expect_err("not yet");
        assert_eq!(code, 11, "{msg}");
        ensure!(msg.contains("have not been read"), "{msg}");
        Ok(())
    })
    .await;
    let began = Instant::now();
    assert_eq!(plugin.add().expect_err("not yet").0, 11);
    plugin.del();
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    stage.define(5).await;
    plugin.until_added().await;
}

/// spidernet-io/spiderpool#4362: the endpoint is another object by the time of the second interface.
#[tokio::test]
async fn a_second_interface_comes_whatever_became_of_the_endpoint() {
    let stage = Stage::set(9).await;
    let _agent = stage.agent();
    let pod = stage.pod("a").await;
    let mut given = vec![pod.plugin(&stage, "c-1", "net1").until_added().await];
    let endpoint = stage.endpoint("a").await;
    for (interface, remade) in [("net2", true), ("net3", false)] {
        stage.delete_endpoint("a").await;
        if remade {
            let spec = json!({
                "apiVersion": endpoint["apiVersion"], "kind": endpoint["kind"], "metadata": {"name": "a"},
                "spec": endpoint["spec"], "status": endpoint["status"],
            });
            stage.create_endpoint(&spec).await;
        }
        given.push(pod.plugin(&stage, "c-1", interface).add().expect("at the first try"));
    }
    let held: BTreeSet<_> = stage.held().await.into_iter().map(|(_, address)| address).collect();
    assert_eq!(held, given.iter().cloned().collect::<BTreeSet<_>>());
    assert_eq!(held.len(), 3);
    assert_eq!(pod.plugin(&stage, "c-1", "net1").add().as_ref(), Ok(&given[0]), "the same, and it is shown again");
}

/// No restart: a restarted agent would keep pods from starting.
#[tokio::test]
async fn a_plugin_detects_what_the_agents_changed_configuration_says() {
    let stage = Stage::set(1).await;
    let _agent = stage.agent();
    let log = stage.folder().join("plugin.log");
    let plugin = stage.pod("a").await.plugin(&stage, "c-1", "net1").log(&log);
    let address = plugin.until_added().await;
    let logged = || std::fs::read_to_string(&log).expect("a log");
    assert!(logged().contains(&address) && !logged().contains("looked for"), "{}", logged());
    let conf = conf(stage.folder(), "[]");
    let without_provider =
        conf.replace("iaasNetworkProvider:", "enableIPConflictDetection: true\niaasNetworkProvider: {}\n#");
    Agent::reconfigure(stage.folder(), &without_provider);
    wait::until("the detection", SOON, async || {
        assert_eq!(plugin.add().as_ref(), Ok(&address), "there is no link to ask through");
        ensure!(logged().contains("net1: conflicts and gateways are not looked for: net1 does not exist yet"));
        Ok(())
    })
    .await;
}
