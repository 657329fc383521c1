//! Sandboxes that are gone, or never were.

use crate::fake::{Asked, FakeAgent, Script};
use crate::run::{Run, conf, run};
use serde_json::json;
use std::path::Path;

/// What a runtime may say about a namespace that it has not got.
fn without_namespace(run: impl Fn() -> Run, file: &Path) -> [(&'static str, Run); 6] {
    let missing = file.with_file_name("removed");
    [
        ("unset", run().without("CNI_NETNS")),
        ("empty", run().env("CNI_NETNS", "")),
        ("removed", run().env("CNI_NETNS", missing)),
        ("a plain file", run().env("CNI_NETNS", file)),
        ("a folder", run().env("CNI_NETNS", file.parent().expect("a folder"))),
        ("of a process that ended", run().env("CNI_NETNS", "/proc/4194304/ns/net")),
    ]
}

/// k8snetworkplumbingwg/ovs-cni#106, cri-o/cri-o#9410: DEL came without a namespace, and nothing was ever cleaned up.
/// k8snetworkplumbingwg/multus-cni#887: neither the link nor the namespace is looked at by a DEL.
#[test]
fn a_del_needs_no_namespace_and_an_add_does() {
    let agent = FakeAgent::start(Script::Good);
    let file = agent.socket().with_file_name("plain");
    std::fs::write(&file, "").expect("writes");
    for version in ["0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let conf = conf(version, &agent.socket());
        for (what, add) in without_namespace(|| run("ADD", &conf), &file) {
            assert!(add.fails(4).contains("CNI_NETNS"), "{what}");
        }
        assert!(agent.asked().iter().all(|asked| matches!(asked, Asked::Del(_))), "an ADD asks for nothing");
        let before = agent.asked().len();
        for (_, del) in without_namespace(|| run("DEL", &conf), &file) {
            del.done();
        }
        let dels: Vec<_> = agent.asked().into_iter().skip(before).collect();
        assert_eq!(dels.len(), 6, "each asks for the release");
        for del in dels {
            let Asked::Del(del) = del else { panic!("{del:?}") };
            let attachment = del.attachment.expect("there");
            assert_eq!((attachment.container_id.as_str(), attachment.interface.as_str()), ("c-1", "net1"));
        }
    }
}

/// cilium/cilium#10065: a DEL that came again freed what a later sandbox had got. Whatever a runtime remembers of a result,
/// the agent is told the sandbox and the interface, and no address.
#[test]
fn a_del_names_its_sandbox_and_no_address() {
    let agent = FakeAgent::start(Script::Good);
    let mut conf = conf("1.0.0", &agent.socket());
    for address in ["172.91.0.7/24", "172.91.0.8/24", "nonsense"] {
        conf["prevResult"] = json!({"cniVersion": "1.0.0", "ips": [{"address": address}]});
        run("DEL", &conf).done();
    }
    let asked: Vec<_> = agent.asked().iter().map(|asked| format!("{asked:?}")).collect();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|del| *del == asked[0] && !del.contains("172.91")), "{asked:?}");
}

/// What a DEL does not understand keeps it from nothing.
#[test]
fn a_del_goes_through_whatever_is_spoilt_around_it() {
    let agent = FakeAgent::start(Script::Good);
    let good = conf("1.1.0", &agent.socket());
    let mut odd = Vec::new();
    for (key, value) in [
        ("name", json!(7)),
        ("name", json!(null)),
        ("master", json!({"a": 1})),
        ("vlanId", json!("x")),
        ("prevResult", json!([])),
        ("runtimeConfig", json!("x")),
        ("cni.dev/valid-attachments", json!(1)),
        ("cni.dev/attachments", json!(1)),
    ] {
        let mut conf = good.clone();
        conf[key] = value;
        odd.push(conf);
    }
    for (key, value) in [
        ("agentTimeout", json!("soon")),
        ("agentTimeout", json!([])),
        ("default_ipv4_ippool", json!({})),
        ("default_ipv6_ippool", json!([1])),
        ("clean_gateway", json!("no")),
        ("log_level", json!([])),
        ("log_file_path", json!(1)),
    ] {
        let mut conf = good.clone();
        conf["ipam"][key] = value;
        odd.push(conf);
    }
    let count = odd.len();
    for conf in odd {
        run("DEL", &conf).env("CNI_ARGS", "K8S_POD_NAME;;=;\u{7f}").done();
    }
    assert_eq!(agent.asked().len(), count);
}
