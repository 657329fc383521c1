use super::*;

fn pool(more: &Value) -> Value {
    let mut spec = json!({"subnet": "172.91.0.0/24", "ips": ["172.91.0.100-172.91.0.120"], "gateway": "172.91.0.1"});
    spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    spec
}

fn check(spec: &Value, conf: &Conf) -> Findings {
    read(&serde_json::from_value(spec.clone()).expect("a spec"), conf).1
}

#[test]
fn what_is_right_has_nothing_said_of_it() {
    for more in [
        json!({}),
        json!({"ipVersion": 4, "gateway": ""}),
        json!({"subnet": "fd00::/64", "ips": ["fd00::10-fd00::20"], "gateway": "fd00::1", "ipVersion": 6}),
        json!({"ips": ["172.91.0.1-172.91.0.9"], "excludeIPs": ["172.91.0.1"]}),
        json!({"routes": [{"dst": "10.0.0.0/8", "gw": "172.91.0.2"}, {"dst": "10.0.0.0/16", "gw": "172.91.0.2"}]}),
        json!({"podAffinity": {"matchLabels": {"a/b": "c"}}, "nodeAffinity": {}, "namespaceAffinity": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}),
        json!({"namespaceName": ["a"], "nodeName": ["n.example"], "multusName": ["ns/net", "net"]}),
        json!({"subnet": "10.0.0.0/31", "ips": ["10.0.0.0-10.0.0.1"], "gateway": null}),
    ] {
        assert_eq!(check(&pool(&more), &Conf::default()), Findings::default(), "{more}");
    }
}

