use crate::stage::{Stage, allocate, release};
use provider_sim::Outcome;
use provider_sim::wire::{ALLOCATE, RELEASE};
use serde_json::{Value, json};

/// A legal request with one thing wrong in it, and how the answer begins.
#[tokio::test]
async fn what_breaks_the_contract_is_refused_with_the_name_of_its_field() {
    let stage = Stage::plain().await;
    let first = "/iaasIPsAllocationRequest/0";
    let cases: Vec<(&str, String, Option<Value>, &str)> = vec![
        (ALLOCATE, "/nodeName".into(), None, "body: missing field `nodeName`"),
        (ALLOCATE, "/nodeName".into(), Some(json!("")), "nodeName: it is empty"),
        (ALLOCATE, "/nodeName".into(), Some(json!(7)), "nodeName: invalid type"),
        (ALLOCATE, "/nodeName".into(), Some(Value::Null), "nodeName: invalid type"),
        (ALLOCATE, "/podUID".into(), Some(json!(7)), "podUID: invalid type"),
        (ALLOCATE, "/podName".into(), Some(Value::Null), "podName: invalid type"),
        (ALLOCATE, "/iaasIPsAllocationRequest".into(), None, "body: missing field `iaasIPsAllocationRequest`"),
        (ALLOCATE, "/iaasIPsAllocationRequest".into(), Some(json!([])), "iaasIPsAllocationRequest: it is empty"),
        (ALLOCATE, "/iaasIPsAllocationRequest".into(), Some(json!({})), "iaasIPsAllocationRequest: invalid type"),
        (ALLOCATE, format!("{first}/ipAddress"), None, "iaasIPsAllocationRequest[0]: missing field `ipAddress`"),
        (
            ALLOCATE,
            format!("{first}/ipAddress"),
            Some(json!("10.0.0.10/24")),
            "iaasIPsAllocationRequest[0].ipAddress: it is a subnet",
        ),
        (
            ALLOCATE,
            format!("{first}/ipAddress"),
            Some(json!("10.0.0.010")),
            "iaasIPsAllocationRequest[0].ipAddress: it is not an IP address",
        ),
        (
            ALLOCATE,
            format!("{first}/ipAddress"),
            Some(json!("FD00::1")),
            "iaasIPsAllocationRequest[0].ipAddress: it is not the usual spelling",
        ),
        (
            ALLOCATE,
            format!("{first}/ipAddress"),
            Some(json!("10.0.0.11")),
            "iaasIPsAllocationRequest[1].ipAddress: 10.0.0.11 is there twice",
        ),
        (ALLOCATE, format!("{first}/subnet"), None, "iaasIPsAllocationRequest[0]: missing field `subnet`"),
        (
            ALLOCATE,
            format!("{first}/subnet"),
            Some(json!("10.0.0.1/24")),
            "iaasIPsAllocationRequest[0].subnet: it has host bits",
        ),
        (
            ALLOCATE,
            format!("{first}/subnet"),
            Some(json!("10.1.0.0/24")),
            "iaasIPsAllocationRequest[0].subnet: 10.1.0.0/24 does not hold",
        ),
        (ALLOCATE, format!("{first}/subnet"), Some(json!("")), "iaasIPsAllocationRequest[0].subnet: it is empty"),
        (ALLOCATE, format!("{first}/parentNicMac"), None, "iaasIPsAllocationRequest[0]: missing field `parentNicMac`"),
        (
            ALLOCATE,
            format!("{first}/parentNicMac"),
            Some(json!("")),
            "iaasIPsAllocationRequest[0].parentNicMac: it is empty",
        ),
        (
            ALLOCATE,
            format!("{first}/parentNicMac"),
            Some(json!("eth1")),
            "iaasIPsAllocationRequest[0].parentNicMac: it is no MAC",
        ),
        (RELEASE, "/nodeName".into(), None, "body: missing field `nodeName`"),
        (RELEASE, "/nodeName".into(), Some(json!("")), "nodeName: it is empty"),
        (RELEASE, "/subnet".into(), None, "body: missing field `subnet`"),
        (RELEASE, "/subnet".into(), Some(json!("10.0.0.0")), "subnet: it has no prefix"),
        (RELEASE, "/ipAddress".into(), None, "body: missing field `ipAddress`"),
        (RELEASE, "/ipAddress".into(), Some(json!(["10.0.0.10"])), "ipAddress: invalid type"),
        (RELEASE, "/parentNicMac".into(), Some(json!("eth1")), "parentNicMac: it is no MAC"),
    ];
    for (path, pointer, value, begins) in cases {
        let mut body =
            if path == ALLOCATE { allocate("u", &["10.0.0.10", "10.0.0.11"]) } else { release("u", "10.0.0.10") };
        let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
        let object = body.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
        match value {
            Some(value) => object.insert(field.to_owned(), value),
            None => object.remove(field),
        };
        let (status, answer) = stage.post(path, 50_000, &body).await;
        let error = answer["error"].as_str().unwrap_or_default();
        assert_eq!(status, 400, "{pointer}: {answer}");
        assert!(error.starts_with(begins), "{pointer}: {error}");
    }
    assert!(stage.bound().is_empty());
    assert!(stage.cloud.records(0).iter().all(|record| record.outcome == Outcome::Refused));
}

