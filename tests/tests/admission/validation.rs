//! What a client sees when it writes objects of ours, with the chart's webhooks in force.

use super::{JSON, SUB_ENI, staged, vlan};
use anyhow::ensure;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tests::answer::{Answer, annotated, send};
use tests::controller::{SOON, Stage};
use tests::wait;

const POOLS: &str = "/apis/spiderpool.spidernet.io/v2beta1/spiderippools";
const RESERVED: &str = "/apis/spiderpool.spidernet.io/v2beta1/spiderreservedips";
const ALLOCATIONS: &str = "/apis/spiderpool.spidernet.io/v2beta1/spideripallocations";
const CONFIGS: &str = "/apis/spiderpool.spidernet.io/v2beta1/namespaces/spiderpool/spidermultusconfigs";

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn pool(name: &str, subnet: &str, ips: &str) -> Value {
    object("SpiderIPPool", name, &json!({"subnet": subnet, "ips": [ips]}))
}

async fn create(stage: &Stage, object: &Value) -> Answer {
    let path = match object["kind"].as_str() {
        Some("SpiderIPPool") => POOLS,
        Some("SpiderReservedIP") => RESERVED,
        _ => CONFIGS,
    };
    stage.create(path, object).await
}

async fn delete(stage: &Stage, path: &str) {
    let answer = send(&stage.admin, "DELETE", path, JSON, Vec::new()).await.expect("answers");
    assert!(answer.status < 300, "{answer:?}");
}

