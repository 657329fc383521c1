//! Figures of the CNI plugin alone: runtimes start it for every interface of every pod, several at a time. `make bench` runs
//! them with the program that is shipped (`CNI_BINARY`); a limit that the project promises is asserted.

use anyhow::{Context, ensure};
use futures::stream;
use proto::agent::agent_server::{Agent, AgentServer};
use proto::agent::{
    AddRequest, AddResponse, Address, CheckRequest, CheckResponse, DelRequest, DelResponse, GcRequest, GcResponse,
    GetRequest, GetResponse, Interface, Route, StatusRequest, StatusResponse, add_response::Outcome,
};
use std::fs::read_to_string;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tests::agent::program;
use tests::wait;
use tonic::{Request, Response, Status};

const SOON: Duration = Duration::from_mins(1);
const ROUNDS: usize = 400;

fn plugin() -> PathBuf {
    program("CNI_BINARY", "spiderpool")
}

fn is_shipped() -> bool {
    std::env::var_os("CNI_BINARY").is_some()
}

fn command(program: &Path, verb: &str) -> Command {
    let mut command = Command::new(program);
    let args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME=pod;K8S_POD_UID=uid";
    command.env_clear().envs([("CNI_COMMAND", verb), ("CNI_CONTAINERID", "c-1"), ("CNI_IFNAME", "net1")]);
    command.envs([("CNI_NETNS", "/proc/self/ns/net"), ("CNI_ARGS", args)]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Median, and the middle four fifths.
fn print(what: &str, spans: &mut [Duration]) -> Duration {
    spans.sort();
    let at = |tenth: usize| spans[(spans.len() * tenth / 10).min(spans.len() - 1)];
    println!("{what}: median {:.2?}, 10% to 90% {:.2?} to {:.2?}", at(5), at(1), at(9));
    at(5)
}

#[test]
fn start() {
    let plugin = plugin();
    let run = |program: &Path| {
        let mut command = command(program, "VERSION");
        let began = Instant::now();
        assert!(command.status().expect("runs").success());
        began.elapsed()
    };
    let (mut ours, mut nothing) = (Vec::new(), Vec::new());
    // One after the other, so that the machine is as busy for both.
    for _ in 0..ROUNDS {
        ours.push(run(&plugin));
        nothing.push(run(Path::new("/bin/true")));
    }
    let ours = print(&format!("spiderpool VERSION, {ROUNDS} runs"), &mut ours);
    let nothing = print("/bin/true between them", &mut nothing);
    println!("above /bin/true: {:.2?}", ours.saturating_sub(nothing));
    let size = std::fs::metadata(&plugin).expect("there").len();
    println!("size: {:.2} MB", f64::from(u32::try_from(size).expect("small")) / 1e6);
    if is_shipped() {
        assert!(ours.saturating_sub(nothing) <= Duration::from_millis(2), "promised: 2 ms");
        assert!(size < 3_000_000, "promised: 3 MB");
    }
}

/// An agent that gives every interface the same address.
struct Giving;

#[tonic::async_trait]
impl Agent for Giving {
    async fn add(&self, _: Request<AddRequest>) -> Result<Response<AddResponse>, Status> {
        let (cidr, gateway, pool) = ("172.91.0.7/24".to_owned(), "172.91.0.1".to_owned(), "p".to_owned());
        let routes = vec![Route { dst: "0.0.0.0/0".to_owned(), gw: gateway.clone() }];
        let addresses = vec![Address { cidr, gateway, pool }];
        let interface = Interface { name: "net1".to_owned(), addresses, routes, mac: String::new(), vlan: 7 };
        Ok(Response::new(AddResponse { outcome: Some(Outcome::Interface(interface)), detect: None }))
    }
    async fn del(&self, _: Request<DelRequest>) -> Result<Response<DelResponse>, Status> {
        Ok(Response::new(DelResponse {}))
    }
    async fn check(&self, _: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn gc(&self, _: Request<GcRequest>) -> Result<Response<GcResponse>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn get(&self, _: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

/// A pipe that takes no byte more: who writes the answer into it stands still with all that the run has needed.
fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    // As it is made: 64 KiB.
    writer.write_all(&vec![b' '; 64 << 10]).expect("room");
    (reader, writer)
}

/// Peak of memory of a run that has reached its answer, in KiB.
async fn peak(plugin: &Path, verb: &str, stdin: &str) -> u32 {
    let (mut reader, writer) = full_pipe();
    let mut command = command(plugin, verb);
    let mut child = command.stdin(Stdio::piped()).stdout(writer).spawn().expect("starts");
    drop(command);
    child.stdin.take().expect("piped").write_all(stdin.as_bytes()).expect("reads");
    let id = child.id();
    let peak = wait::until(format!("{verb} to write its answer"), SOON, async || {
        let call = read_to_string(format!("/proc/{id}/syscall")).context("it has ended")?;
        // write(1, …), which has another number on each architecture, and it waits.
        ensure!(call.split(' ').nth(1) == Some("0x1") && !call.starts_with("running"), "{call}");
        let status = read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no memory")?;
        line.trim().trim_end_matches(" kB").parse::<u32>().context("no number")
    })
    .await;
    let mut output = Vec::new();
    reader.read_to_end(&mut output).expect("reads");
    let text = String::from_utf8_lossy(&output);
    assert!(child.wait().expect("ends").success() && text.contains("cniVersion"), "{verb}: {}", text.trim());
    peak
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_a_whole_add() {
    let (plugin, folder) = (plugin(), tempfile::tempdir().expect("a folder"));
    let socket = folder.path().join("s");
    let listener = tokio::net::UnixListener::bind(&socket).expect("binds");
    let incoming = stream::unfold(listener, |listener| async {
        Some((listener.accept().await.map(|(connection, _)| connection), listener))
    });
    let mut serving = tokio::task::JoinSet::new();
    serving
        .spawn(tonic::transport::Server::builder().add_service(AgentServer::new(Giving)).serve_with_incoming(incoming));
    let conf = serde_json::json!({
        "cniVersion": "1.0.0", "name": "a-net", "type": "vlan", "master": "eth1",
        "ipam": {"type": "spiderpool", "ipam_unix_socket_path": socket, "log_file_path": folder.path().join("log")},
    });
    let conf = conf.to_string();
    let mut peaks = Vec::new();
    for verb in ["VERSION", "ADD"] {
        let peak = peak(&plugin, verb, &conf).await;
        println!("{verb}: peak of {:.2} MiB", f64::from(peak) / 1024.0);
        peaks.push(peak);
    }
    let mut spans = Vec::new();
    for _ in 0..ROUNDS / 4 {
        let mut command = command(&plugin, "ADD");
        let began = Instant::now();
        let mut child = command.stdin(Stdio::piped()).spawn().expect("starts");
        child.stdin.take().expect("piped").write_all(conf.as_bytes()).expect("reads");
        assert!(child.wait().expect("ends").success());
        spans.push(began.elapsed());
    }
    print("ADD, an agent that answers at once", &mut spans);
    if is_shipped() {
        assert!(peaks.iter().all(|peak| *peak < 4 << 10), "promised: 4 MiB");
    }
}
