//! What is left behind.

use crate::stage::{GROUP, Stage, endpoints, object, offers};
use serde_json::json;

#[tokio::test]
async fn leaks_say_who_frees_what() {
    let stage = Stage::set().await;
    let node = stage.node("node1", &offers("2")).await;
    stage.agent("node1").await;
    stage.pool("pool-a", &["10.6.0.10-10.6.0.20"], &json!({})).await;
    let here = ["node1", node.as_str()];
    let well = stage.run("admin", &["leaks"]);
    assert!(well.code == 0 && well.out.starts_with("nothing is left behind"), "{well:?}");

    let uid = stage.pod("lives", &json!({}), &json!({"nodeName": "node1"}), &json!({"phase": "Running"})).await;
    stage.held("10.6.0.10", ["lives", &uid], here, &json!({})).await;
    stage.shown(["lives", &uid], "node1", "10.6.0.10").await;
    stage.held("10.6.0.11", ["gone", "g"], here, &json!({})).await;
    let ended = stage.pod("ended", &json!({}), &json!({"nodeName": "node1"}), &json!({"phase": "Succeeded"})).await;
    stage.held("10.6.0.12", ["ended", &ended], here, &json!({})).await;
    // A StatefulSet of one has a place for its first pod, and for no other.
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let set = json!({"metadata": {"name": "db"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "serviceName": "", "replicas": 1, "template": template}});
    let set = stage.create("/apis/apps/v1/namespaces/default/statefulsets", &set).await;
    let owner =
        json!({"owner": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": set["metadata"]["uid"]}});
    stage.held("10.6.0.13", ["db-0", "d0"], here, &owner).await;
    stage.held("10.6.0.14", ["db-1", "d1"], here, &owner).await;
    stage.held("10.6.0.15", ["away", "a"], ["node2", "n2"], &json!({})).await;
    let ran = stage.run("admin", &["leaks"]);
    assert_eq!(ran.code, 0, "all of it is freed by somebody: {ran:?}");
    ran.line(&[
        "10.6.0.11",
        "pool-a",
        "default/gone",
        "node1",
        "its pod is gone or has ended",
        "agent",
        "within five minutes",
    ]);
    ran.line(&["10.6.0.12", "default/ended", "its pod is gone or has ended", "agent"]);
    ran.line(&["10.6.0.14", "default/db-1", "agent"]);
    ran.line(&["10.6.0.15", "default/away", "node2", "controller", "10 minutes after the node went"]);
    for kept in ["10.6.0.10 ", "10.6.0.13"] {
        assert!(!ran.out.contains(kept), "{kept}: {}", ran.out);
    }

    let bound = json!({"provider": {"server": "http://p", "subnet": "10.6.0.0/24", "bindId": "b"}});
    stage.held("10.6.0.16", ["away", "a"], ["node2", "n2"], &bound).await;
    let finalizers = json!({"metadata": {"name": "old", "finalizers": ["spiderpool.spidernet.io/x"]},
                            "status": {"current": {"uid": "o", "node": "node1", "ips": []}}});
    stage.create(&endpoints(), &object("SpiderEndpoint", "old", &finalizers)).await;
    let ran = stage.run("admin", &["leaks", "-o", "json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let json = ran.json();
    let of_bound = |json: &serde_json::Value| {
        let all = json["leaks"].as_array().expect("a list").iter();
        all.clone().find(|leak| leak["what"] == "10.6.0.16").unwrap_or_else(|| panic!("{json:#}")).clone()
    };
    let by_provider = of_bound(&json);
    assert_eq!(by_provider["freedBy"], "controller", "{by_provider}");
    assert!(by_provider["when"].as_str().is_some_and(|when| when.ends_with("it asks http://p")), "{by_provider}");
    assert_eq!(json["notSeen"].as_array().map(Vec::len), Some(1), "there is no configuration: {json:#}");
    stage.conf("iaasNetworkProvider: {serverUrl: 'http://q'}").await;
    let ran = stage.run("admin", &["leaks", "-o", "json"]);
    assert_eq!(ran.code, 1, "nobody may ask there: {ran:?}");
    let json = ran.json();
    assert_eq!(json["stuck"], 1, "the endpoint is too young to be left behind: {json:#}");
    let stuck = json["leaks"].as_array().expect("a list").iter().find(|leak| leak["freedBy"] == "nobody");
    let stuck = stuck.expect("one");
    assert_eq!((&stuck["what"], &stuck["kind"]), (&json!("10.6.0.16"), &json!("address")));
    assert!(
        stuck["when"].as_str().is_some_and(|when| when.ends_with("spiderpoolctl release --abandon 10.6.0.16")),
        "{stuck}"
    );
    assert_eq!(json["notSeen"], json!([]));
    let node = stage.run("admin", &["node", "node2"]);
    node.line(&["WRONG", "provider", "10.6.0.16 stays when its pod goes: it may be bound at provider http://p"]);
    assert!(
        stage.get(&format!("{GROUP}/spideripallocations")).await["items"].as_array().is_some_and(|all| all.len() == 7)
    );
}
