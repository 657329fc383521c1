//! Multus as the chart installs it on the cluster of a scenario.

use crate::cluster::{helm_arguments, helm_install};
use crate::process::{attempt, run};
use std::process::Command;

/// The configuration that makes the runtime call it, on a node.
pub const CONF: &str = "/etc/cni/net.d/00-multus-spiderpool.conflist";

const INSTALL: [&str; 2] = ["--set=multus.multusCNI.install=true", "--set=multus.multusCNI.image.registry=localhost"];

/// Installs or upgrades the release with Multus, and waits until it is in use on every node.
pub fn install(more: &[&str]) {
    helm_install(&[&INSTALL[..], more].concat());
    rollout("status");
}

/// `restart`s Multus on all nodes, or waits for its `status`: in use on every node.
pub fn rollout(verb: &str) {
    let waiting: &[&str] = if verb == "status" { &["--timeout=5m"] } else { &[] };
    let set = ["rollout", verb, "daemonset/spiderpool-multus", "--namespace=kube-system"];
    run("kubectl", [&set[..], waiting].concat());
}

/// Tries to; what Helm says if it does not.
pub fn attempt_install(more: &[&str]) -> Result<(), String> {
    let output = attempt(Command::new("helm").args(helm_arguments()).args(INSTALL).args(more));
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
