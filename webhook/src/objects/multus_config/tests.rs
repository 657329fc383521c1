use super::*;
use crate::objects::Object;
use crate::objects::ip_pool::Pool;
use crate::pools::Known;
use serde_json::{Value, json};

fn object(annotations: &Value, spec: &Value) -> Object {
    let metadata = json!({"namespace": "ns", "name": "n", "annotations": annotations});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("an object")
}

fn pools() -> Pools {
    let known = |subnet: &str| Known::Pool(Pool::of(&json!({"subnet": subnet})).expect("a pool"));
    let named = [("v4", known("10.0.0.0/24")), ("v6", known("fd00::/64")), ("odd", Known::Unreadable)];
    named.into_iter().map(|(name, known)| (name.to_owned(), known)).collect()
}

fn check(annotations: &Value, spec: &Value, conf: &Conf) -> Findings {
    let object = object(annotations, spec);
    let spec = serde_json::from_value(spec.clone()).expect("a spec");
    let attachment = Attachment { namespace: "ns", name: "n", annotations: object.annotations(), spec: &spec };
    validate(&attachment, conf, Some(&pools()))
}

fn vlan(more: &Value) -> Value {
    let mut vlan = json!({"master": ["eth1"], "ippools": {"ipv4": ["v4"]}});
    vlan.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    json!({"cniType": "vlan", "vlan": vlan})
}

