//! The program, run as a runtime runs it.

use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

pub(crate) struct Run {
    command: Command,
    stdin: Vec<u8>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) success: bool,
    /// Null if nothing was printed.
    pub(crate) output: Value,
}

pub(crate) fn conf(version: &str, socket: &Path) -> Value {
    let log = socket.with_file_name("log");
    json!({
        "cniVersion": version, "name": "a-net", "type": "vlan", "master": "eth1", "vlanMode": "auto",
        "ipam": {
            "type": "spiderpool", "default_ipv4_ippool": ["v4"], "ipam_unix_socket_path": socket, "log_level": "debug",
            "log_file_path": log, "agentTimeout": "55s",
        },
    })
}

/// A run in which everything is right.
pub(crate) fn run(verb: &str, conf: &Value) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spiderpool"));
    command.env_clear().envs([
        ("CNI_COMMAND", verb),
        ("CNI_CONTAINERID", "c-1"),
        ("CNI_IFNAME", "net1"),
        ("CNI_NETNS", "/proc/self/ns/net"),
        ("CNI_PATH", "/opt/cni/bin"),
        (
            "CNI_ARGS",
            "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME=pod;K8S_POD_UID=uid;K8S_POD_INFRA_CONTAINER_ID=c-1",
        ),
    ]);
    Run { command, stdin: conf.to_string().into_bytes() }
}

impl Run {
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    pub(crate) fn end(self) -> Ended {
        ended(self.start())
    }

    pub(crate) fn start(mut self) -> Child {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("starts");
        // A run that ends before it has read everything closes the pipe.
        let _ = child.stdin.take().expect("piped").write_all(&self.stdin);
        child
    }

    /// Runs with its answer going there.
    pub(crate) fn into(mut self, answer: Stdio) -> ExitStatus {
        self.command.stdin(Stdio::piped()).stdout(answer).stderr(Stdio::null());
        let mut child = self.command.spawn().expect("starts");
        // The command holds the other end of a pipe.
        drop(self.command);
        child.stdin.take().expect("piped").write_all(&self.stdin).expect("reads");
        child.wait().expect("ends")
    }

    /// Ends in an error of this code, and returns its text.
    pub(crate) fn fails(self, code: u32) -> String {
        self.end().fault(code)
    }

    /// Ends well and says nothing.
    pub(crate) fn done(self) {
        let ended = self.end();
        assert!(ended.success && ended.output.is_null(), "{ended:?}");
    }
}

/// Waits for the end.
pub(crate) fn ended(child: Child) -> Ended {
    let output = child.wait_with_output().expect("ends");
    let text = String::from_utf8(output.stdout).expect("text");
    let success = output.status.success();
    assert!(success || output.status.code() == Some(1), "{:?}", output.status);
    assert!(success || !text.is_empty(), "an error without words");
    let output = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("one JSON document") };
    Ended { success, output }
}

impl Ended {
    /// The text of an error of this code.
    pub(crate) fn fault(self, code: u32) -> String {
        let Self { success, output } = self;
        assert!(!success && output["code"] == code, "{code} expected: {output}");
        assert!(output["cniVersion"].is_string(), "{output}");
        output["msg"].as_str().expect("a text").to_owned()
    }
}
