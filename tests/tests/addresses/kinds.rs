//! What pods and networks may ask for.

use anyhow::ensure;
use serde_json::{Value, json};
use std::time::Duration;
use tests::addresses::{Held, apply, attachment, bridge, of_pools, pool, until_consistent, until_free};
use tests::cluster::{Cluster, SOON, networked, sleeping};
use tests::multus;
use tests::process::run;
use tests::wait;

/// A pod with these networks and annotations.
fn annotated(name: &str, annotations: &Value) -> Value {
    let mut pod = sleeping(name);
    pod["metadata"]["annotations"] = annotations.clone();
    pod
}

fn of(held: &Held, pod: &str) -> Vec<String> {
    held.iter().filter(|(_, name, _)| name == pod).map(|(.., ip)| ip.clone()).collect()
}

#[tokio::test]
async fn interfaces_families_and_pools_as_pods_ask_for_them() {
    const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";
    let cluster = Cluster::installed().await;
    multus::install(&[]);
    pool("kinds-a", "10.80.0.0/24", "10.80.0.10-10.80.0.19", json!({"excludeIPs": ["10.80.0.12-10.80.0.19"]}));
    pool("kinds-b", "10.80.1.0/24", "10.80.1.10-10.80.1.19", json!({}));
    pool("kinds-6", "fd00:80::/64", "fd00:80::10-fd00:80::13", json!({}));
    let of_team = json!({"podAffinity": {"matchLabels": {"team": "red"}}});
    pool("kinds-red", "10.80.2.0/24", "10.80.2.10-10.80.2.19", of_team);
    apply(
        &json!({
            "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderReservedIP", "metadata": {"name": "kinds"},
            "spec": {"ips": ["10.80.1.10-10.80.1.18"]},
        })
        .to_string(),
    );
    attachment("kinds-bridge", bridge("br-kinds"), of_pools(&["kinds-a"]));
    let macvlan = json!({"type": "macvlan", "master": "eth1", "mode": "bridge"});
    attachment(
        "kinds-macvlan",
        macvlan,
        json!({
            "type": "spiderpool", "default_ipv4_ippool": ["kinds-b"], "default_ipv6_ippool": ["kinds-6"],
        }),
    );

    // Two interfaces of one pool, whose other addresses are excluded; nothing is left for a third.
    let twice = json!({NETWORKS: "default/kinds-bridge,default/kinds-bridge"});
    cluster.create(annotated("twice", &twice)).await.expect("created");
    cluster.until_phase("twice", "Running").await;
    // Both families, and the one address that is not reserved.
    cluster.create(networked("dual", "default/kinds-macvlan")).await.expect("created");
    cluster.until_phase("dual", "Running").await;
    let held = until_consistent(&cluster, &["10.80.", "fd00:80:"], SOON).await;
    assert_eq!(of(&held, "twice"), ["10.80.0.10", "10.80.0.11"]);
    let dual = of(&held, "dual");
    assert!(dual.len() == 2 && dual[0] == "10.80.1.19" && dual[1].starts_with("fd00:80::"), "{dual:?}");

    // A pod's annotation goes before the network's list; a pool for others is none of it.
    let mine = json!({NETWORKS: "default/kinds-bridge", "ipam.spidernet.io/ippool": r#"{"ipv4":["kinds-red"]}"#});
    let mut red = annotated("red", &mine);
    red["metadata"]["labels"] = json!({"team": "red"});
    cluster.create(red).await.expect("created");
    cluster.until_phase("red", "Running").await;
    cluster.create(annotated("blue", &mine)).await.expect("created");
    wait::until("an event that says why", SOON, async || {
        let events = run("kubectl", ["describe", "pod", "blue"]);
        ensure!(events.contains("kinds-red") && events.contains("podAffinity"), "{events}");
        Ok(())
    })
    .await;
    // Of a list by interface, each gets its own.
    let each = json!({
        NETWORKS: "default/kinds-bridge,default/kinds-bridge",
        "ipam.spidernet.io/ippools":
            r#"[{"interface":"net1","ipv4":["kinds-red"]},{"interface":"net2","ipv4":["kinds-red"],"cleangateway":true}]"#,
    });
    let mut pod = annotated("each", &each);
    pod["metadata"]["labels"] = json!({"team": "red"});
    cluster.create(pod).await.expect("created");
    cluster.until_phase("each", "Running").await;
    // Defaults of the namespace.
    run("kubectl", ["create", "namespace", "kinds"]);
    let default = r#"ipam.spidernet.io/default-ipv4-ippool=["kinds-red"]"#;
    run("kubectl", ["annotate", "namespace", "kinds", default]);
    let mut there = networked("there", "default/kinds-bridge");
    there["metadata"]["namespace"] = "kinds".into();
    there["metadata"]["labels"] = json!({"team": "red"});
    (there["apiVersion"], there["kind"]) = ("v1".into(), "Pod".into());
    apply(&there.to_string());
    run("kubectl", ["wait", "--for=condition=Ready", "pod/there", "--namespace=kinds", "--timeout=3m"]);
    cluster.delete_pods(&["blue"]).await;
    let held = until_consistent(&cluster, &["10.80.", "fd00:80:"], SOON).await;
    for (pod, count) in [("red", 1), ("each", 2), ("there", 1)] {
        let found = of(&held, pod);
        assert!(found.len() == count && found.iter().all(|ip| ip.starts_with("10.80.2.")), "{pod}: {found:?}");
    }

    // A namespace goes with the pods in it.
    run("kubectl", ["delete", "namespace", "kinds", "--timeout=3m"]);
    cluster.delete_pods(&["twice", "dual", "red", "each"]).await;
    until_free(&["10.80.", "fd00:80:"], Duration::from_mins(2)).await;
    run("kubectl", ["delete", "spiderreservedip", "kinds"]);
    let pools = ["kinds-a", "kinds-b", "kinds-6", "kinds-red"];
    run("kubectl", ["delete", "spiderippool"].iter().chain(&pools).chain(&["--timeout=60s"]));
}