#[test]
fn what_is_right_has_nothing_said_of_it() {
    for spec in [
        vlan(&json!({})),
        vlan(&json!({"vlanMode": "auto", "mtu": 0})),
        vlan(&json!({"vlanMode": "manual", "vlanID": 0, "mtu": 1500})),
        vlan(&json!({"master": ["eth1", "eth2"], "bond": {"name": "bond0", "mode": 1}})),
        vlan(&json!({"ippools": {"ipv4": ["v*"], "ipv6": ["v6"]}})),
        json!({"cniType": "macvlan", "macvlan": {"master": ["eth1.100"], "mtu": 68}}),
        json!({"cniType": "ipvlan", "ipvlan": {"master": ["eth1"], "mtu": 65535}}),
        json!({"cniType": "ipoib", "ipoib": {"master": "ib0"}}),
        json!({"cniType": "sriov", "sriov": {"resourceName": "a/b", "ippools": {"ipv4": ["v4"], "matchMasterSubnet": true}}}),
        json!({"cniType": "custom", "customCNI": "{\"type\":\"ptp\"}"}),
        json!({"cniType": "custom", "customCNI": "{\"plugins\":[{\"type\":\"ptp\"},{\"type\":\"x\"}]}"}),
        json!({"customCNI": "{\"type\":\"ptp\"}"}),
    ] {
        assert_eq!(check(&json!({}), &spec, &Conf::default()), Findings::default(), "{spec}");
        let spec = serde_json::from_value(spec).expect("a spec");
        assert!(crate::definitions::chain(&spec, &Conf::default().plugins).is_ok(), "and has a definition: {spec:?}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn each_fault_has_its_field_and_its_text() {
    let (long, none) = ("x".repeat(64), json!({}));
    let custom = |text: &str| json!({"cniType": "custom", "customCNI": text});
    let chain = |text: &str| {
        let mut spec = vlan(&json!({}));
        spec["chainCNIJsonData"] = json!([text]);
        spec
    };
    for (annotations, spec, wanted) in [
        (none.clone(), json!({"cniType": "vlan"}), "spec.vlan: Required value: no spec.vlan specified"),
        (none.clone(), json!({}), "spec.customCNI: Required value: no spec.customCNI specified"),
        (none.clone(), json!({"customCNI": ""}), "spec.customCNI: Required value: no spec.customCNI specified"),
        (
            none.clone(),
            json!({"cniType": "macvlan", "macvlan": {"master": ["eth-of-13-byte"], "vlanID": 5}}),
            "spec.macvlan.vlanID: Invalid value: 5: the interface between would be called \"eth-of-13-byte.5\"",
        ),
        (none.clone(), json!({"cniType": "ib-sriov"}), "spec.ibsriov: Required value: no spec.ibsriov specified"),
        (
            none.clone(),
            json!({"cniType": "vlan", "vlan": {"master": ["eth1"]}, "macvlan": {"master": ["eth1"]}}),
            "spec.cniType: Forbidden: the cniType vlan only supports spec.vlan, please remove other CNI configs",
        ),
        (
            none.clone(),
            json!({"cniType": "custom", "customCNI": "{\"type\":\"ptp\"}", "ovs": {}}),
            "the cniType custom only supports spec.customCNI, please remove other CNI configs",
        ),
        (
            none.clone(),
            vlan(&json!({"vlanMode": "manual"})),
            "spec.vlan.vlanID: Required value: vlanId must not be nil when vlanMode is manual",
        ),
        (
            none.clone(),
            vlan(&json!({"vlanMode": "auto", "vlanID": 5})),
            "spec.vlan.vlanID: Forbidden: vlanId must not be specified when vlanMode is auto",
        ),
        (
            none.clone(),
            vlan(&json!({"vlanID": 4095})),
            "spec.vlan.vlanID: Invalid value: 4095: invalid vlanId, please make sure vlanId in range [0,4094]",
        ),
        (
            none.clone(),
            vlan(&json!({"mtu": -1})),
            "spec.vlan.mtu: Invalid value: -1: MTU must be greater than or equal to 0",
        ),
        (none.clone(), vlan(&json!({"mtu": 1})), "MTU must be 0 (the kernel's choice) or in the range [68,65535]"),
        (none.clone(), vlan(&json!({"mtu": 67})), "in the range [68,65535]"),
        (none.clone(), vlan(&json!({"mtu": 65536})), "in the range [68,65535]"),
        (
            none.clone(),
            vlan(&json!({"ippools": {"matchMasterSubnet": true}})),
            "spec.vlan.ippools.matchMasterSubnet: Forbidden: MatchMasterSubnet feature is not supported for vlan",
        ),
        (none.clone(), vlan(&json!({"master": []})), "spec.vlan.master: Required value: master can't be empty"),
        (
            none.clone(),
            vlan(&json!({"master": [""]})),
            "spec.vlan.master[0]: Invalid value: \"\": an interface name must not be empty",
        ),
        (none.clone(), vlan(&json!({"master": ["eth/1"]})), "must not contain '/', ':', blanks or control characters"),
        (
            none.clone(),
            vlan(&json!({"master": ["sixteen-bytes-xy"]})),
            "an interface name has at most 15 bytes, not 16",
        ),
        (
            none.clone(),
            json!({"cniType": "ipoib", "ipoib": {"master": ".."}}),
            "spec.ipoib.master: Invalid value: \"..\"",
        ),
        (
            none.clone(),
            vlan(&json!({"master": ["eth1", "eth1"], "bond": {"name": "b"}})),
            "spec.vlan.master[1]: Duplicate value: \"eth1\"",
        ),
        (
            none.clone(),
            vlan(&json!({"master": ["eth1", "eth2"]})),
            "spec.vlan.bond: Required value: the bond property is nil with multiple Interfaces",
        ),
        (
            none.clone(),
            vlan(&json!({"master": ["eth1", "eth2"], "bond": {"name": ""}})),
            "spec.vlan.bond.name: Required value: bond name can't be empty",
        ),
        (
            none.clone(),
            vlan(&json!({"master": ["eth1", "eth2"], "bond": {"name": "a b"}})),
            "spec.vlan.bond.name: Invalid value: \"a b\"",
        ),
        (
            none.clone(),
            vlan(&json!({"master": ["eth1", "eth2"], "bond": {"name": "eth2"}})),
            "the bond must not be called as one of its masters",
        ),
        (
            none.clone(),
            vlan(&json!({"ippools": {"ipv4": [""]}})),
            "spec.vlan.ippools.ipv4[0]: Invalid value: \"\": it is empty",
        ),
        (none.clone(), vlan(&json!({"ippools": {"ipv4": ["A_b"]}})), "it is not the name of a SpiderIPPool"),
        (none.clone(), vlan(&json!({"ippools": {"ipv4": ["p[a"]}})), "syntax error in pattern"),
        (
            none.clone(),
            vlan(&json!({"ippools": {"ipv6": ["v6", "v6"]}})),
            "spec.vlan.ippools.ipv6[1]: Duplicate value: \"v6\"",
        ),
        (none.clone(), json!({"cniType": "sriov", "sriov": {"ippools": {"ipv4": [""]}}}), "spec.sriov.ippools.ipv4[0]"),
        (
            none.clone(),
            custom("{"),
            "spec.customCNI: Invalid value: \"{\": customCniConfig isn't a valid JSON encoding",
        ),
        (none.clone(), custom("[]"), "customCniConfig isn't a CNI configuration: it is not a JSON object"),
        (none.clone(), custom("{}"), "it has no \"type\", the name of a CNI plugin"),
        (none.clone(), custom("{\"plugins\":[]}"), "\"plugins\" is not a list of plugins"),
        (none.clone(), custom("{\"plugins\":[{\"type\":\"a/b\"}]}"), "plugins[0]: \"type\" is \"a/b\""),
        (none.clone(), chain("x"), "spec.chainCNIJsonData[0]: Forbidden: invalid \"x\": expected value"),
        (none.clone(), chain("{\"type\":5}"), "\"type\" is not text"),
        (
            json!({"multus.spidernet.io/cr-name": "A"}),
            vlan(&none),
            "metadata.annotations[multus.spidernet.io/cr-name]: Invalid value: \"A\": invalid custom net-attach-def resource name, err: [",
        ),
        (json!({"multus.spidernet.io/cni-version": "0.3.2"}), vlan(&none), "unsupported CNI version 0.3.2"),
        (json!({"cni.spidernet.io/cniconfig-name": "a b"}), vlan(&none), "it is not the name of a CNI configuration"),
        (
            json!({"cni.spidernet.io/network-resource-inject": long}),
            vlan(&none),
            "it becomes a label, so it must be a label value",
        ),
        (
            json!({"cni.spidernet.io/rdma-resource-inject": "r"}),
            vlan(&none),
            "spec.vlan.rdmaResourceName: Required value: rdmaResourceName can not empty for spidermultusconfig ns/n",
        ),
        (
            json!({"cni.spidernet.io/rdma-resource-inject": "r"}),
            vlan(&json!({"rdmaResourceName": "a/b", "ippools": {}})),
            "spec.vlan.ippools: Required value: no any ippools configured for spidermultusconfig ns/n",
        ),
        (
            json!({"cni.spidernet.io/network-resource-inject": "r"}),
            json!({"cniType": "sriov", "sriov": {"resourceName": "a/b"}}),
            "no any ippools configured for spidermultusconfig ns/n",
        ),
        (
            json!({"cni.spidernet.io/network-resource-inject": "r"}),
            json!({"cniType": "ovs", "ovs": {}}),
            "the cniType ovs does not support RDMA resource or network resource injected",
        ),
    ] {
        let found = check(&annotations, &spec, &Conf::default());
        let said: Vec<String> = found.faults.iter().map(ToString::to_string).collect();
        assert!(said.len() == 1 && said[0].contains(wanted), "{wanted}\n{said:#?}");
    }
}

#[test]
fn every_fault_is_listed() {
    let spec = vlan(&json!({"master": ["", "a/b"], "mtu": 5, "vlanID": 5000, "ippools": {"ipv4": [""]}}));
    assert_eq!(check(&json!({}), &spec, &Conf::default()).faults.len(), 6);
}

#[test]
fn each_warning_has_its_text() {
    let conf = Conf::parse("{iaasNetworkProvider: {serverUrl: 'http://provider'}, plugins: {present: [tuning]}}");
    let conf = conf.expect("valid");
    let v4_only = Conf { ipv6: false, ..Conf::default() };
    let with = |field: &str, value: Value| {
        let mut spec = vlan(&json!({}));
        spec[field] = value;
        spec
    };
    for (spec, conf, wanted) in [
        (vlan(&json!({"bond": {"name": "b"}})), &conf, "spec.vlan.bond is not used"),
        (vlan(&json!({"ippools": {"ipv4": ["none"]}})), &conf, "there is no SpiderIPPool none yet"),
        (vlan(&json!({"ippools": {"ipv4": ["none*"]}})), &conf, "no SpiderIPPool matches none* yet"),
        (vlan(&json!({"ippools": {"ipv4": ["v6"]}})), &conf, "SpiderIPPool v6 is not IPv4"),
        (vlan(&json!({"ippools": {"ipv4": ["v6*"]}})), &conf, "no SpiderIPPool that matches v6* is IPv4"),
        (vlan(&json!({"ippools": {"ipv6": ["v6"]}})), &conf, "a cloud provider binds IPv4 alone"),
        (vlan(&json!({"ippools": {"ipv6": ["v6"]}})), &v4_only, "IPv6 is disabled (chart value ipam.enableIPv6)"),
        (with("disableIPAM", true.into()), &conf, "spec.vlan.ippools is not used: spec.disableIPAM is true"),
        (with("enableCoordinator", true.into()), &conf, "spec.enableCoordinator has no effect"),
        (
            with("chainCNIJsonData", json!(["{\"type\":\"sbr\"}", "{\"type\":\"tuning\"}"])),
            &conf,
            "CNI plugin \"sbr\" is not part of the chart",
        ),
        (
            json!({"cniType": "macvlan", "macvlan": {"master": ["eth1"], "ippools": {"ipv4": ["v4", "odd"], "matchMasterSubnet": true}}}),
            &conf,
            "matchMasterSubnet is not used with cniType macvlan",
        ),
    ] {
        let found = check(&json!({}), &spec, conf);
        assert!(found.faults.is_empty() && found.warnings.len() == 1, "{wanted}: {found:#?}");
        assert!(found.warnings[0].contains(wanted), "{wanted}: {found:#?}");
    }
    let manual = vlan(&json!({"vlanID": 5, "ippools": {"ipv6": ["v6"]}}));
    assert_eq!(check(&json!({}), &manual, &conf), Findings::default(), "nobody asks the provider");
}

#[test]
fn a_network_keeps_its_name() {
    let named = |name: Option<&str>| {
        object(&json!({"multus.spidernet.io/cr-name": name.unwrap_or_default()}), &vlan(&json!({})))
    };
    let said = |old, new| changed(&named(new), &named(old)).faults.first().map(ToString::to_string);
    for (old, new) in [(None, None), (Some("a"), Some("a")), (Some("a"), None), (None, Some("n"))] {
        assert_eq!(said(old, new), None, "{old:?} {new:?}");
    }
    let text = said(Some("a"), Some("b")).expect("a fault");
    assert!(
        text.contains("it's unsupported to change customized Multus net-attach-def resource name from 'a' to 'b'"),
        "{text}"
    );
    let text = said(None, Some("b")).expect("a fault");
    assert!(text.contains("it's unsupported to changed Multus net-attach-def 'n' to customized name 'b'"), "{text}");
}

#[test]
fn neighbours_are_named() {
    let plain = object(&json!({}), &vlan(&json!({})));
    let found = neighbours(&plain, "ns", Some("other"), true);
    assert_eq!(
        found.faults[0].to_string(),
        "metadata.name: Invalid value: \"n\": the net-attach-def ns/n already exists and is managed by SpiderMultusConfig ns/other. Choose another name"
    );
    assert!(found.warnings[0].starts_with("NetworkAttachmentDefinition ns/n exists and is not of this system"));
    assert_eq!(neighbours(&plain, "ns", None, false), Findings::default());
}

/// A patch, and what comes of it; the second time there is nothing to do.
fn completed(new: &Value, old: Option<&Value>) -> Value {
    let read = |value: &Value| serde_json::from_value::<Object>(value.clone()).expect("an object");
    let old = old.map(read);
    let mut patched = new.clone();
    let patch: json_patch::Patch = serde_json::from_value(json!(complete(&read(new), old.as_ref()))).expect("a patch");
    json_patch::patch(&mut patched, &patch).expect("applies");
    assert_eq!(complete(&read(&patched), old.as_ref()), Vec::<Value>::new(), "twice is once");
    patched
}

#[test]
fn labels_are_copies_of_annotations() {
    let of = |labels: &Value, annotations: &Value| json!({"metadata": {"name": "n", "labels": labels, "annotations": annotations}, "spec": vlan(&json!({}))});
    let (key, rdma) = (k8s_api::names::INJECT[1], k8s_api::names::INJECT[0]);
    let red = json!({ key: "red" });
    let labels = |object: &Value| object["metadata"]["labels"].clone();
    assert_eq!(labels(&completed(&of(&Value::Null, &red), None)), red, "there were no labels");
    assert_eq!(labels(&completed(&of(&json!({"a": "b"}), &red), None)), json!({"a": "b", key: "red"}));
    assert_eq!(labels(&completed(&of(&json!({ key: "blue" }), &red), None)), red);
    assert_eq!(
        labels(&completed(&of(&json!({}), &json!({ key: "red", rdma: "x" })), None)),
        json!({ key: "red", rdma: "x" })
    );
    // The annotation is gone.
    let old = of(&red, &red);
    assert_eq!(labels(&completed(&of(&red, &json!({})), Some(&old))), json!({}), "the copy goes with it");
    assert_eq!(
        labels(&completed(&of(&json!({ key: "own" }), &json!({})), Some(&old))),
        json!({ key: "own" }),
        "no copy"
    );
    assert_eq!(labels(&completed(&of(&red, &json!({})), Some(&of(&red, &json!({}))))), red, "nobody copied it");
    // What is no label value is left for the check to refuse.
    let bad = of(&Value::Null, &json!({ key: "a b" }));
    assert_eq!(completed(&bad, None), bad);
    let same = completed(&of(&json!({ key: "red" }), &red), Some(&old));
    assert_eq!(same["spec"], old["spec"], "vlanMode and vlanID stay open");
}
