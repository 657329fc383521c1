use super::*;
use serde_json::json;

fn good() -> Value {
    json!({
        "cniVersion": "1.0.0", "name": "a-net", "type": "vlan", "master": "eth1", "vlanMode": "auto",
        "ipam": {
            "type": "spiderpool", "default_ipv4_ippool": ["v4"], "default_ipv6_ippool": null, "clean_gateway": true,
            "match_master_subnet": true, "log_level": "debug", "agentTimeout": 55, "ipam_unix_socket_path": "/s",
        },
    })
}

fn with(pointer: &str, value: Value) -> Value {
    let mut text = good();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    text.pointer_mut(parent).expect("there").as_object_mut().expect("an object").insert(key.replace("~1", "/"), value);
    text
}

fn parse(verb: Verb, value: &Value) -> Result<Config, Fault> {
    Config::parse(verb, version(value)?, value)
}

#[test]
fn every_key_is_read() {
    let config = parse(Verb::Add, &good()).expect("good");
    assert_eq!(
        config,
        Config {
            version: Version::V1_0_0,
            name: "a-net".to_owned(),
            link: Link {
                kind: "vlan".into(),
                master: "eth1".into(),
                vlan_id: None,
                vlan_mode: "auto".into(),
                becomes_gateway: false
            },
            ipam: Ipam {
                ipv4_pools: vec!["v4".to_owned()],
                ipv6_pools: vec![],
                clean_gateway: true,
                match_master_subnet: true,
                socket: "/s".into(),
                timeout: Duration::from_secs(55),
            },
            valid: vec![],
            cidrs: vec![],
        }
    );
    let config = parse(Verb::Add, &json!({"cniVersion": "0.3.1", "name": "n"})).expect("the least");
    assert_eq!(config.ipam, Ipam::default());
}

#[test]
fn what_others_write_is_left_alone() {
    for (pointer, value) in [
        ("/unknown", json!({"a": [1]})),
        ("/ipam/unknown", json!(1)),
        ("/ipam/log_file_max_size", json!("many")),
        ("/ipam/log_level", json!(7)),
        ("/runtimeConfig", json!({})),
        ("/vlanId", json!(0)),
        ("/vlanId", json!(null)),
        ("/ipam/agentTimeout", json!(null)),
        ("/ipam", json!(null)),
        ("/prevResult", json!({"ips": [{"address": "10.0.0.1/24", "version": "4"}]})),
        ("/prevResult", json!({"ips": 1})),
        ("/prevResult", json!("of another")),
        ("/cni.dev~1valid-attachments", json!("of a GC")),
    ] {
        let text = with(pointer, value);
        assert!(parse(Verb::Add, &text).is_ok(), "{text}");
    }
}

#[test]
fn what_is_wrong_has_code_7_and_a_del_goes_on() {
    for (pointer, value) in [
        ("/name", json!(null)),
        ("/name", json!("")),
        ("/name", json!("-a")),
        ("/name", json!("a/b")),
        ("/name", json!(1)),
        ("/master", json!(["eth1"])),
        ("/vlanId", json!("7")),
        ("/vlanId", json!(4095)),
        ("/vlanId", json!(-1)),
        ("/ipam", json!([])),
        ("/ipam/default_ipv4_ippool", json!("v4")),
        ("/ipam/clean_gateway", json!("yes")),
        ("/ipam/agentTimeout", json!(0)),
        ("/ipam/agentTimeout", json!("soon")),
        ("/ipam/ipam_unix_socket_path", json!(1)),
    ] {
        let text = with(pointer, value);
        assert_eq!(parse(Verb::Add, &text).expect_err("wrong").code, 7, "{text}");
        assert!(parse(Verb::Del, &text).is_ok(), "{text}");
    }
    let config = parse(Verb::Del, &with("/vlanId", json!(-1))).expect("goes on");
    assert_eq!(config.ipam.socket, PathBuf::from("/s"), "at the same agent");
}

#[test]
fn words_of_another_plugin_are_its_own() {
    for (pointer, value) in [
        ("/master", json!(["eth1", "eth2"])),
        ("/vlanId", json!("7")),
        ("/vlanId", json!(70_000)),
        ("/vlanMode", json!({})),
    ] {
        let mut text = with(pointer, value);
        text["type"] = "another".into();
        let link = parse(Verb::Add, &text).expect("not ours").link;
        assert!(link.vlan_id.is_none() && link.vlan_mode.is_empty(), "{link:?}");
    }
}

#[test]
fn a_bridge_alone_becomes_a_gateway() {
    let becomes = |kind: &str, key: &str, value: Value| {
        let mut text = json!({"cniVersion": "1.0.0", "name": "n", "type": kind});
        text[key] = value;
        parse(Verb::Add, &text).expect("good").link.becomes_gateway
    };
    assert!(becomes("bridge", "isGateway", json!(true)) && becomes("bridge", "isDefaultGateway", json!(true)));
    assert!(!becomes("bridge", "isGateway", json!(false)) && !becomes("bridge", "isGateway", json!("yes")));
    assert!(!becomes("bridge", "master", json!("eth1")) && !becomes("macvlan", "isGateway", json!(true)));
}

#[test]
fn a_check_reads_what_was_before() {
    let text = with("/prevResult", json!({"ips": [{"address": "10.0.0.1/24"}, {"address": "fd00::1/64"}]}));
    assert_eq!(parse(Verb::Check, &text).expect("good").cidrs, ["10.0.0.1/24", "fd00::1/64"]);
    assert_eq!(parse(Verb::Add, &text).expect("good").cidrs, [""; 0]);
    for odd in [json!({"ips": 1}), json!("x"), json!({"ips": [{}]}), json!({"ips": [{"address": 1}]})] {
        assert_eq!(parse(Verb::Check, &with("/prevResult", odd)).expect_err("wrong").code, 7);
    }
}

#[test]
fn a_gc_without_a_list_is_refused() {
    assert_eq!(parse(Verb::Gc, &good()).expect_err("no list").code, 7);
    let mut text = good();
    text["cni.dev/valid-attachments"] = json!([]);
    assert_eq!(parse(Verb::Gc, &text).expect("an empty list is one").valid, []);
    text["cni.dev/valid-attachments"] = json!([{"containerID": "c", "ifname": "net1"}]);
    let valid = parse(Verb::Gc, &text).expect("a list").valid;
    assert_eq!(valid, [Valid { container_id: "c".to_owned(), interface: "net1".to_owned() }]);
    text["cni.dev/valid-attachments"] = json!([{"containerID": "c"}]);
    assert_eq!(parse(Verb::Gc, &text).expect_err("half an entry").code, 7);
}

#[test]
fn unknown_versions_have_code_1() {
    for asked in [json!("0.2.0"), json!("1.2.0"), json!(""), json!(null), json!(1), json!("1.0.0 ")] {
        let fault = parse(Verb::Add, &with("/cniVersion", asked.clone())).expect_err("unknown");
        assert_eq!(fault.code, 1, "{asked}");
        assert!(fault.msg.ends_with("[0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0]"), "{}", fault.msg);
    }
}

#[test]
fn what_is_no_object_has_code_6() {
    for stdin in [&b""[..], b" ", b"{", b"[]", b"null", b"\"x\"", b"{\"name\":\"\xff\"}", b"{}{}"] {
        assert_eq!(decode(stdin).expect_err("no object").code, 6, "{}", String::from_utf8_lossy(stdin));
    }
    let deep = "[".repeat(100_000);
    assert_eq!(decode(deep.as_bytes()).expect_err("too deep").code, 6);
}
