//! The guest's network: masters and sandboxes, which go with what made them.

use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub(crate) fn ip(arguments: &str) -> String {
    let ended = Command::new("ip").args(arguments.split(' ')).output().expect("starts");
    assert!(ended.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).expect("text")
}

pub(crate) fn unique(prefix: &str) -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    format!("{prefix}{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A NIC of the node.
pub(crate) struct Master(pub(crate) String);

impl Master {
    pub(crate) fn new() -> Self {
        Self::of("type dummy")
    }

    pub(crate) fn of(kind: &str) -> Self {
        let name = unique("m");
        ip(&format!("link add {name} {kind}"));
        ip(&format!("link set {name} up"));
        Self(name)
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["link", "del", &self.0]).status();
    }
}

/// A pod's network namespace.
pub(crate) struct Sandbox {
    pub(crate) name: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let name = unique("pod");
        ip(&format!("netns add {name}"));
        ip(&format!("-n {name} link set lo up"));
        Self { name }
    }

    pub(crate) fn path(&self) -> String {
        format!("/run/netns/{}", self.name)
    }

    pub(crate) fn ip(&self, arguments: &str) -> String {
        ip(&format!("-n {} {arguments}", self.name))
    }

    /// With `-d -j`.
    pub(crate) fn link(&self, name: &str) -> Value {
        let all: Value = serde_json::from_str(&self.ip("-d -j link")).expect("JSON");
        let all = all.as_array().expect("a list").clone();
        all.into_iter().find(|link| link["ifname"] == name).unwrap_or(Value::Null)
    }

    /// All but the loopback.
    pub(crate) fn links(&self) -> Vec<String> {
        let all: Value = serde_json::from_str(&self.ip("-j link")).expect("JSON");
        let names =
            all.as_array().expect("a list").iter().map(|link| link["ifname"].as_str().expect("text").to_owned());
        names.filter(|name| name != "lo").collect()
    }

    /// A process that stays until it is dropped.
    pub(crate) fn process(&self) -> Process {
        let child = Command::new("ip").args(["netns", "exec", &self.name, "sleep", "600"]).spawn().expect("starts");
        let process = Process(child);
        let own = std::fs::read_link("/proc/self/ns/net").expect("there");
        let path = format!("/proc/{}/ns/net", process.0.id());
        until("a process is in the namespace", || std::fs::read_link(&path).is_ok_and(|found| found != own));
        process
    }

    /// Addresses and routes, as text that can be compared.
    pub(crate) fn state(&self, interface: &str) -> Vec<String> {
        let link = self.link(interface);
        let data = &link["linkinfo"];
        let mut state = vec![format!(
            "{} {} {} {} {} {}",
            link["ifname"], link["mtu"], link["address"], data["info_kind"], data["info_data"], link["flags"]
        )];
        for what in ["-4 addr show dev", "-6 addr show scope global dev", "-4 route show dev", "-6 route show dev"] {
            let text = self.ip(&format!("-o {what} {interface}"));
            // The index differs from link to link.
            state.extend(text.lines().map(|line| line.split_once(": ").map_or(line, |(_, rest)| rest).to_owned()));
        }
        state
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).stderr(Stdio::null()).status();
    }
}

pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < end, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}
