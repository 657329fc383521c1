//! `docs/provider-openapi.yaml` against what is sent and taken: what it allows is taken, what it forbids is refused.

use crate::stage::{Stage, allocate, release};
use ipam_core::{AllocateRequest, Call, Deadline, Pod, Release};
use jsonschema::Validator;
use provider_sim::wire::{self, ALLOCATE, RELEASE};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

fn file() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/provider-openapi.yaml");
    serde_saphyr::from_str(&std::fs::read_to_string(path).expect("readable")).expect("YAML")
}

/// A schema of the file by its name.
fn schema(name: &str) -> Validator {
    let whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": format!("#/components/schemas/{name}"), "components": file()["components"],
    });
    jsonschema::options().should_validate_formats(true).build(&whole).expect("a schema")
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().expect("an object").keys().cloned().collect()
}

/// Names of the properties of a schema.
fn properties(name: &str) -> BTreeSet<String> {
    keys(&file()["components"]["schemas"][name]["properties"])
}

/// Names of those that must be there.
fn required(name: &str) -> Vec<String> {
    let list = file()["components"]["schemas"][name]["required"].as_array().cloned().expect("a list");
    list.iter().map(|name| name.as_str().expect("a name").to_owned()).collect()
}

fn call() -> Call {
    Call {
        server: "http://x".to_owned(),
        pod: Pod { namespace: "default".to_owned(), name: "a".to_owned(), uid: "u".to_owned() },
        node: "worker-1".to_owned(),
        parent_nic_mac: "fa:16:3e:11:22:33".to_owned(),
        address: "10.0.0.10".parse().expect("an address"),
        subnet: "10.0.0.0/24".to_owned(),
        deadline: Deadline::new(Duration::ZERO, Duration::from_secs(50), None),
    }
}

/// Every wrong form of one field: not there, if it must be, or of another type.
fn wrong(object: &Value, at: &str, field: &str, must: bool) -> Vec<Value> {
    let mut all = Vec::new();
    let edit = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        let mut whole = object.clone();
        change(whole.pointer_mut(at).and_then(Value::as_object_mut).expect("an object"));
        whole
    };
    if must {
        all.push(edit(&|map| drop(map.remove(field))));
    }
    for other in [json!(7), json!({}), json!([7]), json!(true)] {
        all.push(edit(&|map| drop(map.insert(field.to_owned(), other.clone()))));
    }
    all
}

#[tokio::test]
async fn what_the_file_allows_is_sent_and_taken() {
    let call = call();
    let (bind, unbind) = (AllocateRequest::new(&call), Release::new(&call));
    let (bind, unbind) = (serde_json::to_value(bind).expect("JSON"), serde_json::to_value(unbind).expect("JSON"));
    assert_eq!(keys(&bind), properties("AllocateRequest"), "we send every field, and no other");
    assert_eq!(keys(&bind["iaasIPsAllocationRequest"][0]), properties("WantedIp"));
    assert_eq!(keys(&unbind), properties("ReleaseRequest"));
    let stage = Stage::plain().await;
    for (path, body, name) in [(ALLOCATE, bind, "AllocateRequest"), (RELEASE, unbind, "ReleaseRequest")] {
        let schema = schema(name);
        assert!(schema.is_valid(&body), "{body}");
        let needed: BTreeSet<String> = required(name).into_iter().collect();
        for field in keys(&body).difference(&needed) {
            let mut less = body.clone();
            less.as_object_mut().expect("an object").remove(field);
            assert!(schema.is_valid(&less), "{field} may be left out");
            let (status, answer) = stage.post(path, 50_000, &less).await;
            assert!((200..300).contains(&status) || status == 409, "{field} may be left out: {status} {answer}");
        }
        let (status, answer) = stage.post(path, 50_000, &body).await;
        assert!((200..300).contains(&status) || status == 409, "{status} {answer}");
    }
    stage.end().await;
}

