//! `address-lifecycle` as a test: the real flows, in a world in which everything that may go wrong does.
//!
//! Two agents and a controller run over values instead of an API server, a cloud and machines. A driver chooses what happens
//! next: an operation is done, or done without an answer, or done late; a watch delivers; a provider answers, refuses, or does
//! it after its caller gave up; time passes; pods come and go; a process dies. After each the invariants are checked.
//! `MODEL_STEPS` says how many in all, `MODEL_SEED` with which seed to begin.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::indexing_slicing,
    reason = "a test's own parts"
)]

mod chance;
mod driver;
mod sides;
mod world;

use driver::Driver;
use ipam_core::Step;
use std::collections::BTreeMap;
use world::Setup;

const STEPS_OF_A_RUN: u64 = 4000;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

fn setup(seed: u64) -> Setup {
    let bit = |number: u32| seed >> number & 1 == 0;
    Setup {
        provider: bit(0),
        retained: bit(1),
        addresses: if bit(2) { 2 } else { 3 },
        faults: true,
        lateness: if bit(3) { 1 } else { 60 },
        hurry: if bit(4) { 1 } else { 3 },
    }
}

#[test]
fn no_order_of_events_breaks_a_rule() {
    let (steps, first) = (setting("MODEL_STEPS", 100_000), setting("MODEL_SEED", 1));
    let runs = steps.div_ceil(STEPS_OF_A_RUN).max(1);
    let mut died_in: BTreeMap<Step, u64> = BTreeMap::new();
    for seed in first..first + runs {
        let mut driver = Driver::new(seed, setup(seed), died_in);
        let lived = (0..STEPS_OF_A_RUN).try_for_each(|_| driver.step()).and_then(|()| driver.calm_down());
        if let Err(broken) = lived {
            let trace: Vec<_> = driver.world.lock().expect("whole").trace.iter().cloned().collect();
            panic!("MODEL_SEED={seed} {:?}\n{}\n{broken}", setup(seed), trace.join("\n"));
        }
        died_in = driver.died_in;
    }
    println!("seeds {first} to {}, {STEPS_OF_A_RUN} steps each; processes died in {died_in:?}", first + runs - 1);
    let never: Vec<_> = Step::ALL.iter().filter(|step| !died_in.contains_key(step)).collect();
    assert!(never.is_empty(), "no process died in {never:?}");
}