#[tokio::test]
async fn each_kind_is_refused_in_kubernetes_own_form() {
    let (stage, controller) = staged(&[]).await;
    let refused = create(&stage, &pool("p", "172.91.0.0/24", "172.91.1.5")).await;
    assert_eq!((refused.status, &refused.body["reason"]), (422, &json!("Invalid")), "{refused:?}");
    assert!(
        refused.refused().ends_with(
            r#"denied the request: SpiderIPPool.spiderpool.spidernet.io "p" is invalid: spec.ips[0]: Invalid value: "172.91.1.5": not pertains to the 'spec.subnet' 172.91.0.0/24 of IPPool"#
        ),
        "{refused:?}"
    );
    let details = &refused.body["details"];
    assert_eq!((&details["kind"], &details["causes"][0]["field"]), (&json!("SpiderIPPool"), &json!("spec.ips[0]")));

    // Every fault at once.
    let spec =
        json!({"cniType": "vlan", "vlan": {"master": ["eth1", "eth1", "a/b"], "mtu": 5, "bond": {"name": "eth1"}}});
    let refused = create(&stage, &object("SpiderMultusConfig", "n", &spec)).await;
    assert_eq!(refused.body["details"]["causes"].as_array().map(Vec::len), Some(4), "{refused:?}");
    for text in ["spec.vlan.master[1]: Duplicate value", "spec.vlan.master[2]", "[68,65535]", "one of its masters"] {
        assert!(refused.refused().contains(text), "{text}: {refused:?}");
    }

    let refused = create(&stage, &object("SpiderReservedIP", "r", &json!({"ips": ["10.0.0.1", "fd00::1"]}))).await;
    assert!(refused.refused().contains("all addresses must be IPv4"), "{refused:?}");
    let kept = create(&stage, &object("SpiderReservedIP", "r", &json!({"ips": ["fd00::1"]}))).await;
    assert_eq!(kept.accepted()["spec"], json!({"ips": ["fd00::1"], "ipVersion": 6}));

    // Warnings reach the client, also with a refusal.
    let mut spec = vlan("eth1");
    spec["enableCoordinator"] = true.into();
    let warned = create(&stage, &object("SpiderMultusConfig", "warned", &spec)).await;
    warned.accepted();
    for text in ["there is no SpiderIPPool pool-eth1 yet", "spec.enableCoordinator has no effect"] {
        assert!(warned.warnings.iter().any(|warning| warning.contains(text)), "{text}: {warned:?}");
    }
    let metrics = controller.page("/metrics").await.expect("answers").1;
    for line in ["kind=\"SpiderIPPool\",outcome=\"refused\"", "kind=\"SpiderMultusConfig\",outcome=\"allowed\""] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

/// The quick start's objects: accepted, completed, and otherwise as they were written. Applied twice, nothing changes.
#[tokio::test]
async fn the_quick_start_stays_as_it_is_written() {
    let (stage, _controller) = staged(&[]).await;
    let text = std::fs::read_to_string(tests::process::root().join("docs/examples/iaas-vlan-config.yaml"))
        .expect("an example");
    for document in text.split("---") {
        let wanted: Value = serde_saphyr::from_str(document).expect("YAML");
        let kept = create(&stage, &wanted).await;
        let (spec, labels) = (&kept.accepted()["spec"], &kept.body["metadata"]["labels"]);
        for (field, value) in wanted["spec"].as_object().expect("a map") {
            assert_eq!(&spec[field], value, "{field}: {kept:?}");
        }
        if wanted["kind"] == "SpiderIPPool" {
            assert_eq!(
                (&spec["ipVersion"], &labels["ipam.spidernet.io/ippool-cidr"]),
                (&json!(4), &json!("172-91-0-0-24"))
            );
            assert!(kept.body["metadata"]["finalizers"].is_null(), "{kept:?}");
            assert_eq!(kept.warnings, Vec::<String>::new());
            // As a tool does that writes the same manifest again.
            let again = stage.merge(&format!("{POOLS}/pool-eth1"), &wanted).await;
            assert_eq!(again.accepted()["metadata"]["generation"], 1, "nothing changed: {again:?}");
            assert_eq!(&again.body["metadata"]["labels"], labels);
        } else {
            assert!(spec["vlan"].get("vlanMode").is_none() && spec["vlan"].get("vlanID").is_none(), "{kept:?}");
        }
    }
    // It is a provider's network still.
    assert_eq!(stage.pod("team-a", &annotated("spiderpool/iaas-vlan-config")).await.requested(0, SUB_ENI), Some("1"));
}

#[tokio::test]
async fn pools_that_share_an_address_are_refused_at_once() {
    let (stage, controller) = staged(&[]).await;
    let second = stage.ready_controller(&Stage::conf()).await;
    let began = Instant::now();
    for n in 0..20 {
        let subnet = format!("10.{n}.0.0/24");
        create(&stage, &pool(&format!("a{n}"), &subnet, &format!("10.{n}.0.5-10.{n}.0.9"))).await.accepted();
        let other = create(&stage, &pool(&format!("b{n}"), &subnet, &format!("10.{n}.0.9-10.{n}.0.20"))).await;
        let text = format!(
            "spec.ips: Forbidden: overlap with IPPool a{n} in IP ranges [10.{n}.0.9], total IP addresses of an IPPool"
        );
        assert!(other.refused().contains(&text), "{other:?}");
        let wider = create(&stage, &pool(&format!("c{n}"), &format!("10.{n}.0.0/16"), &format!("10.{n}.1.1"))).await;
        let text = format!("overlap with IPPool a{n} which 'spec.subnet' is {subnet}");
        assert!(wider.refused().contains(&text), "{wider:?}");
        // Apart in one subnet.
        create(&stage, &pool(&format!("d{n}"), &subnet, &format!("10.{n}.0.10-10.{n}.0.20"))).await.accepted();
    }
    // And one that is gone is gone.
    for n in 0..20 {
        delete(&stage, &format!("{POOLS}/a{n}")).await;
    }
    for n in 0..20 {
        let (own, subnet) = (format!("{POOLS}/a{n}"), format!("10.{n}.0.0/24"));
        wait::until(format!("the pool a{n} to be gone"), SOON, async || {
            let found = send(&stage.admin, "GET", &own, JSON, Vec::new()).await?;
            ensure!(found.status == 404, "{found:?}");
            Ok(())
        })
        .await;
        create(&stage, &pool(&format!("e{n}"), &subnet, &format!("10.{n}.0.9"))).await.accepted();
    }
    println!("7 requests each, 20 times: {:?}", began.elapsed());

    // A dry run is checked and not remembered.
    let dry = stage.create(&format!("{POOLS}?dryRun=All"), &pool("dry", "10.100.0.0/24", "10.100.0.1")).await;
    dry.accepted();
    create(&stage, &pool("not-dry", "10.100.0.0/24", "10.100.0.1")).await.accepted();

    // A change is compared as well.
    let moved = stage.merge(&format!("{POOLS}/d0"), &json!({"spec": {"ips": ["10.0.0.9-10.0.0.20"]}})).await;
    assert!(moved.refused().contains("overlap with IPPool e0"), "{moved:?}");

    // Another replica knows what this one admitted, and the other way round.
    drop(controller);
    stage.webhooks(&second.url, &stage.authority(), &[]).await;
    let other = create(&stage, &pool("other", "10.100.0.0/24", "10.100.0.1")).await;
    assert!(other.refused().contains("overlap with IPPool not-dry"), "{other:?}");
}

#[tokio::test]
async fn addresses_in_use_stay_in_their_pool() {
    let (stage, _controller) = staged(&[]).await;
    create(&stage, &pool("p", "10.6.0.0/24", "10.6.0.5-10.6.0.9")).await.accepted();
    let allocation = json!({"kind": "SpiderIPAllocation", "apiVersion": "spiderpool.spidernet.io/v2beta1", "metadata": {"name": "10.6.0.7"}, "spec": {
        "pool": "p", "address": "10.6.0.7", "node": {"name": "node1"}, "pod": {"namespace": "team-a", "name": "web", "uid": "u"}, "state": "Held",
    }});
    stage.create(ALLOCATIONS, &allocation).await.accepted();
    let own = format!("{POOLS}/p");
    for change in [json!({"ips": ["10.6.0.5"]}), json!({"excludeIPs": ["10.6.0.7"]})] {
        let refused = stage.merge(&own, &json!({ "spec": change })).await;
        let text =
            "remove an IP address 10.6.0.7 that is being used by Pod team-a/web, total IP addresses of an IPPool";
        assert!(refused.refused().contains(text), "{refused:?}");
    }
    stage.merge(&own, &json!({"spec": {"ips": ["10.6.0.7-10.6.0.20"]}})).await.accepted();

    // Records of an earlier system count as well, and where they cannot be read nothing is taken away.
    let records = json!({"status": {"allocatedIPs": "{\"10.6.0.8\":{\"pod\":\"team-b/db\",\"podUid\":\"u\"}}"}});
    stage.merge(&format!("{own}/status"), &records).await.accepted();
    let refused = stage.merge(&own, &json!({"spec": {"ips": ["10.6.0.7"]}})).await;
    assert!(refused.refused().contains("10.6.0.8 that is being used by Pod team-b/db"), "{refused:?}");
    stage.merge(&format!("{own}/status"), &json!({"status": {"allocatedIPs": "{"}})).await.accepted();
    let refused = stage.merge(&own, &json!({"spec": {"ips": ["10.6.0.7-10.6.0.8"]}})).await;
    assert!(refused.refused().contains("status.allocatedIPs is not a JSON map of addresses"), "{refused:?}");
    stage.merge(&own, &json!({"spec": {"ips": ["10.6.0.7-10.6.0.30"], "disable": true}})).await.accepted();
}

/// Objects that were there before the rules can be labelled, taken out of use and rid of finalizers, and be repaired.
#[tokio::test]
async fn what_was_there_before_can_be_lived_with() {
    let stage = Stage::set().await;
    stage.grant().await;
    stage.namespace("spiderpool").await;
    let mut old = pool("old", "10.7.0.0/24", "10.8.0.1");
    old["metadata"]["finalizers"] = json!(["spiderpool.spidernet.io/x"]);
    create(&stage, &old).await.accepted();
    let spec = json!({"cniType": "vlan", "vlan": {"master": ["eth1", "eth1"], "bond": {"name": "b"}}});
    create(&stage, &object("SpiderMultusConfig", "old", &spec)).await.accepted();
    for name in ["twin-a", "twin-b"] {
        let mut twin = object("SpiderMultusConfig", name, &vlan("eth1"));
        twin["metadata"]["annotations"] = json!({"multus.spidernet.io/cr-name": "twin"});
        create(&stage, &twin).await.accepted();
    }
    let controller = stage.ready_controller(&Stage::conf()).await;
    stage.webhooks(&controller.url, &stage.authority(), &[]).await;

    let (own, config) = (format!("{POOLS}/old"), format!("{CONFIGS}/old"));
    let labelled = stage.merge(&own, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(
        labelled.accepted()["metadata"]["labels"],
        json!({"a": "b", "ipam.spidernet.io/ippool-cidr": "10-7-0-0-24"})
    );
    assert!(labelled.body["spec"]["ipVersion"].is_null(), "its spec stays: {labelled:?}");
    assert!(labelled.warnings.iter().any(|text| text.contains("not pertains to")), "{labelled:?}");
    let labelled = stage.merge(&config, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    labelled.accepted();
    assert!(labelled.warnings.iter().any(|text| text.contains("Duplicate value")), "{labelled:?}");
    stage.merge(&own, &json!({"spec": {"disable": true}})).await.accepted();
    let worse = stage.merge(&own, &json!({"spec": {"ips": ["10.8.0.2"]}})).await;
    assert!(worse.refused().contains("not pertains to"), "{worse:?}");
    stage.merge(&own, &json!({"spec": {"ips": ["10.7.0.1"]}})).await.accepted();
    let twin = stage.merge(&format!("{CONFIGS}/twin-a"), &json!({"spec": {"vlan": {"mtu": 1400}}})).await;
    twin.accepted();
    assert!(twin.warnings.iter().any(|text| text.contains("already exists and is managed by")), "{twin:?}");

    // On the way out.
    send(&stage.admin, "DELETE", &own, JSON, Vec::new()).await.expect("answers").accepted();
    stage.merge(&own, &json!({"metadata": {"finalizers": null}})).await.accepted();
    wait::until("the pool to be gone", SOON, async || {
        let found = send(&stage.admin, "GET", &own, JSON, Vec::new()).await?;
        ensure!(found.status == 404, "{found:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn names_of_networks_and_labels() {
    let (stage, _controller) = staged(&[]).await;
    let named = |name: &str, annotations: &Value| {
        let mut object = object("SpiderMultusConfig", name, &vlan("eth1"));
        object["metadata"]["annotations"] = annotations.clone();
        object
    };
    let net = json!({"multus.spidernet.io/cr-name": "net"});
    for n in 0..5 {
        create(&stage, &named("first", &net)).await.accepted();
        let second = create(&stage, &named("second", &net)).await;
        let text =
            "the net-attach-def spiderpool/net already exists and is managed by SpiderMultusConfig spiderpool/first.";
        assert!(second.refused().contains(text), "{n}: {second:?}");
        let third = create(&stage, &named("net", &json!({}))).await;
        assert!(third.refused().contains(text), "{n}: {third:?}");
        delete(&stage, &format!("{CONFIGS}/first")).await;
        create(&stage, &named("second", &net)).await.accepted();
        delete(&stage, &format!("{CONFIGS}/second")).await;
    }
    create(&stage, &named("first", &net)).await.accepted();
    let change = json!({"metadata": {"annotations": {"multus.spidernet.io/cr-name": "other"}}});
    let renamed = stage.merge(&format!("{CONFIGS}/first"), &change).await;
    assert!(renamed.refused().contains("resource name from 'net' to 'other'"), "{renamed:?}");

    let key = "cni.spidernet.io/network-resource-inject";
    let kept = create(&stage, &named("red", &json!({ key: "red" }))).await;
    assert_eq!(kept.accepted()["metadata"]["labels"], json!({ key: "red" }));
    let gone = stage.merge(&format!("{CONFIGS}/red"), &json!({"metadata": {"annotations": {key: null}}})).await;
    assert!(gone.accepted()["metadata"]["labels"].get(key).is_none(), "{gone:?}");
    let bad = create(&stage, &named("bad", &json!({ key: "a b" }))).await;
    assert!(bad.refused().contains("it becomes a label, so it must be a label value"), "{bad:?}");
}

/// A controller that does not know the pools yet says so, and judges pods all the same.
#[tokio::test]
async fn without_rights_on_pools_only_pools_wait() {
    let (stage, _controller) = staged(&[]).await;
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/spiderpool-controller";
    let kept = send(&stage.admin, "GET", role, JSON, Vec::new()).await.expect("answers").accepted()["rules"].clone();
    let rules: Vec<Value> = kept
        .as_array()
        .expect("a list")
        .iter()
        .filter(|rule| rule["resources"] != json!(["spiderippools"]))
        .cloned()
        .collect();
    stage.merge(role, &json!({ "rules": rules })).await.accepted();
    let second = stage.ready_controller(&Stage::conf()).await;
    stage.webhooks(&second.url, &stage.authority(), &[]).await;
    let answer = create(&stage, &pool("p", "10.6.0.0/24", "10.6.0.5")).await;
    assert_eq!(answer.status, 500, "{answer:?}");
    assert!(answer.refused().contains("the address pools of the cluster are not known yet; try again"), "{answer:?}");
    assert_eq!(stage.pod("team-a", &annotated("spiderpool/vlan")).await.requested(0, SUB_ENI), Some("1"));
    stage.merge(role, &json!({ "rules": kept })).await.accepted();
    wait::until("the pools to be known", Duration::from_mins(1), async || {
        let answer = create(&stage, &pool("p", "10.6.0.0/24", "10.6.0.5")).await;
        ensure!(answer.status < 300, "{answer:?}");
        Ok(())
    })
    .await;
}