#[test]
fn each_fault_has_its_field_and_its_text() {
    for (more, wanted) in [
        (
            json!({"subnet": "172.91.0.1/24", "ipVersion": 4}),
            "spec.subnet: Invalid value: \"172.91.0.1/24\": it has host bits; write 172.91.0.0/24",
        ),
        (json!({"ipVersion": 6}), "spec.ipVersion: Invalid value: 6: 'spec.subnet' 172.91.0.0/24 is IPv4"),
        (json!({"ips": ["172.91.0.100", ""]}), "spec.ips[1]: Invalid value: \"\": it is empty"),
        (json!({"ips": ["172.91.0.9-172.91.0.5"]}), "the range is reversed; write 172.91.0.5-172.91.0.9"),
        (json!({"ips": ["172.91.0.0/25"]}), "spec.ips[0]: Invalid value: \"172.91.0.0/25\": it is a subnet"),
        (
            json!({"ips": ["172.91.0.250-172.91.1.5"]}),
            "spec.ips[0]: Invalid value: \"172.91.0.250-172.91.1.5\": not pertains to the 'spec.subnet' 172.91.0.0/24 of IPPool",
        ),
        (json!({"ips": ["fd00::1"]}), "not pertains to the 'spec.subnet' 172.91.0.0/24 of IPPool"),
        (json!({"excludeIPs": ["172.91.1.1"]}), "spec.excludeIPs[0]: Invalid value: \"172.91.1.1\": not pertains"),
        (
            json!({"gateway": "172.91.0.1/24"}),
            "spec.gateway: Invalid value: \"172.91.0.1/24\": it is a subnet, not an address",
        ),
        (json!({"gateway": "172.92.0.1"}), "spec.gateway: Invalid value: \"172.92.0.1\": not pertains to"),
        (
            json!({"gateway": "172.91.0.100"}),
            "spec.ips: Forbidden: conflicts with 'spec.gateway' 172.91.0.100, add the gateway IP address to 'spec.excludeIPs' or remove it from 'spec.ips'",
        ),
        (
            json!({"routes": [{"dst": "0.0.0.0/0", "gw": "172.91.0.1"}]}),
            "spec.routes[0].dst: Invalid value: \"0.0.0.0/0\": please specify 'spec.gateway' to configure the default route",
        ),
        (
            json!({"routes": [{"dst": "10.0.0.0/8", "gw": "172.91.0.1"}, {"dst": "10.0.0.0/8", "gw": "172.91.0.2"}]}),
            "spec.routes[1].dst: Duplicate value: \"10.0.0.0/8\": duplicate route with the same dst",
        ),
        (json!({"routes": [{"dst": "10.0.0.1/8", "gw": "172.91.0.1"}]}), "it has host bits; write 10.0.0.0/8"),
        (
            json!({"routes": [{"dst": "fd00::/8", "gw": "172.91.0.1"}]}),
            "spec.routes[0].dst: Invalid value: \"fd00::/8\": the pool is IPv4",
        ),
        (json!({"routes": [{"dst": "10.0.0.0/8", "gw": ""}]}), "spec.routes[0].gw: Invalid value: \"\": it is empty"),
        (
            json!({"routes": [{"dst": "10.0.0.0/8", "gw": "10.0.0.1"}]}),
            "spec.routes[0].gw: Invalid value: \"10.0.0.1\": not pertains",
        ),
        (
            json!({"podAffinity": {}}),
            "spec.podAffinity: Invalid value: {}: empty podAffinity is invalid for SpiderIPPool",
        ),
        (
            json!({"podAffinity": {"matchLabels": {"a b": "c"}}}),
            "spec.podAffinity.matchLabels: Invalid value: \"a b=c\": \"a b\" is not a label key",
        ),
        (
            json!({"nodeAffinity": {"matchExpressions": [{"key": "a", "operator": "in", "values": ["b"]}]}}),
            "\"in\" is not an operator: use In, NotIn, Exists or DoesNotExist",
        ),
        (
            json!({"namespaceAffinity": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
            "spec.namespaceAffinity.matchExpressions[0]",
        ),
        (
            json!({"namespaceName": [""]}),
            "spec.namespaceName[0]: Invalid value: \"\": it is not the name of a namespace",
        ),
        (json!({"nodeName": ["A"]}), "spec.nodeName[0]: Invalid value: \"A\": it is not the name of a node"),
        (
            json!({"multusName": ["a/b/c"]}),
            "spec.multusName[0]: Invalid value: \"a/b/c\": it is not the name of an attachment, as namespace/name",
        ),
        (json!({"multusName": ["/c"]}), "it is not the name of an attachment"),
    ] {
        let said: Vec<String> = check(&pool(&more), &Conf::default()).faults.iter().map(ToString::to_string).collect();
        assert!(said.len() == 1 && said[0].contains(wanted), "{wanted}\n{said:#?}");
    }
    let nothing = check(&pool(&json!({"subnet": "x"})), &Conf::default());
    assert!(nothing.faults[1].to_string().contains("is not generated correctly, 'spec.subnet' may be invalid"));
}

#[test]
fn a_family_that_is_off_is_refused() {
    let off = Conf { ipv4: false, ipv6: false, ..Conf::default() };
    let said = |spec: &Value| check(spec, &off).faults[0].to_string();
    assert!(
        said(&pool(&json!({})))
            .starts_with("spec.ipVersion: Forbidden: IPv4 is disabled; set the chart value ipam.enableIPv4")
    );
    let v6 = json!({"subnet": "fd00::/64", "ips": ["fd00::10"]});
    assert!(said(&v6).starts_with("spec.ipVersion: Forbidden: IPv6 is disabled"));
}

#[test]
fn each_warning_has_its_text() {
    for (more, wanted) in [
        (json!({"ips": ["172.91.0.0"]}), "172.91.0.0 is the network address of 172.91.0.0/24"),
        (json!({"ips": ["172.91.0.255"]}), "172.91.0.255 is the broadcast address of 172.91.0.0/24"),
        (json!({"gateway": "172.91.0.255"}), "spec.gateway 172.91.0.255 is the network or broadcast address"),
        (json!({"ips": []}), "the pool has no address"),
        (json!({"excludeIPs": ["172.91.0.1-172.91.0.254"]}), "the pool has no address"),
    ] {
        let found = check(&pool(&more), &Conf::default());
        assert!(found.faults.is_empty() && found.warnings.len() == 1, "{wanted}: {found:#?}");
        assert!(found.warnings[0].contains(wanted), "{wanted}: {found:#?}");
    }
}

#[test]
fn pools_that_share_something_are_told() {
    let read = |spec: Value| Pool::of(&spec).expect("a pool");
    let mine = read(json!({"subnet": "10.0.0.0/24", "ips": ["10.0.0.1-10.0.0.9"], "excludeIPs": ["10.0.0.5"]}));
    let said =
        |other: Value| overlap(&mine, "p", &read(other)).faults.first().map(ToString::to_string).unwrap_or_default();
    let inside = said(json!({"subnet": "10.0.0.0/16"}));
    assert!(
        inside.starts_with(
            "spec.subnet: Invalid value: \"10.0.0.0/24\": overlap with IPPool p which 'spec.subnet' is 10.0.0.0/16"
        ),
        "{inside}"
    );
    assert!(said(json!({"subnet": "10.0.0.128/25"})).contains("which 'spec.subnet' is 10.0.0.128/25"));
    assert_eq!(
        said(json!({"subnet": "10.0.0.0/24", "ips": ["10.0.0.5-10.0.0.6", "10.0.0.9-10.0.0.20"]})),
        "spec.ips: Forbidden: overlap with IPPool p in IP ranges [10.0.0.6, 10.0.0.9], total IP addresses of an IPPool are jointly determined by 'spec.ips' and 'spec.excludeIPs'"
    );
    for apart in [
        json!({"subnet": "10.0.1.0/24", "ips": ["10.0.1.1"]}),
        json!({"subnet": "10.0.0.0/24", "ips": ["10.0.0.5", "10.0.0.10-10.0.0.20"]}),
        json!({"subnet": "fd00::/64", "ips": ["fd00::1"]}),
    ] {
        assert_eq!(said(apart), "");
    }
}

#[test]
fn addresses_in_use_are_not_taken_away() {
    let taken: Ranges = ["10.0.0.5-10.0.0.9"].iter().map(|text| text.parse::<Range>().expect("a range")).collect();
    let status = |text: &str| json!({ "allocatedIPs": text });
    let records = recorded(&status(
        r#"{"10.0.0.7":{"interface":"eth0","pod":"a/b","podUid":"u"},"10.0.0.1":{"pod":"c/d"},"10.0.0.6":{}}"#,
    ));
    let mut holders = records.expect("readable");
    holders.push(Holder { address: "10.0.0.7".parse().expect("an address"), pod: "a/b".to_owned() });
    let said: Vec<String> = held(&taken, holders).faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "spec.ips: Forbidden: remove an IP address 10.0.0.6 that is being used by Pod (not recorded), total IP addresses of an IPPool are jointly determined by 'spec.ips' and 'spec.excludeIPs'",
            "spec.ips: Forbidden: remove an IP address 10.0.0.7 that is being used by Pod a/b, total IP addresses of an IPPool are jointly determined by 'spec.ips' and 'spec.excludeIPs'",
        ]
    );
    for none in [json!({}), Value::Null, status(""), status("null"), status("{}"), json!({"allocatedIPs": null})] {
        assert_eq!(recorded(&none).expect("none"), Vec::new(), "{none}");
    }
    for broken in
        [status("{"), status("[]"), status(r#"{"x":{}}"#), status(r#"{"10.0.0.1":5}"#), json!({"allocatedIPs": 5})]
    {
        assert!(recorded(&broken).is_err(), "{broken}");
    }
}

fn object(labels: &Value, spec: &Value) -> Object {
    serde_json::from_value(json!({"metadata": {"name": "p", "labels": labels}, "spec": spec})).expect("an object")
}

fn with_finalizers(mut object: Value, finalizers: &Value) -> Object {
    object["metadata"]["finalizers"] = finalizers.clone();
    serde_json::from_value(object).expect("an object")
}

#[test]
fn the_version_and_the_label_follow_from_the_subnet() {
    const LABEL: &str = "/metadata/labels/ipam.spidernet.io~1ippool-cidr";
    let add = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    let object = |labels: Value, spec: Value| {
        let object = json!({"metadata": {"name": "p", "labels": labels}, "spec": spec});
        with_finalizers(object, &json!(["x/y", POOL_FINALIZER]))
    };
    let bare = object(Value::Null, json!({"subnet": "10.148.4.0/24"}));
    assert_eq!(
        complete(&bare, None, true),
        [add("/spec/ipVersion", json!(4)), add("/metadata/labels", json!({CIDR_LABEL: "10-148-4-0-24"}))]
    );
    assert_eq!(complete(&bare, None, false).len(), 1, "the spec of one that is there stays as it is");
    let labelled = object(json!({"a": "b", CIDR_LABEL: "x"}), json!({"subnet": "fd00::/64", "ipVersion": 6}));
    assert_eq!(complete(&labelled, None, true), [add(LABEL, json!("fd00---64"))]);
    let whole = object(json!({CIDR_LABEL: "fd00---64"}), json!({"subnet": "fd00::/64", "ipVersion": 6}));
    assert_eq!(complete(&whole, None, true), Vec::<Value>::new());
    for broken in [json!({"subnet": "x"}), json!({"subnet": 5}), json!(5), Value::Null] {
        assert_eq!(complete(&object(Value::Null, broken), None, true), Vec::<Value>::new(), "the check says why");
    }
}

#[test]
fn our_finalizer_is_not_lost() {
    let object = |finalizers: &Value| with_finalizers(json!({"metadata": {"name": "p"}, "spec": {}}), finalizers);
    let held = object(&json!([POOL_FINALIZER]));
    for (finalizers, path, value) in [
        (Value::Null, "/metadata/finalizers", json!([POOL_FINALIZER])),
        (json!([]), "/metadata/finalizers/-", json!(POOL_FINALIZER)),
        (json!(["x/y"]), "/metadata/finalizers/-", json!(POOL_FINALIZER)),
    ] {
        let wanted = json!({"op": "add", "path": path, "value": value});
        assert_eq!(complete(&object(&finalizers), Some(&held), false), [wanted], "{finalizers}");
        assert_eq!(complete(&object(&finalizers), None, true), Vec::<Value>::new(), "nobody is warned");
    }
    assert_eq!(complete(&held, Some(&held), false), Vec::<Value>::new());
}

#[test]
fn what_may_change_is_known() {
    let of = |more: Value| object(&Value::Null, &pool(&more));
    let old = of(json!({"ipVersion": 4}));
    assert!(
        same(&of(json!({"ipVersion": 4, "disable": true, "default": true})), &old),
        "a pool can always be taken out of use"
    );
    assert!(!same(&of(json!({"ipVersion": 4, "gateway": ""})), &old));
    let said = |new: Value| changed(&of(new), &old).faults.iter().map(|fault| fault.field.clone()).collect::<Vec<_>>();
    assert_eq!(said(json!({"ipVersion": 4, "ips": []})), Vec::<String>::new());
    assert_eq!(said(json!({"ipVersion": 6, "subnet": "10.0.0.0/8"})), ["spec.ipVersion", "spec.subnet"]);
}
