//! A plugin, run as a runtime runs it.

use crate::host::Sandbox;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The community's, of Debian.
pub(crate) const THEIRS: &str = "/usr/lib/cni/vlan";

/// Of IPAM plugins of the tests.
pub(crate) const OWN: &str = "/run/plugins";

/// Ours; one that was built otherwise, if the caller names it.
pub(crate) fn ours() -> String {
    std::env::var("VLAN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_vlan").to_owned())
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) program: String,
    pub(crate) conf: Value,
    pub(crate) container: String,
    pub(crate) interface: String,
    pub(crate) netns: String,
    /// What runs it, with the program behind.
    pub(crate) under: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) success: bool,
    pub(crate) killed: bool,
    /// Null if nothing was printed.
    pub(crate) output: Value,
}

/// With addresses of the plugin `static`.
pub(crate) fn manual(version: &str, master: &str, vlan: u16) -> Value {
    json!({
        "cniVersion": version, "name": "a-net", "type": "vlan", "master": master, "vlanId": vlan,
        "ipam": {"type": "static", "addresses": [{"address": "10.6.0.9/24", "gateway": "10.6.0.1"}],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.9.0.0/16", "gw": "10.6.0.5"}],
            "log_file_path": "/run/vlan.log", "log_level": "debug"},
    })
}

/// With everything of an agent.
pub(crate) fn provided(version: &str, master: &str, socket: &Path) -> Value {
    json!({
        "cniVersion": version, "name": "a-net", "type": "vlan", "master": master, "vlanMode": "auto",
        "ipam": {"type": "spiderpool", "ipam_unix_socket_path": socket, "log_file_path": "/run/vlan.log", "log_level": "debug"},
    })
}

pub(crate) fn call(conf: &Value, sandbox: &Sandbox) -> Call {
    Call {
        program: ours(),
        conf: conf.clone(),
        container: format!("c-{}", sandbox.name),
        interface: "net1".to_owned(),
        netns: sandbox.path(),
        under: Vec::new(),
    }
}

impl Call {
    pub(crate) fn by(mut self, program: &str) -> Self {
        program.clone_into(&mut self.program);
        self
    }

    pub(crate) fn run(&self, verb: &str) -> Ended {
        let mut words = self.under.clone();
        words.push(self.program.clone());
        let folder: PathBuf = Path::new(env!("CARGO_BIN_EXE_spiderpool")).parent().expect("a folder").to_owned();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().envs([
            ("PATH", "/usr/bin:/bin"),
            ("CNI_COMMAND", verb),
            ("CNI_CONTAINERID", &self.container),
            ("CNI_IFNAME", &self.interface),
            ("CNI_NETNS", &self.netns),
            ("CNI_PATH", &format!("{OWN}:/usr/lib/cni:{}", folder.display())),
            ("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME=pod;K8S_POD_UID=uid"),
        ]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        // A run that is killed closes the pipe.
        let _ = child.stdin.take().expect("piped").write_all(self.conf.to_string().as_bytes());
        let ended = child.wait_with_output().expect("ends");
        let text = String::from_utf8(ended.stdout).expect("text");
        let success = ended.status.success();
        let killed = ended.status.code() != Some(0) && ended.status.code() != Some(1);
        let output =
            if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("one JSON document") };
        Ended { success, killed, output }
    }

    pub(crate) fn add(&self) -> Value {
        let ended = self.run("ADD");
        assert!(ended.success, "{ended:?}");
        ended.output
    }

    pub(crate) fn done(&self, verb: &str) {
        let ended = self.run(verb);
        assert!(ended.success && ended.output.is_null(), "{verb}: {ended:?}");
    }

    /// Ends in an error of this code, and returns its text.
    pub(crate) fn fails(&self, verb: &str, code: u32) -> String {
        let Ended { success, output, .. } = self.run(verb);
        assert!(!success && output["code"] == code, "{code} expected: {output}");
        assert!(output["cniVersion"].is_string(), "{output}");
        output["msg"].as_str().expect("a text").to_owned()
    }

    /// The same with what an ADD answered.
    pub(crate) fn after(&self, result: &Value) -> Self {
        let mut call = self.clone();
        call.conf["prevResult"] = result.clone();
        call
    }
}
