//! Releases, by people with and without the right, under the policies of the chart.

use crate::stage::{ANN, Stage, allocations, binary, offers};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use tests::answer::send;
use tests::chart;
use tests::wait;

const CONTROLLER: &str = "system:serviceaccount:kube-system:spiderpool-controller";

/// A client that is the controller's account to the API server.
async fn controller(stage: &Stage) -> Client {
    let kubeconfig = Kubeconfig::read_from(stage.server.kubeconfig("admin")).expect("readable");
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
    config.auth_info.impersonate = Some(CONTROLLER.to_owned());
    config.auth_info.impersonate_groups = Some(vec!["system:masters".to_owned()]);
    Client::try_from(config).expect("a client")
}

/// A living pod with an address, two addresses of pods that are gone and two more that providers bound, with policies in force.
async fn stage() -> Stage {
    let stage = Stage::set().await;
    let node = stage.node("node1", &offers("2")).await;
    let uid = stage.pod("lives", &json!({}), &json!({"nodeName": "node1"}), &json!({"phase": "Running"})).await;
    stage.held("10.6.0.10", ["lives", &uid], ["node1", &node], &json!({})).await;
    stage.shown(["lives", &uid], "node1", "10.6.0.10").await;
    stage.held("10.6.0.11", ["gone", "g"], ["node2", "n2"], &json!({})).await;
    stage.held("10.6.0.12", ["gone", "g"], ["node2", "n2"], &json!({"interface": "net2"})).await;
    let bound = |server: &str| json!({"provider": {"server": server, "subnet": "10.6.0.0/24", "bindId": "b"}});
    stage.held("10.6.0.13", ["gone", "g"], ["node2", "n2"], &bound("http://p")).await;
    stage.held("10.6.0.14", ["gone", "g"], ["node2", "n2"], &bound("http://old")).await;
    chart::guard(&stage.admin).await;
    chart::install(&stage.admin, "people.yaml").await;
    stage
}

fn outcome(json: &Value, address: &str) -> String {
    let all = json["addresses"].as_array().expect("a list").iter();
    let one = all.clone().find(|one| one["address"] == address).unwrap_or_else(|| panic!("{address}: {json:#}"));
    one["outcome"].as_str().expect("a text").to_owned()
}

#[tokio::test]
async fn who_lacks_a_right_is_told_which() {
    let stage = stage().await;
    let rules = json!([
        {"apiGroups": ["spiderpool.spidernet.io"], "resources": ["spideripallocations"], "verbs": ["get", "patch"]},
    ]);
    stage.grant("writer", ANN, &rules).await;
    wait::until("the right to write", crate::stage::SOON, async || {
        let ran = stage.run(ANN, &["release", "10.6.0.11", "--yes"]);
        anyhow::ensure!(ran.code == 1, "{ran:?}");
        ran.line(&["10.6.0.11", "FORBIDDEN", "the verb release"]);
        ran.line(&["kubectl create clusterrole spiderpool-release --verb=get,patch,release"]);
        ran.line(&["kubectl create clusterrolebinding", &format!("--user={ANN}")]);
        Ok(())
    })
    .await;
    let now = stage.get(&format!("{}/10.6.0.11", allocations())).await;
    assert_eq!(now["spec"]["releaseRequest"], Value::Null);
}

