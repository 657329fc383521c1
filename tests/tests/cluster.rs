//! The first run, on a real cluster: kubelets, scheduler, containerd, helm.

use anyhow::{Context, ensure};
use std::process::Command;
use std::time::{Duration, Instant};
use tests::cluster::{CHANGING, Cluster, ETH1_NIC, MATCHING, OTHER, SOON, SUB_ENI, dev_cluster, helm_install, in_node};
use tests::process::{attempt, run};
use tests::wait;

#[tokio::test]
async fn the_table_of_the_contract() {
    let cluster = Cluster::installed().await;
    cluster.until_allocatable(MATCHING, SUB_ENI, Some("256")).await;
    cluster.until_allocatable(MATCHING, ETH1_NIC, Some("10k")).await;
    cluster.until_allocatable(OTHER, ETH1_NIC, Some("10k")).await;
    // As in the contract, column by column.
    let columns = r"custom-columns=NAME:.metadata.name,SUB_ENI:.status.allocatable.spidernet\.io/sub-eni,MASTER_NIC:.status.allocatable.spidernet\.io/eth1-nic";
    // A status from before the agents came may be on its way still.
    wait::until("the table", SOON, async || {
        let table = run("kubectl", ["get", "nodes", MATCHING, OTHER, "-o", columns]);
        let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
        let wanted = [["NAME", "SUB_ENI", "MASTER_NIC"], [MATCHING, "256", "10k"], [OTHER, "<none>", "10k"]];
        ensure!(rows == wanted, "{rows:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_label_turns_a_resource_on_and_off() {
    let cluster = Cluster::installed().await;
    cluster.label(CHANGING, "key", Some("value")).await;
    cluster.until_allocatable(CHANGING, SUB_ENI, Some("256")).await;
    cluster.label(CHANGING, "key", Some("other")).await;
    cluster.until_allocatable(CHANGING, SUB_ENI, Some("0")).await;
    assert_eq!(cluster.allocatable(CHANGING, ETH1_NIC).await.as_deref(), Some("10k"), "the other resource stays");
    // It goes after the stream has ended, which may be later than the status.
    wait::until("no socket to be left", SOON, async || {
        let sockets = in_node(CHANGING, "ls /var/lib/kubelet/device-plugins");
        ensure!(!sockets.contains("sub-eni"), "{sockets}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_nic_comes_and_goes() {
    let cluster = Cluster::installed().await;
    dev_cluster(&["add-nic", CHANGING, "ext7"]);
    cluster.until_allocatable(CHANGING, "spidernet.io/ext7-nic", Some("10k")).await;
    dev_cluster(&["del-nic", CHANGING, "ext7"]);
    cluster.until_allocatable(CHANGING, "spidernet.io/ext7-nic", Some("0")).await;
    assert_eq!(cluster.allocatable(CHANGING, ETH1_NIC).await.as_deref(), Some("10k"), "the other resource stays");
}

#[tokio::test]
async fn a_restarted_kubelet_gets_every_resource_again() {
    let cluster = Cluster::installed().await;
    cluster.until_allocatable(MATCHING, SUB_ENI, Some("256")).await;
    cluster.create_pod("stays", SUB_ENI, 1).await;
    cluster.until_phase("stays", "Running").await;
    for how in [&["restart-kubelet", MATCHING][..], &["restart-kubelet", "--kill", MATCHING]] {
        dev_cluster(how);
        cluster.until_registered(MATCHING, &[SUB_ENI, ETH1_NIC]).await;
        cluster.until_allocatable(MATCHING, SUB_ENI, Some("256")).await;
        cluster.until_allocatable(MATCHING, ETH1_NIC, Some("10k")).await;
    }
    // A pod that is disturbed ends. One that is not may be not ready until the new kubelet has looked at it.
    cluster.until_phase("stays", "Running").await;
    cluster.delete_pods(&["stays"]).await;
}

#[tokio::test]
async fn a_killed_agent_comes_back_with_its_resources() {
    let cluster = Cluster::installed().await;
    cluster.until_allocatable(MATCHING, SUB_ENI, Some("256")).await;
    let restarts = async || -> i32 {
        let agents = cluster.agents_on(MATCHING).await;
        let status = agents.into_iter().find_map(|agent| agent.status).unwrap_or_default();
        status.container_statuses.unwrap_or_default().iter().map(|container| container.restart_count).sum()
    };
    let before = restarts().await;
    in_node(MATCHING, "kill -9 $(pgrep -f '^/usr/bin/spiderpool-agent daemon')");
    wait::until("a restarted agent", SOON, async || {
        ensure!(restarts().await > before, "no restart yet");
        Ok(())
    })
    .await;
    cluster.until_agent_says(MATCHING, "registered{resource=\"spidernet.io/sub-eni\"} 1").await;
    cluster.until_allocatable(MATCHING, SUB_ENI, Some("256")).await;
    cluster.create_pod("after-kill", SUB_ENI, 1).await;
    cluster.until_phase("after-kill", "Running").await;
    cluster.delete_pods(&["after-kill"]).await;
}

#[tokio::test]
async fn what_is_used_up_is_refused_and_what_is_given_back_is_used() {
    let cluster = Cluster::installed().await;
    cluster.until_allocatable(MATCHING, SUB_ENI, Some("256")).await;
    for name in ["first", "second", "third"] {
        cluster.create_pod(name, SUB_ENI, 100).await;
    }
    let up = wait::until("two of three to run", SOON, async || {
        let running = running(&cluster, &["first", "second", "third"]).await;
        if running.len() == 2 { Ok(running) } else { Err(format!("{running:?} run")) }
    })
    .await;
    let pending = ["first", "second", "third"].into_iter().find(|name| !up.contains(name)).expect("one of three");
    cluster.until_unschedulable(pending, "Insufficient spidernet.io/sub-eni").await;
    cluster.delete_pods(&[up[0]]).await;
    cluster.until_phase(pending, "Running").await;
    cluster.delete_pods(&["first", "second", "third"]).await;
}

#[tokio::test]
async fn the_last_slot_goes_to_one_of_two() {
    let cluster = Cluster::installed().await;
    cluster.until_allocatable(MATCHING, SUB_ENI, Some("256")).await;
    cluster.create_pod("holder", SUB_ENI, 255).await;
    cluster.until_phase("holder", "Running").await;
    for round in 0..5 {
        let names = [format!("racer-{round}-a"), format!("racer-{round}-b")];
        let names = [names[0].as_str(), names[1].as_str()];
        tokio::join!(cluster.create_pod(names[0], SUB_ENI, 1), cluster.create_pod(names[1], SUB_ENI, 1));
        let winner = wait::until("one of two to run", SOON, async || {
            let running = running(&cluster, &names).await;
            if let [winner] = running[..] { Ok(winner) } else { Err(format!("{running:?} run")) }
        })
        .await;
        let loser = if winner == names[0] { names[1] } else { names[0] };
        cluster.until_unschedulable(loser, "Insufficient spidernet.io/sub-eni").await;
        assert_eq!(cluster.phase(loser).await.expect("there"), "Pending");
        cluster.delete_pods(&[winner]).await;
        cluster.until_phase(loser, "Running").await;
        cluster.delete_pods(&[loser]).await;
    }
    cluster.delete_pods(&["holder"]).await;
}

#[tokio::test]
async fn a_fault_in_the_configuration_shows_where_people_look() {
    let cluster = Cluster::installed().await;
    // The schema stops this in Helm; an edited ConfigMap reaches the agent.
    let broken = r#"{"data":{"conf.yml":"agent:\n  networkResourcePlugin:\n    enabld: true\n"}}"#;
    run("kubectl", ["-n", "kube-system", "patch", "configmap", "spiderpool-conf", "-p", broken]);
    let agent = cluster.agents_on(OTHER).await.remove(0).metadata.name.expect("a name");
    run("kubectl", ["-n", "kube-system", "delete", "pod", &agent]);
    wait::until("the fault in `kubectl describe pod`", SOON, async || {
        let agent = cluster.agents_on(OTHER).await.into_iter().find_map(|agent| agent.metadata.name);
        let agent = agent.context("no agent yet")?;
        let described = attempt(Command::new("kubectl").args(["-n", "kube-system", "describe", "pod", &agent]));
        let text = String::from_utf8_lossy(&described.stdout).into_owned();
        ensure!(
            text.contains(
                "line 3: spiderpoolAgent.networkResourcePlugin.enabld is not a known key; did you mean enabled?"
            ),
            "{text}"
        );
        Ok(())
    })
    .await;
    helm_install(&["--set-string=spiderpoolAgent.podAnnotations.tests=again"]);
    cluster.until_allocatable(OTHER, ETH1_NIC, Some("10k")).await;
}

/// DP-12, on a real kubelet: the configured root is wrong, and the live socket is found all the same.
#[tokio::test]
async fn a_wrong_kubelet_root_is_seen_through() {
    let cluster = Cluster::installed().await;
    helm_install(&["--set=spiderpoolAgent.networkResourcePlugin.kubeletRootDir=/data/kubelet"]);
    cluster.until_agent_says(OTHER, "registered{resource=\"spidernet.io/eth1-nic\"} 1").await;
    let agent = cluster.agents_on(OTHER).await.remove(0).metadata.name.expect("a name");
    let log = run("kubectl", ["-n", "kube-system", "logs", &agent]);
    assert!(log.contains("selected network resource plugin path pluginDir=/var/lib/kubelet/device-plugins"), "{log}");
    helm_install(&[]);
}

/// Design 6: a changed rule reaches the kubelet without a restart; a NIC with an odd name is refused alone, with an event.
#[tokio::test]
async fn rules_are_followed_without_a_restart() {
    let cluster = Cluster::installed().await;
    cluster.until_allocatable(MATCHING, SUB_ENI, Some("256")).await;
    let before = cluster.agents_on(MATCHING).await.remove(0).metadata.name;
    helm_install(&[
        "--set=spiderpoolAgent.networkResourcePlugin.resourceAdvertisement.subENI.rules[0].defaultMaxCount=255",
    ]);
    nudge();
    cluster.until_kubelet_offers(MATCHING, SUB_ENI, 255).await;
    assert_eq!(cluster.agents_on(MATCHING).await.remove(0).metadata.name, before, "the same agent");
    wait::until("an event on the Node", SOON, async || {
        ensure!(!cluster.node_events(MATCHING, "ConfigurationReloaded").await.is_empty(), "none yet");
        Ok(())
    })
    .await;
    helm_install(&[]);
    nudge();
    cluster.until_kubelet_offers(MATCHING, SUB_ENI, 256).await;
}

/// The kubelet brings a changed `ConfigMap` to a pod in its own time, a minute or two; at once when the pod changes too.
fn nudge() {
    let agents =
        ["-n", "kube-system", "annotate", "pod", "-l", "app.kubernetes.io/component=spiderpool-agent", "--overwrite"];
    let stamp = format!("tests/nudge={:?}", Instant::now());
    run("kubectl", agents.into_iter().chain([stamp.as_str()]));
}

/// NICs are renamed, taken into a pod's namespace and given back; 200 links of pods come and go meanwhile.
#[tokio::test]
async fn nics_wander_and_links_of_pods_make_no_noise() {
    let cluster = Cluster::installed().await;
    dev_cluster(&["add-nic", CHANGING, "ext3"]);
    cluster.until_kubelet_offers(CHANGING, "spidernet.io/ext3-nic", 10_000).await;
    in_node(CHANGING, "ip link set ext3 down && ip link set ext3 name ext4");
    cluster.until_kubelet_offers(CHANGING, "spidernet.io/ext4-nic", 10_000).await;
    cluster.until_kubelet_offers(CHANGING, "spidernet.io/ext3-nic", 0).await;
    in_node(CHANGING, "ip netns add pod-like && ip link set ext4 netns pod-like");
    cluster.until_kubelet_offers(CHANGING, "spidernet.io/ext4-nic", 0).await;
    in_node(CHANGING, "ip -n pod-like link set ext4 netns 1");
    cluster.until_kubelet_offers(CHANGING, "spidernet.io/ext4-nic", 10_000).await;
    in_node(CHANGING, "ip link add ext5 type bridge");
    cluster.until_kubelet_offers(CHANGING, "spidernet.io/ext5-nic", 10_000).await;

    let agent = cluster.agents_on(CHANGING).await.remove(0).metadata.name.expect("a name");
    let lines = || run("kubectl", ["-n", "kube-system", "logs", &agent]).lines().count();
    let before = lines();
    in_node(
        CHANGING,
        "for n in $(seq 200); do ip link add veth$n type veth peer name peer$n; done; for n in $(seq 200); do ip link del veth$n; done",
    );
    in_node(CHANGING, "ip link del ext5; ip link del ext4; ip netns del pod-like");
    cluster.until_kubelet_offers(CHANGING, "spidernet.io/ext4-nic", 0).await;
    assert_eq!(cluster.kubelet_allocatable(CHANGING, ETH1_NIC).await.expect("answers"), 10_000);
    assert!(lines() - before < 20, "200 links of pods are not worth a word");
}

/// 100 pods for 51 places: never more than fit, and nothing is left in use after.
#[tokio::test]
async fn a_hundred_pods_race_for_half_as_many_places() {
    let cluster = Cluster::installed().await;
    cluster.until_allocatable(MATCHING, SUB_ENI, Some("256")).await;
    let names: Vec<String> = (0..100).map(|n| format!("crowd-{n}")).collect();
    for name in &names {
        cluster.create_pod(name, SUB_ENI, 5).await;
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    wait::until("51 of 100 to run", Duration::from_mins(3), async || {
        let phases = cluster.phases("crowd-").await?;
        let count = |wanted: &str| phases.iter().filter(|phase| *phase == wanted).count();
        assert!(count("Running") <= 51 && count("Failed") == 0, "{phases:?}");
        ensure!(count("Running") == 51, "{} run", count("Running"));
        Ok(())
    })
    .await;
    cluster.delete_pods(&names).await;
    cluster.until_agent_says(MATCHING, "devices_in_use{resource=\"spidernet.io/sub-eni\"} 0").await;
}

/// Prints how long a label takes to reach the kubelet's Node object here; the status period is 1 s.
#[tokio::test]
async fn a_label_is_seen_within_seconds() {
    let cluster = Cluster::installed().await;
    let mut spans = Vec::new();
    for value in ["value", "other", "value", "other"] {
        let started = Instant::now();
        cluster.label(CHANGING, "key", Some(value)).await;
        cluster.until_allocatable(CHANGING, SUB_ENI, Some(if value == "value" { "256" } else { "0" })).await;
        spans.push(started.elapsed());
    }
    spans.sort();
    println!("label -> Node object, status period 1 s, 4 rounds: {spans:.1?}");
    // The slowest may have waited for what else runs on the machine.
    assert!(spans[spans.len() / 2] < Duration::from_secs(10), "{spans:?}");
}

async fn running<'a>(cluster: &Cluster, names: &[&'a str]) -> Vec<&'a str> {
    let mut running = Vec::new();
    for name in names {
        if cluster.phase(name).await.is_ok_and(|phase| phase == "Running") {
            running.push(*name);
        }
    }
    running
}