#[tokio::test]
async fn a_release_needs_neither_the_nic_nor_the_pod() {
    let stage = Stage::plain().await;
    for without in [vec!["parentNicMac"], vec!["podName", "podNamespace", "podUID"]] {
        stage.allocate("u", &["10.0.0.10"]).await;
        let mut body = release("u", "10.0.0.10");
        for field in without {
            body.as_object_mut().expect("an object").remove(field);
        }
        assert_eq!(stage.post(RELEASE, 50_000, &body).await.0, 200);
        assert!(stage.bound().is_empty());
    }
    let mut body = release("u", "10.0.0.10");
    body["parentNicMac"] = json!("");
    assert_eq!(stage.post(RELEASE, 50_000, &body).await.0, 200);
}

#[tokio::test]
async fn headers_and_bodies_are_looked_at() {
    let stage = Stage::plain().await;
    let url = format!("{}{ALLOCATE}", stage.url);
    let good = allocate("u", &["10.0.0.10"]).to_string();
    let post = || stage.client.post(&url).body(good.clone());
    let kind = "content-type";
    let budget = "x-request-timeout-ms";
    let json = "application/json";
    for (request, status, begins) in [
        (post().header(kind, json), 400, "X-Request-Timeout-Ms: the header is missing"),
        (post().header(kind, json).header(budget, "0"), 400, "X-Request-Timeout-Ms: it must be"),
        (
            post().header(kind, json).header(budget, "1").header(budget, "2"),
            400,
            "X-Request-Timeout-Ms: the header is there",
        ),
        (post().header(budget, "50000"), 400, "Content-Type: "),
        (post().header(kind, "text/plain").header(budget, "50000"), 400, "Content-Type: "),
        (
            post().header(kind, json).header(budget, "50000").body(vec![b' '; 1024 * 1024 + 1]),
            413,
            "body: it is more than",
        ),
        (post().header(kind, json).header(budget, "50000").body("{"), 400, "body: EOF"),
        (post().header(kind, json).header(budget, "50000").body(format!("{good}x")), 400, "body: trailing"),
    ] {
        let response = request.send().await.expect("an answer");
        let got = response.status().as_u16();
        let answer: Value = response.json().await.expect("JSON");
        let error = answer["error"].as_str().unwrap_or_default();
        assert_eq!(got, status, "{answer}");
        assert!(error.starts_with(begins), "{error}");
    }
    assert!(stage.bound().is_empty());
    let with_charset = post().header(kind, "Application/JSON; charset=utf-8").header(budget, "50000");
    assert_eq!(with_charset.send().await.expect("an answer").status(), 200);
}
