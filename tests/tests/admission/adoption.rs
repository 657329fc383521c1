//! An earlier system's records become addresses, whatever dies or writes meanwhile.

mod earlier;

use super::JSON;
use anyhow::ensure;
use earlier::{
    ALLOCATIONS, ENDPOINTS, Earlier, POOLS, Records, adopted, conf, count, endpoint, finalizers, get, held, installed,
    ip, ours, patch, pod, policies, pool, record, staged, text, until,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tests::agent::{Agent, free_port};
use tests::answer::send;
use tests::api_server::CONTROLLER;
use tests::chart;
use tests::controller::{SOON, Stage};
use tests::plugin::{NoInterface, Plugin, Sandbox, address};
use tests::process::root;
use tests::provider::Provider;
use tests::wait;

const LIVE: usize = 200;
/// Addresses that are there when the controller is killed.
const KILLED_AT: [usize; 3] = [20, 80, 140];
const ADD: Duration = Duration::from_mins(1);
const NIC: &str = "eth1";

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_pods_are_taken_over_whatever_dies_and_writes_meanwhile() {
    let stage = staged().await;
    installed(&stage, LIVE).await;
    let earlier = Earlier::start(&stage).await;
    let mut controller = stage.ready_controller(&conf(&stage, "")).await;
    let message = until(&stage, &controller, "p", "False", "PolicyNotInForce").await;
    assert!(message.contains("does not refuse yet"), "{message}");
    assert_eq!(count(&stage).await, 0, "not before that");
    policies(&stage).await;
    for at in KILLED_AT {
        wait::until(format!("{at} addresses"), SOON, async || {
            let count = count(&stage).await;
            ensure!(count >= at, "{count}\n{}", controller.logged());
            Ok(())
        })
        .await;
        controller.process.signal("KILL");
        wait::until("its end", SOON, async || controller.process.ended().ok_or("it runs")).await;
        println!("killed with {} addresses", count(&stage).await);
        controller = stage.controller(&conf(&stage, ""));
    }
    let message = until(&stage, &controller, "p", "True", "RecordsTakenOver").await;
    let (allocations, objects) = held(&stage).await;
    let seen = earlier.refused.load(Ordering::Relaxed);
    wait::until("the earlier system to be refused still", SOON, async || {
        ensure!(earlier.refused.load(Ordering::Relaxed) > seen, "not again");
        Ok(())
    })
    .await;
    earlier.stop.store(true, Ordering::Relaxed);
    let late = earlier.running.await.expect("no panic");
    println!("{} late records, {} refused; {message}", late.len(), earlier.refused.load(Ordering::Relaxed));

    assert_eq!(allocations.len(), LIVE + late.len());
    assert!(message.starts_with(&format!("{} records", allocations.len())), "{message}");
    let items = get(&stage, "/api/v1/namespaces/default/pods").await["items"].as_array().cloned().expect("a list");
    for pod in items {
        let name = pod["metadata"]["name"].as_str().expect("a name");
        let own: Vec<_> = objects.iter().filter(|one| one["spec"]["pod"]["uid"] == pod["metadata"]["uid"]).collect();
        let [own] = own.as_slice() else { panic!("{name}: {own:?}") };
        let n: usize = name.trim_start_matches("pod-").parse().expect("a number");
        assert_eq!(own["metadata"]["name"], ip(n).as_str());
        let node = json!({"name": pod["spec"]["nodeName"], "machineID": format!("machine-{}", n % 2)});
        assert_eq!(
            (&own["spec"]["node"]["name"], &own["spec"]["node"]["machineID"]),
            (&node["name"], &node["machineID"])
        );
        let interface = if n % 10 == 7 { "" } else { "net1" };
        assert_eq!((&own["spec"]["interface"], &own["spec"]["containerId"]), (&json!(interface), &json!("unknown")));
    }
    let pool = get(&stage, &format!("{POOLS}/p")).await;
    assert_eq!((finalizers(&stage).await, &pool["status"]["allocatedIPs"]), (0, &Value::Null));

    // Once more: nothing is left to do.
    let versions =
        |objects: Vec<Value>| objects.iter().map(|one| one["metadata"]["resourceVersion"].clone()).collect::<Vec<_>>();
    drop(controller);
    let again = stage.ready_controller(&conf(&stage, "")).await;
    wait::until("it to lead", SOON, async || {
        let (_, page) = again.page("/metrics").await?;
        ensure!(page.contains("spiderpool_controller_leads 1"), "{}", again.logged());
        ensure!(page.contains("spiderpool_controller_adoption_records 0"), "{page}");
        Ok(())
    })
    .await;
    assert_eq!(versions(held(&stage).await.1), versions(objects));
}

#[tokio::test]
async fn a_dry_run_says_what_it_would_do_and_an_api_server_that_is_away_holds_all_up() {
    let stage = staged().await;
    installed(&stage, 3).await;
    policies(&stage).await;
    let dry = stage.ready_controller(&conf(&stage, ", dryRun: true")).await;
    let message = until(&stage, &dry, "p", "False", "DryRun").await;
    assert_eq!(message, "dry run: 3 of 3 records would be taken over, 0 are already");
    assert_eq!((count(&stage).await, finalizers(&stage).await), (0, 3));
    drop(dry);

    // Those of the Service: this server listens at a loopback address alone, which no Service can name.
    let by_service = stage.ready_controller(&Stage::conf()).await;
    let message = until(&stage, &by_service, "p", "False", "PolicyNotInForce").await;
    assert!(message.contains("cannot be reached from the controller"), "{message}");
    drop(by_service);

    let nobody = free_port();
    let both = format!(
        "{}adoption: {{apiServers: ['{}', '127.0.0.1:{nobody}']}}\n",
        Stage::conf(),
        stage.server.url().trim_start_matches("https://")
    );
    let controller = stage.ready_controller(&both).await;
    wait::until("the other one to be missed", SOON, async || {
        let [_, _, message] = adopted(&stage, "p").await;
        ensure!(
            message.contains(&format!("127.0.0.1:{nobody} cannot be reached")),
            "{message}\n{}",
            controller.logged()
        );
        Ok(())
    })
    .await;
    assert_eq!((count(&stage).await, finalizers(&stage).await), (0, 3));
    drop(controller);

    let controller = stage.ready_controller(&conf(&stage, "")).await;
    until(&stage, &controller, "p", "True", "RecordsTakenOver").await;
    assert_eq!((count(&stage).await, finalizers(&stage).await), (3, 0));
}

#[tokio::test]
async fn a_record_that_cannot_be_used_holds_its_pool_and_no_other() {
    let stage = staged().await;
    let records = installed(&stage, 3).await;
    pool(
        &stage,
        "odd",
        1,
        r#"{"10.1.0.1": {"pod": "default/gone", "podUid": "g"}, "10.2.0.1": {"pod": "default/other", "podUid": "o"}}"#,
    )
    .await;
    pool(&stage, "broken", 2, "{").await;
    policies(&stage).await;
    let controller = stage.ready_controller(&conf(&stage, "")).await;
    until(&stage, &controller, "p", "True", "RecordsTakenOver").await;
    let message = until(&stage, &controller, "odd", "False", "RecordsNotUsable").await;
    assert!(message.contains("10.2.0.1 of default/other is not in the pool's subnet 10.1.0.0/16"), "{message}");
    until(&stage, &controller, "broken", "False", "RecordsNotUsable").await;
    let mut wanted = records;
    wanted.insert("10.1.0.1".to_owned(), ("gone".to_owned(), "g".to_owned()));
    assert_eq!(held(&stage).await.0, wanted);
    // A person may put it right.
    record(&stage, "odd", r#"{"10.1.0.1": {"pod": "default/gone", "podUid": "g"}}"#).await;
    record(&stage, "broken", "{}").await;
    until(&stage, &controller, "odd", "True", "RecordsTakenOver").await;
    assert_eq!(held(&stage).await.0, wanted);
}

/// The agent of node `n0`, with a token as it has one.
fn agent(stage: &Stage, token: &str, more: &str) -> (Agent, PathBuf) {
    let folder = stage.folder.path().join("agent");
    let nic = folder.join("sysfs/class/net").join(NIC);
    std::fs::create_dir_all(&nic).expect("writable");
    std::fs::write(nic.join("address"), "02:00:00:00:01:00\n").expect("writable");
    let kubeconfig = chart::kubeconfig(&stage.server, token, &folder).display().to_string();
    let socket = folder.join("ipam.sock");
    let conf = format!("ipamUnixSocketPath: {}\n{more}", socket.display());
    (Agent::start(&folder, "n0", &conf, &[("KUBECONFIG", &kubeconfig)]), socket)
}

#[tokio::test]
async fn an_agent_gives_nothing_before_and_what_is_free_after_and_pods_keep_theirs() {
    let stage = staged().await;
    // Two of four addresses: one with an endpoint, and one of an ADD that did not come to its end.
    let uids = [pod(&stage, "pod-0", "n0").await, pod(&stage, "pod-1", "n0").await];
    stage.create(ENDPOINTS, &endpoint("pod-0", &uids[0], "n0", "10.0.0.1")).await.accepted();
    let records = [("10.0.0.1", "pod-0", &uids[0]), ("10.0.0.2", "pod-1", &uids[1])];
    let records: Records =
        records.into_iter().map(|(ip, pod, uid)| (ip.to_owned(), (pod.to_owned(), uid.clone()))).collect();
    pool(&stage, "p", 0, &text(&records)).await;
    patch(&stage.admin, &format!("{POOLS}/p"), &json!({"spec": {"ips": ["10.0.0.1-10.0.0.4"]}})).await.accepted();
    rights(&stage).await;
    policies(&stage).await;
    let token = chart::token(&stage.admin, "n0").await;
    let (agent, socket) = agent(&stage, &token, "");
    wait::until("an agent that is ready", SOON, async || {
        let (status, body) = agent.page("/ready").await?;
        ensure!(status == 200, "{body}\n{}", agent.logged());
        Ok(())
    })
    .await;
    let plugin = Plugin::dial(&socket).await.expect("connects");
    let sandbox = |pod: &str, uid: &str| Sandbox {
        master: String::new(),
        container: format!("{pod}-1"),
        pod: pod.to_owned(),
        uid: uid.to_owned(),
        pool: "p".to_owned(),
    };
    let new = sandbox("new", &pod(&stage, "new", "n0").await);
    match plugin.add(&new, ADD).await {
        Err(NoInterface::Fault(fault)) => {
            assert!(
                fault.code == 11 && fault.msg.contains("records of an earlier system are being taken over"),
                "{fault:?}"
            );
        }
        other => panic!("{other:?}"),
    }

    let controller = stage.ready_controller(&conf(&stage, "")).await;
    until(&stage, &controller, "p", "True", "RecordsTakenOver").await;
    let given = async |sandbox: &Sandbox| {
        wait::until(format!("an address of {}", sandbox.pod), SOON, async || match plugin.add(sandbox, ADD).await {
            Ok(interface) => Ok(address(&interface)),
            Err(why) => Err(format!("{why:?}\n{}", agent.logged())),
        })
        .await
    };
    // Its sandbox is made again; and the one whose ADD is tried again.
    assert_eq!(given(&sandbox("pod-0", &uids[0])).await, "10.0.0.1");
    assert_eq!(given(&sandbox("pod-1", &uids[1])).await, "10.0.0.2");
    let mut others = vec![given(&new).await];
    others.push(given(&sandbox("more", &pod(&stage, "more", "n0").await)).await);
    others.sort();
    assert_eq!(others, ["10.0.0.3", "10.0.0.4"]);
    match plugin.add(&sandbox("full", &pod(&stage, "full", "n0").await), ADD).await {
        Err(NoInterface::Fault(fault)) => assert_eq!(fault.code, 103, "{fault:?}"),
        other => panic!("{other:?}"),
    }
    // A pod that goes gives its address back.
    send(&stage.admin, "DELETE", "/api/v1/namespaces/default/pods/pod-0?gracePeriodSeconds=0", JSON, Vec::new())
        .await
        .expect("answers")
        .accepted();
    plugin.del(&sandbox("pod-0", &uids[0])).await.expect("answers");
    assert!(!held(&stage).await.0.contains_key("10.0.0.1"));
}

/// Of agents.
async fn rights(stage: &Stage) {
    let account = json!({"metadata": {"name": "spiderpool-agent"}});
    stage.create("/api/v1/namespaces/kube-system/serviceaccounts", &account).await.accepted();
    chart::install(&stage.admin, "agent/rbac.yaml").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_has_bound_is_taken_over_bound_and_released_when_its_pod_goes() {
    let (stage, provider) = (staged().await, Provider::start().await);
    let mut records = Records::new();
    for (n, name) in ["vlan", "plain", "begun", "before"].into_iter().enumerate() {
        records.insert(ip(n), (name.to_owned(), pod(&stage, name, "n0").await));
    }
    let uid = |n: usize| records[&ip(n)].1.clone();
    // A VLAN of the cloud; a network of another kind in the same pool; an ADD that did not come to its end; and one of which a
    // controller made an allocation before it died.
    for (n, name, vlan) in [(0, "vlan", 7), (1, "plain", 0), (3, "before", 8)] {
        let mut shown = endpoint(name, &uid(n), "n0", &ip(n));
        shown["status"]["current"]["ips"][0]["vlan"] = vlan.into();
        shown["status"]["current"]["ips"][0]["mac"] = "02:00:00:00:00:07".into();
        stage.create(ENDPOINTS, &shown).await.accepted();
    }
    let mut made = ours("SpiderIPAllocation", &ip(3));
    made["spec"] = json!({
        "pool": "p", "address": ip(3), "node": {"name": "n0"}, "state": "Held", "interface": "net1", "containerId": "unknown",
        "pod": {"namespace": "default", "name": "before", "uid": uid(3)},
        "provider": {"server": provider.url, "subnet": "10.0.0.0/16", "bindId": "of-before"},
    });
    stage.create(ALLOCATIONS, &made).await.accepted();
    pool(&stage, "p", 0, &text(&records)).await;
    let vlan = json!({"cniType": "vlan", "vlan": {"master": [NIC], "ippools": {"ipv4": ["p"]}}});
    stage.attachment("default", "cloud", vlan).await;
    rights(&stage).await;
    policies(&stage).await;

    let conf = conf(&stage, "").replace("http://provider.example", &provider.url);
    let controller = stage.ready_controller(&conf).await;
    until(&stage, &controller, "p", "True", "RecordsTakenOver").await;
    assert_eq!((held(&stage).await.0, finalizers(&stage).await), (records.clone(), 0));
    let of = async |n: usize| get(&stage, &format!("{ALLOCATIONS}/{}", ip(n))).await["spec"]["provider"].clone();
    let shown =
        async |name: &str| get(&stage, &format!("{ENDPOINTS}/{name}")).await["status"]["current"]["ips"][0].clone();
    let (bound, entry) = (of(0).await, shown("vlan").await);
    assert_eq!((&bound["server"], &bound["subnet"]), (&json!(provider.url), &json!("10.0.0.0/16")));
    assert!(bound["bindId"].as_str().is_some_and(|id| id.len() == 32) && entry["bindId"] == bound["bindId"], "{entry}");
    assert_eq!(
        (&entry["vlan"], &entry["mac"], &entry["ipv4Pool"]),
        (&json!(7), &json!("02:00:00:00:00:07"), &json!("p"))
    );
    assert_eq!((of(1).await, shown("plain").await["bindId"].clone()), (Value::Null, Value::Null));
    assert_eq!(of(2).await["settleMilliseconds"], 102_000, "its call may have left");
    assert_eq!(shown("before").await["bindId"], "of-before");
    assert_eq!(provider.cloud.records(0).len(), 0, "nobody has to be asked");

    // Its sandbox is made again with what the cloud gave; when it goes, the cloud is told.
    let token = chart::token(&stage.admin, "n0").await;
    let (agent, socket) = agent(&stage, &token, &format!("iaasNetworkProvider: {{serverUrl: '{}'}}\n", provider.url));
    wait::until("an agent that is ready", SOON, async || {
        let (status, body) = agent.page("/ready").await?;
        ensure!(status == 200, "{body}\n{}", agent.logged());
        Ok(())
    })
    .await;
    let plugin = Plugin::dial(&socket).await.expect("connects");
    let sandbox = Sandbox {
        master: NIC.to_owned(),
        container: "vlan-1".to_owned(),
        pod: "vlan".to_owned(),
        uid: uid(0),
        pool: "p".to_owned(),
    };
    let given = plugin.add(&sandbox, ADD).await;
    let given = given.unwrap_or_else(|why| panic!("{why:?}\n{}", agent.logged()));
    assert_eq!((address(&given), given.vlan, given.mac.as_str()), (ip(0), 7, "02:00:00:00:00:07"));
    assert_eq!(provider.calls("allocate-ips", "vlan"), 0);
    let gone = "/api/v1/namespaces/default/pods/vlan?gracePeriodSeconds=0";
    send(&stage.admin, "DELETE", gone, JSON, Vec::new()).await.expect("answers").accepted();
    plugin.del(&sandbox).await.expect("answers");
    wait::until("its address to be free", SOON, async || {
        ensure!(!held(&stage).await.0.contains_key(&ip(0)), "{}", agent.logged());
        Ok(())
    })
    .await;
    assert_eq!(provider.calls("release-ip", "vlan"), 1);
}

/// The shell lines of a step of `docs/upgrade-and-rollback.md` that begins so.
fn described(step: &str) -> String {
    let page = std::fs::read_to_string(root().join("docs/upgrade-and-rollback.md")).expect("the page");
    let rest = page.split_once(step).expect("the step").1;
    let lines = rest.split_once("```sh\n").and_then(|(_, rest)| rest.split_once("```")).expect("its lines").0;
    lines.to_owned()
}

#[tokio::test]
async fn the_way_back_is_as_it_is_described() {
    let stage = staged().await;
    let mut records = installed(&stage, 8).await;
    policies(&stage).await;
    let controller = stage.ready_controller(&conf(&stage, "")).await;
    until(&stage, &controller, "p", "True", "RecordsTakenOver").await;
    drop(controller);
    // Since then a pod has gone.
    let gone = format!("{ALLOCATIONS}/{}", ip(0));
    let controller = stage.server.client(CONTROLLER).await;
    send(&controller, "DELETE", &gone, JSON, Vec::new()).await.expect("answers").accepted();
    records.remove(&ip(0));

    let steps = ["2. Let go of the policies.", "3. Write the records,"].map(described).join("\n");
    let steps = format!("set -eu -o pipefail\n{steps}\nkubectl delete sia --all\n");
    let kubeconfig = stage.server.kubeconfig(tests::api_server::ADMIN);
    wait::until("the policies to be out of force", SOON, async || {
        let done = Command::new("bash").args(["-c", &steps]).env("KUBECONFIG", &kubeconfig).output()?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    })
    .await;
    let pool = get(&stage, &format!("{POOLS}/p")).await;
    let back: Value = serde_json::from_str(pool["status"]["allocatedIPs"].as_str().expect("records")).expect("JSON");
    assert_eq!(back, serde_json::from_str::<Value>(&text(&records)).expect("JSON"));
    assert_eq!((count(&stage).await, finalizers(&stage).await), (0, 7), "endpoints of the eight but one");
    // The old system may write again.
    let change = json!({"status": {"allocatedIPs": "{}"}});
    patch(&controller, &format!("{POOLS}/p/status"), &change).await.accepted();
}