/// Every field of a type that has all of its fields is a property, and the other way round; what the type needs is required.
fn agrees<T: serde::de::DeserializeOwned + serde::Serialize>(name: &str, full: &T) {
    let full = serde_json::to_value(full).expect("JSON");
    assert_eq!(keys(&full), properties(name), "{name}");
    let needed = keys(&full).into_iter().filter(|field| {
        let mut less = full.clone();
        less.as_object_mut().expect("an object").remove(field);
        serde_json::from_value::<T>(less).is_err()
    });
    assert_eq!(needed.collect::<BTreeSet<_>>(), required(name).into_iter().collect(), "{name}");
}

/// Each field is written out: one that is new does not build here before it has a value.
#[test]
fn fields_are_those_of_the_wire_types() {
    let text = || "x".to_owned();
    let asked = wire::AskedAddress { ip_address: text(), subnet: text(), parent_nic_mac: text() };
    let bound = wire::BoundAddress {
        parent_nic_mac: text(),
        subnet: text(),
        ip_address: text(),
        mac_address: text(),
        vlan_id: Some(1),
    };
    agrees("WantedIp", &asked);
    agrees("BoundIp", &bound);
    let request = wire::AllocateRequest {
        pod_name: text(),
        pod_namespace: text(),
        pod_uid: text(),
        node_name: text(),
        addresses: vec![asked],
    };
    agrees("AllocateRequest", &request);
    let response =
        wire::AllocateResponse { pod_name: text(), pod_namespace: text(), node_name: text(), addresses: vec![bound] };
    agrees("AllocateResponse", &response);
    let release = wire::ReleaseRequest {
        pod_name: text(),
        pod_namespace: text(),
        pod_uid: text(),
        node_name: text(),
        parent_nic_mac: text(),
        subnet: text(),
        ip_address: text(),
    };
    agrees("ReleaseRequest", &release);
}

#[tokio::test]
async fn answers_are_those_of_the_file() {
    let stage = Stage::plain().await;
    let (status, answer) = stage.allocate("u", &["10.0.0.20", "10.0.0.21"]).await;
    assert_eq!(status, 200, "{answer}");
    let schema = schema("AllocateResponse");
    assert!(schema.is_valid(&answer), "{answer}");
    assert_eq!(keys(&answer), properties("AllocateResponse"));
    assert_eq!(keys(&answer["iaasIPsAllocationResponse"][0]), properties("BoundIp"));
    for (at, name) in [("", "AllocateResponse"), ("/iaasIPsAllocationResponse/1", "BoundIp")] {
        for field in required(name) {
            for bad in wrong(&answer, at, &field, true) {
                assert!(!schema.is_valid(&bad), "{field}: {bad}");
            }
        }
    }
    stage.end().await;
}

#[tokio::test]
async fn what_the_file_forbids_is_refused() {
    let stage = Stage::plain().await;
    let (bind, unbind) = (allocate("u", &["10.0.0.30"]), release("u", "10.0.0.30"));
    let item = "/iaasIPsAllocationRequest/0";
    for (path, body, name, places) in [
        (ALLOCATE, &bind, "AllocateRequest", vec![("", "AllocateRequest"), (item, "WantedIp")]),
        (RELEASE, &unbind, "ReleaseRequest", vec![("", "ReleaseRequest")]),
    ] {
        let schema = schema(name);
        for (at, part) in places {
            let must = required(part);
            for field in properties(part) {
                for bad in wrong(body, at, &field, must.contains(&field)) {
                    assert!(!schema.is_valid(&bad), "the file takes {field} in {bad}");
                    let (status, answer) = stage.post(path, 50_000, &bad).await;
                    assert_eq!(status, 400, "{field} in {bad}: {answer}");
                }
            }
        }
    }
    assert!(stage.bound().is_empty());
    let header = &file()["components"]["parameters"]["Budget"];
    assert_eq!((header["name"].as_str(), header["required"].as_bool()), (Some("X-Request-Timeout-Ms"), Some(true)));
    let (status, _) = stage.post(ALLOCATE, 0, &bind).await;
    assert_eq!(status, 400, "less than the file's minimum");
    stage.end().await;
}
