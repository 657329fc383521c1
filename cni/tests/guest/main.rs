//! The program `vlan` on a kernel with 802.1Q, beside the community's.
//!
//! One test boots a guest (dev/guest), which runs all the others in this same file: they are ignored elsewhere.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of it is tests"
)]

mod adds;
mod cut_off;
mod dels;
#[allow(dead_code, reason = "the tests of the plugin spiderpool need more of it")]
#[path = "../plugin/fake.rs"]
mod fake;
mod figures;
mod host;
mod manual;
mod masters;
mod provider;
mod run;
mod taken;

use std::process::Command;

#[test]
fn all_in_a_guest() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    let own = std::env::current_exe().expect("has a path");
    let mut command = Command::new(root.join("dev/guest"));
    command.arg(folder.path());
    if let Ok(program) = std::env::var("VLAN") {
        command.args(["env", &format!("VLAN={program}")]);
    }
    command.arg(own).args(["--ignored", "--test-threads=1", "--nocapture"]);
    if let Ok(name) = std::env::var("GUEST_TEST") {
        command.arg(name);
    }
    let ended = command.output().expect("starts");
    let text = String::from_utf8_lossy(&ended.stdout);
    println!("{text}");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(text.contains("test result: ok.") && !text.contains(" 0 passed"), "the guest ran nothing");
}
