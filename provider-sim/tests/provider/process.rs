use crate::stage::{LONG, allocate, client};
use provider_sim::wire::ALLOCATE;
use serde_json::Value;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// The program, which ends with the test.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) url: String,
    _rest: Lines<BufReader<ChildStdout>>,
}

impl Program {
    pub(crate) async fn serve(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_provider-sim"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let line = timeout(LONG, lines.next_line()).await.expect("in time").expect("a text").expect("a line");
        let url = line.strip_prefix("listening on ").expect("where it listens").to_owned();
        Self { child, url, _rest: lines }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().expect("it runs").to_string();
        let status = std::process::Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(status.expect("kill runs").success());
    }

    async fn ended(mut self) -> Option<i32> {
        timeout(LONG, self.child.wait()).await.expect("it ends in time").expect("it can be waited for").code()
    }

    async fn allocate(&self) -> Value {
        let request = client().post(format!("{}{ALLOCATE}", self.url)).header("x-request-timeout-ms", 50_000);
        let response = request.json(&allocate("u", &["10.0.0.10"])).send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        response.json().await.expect("JSON")
    }
}

#[tokio::test]
async fn sigterm_ends_it_in_order() {
    let program = Program::serve(&[]).await;
    program.allocate().await;
    program.signal("TERM");
    assert_eq!(program.ended().await, Some(0));
}

#[tokio::test]
async fn what_is_bound_survives_a_kill_in_the_state_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("state.json");
    let arguments = ["--state", file.to_str().expect("a text")];
    let program = Program::serve(&arguments).await;
    let first = program.allocate().await;
    program.signal("KILL");
    assert_eq!(program.ended().await, None);

    let program = Program::serve(&arguments).await;
    let bindings = client().get(format!("{}/bindings", program.url)).send().await.expect("an answer");
    let bindings: Value = bindings.json().await.expect("JSON");
    assert_eq!(bindings["bindings"].as_array().expect("a list").len(), 1);
    assert_eq!(program.allocate().await, first, "the same VLAN id and MAC address");
}

#[tokio::test]
async fn a_state_file_that_cannot_be_read_is_not_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("state.json");
    std::fs::write(&file, "{").expect("it can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_provider-sim"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--state"]).arg(&file).kill_on_drop(true);
    let ended = timeout(LONG, command.output()).await.expect("it ends in time").expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1));
    assert!(said.contains("cannot go on from the state file") && said.contains("correct it, or remove it"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "{");
}
