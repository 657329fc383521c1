//! ADDs that come again, and names that are taken.

use crate::fake::{Asked, FakeAgent, Script};
use crate::host::{Master, Sandbox};
use crate::run::{THEIRS, call, manual, provided};

#[test]
#[ignore = "in the guest"]
fn a_second_add_has_the_same_outcome() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    let agent = FakeAgent::start(Script::Good);
    for conf in [manual("1.0.0", &master.0, 7), provided("1.1.0", &master.0, &agent.socket())] {
        let call = call(&conf, &sandbox);
        let first = call.add();
        let (state, index) = (sandbox.state("net1"), sandbox.link("net1")["ifindex"].clone());
        sandbox.ip("addr flush dev net1");
        sandbox.ip("link set net1 down");
        assert_eq!(call.add(), first);
        assert_eq!((sandbox.state("net1"), &sandbox.link("net1")["ifindex"]), (state, &index), "mended, not made anew");
        call.after(&first).done("CHECK");
        call.done("DEL");
        assert!(sandbox.links().is_empty());
    }
}

#[test]
#[ignore = "in the guest"]
fn a_second_add_with_another_vlan_replaces_the_link() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    call(&manual("1.0.0", &master.0, 7), &sandbox).add();
    let again = call(&manual("1.0.0", &master.0, 8), &sandbox);
    again.add();
    assert_eq!(sandbox.link("net1")["linkinfo"]["info_data"]["id"], 8);
    again.done("DEL");
}

#[test]
#[ignore = "in the guest"]
fn a_second_add_that_fails_leaves_the_first() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    let mut conf = manual("1.0.0", &master.0, 7);
    let first = call(&conf, &sandbox);
    first.add();
    let state = sandbox.state("net1");
    conf["ipam"]["routes"] =
        serde_json::json!([{"dst": "10.9.0.0/16", "gw": "192.0.2.1"}, {"dst": "10.10.0.0/16", "gw": "192.0.2.1"}]);
    call(&conf, &sandbox).fails("ADD", 100);
    assert_eq!(sandbox.state("net1"), state);
    first.done("DEL");
}

/// The link that somebody else made keeps its name, at an ADD and at a DEL.
#[test]
#[ignore = "in the guest"]
fn a_strangers_interface_is_left_alone() {
    let (master, other) = (Master::new(), Master::new());
    let agent = FakeAgent::start(Script::Good);
    let sandbox = Sandbox::new();
    for make in [
        "link add net1 type dummy".to_owned(),
        format!("link add link {} name strange type vlan id 9", other.0),
        format!("link add link {} name strange type vlan id 9", master.0),
    ] {
        if make.contains("strange") {
            crate::host::ip(&make);
            crate::host::ip(&format!("link set strange netns {} name net1", sandbox.name));
        } else {
            sandbox.ip(&make);
        }
        let call = call(&provided("1.1.0", &master.0, &agent.socket()), &sandbox);
        let said = call.fails("ADD", 100);
        assert!(said.contains("has an interface net1 already"), "{said}");
        assert!(matches!(agent.asked().last(), Some(Asked::Del(_))), "its address was given back");
        let index = sandbox.link("net1")["ifindex"].clone();
        let manual = crate::run::call(&manual("1.0.0", &master.0, 7), &sandbox);
        manual.done("DEL");
        assert_eq!(sandbox.link("net1")["ifindex"], index);
        sandbox.ip("link del net1");
    }
}

#[test]
#[ignore = "in the guest"]
fn what_fails_late_leaves_nothing() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    let mut conf = manual("1.0.0", &master.0, 7);
    conf["ipam"]["routes"] = serde_json::json!([{"dst": "10.9.0.0/16", "gw": "192.0.2.1"}]);
    let said = call(&conf, &sandbox).fails("ADD", 100);
    assert!(said.contains("route to 10.9.0.0/16"), "{said}");
    assert!(sandbox.links().is_empty());
    conf["ipam"] = serde_json::json!({"type": "host-local", "dataDir": "/run/late", "ranges": [[{"subnet": "10.8.0.0/24"}]],
        "routes": [{"dst": "10.9.0.0/16", "gw": "192.0.2.1"}]});
    call(&conf, &sandbox).fails("ADD", 100);
    let left = std::fs::read_dir("/run/late/a-net").expect("there").flatten().map(|file| file.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("10.")).collect();
    assert!(left.is_empty() && sandbox.links().is_empty(), "addresses are given back: {left:?}");
    assert!(!call(&conf, &sandbox).by(THEIRS).run("ADD").success, "theirs fails as well");
}

#[test]
#[ignore = "in the guest"]
fn a_second_network_with_the_name_of_a_first_leaves_it_alone() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    let first = call(&manual("1.0.0", &master.0, 7), &sandbox);
    first.add();
    let state = sandbox.state("net1");
    let mut conf = manual("1.0.0", &master.0, 8);
    conf["name"] = "another".into();
    let second = call(&conf, &sandbox);
    assert!(second.fails("ADD", 100).contains("another network or sandbox"));
    second.done("DEL");
    assert_eq!(sandbox.state("net1"), state);
    first.done("DEL");
    assert!(sandbox.links().is_empty());
}
