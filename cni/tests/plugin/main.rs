//! The program `spiderpool` against an agent that answers by a script.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of it is tests"
)]

mod detection;
mod document;
mod fake;
mod lan;
mod run;
mod sandbox;

use fake::{Asked, FakeAgent, Script};
use run::{conf, run};
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

#[test]
fn an_add_says_everything_and_prints_the_result_of_the_version() {
    let agent = FakeAgent::start(Script::Good);
    for version in ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let ended = run("ADD", &conf(version, &agent.socket())).end();
        let mut ip = json!({"address": "172.91.0.7/24", "gateway": "172.91.0.1"});
        if version.starts_with('0') {
            ip["version"] = "4".into();
        }
        let routes = json!([{"dst": "0.0.0.0/0", "gw": "172.91.0.1"}]);
        assert!(ended.success, "{ended:?}");
        assert_eq!(ended.output, json!({"cniVersion": version, "ips": [ip], "routes": routes, "dns": {}}));
    }
    let asked = agent.asked();
    let Some(Asked::Add(request, time)) = asked.first() else { panic!("{asked:?}") };
    assert_eq!(time, "55000000u", "the key agentTimeout");
    let attachment = request.attachment.clone().expect("there");
    let (pod, netns) = (attachment.pod.expect("there"), attachment.netns.expect("there"));
    assert_eq!((attachment.container_id.as_str(), attachment.interface.as_str()), ("c-1", "net1"));
    assert_eq!((pod.namespace.as_str(), pod.name.as_str(), pod.uid.as_str()), ("ns", "pod", "uid"));
    assert_eq!(netns.inode, std::fs::metadata("/proc/self/ns/net").expect("there").ino());
    let link = request.link.clone().expect("there");
    assert_eq!((link.r#type.as_str(), link.master.as_str(), link.vlan_id), ("vlan", "eth1", None));
    assert_eq!(request.default_ipv4_ippool, ["v4"]);
    assert_eq!(request.args["K8S_POD_INFRA_CONTAINER_ID"], "c-1");
    let log = std::fs::read_to_string(agent.socket().with_file_name("log")).expect("a log");
    assert!(log.contains("ADD a-net") && log.contains("172.91.0.7/24"), "{log}");
}

#[test]
fn what_the_agent_says_is_printed() {
    for code in [4, 7, 11, 103] {
        let agent = FakeAgent::start(Script::Fault(code));
        let conf = conf("1.1.0", &agent.socket());
        assert_eq!(run("ADD", &conf).fails(code), "the reason");
        assert_eq!(run("CHECK", &conf).fails(code), "the reason");
        assert_eq!(run("STATUS", &conf).fails(50), "the reason");
        run("DEL", &conf).done();
    }
}

#[test]
fn an_agent_of_another_version_or_in_trouble_is_tried_again() {
    let scripts = [
        (Script::NoOutcome, 11),
        (Script::BadAnswer, 100),
        (Script::Error(tonic::Code::Unimplemented), 11),
        (Script::Error(tonic::Code::Unavailable), 11),
        (Script::Error(tonic::Code::ResourceExhausted), 11),
        (Script::Error(tonic::Code::Internal), 11),
    ];
    for (script, code) in scripts {
        let agent = FakeAgent::start(script);
        let conf = conf("1.0.0", &agent.socket());
        run("ADD", &conf).fails(code);
        run("DEL", &conf).done();
    }
}

#[test]
fn an_agent_that_does_not_answer_is_not_waited_for_longer_than_asked() {
    let agent = FakeAgent::start(Script::Never);
    let mut conf = conf("1.1.0", &agent.socket());
    conf["ipam"]["agentTimeout"] = "300ms".into();
    let started = std::time::Instant::now();
    run("ADD", &conf).fails(11);
    run("STATUS", &conf).fails(50);
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

#[test]
fn without_an_agent_a_pod_waits_and_a_pod_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let dead = folder.path().join("dead");
    drop(std::os::unix::net::UnixListener::bind(&dead).expect("binds"));
    for socket in [dead.as_path(), &folder.path().join("none"), Path::new("/proc/self/comm")] {
        let mut conf = conf("1.1.0", socket);
        conf["cni.dev/valid-attachments"] = json!([]);
        conf["ipam"]["log_file_path"] = "/proc/none/log".into();
        assert!(run("ADD", &conf).fails(11).contains(socket.to_str().expect("text")));
        run("CHECK", &conf).fails(11);
        run("GC", &conf).fails(11);
        run("STATUS", &conf).fails(50);
        run("DEL", &conf).done();
    }
}

#[test]
fn verbs_without_a_result_print_none() {
    let agent = FakeAgent::start(Script::Good);
    let mut conf = conf("1.1.0", &agent.socket());
    conf["prevResult"] = json!({"cniVersion": "1.1.0", "ips": [{"address": "172.91.0.7/24"}]});
    conf["cni.dev/valid-attachments"] = json!([{"containerID": "c-2", "ifname": "eth0"}]);
    run("CHECK", &conf).done();
    run("STATUS", &conf).without("CNI_CONTAINERID").without("CNI_IFNAME").without("CNI_ARGS").done();
    run("GC", &conf).without("CNI_CONTAINERID").without("CNI_IFNAME").without("CNI_NETNS").done();
    run("DEL", &conf).without("CNI_NETNS").without("CNI_ARGS").done();
    let asked = agent.asked();
    let [Asked::Check(check), Asked::Status, Asked::Gc(gc), Asked::Del(del)] = asked.as_slice() else {
        panic!("{asked:?}")
    };
    assert_eq!(check.cidrs, ["172.91.0.7/24"]);
    assert_eq!((gc.network.as_str(), gc.valid[0].container_id.as_str()), ("a-net", "c-2"));
    let attachment = del.attachment.as_ref().expect("there");
    assert_eq!((attachment.container_id.as_str(), &attachment.netns), ("c-1", &None));
}

#[test]
fn verbs_that_a_version_does_not_have_are_refused() {
    let agent = FakeAgent::start(Script::Good);
    for (version, verb) in
        [("0.3.1", "CHECK"), ("1.0.0", "GC"), ("1.0.0", "STATUS"), ("0.2.0", "ADD"), ("9.0.0", "DEL")]
    {
        run(verb, &conf(version, &agent.socket())).fails(1);
    }
    assert!(agent.asked().is_empty());
}

#[test]
fn odd_input_is_an_error_that_says_what() {
    let agent = FakeAgent::start(Script::Good);
    let good = conf("1.0.0", &agent.socket());
    run("ADD", &good).stdin("").fails(6);
    run("ADD", &good).stdin("[]").fails(6);
    run("ADD", &good).stdin(b"\xff\xfe".as_slice()).fails(6);
    run("ADD", &good).stdin("[".repeat(1 << 20)).fails(6);
    run("DEL", &good).stdin("").fails(6);
    run("ADD", &json!({"cniVersion": "1.0.0"})).fails(7);
    run("ADD", &json!({"name": "n"})).fails(1);
    for (name, value) in [
        ("CNI_COMMAND", &b"\xff"[..]),
        ("CNI_COMMAND", b"add"),
        ("CNI_CONTAINERID", b"../x"),
        ("CNI_IFNAME", b""),
        ("CNI_NETNS", b"/nowhere"),
        ("CNI_NETNS", b"/etc/passwd"),
        ("CNI_ARGS", b"K8S_POD_NAME=\xff"),
        ("CNI_ARGS", b"K8S_POD_NAME=pod"),
    ] {
        let msg = run("ADD", &good).env(name, OsStr::from_bytes(value)).fails(4);
        assert!(msg.contains(name), "{msg}");
    }
    for name in ["CNI_COMMAND", "CNI_CONTAINERID", "CNI_IFNAME", "CNI_NETNS", "CNI_ARGS"] {
        assert!(run("ADD", &good).without(name).fails(4).contains(name));
    }
    assert!(agent.asked().is_empty(), "nothing was asked");

    let mut large = good;
    large["other"] = "x".repeat(1 << 20).into();
    assert!(run("ADD", &large).end().success, "a long configuration is none of our business");
}

#[test]
fn versions_are_told_to_everybody() {
    let all = json!(["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]);
    for (stdin, version) in
        [("", "1.1.0"), ("{}", "1.1.0"), (r#"{"cniVersion":"0.4.0"}"#, "0.4.0"), ("garbage", "1.1.0")]
    {
        let ended = run("VERSION", &json!({})).stdin(stdin).without("CNI_CONTAINERID").end();
        assert!(ended.success);
        assert_eq!(ended.output, json!({"cniVersion": version, "supportedVersions": all}));
    }
}
