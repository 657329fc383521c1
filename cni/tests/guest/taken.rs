//! VLANs that somebody has already.

use crate::fake::{Asked, FakeAgent, Script};
use crate::host::{Master, Sandbox, ip};
use crate::run::{Call, THEIRS, call, manual, provided};
use std::time::{Duration, Instant};

/// An ADD of VLAN 7 that fails at once: who has it is named, and nothing is left.
fn refused(master: &Master, words: &[&str]) {
    let sandbox = Sandbox::new();
    let agent = FakeAgent::start(Script::Good);
    let call = call(&provided("1.1.0", &master.0, &agent.socket()), &sandbox);
    let began = Instant::now();
    let said = call.fails("ADD", 110);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(matches!(agent.asked().as_slice(), [Asked::Add(..), Asked::Del(_)]), "given back: {:?}", agent.asked());
    assert!(sandbox.links().is_empty());
}

fn first(master: &Master, sandbox: &Sandbox) -> Call {
    let call = call(&manual("1.0.0", &master.0, 7), sandbox);
    call.add();
    call
}

#[test]
#[ignore = "in the guest"]
fn by_the_node() {
    let master = Master::new();
    ip(&format!("link add link {} name of-node type vlan id 7", master.0));
    refused(&master, &["VLAN 7", &master.0, "of-node", "node itself"]);
}

#[test]
#[ignore = "in the guest"]
fn by_a_stranger() {
    let (master, other) = (Master::new(), Sandbox::new());
    call(&manual("1.0.0", &master.0, 7), &other).by(THEIRS).add();
    refused(&master, &["VLAN 7", &other.path(), "did not make"]);
    let _process = other.process();
    refused(&master, &["VLAN 7", &other.path(), "did not make"]);
}

#[test]
#[ignore = "in the guest"]
fn by_a_pod_that_runs() {
    let (master, other) = (Master::new(), Sandbox::new());
    first(&master, &other);
    let _process = other.process();
    refused(&master, &["VLAN 7", "net1 of sandbox", &format!("c-{}", other.name), "which runs"]);
}

#[test]
#[ignore = "in the guest"]
fn by_the_same_pod() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    first(&master, &sandbox);
    let mut second = call(&manual("1.0.0", &master.0, 7), &sandbox);
    "net2".clone_into(&mut second.interface);
    let said = second.fails("ADD", 110);
    assert!(said.contains("net1 of the same pod"), "{said}");
    assert_eq!(sandbox.links(), ["net1"]);
}

#[test]
#[ignore = "in the guest"]
fn by_a_sandbox_that_goes_or_does_not() {
    let (master, old, new) = (Master::new(), Sandbox::new(), Sandbox::new());
    let earlier = first(&master, &old);
    let later = call(&manual("1.0.0", &master.0, 7), &new);
    let began = Instant::now();
    let said = later.fails("ADD", 11);
    assert!(said.contains("net1 of sandbox") && said.contains("nothing runs"), "{said}");
    let took = began.elapsed();
    assert!(took > Duration::from_secs(4) && took < Duration::from_secs(9), "{took:?}");
    assert!(new.links().is_empty());
    let waiting = std::thread::spawn(move || later.add());
    std::thread::sleep(Duration::from_millis(500));
    earlier.done("DEL");
    assert_eq!(waiting.join().expect("ends")["interfaces"][0]["name"], "net1");
}

#[test]
#[ignore = "in the guest"]
fn by_a_namespace_that_ends() {
    let (master, old, new) = (Master::new(), Sandbox::new(), Sandbox::new());
    first(&master, &old);
    // Without a name and without a process, it ends with the last that has it open.
    let open = std::fs::File::open(old.path()).expect("there");
    drop(old);
    let later = call(&manual("1.0.0", &master.0, 7), &new);
    assert!(later.fails("ADD", 11).contains("is ending"));
    let waiting = std::thread::spawn(move || later.add());
    std::thread::sleep(Duration::from_millis(500));
    drop(open);
    assert_eq!(waiting.join().expect("ends")["interfaces"][0]["name"], "net1");
}
