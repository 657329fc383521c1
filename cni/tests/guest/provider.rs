//! VLAN, MAC and addresses of an agent.

use crate::fake::{Asked, FakeAgent, Script};
use crate::host::{Master, Sandbox};
use crate::run::{call, manual, provided};
use serde_json::json;
use std::process::Command;

#[test]
#[ignore = "in the guest"]
fn one_call_gives_everything() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    let agent = FakeAgent::start(Script::Link(100, "fa:16:3e:aa:bb:cc"));
    for version in ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let call = call(&provided(version, &master.0, &agent.socket()), &sandbox);
        let before = agent.asked().len();
        let result = call.add();
        assert_eq!(agent.asked().len(), before + 1);
        let mut wanted = json!({
            "cniVersion": version,
            "interfaces": [{"name": "net1", "mac": "fa:16:3e:aa:bb:cc", "sandbox": sandbox.path()}],
            "ips": [{"address": "172.91.0.7/24", "gateway": "172.91.0.1", "interface": 0}],
            "routes": [{"dst": "0.0.0.0/0", "gw": "172.91.0.1"}], "dns": {},
        });
        if version.starts_with('0') {
            wanted["ips"][0]["version"] = "4".into();
        }
        if version == "1.1.0" {
            wanted["interfaces"][0]["mtu"] = 1500.into();
        }
        assert_eq!(result, wanted);
        let link = sandbox.link("net1");
        assert_eq!((&link["address"], &link["linkinfo"]["info_kind"]), (&json!("fa:16:3e:aa:bb:cc"), &json!("vlan")));
        assert_eq!(link["linkinfo"]["info_data"]["id"], 100);
        assert!(link["flags"].as_array().expect("a list").contains(&json!("UP")), "{link}");
        for key in ["accept_ra", "autoconf"] {
            let file = format!("/proc/sys/net/ipv6/conf/net1/{key}");
            let read = Command::new("nsenter").args([&format!("--net={}", sandbox.path()), "cat", &file]).output();
            assert_eq!(
                read.expect("starts").stdout,
                b"0\n",
                "{key}: a router's word would count beside the provider's"
            );
        }
        assert!(sandbox.ip("route").contains("default via 172.91.0.1 dev net1"), "{}", sandbox.ip("route"));
        if version >= "0.4.0" {
            call.after(&result).done("CHECK");
        }
        call.done("DEL");
    }
    let asked = agent.asked();
    let Asked::Add(request, _) = &asked[0] else { panic!("{asked:?}") };
    let link = request.link.clone().expect("there");
    assert_eq!((link.r#type.as_str(), link.master, link.vlan_id), ("vlan", master.0.clone(), None));
}

#[test]
#[ignore = "in the guest"]
fn a_check_asks_what_is_bound() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    let first = FakeAgent::start(Script::Link(100, "fa:16:3e:aa:bb:cc"));
    let result = call(&provided("1.1.0", &master.0, &first.socket()), &sandbox).add();
    let now = FakeAgent::start(Script::Link(101, "fa:16:3e:aa:bb:cc"));
    let later = call(&provided("1.1.0", &master.0, &now.socket()), &sandbox).after(&result);
    assert!(later.fails("CHECK", 100).contains("is of VLAN 100, and the provider bound 101"));
}

#[test]
#[ignore = "in the guest"]
fn half_an_answer_is_given_back() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    for (vlan, mac) in [
        (0, "fa:16:3e:aa:bb:cc"),
        (4095, "fa:16:3e:aa:bb:cc"),
        (100, ""),
        (100, "fa:16:3e"),
        (100, "00:00:00:00:00:00"),
        (100, "ff:ff:ff:ff:ff:ff"),
    ] {
        let agent = FakeAgent::start(Script::Link(vlan, mac));
        let said = call(&provided("1.1.0", &master.0, &agent.socket()), &sandbox).fails("ADD", 100);
        assert!(said.contains("provider"), "{said}");
        assert!(matches!(agent.asked().as_slice(), [Asked::Add(..), Asked::Del(_)]), "{:?}", agent.asked());
        assert!(sandbox.links().is_empty());
    }
}

#[test]
#[ignore = "in the guest"]
fn verbs_of_nodes_go_to_the_agent() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    let agent = FakeAgent::start(Script::Good);
    let mut conf = provided("1.1.0", &master.0, &agent.socket());
    conf["cni.dev/valid-attachments"] = json!([{"containerID": "c-2", "ifname": "eth0"}]);
    let call = call(&conf, &sandbox);
    call.done("STATUS");
    call.done("GC");
    assert!(matches!(agent.asked().as_slice(), [Asked::Status, Asked::Gc(_)]), "{:?}", agent.asked());
    let sick = FakeAgent::start(Script::Fault(103));
    let sick = crate::run::call(&provided("1.1.0", &master.0, &sick.socket()), &sandbox);
    sick.fails("STATUS", 50);
    sick.fails("ADD", 103);
    sick.done("DEL");
}

/// `ipam.type: spiderpool` with a `vlanId`: the plugin `spiderpool` is run as any other.
#[test]
#[ignore = "in the guest"]
fn a_vlan_by_hand_with_addresses_of_the_agent() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    let agent = FakeAgent::start(Script::Link(0, ""));
    let mut conf = provided("1.1.0", &master.0, &agent.socket());
    conf["vlanId"] = 0.into();
    conf["vlanMode"] = "manual".into();
    let call = call(&conf, &sandbox);
    let result = call.add();
    assert_eq!(sandbox.link("net1")["linkinfo"]["info_data"]["id"], 0);
    assert_eq!(result["ips"][0]["address"], "172.91.0.7/24");
    call.after(&result).done("CHECK");
    call.done("STATUS");
    call.done("DEL");
    let asked = agent.asked();
    assert!(matches!(asked.as_slice(), [Asked::Add(..), Asked::Check(_), Asked::Status, Asked::Del(_)]), "{asked:?}");
    let gone = crate::run::call(&manual("1.0.0", &master.0, 7), &sandbox);
    drop(agent);
    call.fails("ADD", 11);
    call.done("DEL");
    gone.done("DEL");
}