#[tokio::test]
async fn a_release_is_asked_for_and_waited_for() {
    let stage = stage().await;
    for role in ["spiderpool-release", "spiderpool-view"] {
        stage.bind(role, ANN).await;
    }
    stage.grant("pods", ANN, &json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])).await;
    let path = |address: &str| format!("{}/{address}", allocations());
    wait::until("the right to release", crate::stage::SOON, async || {
        let ran = stage.run(ANN, &["release", "10.6.0.99", "--yes"]);
        anyhow::ensure!(ran.code == 0, "{ran:?}");
        ran.line(&["10.6.0.99", "free", "nobody has it"]);
        let sees = stage.run(ANN, &["pod", "lives"]);
        anyhow::ensure!(sees.code != 2, "{sees:?}");
        Ok(())
    })
    .await;

    // Nobody is there to be asked.
    let ran = stage.run(ANN, &["release", "10.6.0.11"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("add --yes") && ran.err.contains("10.6.0.11 of pool-a: pod default/gone"), "{ran:?}");
    assert_eq!(stage.get(&path("10.6.0.11")).await["spec"]["releaseRequest"], Value::Null);

    // No controller runs: the wish stays.
    let ran = stage.run(ANN, &["release", "10.6.0.11", "--yes", "--timeout", "100ms", "--abandon"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.line(&["10.6.0.11", "WAITS", "not free after 100ms"]);
    assert!(ran.err.contains("--abandon: the provider is not asked"), "{ran:?}");
    let asked = stage.get(&path("10.6.0.11")).await["spec"]["releaseRequest"].clone();
    assert_eq!((&asked["by"], &asked["abandon"]), (&json!(ANN), &json!(true)));

    // With one, all that can be is freed.
    let mut command = Command::new(binary());
    command.arg("--kubeconfig").arg(stage.server.kubeconfig(ANN));
    command.args(["release", "10.6.0.12", "10.6.0.11", "10.6.0.10", "10.6.0.99", "--yes", "-o", "json", "--abandon"]);
    let running = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let controller = controller(&stage).await;
    wait::until("the wish", crate::stage::SOON, async || {
        let now = stage.get(&path("10.6.0.12")).await;
        anyhow::ensure!(now["spec"]["releaseRequest"]["by"] == ANN, "{now}");
        Ok(())
    })
    .await;
    for address in ["10.6.0.12", "10.6.0.11"] {
        let deleted =
            send(&controller, "DELETE", &path(address), "application/json", Vec::new()).await.expect("answers");
        deleted.accepted();
    }
    let ran = crate::stage::Ran::from(running.wait_with_output().expect("ends"));
    assert_eq!(ran.code, 1, "one is in use: {ran:?}");
    let json = ran.json();
    assert_eq!(
        ["10.6.0.10", "10.6.0.11", "10.6.0.12", "10.6.0.99"].map(|address| outcome(&json, address)),
        ["refused", "released", "released", "free"]
    );
    let refused = json["addresses"][0]["text"].as_str().expect("a text");
    assert!(refused.contains("default/lives lives (Running) and uses it; delete the pod instead"), "{refused}");
    assert!(ran.err.contains("asked for already, by"), "{ran:?}");
}

#[tokio::test]
async fn of_what_a_provider_has_bound_the_controller_is_asked_unless_nobody_may_ask_there() {
    let stage = stage().await;
    let conf = json!({"data": {"conf.yml": "iaasNetworkProvider: {serverUrl: 'http://ann:secret@P:80/'}"}});
    stage.merge("/api/v1/namespaces/kube-system/configmaps/spiderpool-conf", &conf).await;
    let ran = stage.run("admin", &["release", "10.6.0.13", "10.6.0.14", "--yes", "--timeout", "100ms"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.line(&["10.6.0.13", "WAITS", "not free after 100ms", "whether http://p answers"]);
    ran.line(&["10.6.0.14", "REFUSED", "provider http://old, which is neither", "release --abandon 10.6.0.14"]);
    assert!(!ran.err.contains("secret") && !ran.out.contains("secret"), "{ran:?}");
    let request = async |address: &str| {
        stage.get(&format!("{}/{address}", allocations())).await["spec"]["releaseRequest"].clone()
    };
    assert_eq!(
        (request("10.6.0.13").await["abandon"].clone(), request("10.6.0.14").await),
        (json!(false), Value::Null)
    );

    let ran = stage.run("admin", &["release", "10.6.0.14", "--yes", "--timeout", "100ms", "--abandon"]);
    ran.line(&["10.6.0.14", "WAITS"]);
    assert!(ran.err.contains("--abandon: the provider is not asked"), "{ran:?}");
    assert_eq!(request("10.6.0.14").await["abandon"], true);
}

#[tokio::test]
async fn what_the_controller_turns_down_is_said() {
    let stage = stage().await;
    let controller = controller(&stage).await;
    let path = format!("{}/10.6.0.11", allocations());
    let mut command = Command::new(binary());
    command.arg("--kubeconfig").arg(stage.server.kubeconfig("admin")).args(["release", "10.6.0.11", "--yes"]);
    let running = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    wait::until("the wish", crate::stage::SOON, async || {
        let now = stage.get(&path).await;
        anyhow::ensure!(now["spec"]["releaseRequest"]["by"] == "admin", "{now}");
        Ok(())
    })
    .await;
    let pool = stage.get(&path).await["spec"]["pool"].clone();
    let body = json!({"spec": {"releaseRequest": null}}).to_string().into_bytes();
    send(&controller, "PATCH", &path, "application/merge-patch+json", body).await.expect("answers").accepted();
    // As the controller does it: the event comes after. Those of other wishes are no answer.
    let no = |address: &str, by: &str| k8s_api::names::release_declined(address, by, "default/gone");
    let notes = [no("10.6.0.110", "admin"), no("10.6.0.11", "bob"), no("10.6.0.11", "admin")];
    for (n, message) in notes.iter().enumerate() {
        let event = json!({
            "metadata": {"name": format!("pool.{n}")}, "type": "Warning", "reason": "ReleaseDeclined", "message": message,
            "involvedObject": {"kind": "SpiderIPPool", "name": pool}, "lastTimestamp": "2026-01-01T00:00:00Z",
        });
        stage.create("/api/v1/namespaces/default/events", &event).await;
    }
    let ran = crate::stage::Ran::from(running.wait_with_output().expect("ends"));
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.line(&[
        "10.6.0.11",
        "TURNED DOWN",
        "the controller has turned it down: 10.6.0.11 is not released as admin asked: its pod default/gone is there",
    ]);
}
