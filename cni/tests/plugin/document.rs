//! What is on stdout, whatever fails.

use crate::fake::{Asked, FakeAgent, Script};
use crate::run::{conf, run};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, Instant};

const VERSIONS: [&str; 5] = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/// containernetworking/cni#571: result and error were both printed. `Run::end` reads one document, or none.
#[test]
fn every_run_ends_in_one_document_or_none_and_its_exit_code_says_which() {
    let scripts = [
        Script::Good,
        Script::Fault(11),
        Script::Fault(0),
        Script::NoOutcome,
        Script::BadAnswer,
        Script::Error(tonic::Code::Unknown),
    ];
    for script in scripts {
        let agent = FakeAgent::start(script.clone());
        for version in VERSIONS {
            for verb in ["ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"] {
                let mut conf = conf(version, &agent.socket());
                conf["cni.dev/valid-attachments"] = json!([]);
                let ended = run(verb, &conf).end();
                let output = &ended.output;
                let says = matches!(verb, "ADD" | "VERSION") || !ended.success;
                assert_eq!(output.is_object(), says, "{verb} {version} {script:?}: {ended:?}");
                assert!(!says || output["cniVersion"] == version, "{verb} {version} {script:?}: {output}");
                let is_error = output["code"].as_u64().is_some_and(|code| code > 0) && output["msg"].is_string();
                assert_eq!(is_error, !ended.success, "{verb} {version} {script:?}: {output}");
            }
        }
    }
}

/// The same, where what fails is the answer itself: the agent has given an address by then, and gives it again.
#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let agent = FakeAgent::start(Script::Good);
    let conf = conf("1.0.0", &agent.socket());
    let full = OpenOptions::new().write(true).open("/dev/full").expect("there");
    assert_eq!(run("ADD", &conf).into(full.into()).code(), Some(1));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    assert_eq!(run("ADD", &conf).into(writer.into()).code(), Some(1), "by its own will, not by a signal");
    assert!(run("ADD", &conf).end().success);
    assert!(matches!(agent.asked().as_slice(), [Asked::Add(..), Asked::Add(..), Asked::Add(..)]));
}

#[test]
fn a_log_in_the_answers_place_is_not_written() {
    let agent = FakeAgent::start(Script::Good);
    let mut conf = conf("1.0.0", &agent.socket());
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("runs").success());
    let paths = ["/dev/stdout", "/dev/stderr", "/proc/self/fd/1", "/dev/null"].map(Into::into);
    for path in paths.into_iter().chain([pipe, folder.path().to_owned()]) {
        conf["ipam"]["log_file_path"] = json!(path);
        let ended = run("ADD", &conf).end();
        assert!(ended.success && ended.output["ips"].is_array(), "{path:?}: {ended:?}");
    }
    // A file that is both.
    let answer = folder.path().join("answer");
    conf["ipam"]["log_file_path"] = json!(answer);
    assert!(run("ADD", &conf).into(File::create(&answer).expect("creates").into()).success());
    let text = std::fs::read(&answer).expect("there");
    assert!(serde_json::from_slice::<Value>(&text).is_ok(), "{}", String::from_utf8_lossy(&text));
}

/// spidernet-io/spiderpool#5423, cilium/cilium#7978: success with an empty stdout. An IPAM plugin's result is its own
/// addresses, whole; the plugin that calls it joins them with what was before.
#[test]
fn in_a_chain_an_add_has_its_own_result_whole() {
    let agent = FakeAgent::start(Script::Good);
    let before = [
        json!(null),
        json!({}),
        json!({"cniVersion": "0.2.0", "ip4": {"ip": "10.0.0.9/24"}}),
        json!({"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "10.0.0.9/24"}], "interfaces": [{"name": "bond0"}]}),
        json!({"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.9/24"}, {"address": "fd00::9/64"}], "routes": []}),
        json!({"ips": "of a plugin that cannot write"}),
    ];
    for version in VERSIONS {
        let conf = conf(version, &agent.socket());
        let alone = run("ADD", &conf).end().output;
        assert_eq!((&alone["cniVersion"], &alone["ips"][0]["address"]), (&json!(version), &json!("172.91.0.7/24")));
        for before in &before {
            let mut chained = conf.clone();
            chained["prevResult"] = before.clone();
            assert_eq!(run("ADD", &chained).end().output, alone, "{version} {before}");
            run("DEL", &chained).done();
        }
    }
}

/// A process that is stopped, or stuck, keeps its socket.
#[test]
fn an_agent_that_hangs_is_not_waited_for_longer_than_it_may_take() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("s");
    let _listener = UnixListener::bind(&socket).expect("binds");
    let mut conf = conf("1.1.0", &socket);
    let began = Instant::now();
    run("STATUS", &conf).fails(50);
    run("DEL", &conf).done();
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}, at the default of 100 s", began.elapsed());
    conf["ipam"]["agentTimeout"] = "200ms".into();
    conf["cni.dev/valid-attachments"] = json!([]);
    let began = Instant::now();
    for verb in ["ADD", "CHECK", "GC"] {
        let msg = run(verb, &conf).fails(11);
        assert!(msg.contains(socket.to_str().expect("text")), "{verb}: {msg}");
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}
