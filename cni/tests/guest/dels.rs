//! DELs of what is half gone, or was never there.

use crate::fake::{Asked, FakeAgent, Script};
use crate::host::{Master, Sandbox};
use crate::run::{call, manual, provided};
use serde_json::json;

#[test]
#[ignore = "in the guest"]
fn a_del_comes_again_and_without_its_sandbox() {
    let master = Master::new();
    let agent = FakeAgent::start(Script::Good);
    for conf in [manual("1.0.0", &master.0, 7), provided("1.1.0", &master.0, &agent.socket())] {
        let sandbox = Sandbox::new();
        let mut call = call(&conf, &sandbox);
        call.done("DEL");
        call.add();
        call.done("DEL");
        assert!(sandbox.links().is_empty());
        call.done("DEL");
        call.add();
        let path = call.netns.clone();
        for netns in ["", "/nowhere", "/proc/4194304/ns/net"] {
            netns.clone_into(&mut call.netns);
            call.done("DEL");
        }
        drop(sandbox);
        call.netns = path;
        call.done("DEL");
    }
    let dels = agent.asked().iter().filter(|asked| matches!(asked, Asked::Del(_))).count();
    assert_eq!(dels, 7, "each asks for the release");
}

#[test]
#[ignore = "in the guest"]
fn a_del_is_done_without_agent_and_without_master() {
    let sandbox = Sandbox::new();
    let (there, gone) = (Master::new(), Master::new());
    let agent = FakeAgent::start(Script::Good);
    let conf = provided("1.1.0", &there.0, &agent.socket());
    call(&conf, &sandbox).add();
    drop(agent);
    call(&conf, &sandbox).done("DEL");
    assert!(sandbox.links().is_empty(), "the link goes nevertheless");
    let conf = manual("1.0.0", &gone.0, 7);
    call(&conf, &sandbox).add();
    drop(gone);
    call(&conf, &sandbox).done("DEL");
    assert!(sandbox.links().is_empty());
}

#[test]
#[ignore = "in the guest"]
fn a_del_tries_link_and_addresses_both() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    let good = manual("1.0.0", &master.0, 7);
    call(&good, &sandbox).add();
    let mut odd = good.clone();
    odd["ipam"]["type"] = json!("none");
    call(&odd, &sandbox).fails("DEL", 7);
    assert!(sandbox.links().is_empty(), "the link goes, and who keeps addresses is told");
    odd["vlanId"] = json!("x");
    odd["mtu"] = json!({});
    odd["ipam"]["type"] = json!("static");
    call(&good, &sandbox).add();
    call(&odd, &sandbox).done("DEL");
    assert!(sandbox.links().is_empty(), "a configuration that was spoilt since");
}
