use crate::stage::Stage;
use serde_json::json;

#[tokio::test]
async fn what_was_asked_and_what_is_bound_can_be_seen() {
    let stage = Stage::plain().await;
    stage.allocate("u", &["10.0.0.10"]).await;
    stage.release("u", "10.0.0.99").await;
    let (_, records) = stage.get("/records").await;
    let records = records["records"].as_array().expect("a list").clone();
    assert_eq!(records.len(), 2);
    assert_eq!(records[0]["body"]["podUID"], "u");
    assert_eq!(records[0]["budgetMs"], 50_000);
    assert_eq!((&records[0]["outcome"], &records[0]["status"]), (&json!("bound"), &json!(200)));
    assert_eq!(records[1]["outcome"], "not-bound");
    let (_, later) = stage.get("/records?since=1").await;
    assert_eq!(later["records"], json!([records[1]]));

    let (_, bindings) = stage.get("/bindings").await;
    let binding = &bindings["bindings"][0];
    assert_eq!(binding["podUID"], "u");
    let (status, entry) = stage.get("/v1/apis/network.iaas.io/status/ips-cache/10.0.0.10").await;
    let known = json!({"entry": {
        "nodeName": "worker-1", "ipAddress": "10.0.0.10", "subnet": "10.0.0.0/24", "parentNicMac": crate::stage::PARENT,
        "mac": binding["macAddress"], "vlanID": binding["vlanId"],
    }});
    assert_eq!((status, entry), (200, known));
    let one = "/v1/apis/network.iaas.io/status/ips-cache";
    assert_eq!(stage.get(&format!("{one}/10.0.0.11")).await, (404, json!({"error": "ip not found"})));
    assert_eq!(stage.get(&format!("{one}/x")).await, (400, json!({"error": "invalid ipAddress"})));
}

#[tokio::test]
async fn everything_can_be_forgotten() {
    let stage = Stage::faulty(json!([{"operation": "release", "fault": {"kind": "empty"}}])).await;
    stage.allocate("u", &["10.0.0.10"]).await;
    let post = async |path: &str| {
        let response = stage.client.post(format!("{}{path}", stage.url)).send().await.expect("an answer");
        assert_eq!(response.status(), 200);
    };
    post("/forget").await;
    assert!(stage.bound().is_empty());
    assert_eq!(stage.cloud.records(0).len(), 1);
    stage.allocate("u", &["10.0.0.10"]).await;
    post("/reset").await;
    assert!(stage.bound().is_empty() && stage.cloud.records(0).is_empty() && stage.cloud.faults().is_empty());
}

#[tokio::test]
async fn faults_are_added_listed_and_taken_away() {
    let stage = Stage::plain().await;
    let url = format!("{}/faults", stage.url);
    let rule = json!({"operation": "allocate", "match": {"podName": "a"}, "times": 1, "fault": {"kind": "status", "code": 500}});
    let post = async |body: String| {
        let response = stage.client.post(&url).body(body).send().await.expect("an answer");
        (response.status().as_u16(), response.text().await.expect("a whole answer"))
    };
    assert_eq!(post(json!([rule]).to_string()).await.0, 200);
    let (status, why) = post(r#"[{"fault":{"kind":"hang","vlan":1}}]"#.to_owned()).await;
    assert_eq!(
        (status, why.as_str()),
        (400, r#"{"error":"[0].fault.vlan: this kind does not take it; leave it out"}"#)
    );
    assert_eq!(post("[".repeat(3 * 1024 * 1024)).await.0, 413, "bounded");
    assert_eq!(stage.allocate("u", &["10.0.0.10"]).await.0, 500);
    assert_eq!(stage.allocate("u", &["10.0.0.10"]).await.0, 200);
    let mut shown = rule;
    shown["match"] = json!({"podName": "a"});
    assert_eq!(stage.get("/faults").await, (200, json!({"faults": [{"rule": shown, "hits": 1}]})));
    let gone = stage.client.delete(&url).send().await.expect("an answer");
    assert_eq!(gone.text().await.expect("a whole answer"), r#"{"faults":[]}"#);
}

#[tokio::test]
async fn other_paths_and_methods_are_errors_in_json() {
    let stage = Stage::plain().await;
    assert_eq!(stage.get("/healthz").await, (200, json!({"status": "ok"})));
    assert_eq!(stage.get("/nothing").await, (404, json!({"error": "there is nothing here"})));
    let (status, answer) = stage.get(provider_sim::wire::ALLOCATE).await;
    assert_eq!((status, answer), (405, json!({"error": "method not allowed"})));
}

#[tokio::test]
async fn figures_are_shown() {
    let stage = Stage::faulty(json!([{"operation": "release", "times": 1, "fault": {"kind": "cut-before"}}])).await;
    stage.allocate("u", &["10.0.0.10"]).await;
    let body = crate::stage::release("u", "10.0.0.10");
    stage.raw(provider_sim::wire::RELEASE, &body, crate::stage::LONG).await;
    stage.release("v", "10.0.0.10").await;
    let (_, text) = stage.get("/metrics").await;
    let text = text.as_str().expect("a text");
    for line in [
        r#"provider_sim_calls_total{operation="allocate",code="200"} 1"#,
        r#"provider_sim_calls_total{operation="release",code="none"} 1"#,
        r#"provider_sim_faults_total{kind="cut-before"} 1"#,
        "provider_sim_foreign_releases_total 1",
        "provider_sim_bindings 0",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} is not in\n{text}");
    }
}
