//! Masters of all kinds.

use crate::fake::{FakeAgent, Script};
use crate::host::{Master, Sandbox, ip, until};
use crate::run::{call, manual, provided};

#[test]
#[ignore = "in the guest"]
fn one_that_is_missing_or_down_is_named_before_anybody_is_asked() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    let agent = FakeAgent::start(Script::Good);
    ip(&format!("link set {} down", master.0));
    let down = format!("master {} is down", master.0);
    for (name, code, text) in [("none", 109, "master none is not there"), (&master.0, 11, &down)] {
        for conf in [manual("1.0.0", name, 7), provided("1.1.0", name, &agent.socket())] {
            let said = call(&conf, &sandbox).fails("ADD", code);
            assert!(said.contains(text), "{said}");
            let code = if conf["cniVersion"] == "1.1.0" { 50 } else { 1 };
            call(&conf, &sandbox).fails("STATUS", code);
        }
    }
    assert!(agent.asked().is_empty());
    ip(&format!("link set {} up", master.0));
    call(&provided("1.1.0", &master.0, &agent.socket()), &sandbox).done("STATUS");
}

#[test]
#[ignore = "in the guest"]
fn one_that_was_renamed_is_found_by_its_other_name() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    ip(&format!("link property add dev {} altname lan-of-the-node", master.0));
    let call = call(&manual("1.0.0", "lan-of-the-node", 7), &sandbox);
    call.add();
    call.done("DEL");
}

#[test]
#[ignore = "in the guest"]
fn the_mtu_is_the_masters_or_less() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    ip(&format!("link set {} mtu 9000", master.0));
    for (mtu, wanted) in [(0, 9000), (9000, 9000), (1400, 1400)] {
        let mut conf = manual("1.0.0", &master.0, 7);
        conf["mtu"] = mtu.into();
        let call = call(&conf, &sandbox);
        call.add();
        assert_eq!(sandbox.link("net1")["mtu"], wanted);
        call.done("DEL");
    }
    let mut conf = manual("1.0.0", &master.0, 7);
    conf["mtu"] = 9001.into();
    let said = call(&conf, &sandbox).fails("ADD", 7);
    assert!(said.contains("9001") && said.contains("9000"), "{said}");
}

#[test]
#[ignore = "in the guest"]
fn a_bond_is_one() {
    let sandbox = Sandbox::new();
    let (bond, one, two) = (Master::of("type bond mode active-backup"), Master::new(), Master::new());
    for member in [&one, &two] {
        ip(&format!("link set {} down", member.0));
        ip(&format!("link set {} master {}", member.0, bond.0));
    }
    ip(&format!("link set {} mtu 1450", bond.0));
    let agent = FakeAgent::start(Script::Good);
    let provided = call(&provided("1.1.0", &bond.0, &agent.socket()), &sandbox);
    let result = provided.add();
    assert_eq!(
        result["interfaces"][0],
        serde_json::json!({
        "name": "net1", "mac": "02:00:00:00:00:01", "mtu": 1450, "sandbox": sandbox.path()})
    );
    provided.after(&result).done("CHECK");
    provided.done("DEL");
    let manual = call(&manual("1.0.0", &bond.0, 7), &sandbox);
    manual.add();
    assert_eq!(sandbox.link("net1")["mtu"], 1450);
    manual.done("DEL");
}

/// Neighbours learn where the address is without asking.
#[test]
#[ignore = "in the guest"]
fn addresses_are_announced_in_their_vlan() {
    let (sandbox, lan) = (Sandbox::new(), Sandbox::new());
    let master = Master::of(&format!("type veth peer name lan netns {}", lan.name));
    lan.ip("link set lan up");
    lan.ip("link add link lan name v7 type vlan id 7");
    lan.ip("addr add 172.91.0.1/24 dev v7");
    lan.ip("link set v7 up");
    let accept = std::process::Command::new("ip")
        .args(["netns", "exec", &lan.name, "sysctl", "-qw", "net.ipv4.conf.v7.arp_accept=1"])
        .status();
    assert!(accept.expect("starts").success());
    let agent = FakeAgent::start(Script::Good);
    call(&provided("1.1.0", &master.0, &agent.socket()), &sandbox).add();
    until("the announcement", || lan.ip("neigh show dev v7").contains("172.91.0.7 lladdr 02:00:00:00:00:01"));
}
