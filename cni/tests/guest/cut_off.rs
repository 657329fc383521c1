//! Runs that are killed between any two of their requests to the kernel.

use crate::host::{Master, Sandbox};
use crate::run::{call, manual};
use std::collections::BTreeSet;

/// More requests than a run has.
const MOST: usize = 40;

/// strace kills it at its n-th sending, for each n: requests to the kernel and announcements are all that it sends.
fn under(nth: usize) -> Vec<String> {
    let inject = format!("inject=sendto:signal=KILL:when={nth}");
    // It ends as what it ran ended.
    ["/usr/bin/strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=sendto", "-e", &inject].map(str::to_owned).to_vec()
}

#[test]
#[ignore = "in the guest"]
fn an_add_that_is_killed_anywhere_is_undone_by_a_del_or_ended_by_an_add() {
    let master = Master::new();
    let conf = manual("1.0.0", &master.0, 7);
    let mut states = BTreeSet::new();
    let mut kills = 0;
    for nth in 1..=MOST {
        let sandbox = Sandbox::new();
        let whole = call(&conf, &sandbox);
        let mut cut = whole.clone();
        cut.under = under(nth);
        let mut killed = false;
        for end in ["DEL", "ADD"] {
            killed = cut.run("ADD").killed;
            // The name that a link has until it is marked differs from sandbox to sandbox.
            let left = sandbox.links().into_iter().map(|name| if name == "net1" { name } else { "unnamed".to_owned() });
            states.insert(left.collect::<Vec<_>>());
            if end == "ADD" {
                let result = whole.add();
                whole.after(&result).done("CHECK");
            }
            whole.done("DEL");
            assert!(sandbox.links().is_empty(), "killed at {nth}, then {end}: {:?}", sandbox.links());
        }
        if !killed {
            break;
        }
        kills += 1;
    }
    println!("killed at each of {kills} requests; left behind: {states:?}");
    assert!((8..MOST).contains(&kills), "{kills} kills");
    assert_eq!(states.len(), 3, "nothing, a link without its name, one with it: {states:?}");
}

#[test]
#[ignore = "in the guest"]
fn a_del_that_is_killed_anywhere_is_ended_by_a_del() {
    let master = Master::new();
    let conf = manual("1.0.0", &master.0, 7);
    let mut kills = 0;
    for nth in 1..=MOST {
        let sandbox = Sandbox::new();
        let whole = call(&conf, &sandbox);
        whole.add();
        let mut cut = whole.clone();
        cut.under = under(nth);
        let killed = cut.run("DEL").killed;
        whole.done("DEL");
        assert!(sandbox.links().is_empty());
        if !killed {
            break;
        }
        kills += 1;
    }
    println!("killed at each of {kills} requests of a DEL");
    assert!((2..MOST).contains(&kills), "{kills} kills");
}
