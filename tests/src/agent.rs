//! The agent's binary, as it is installed.

use crate::process::{Running, root};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The agent's program: see [`program`].
pub fn binary() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| program("AGENT_BINARY", "spiderpool-agent")).clone()
}

/// The program that this environment variable names, for figures of the one that is shipped; else it is built. Ask once a
/// test program: cargo takes its time to say that nothing is to do.
pub fn program(variable: &str, name: &str) -> PathBuf {
    if let Some(binary) = std::env::var_os(variable) {
        return binary.into();
    }
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--bin", name]).current_dir(root());
    assert!(build.status().expect("cargo runs").success(), "{name} builds");
    let test = std::env::current_exe().expect("a test knows its own program");
    let profile = test.ancestors().nth(2).expect("target/debug/deps/test");
    profile.join(name)
}

/// A port of the loopback address that is free until its caller takes it: this process gets no port twice, and it lies
/// below those that the system gives to whoever connects or asks for any.
pub fn free_port() -> u16 {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let given = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = given.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or_default();
    let ours = 20_000..first;
    // Test programs that run side by side begin at ports of their own.
    let begin = usize::try_from(std::process::id()).unwrap_or_default() * 251;
    let next = |_| ours.clone().nth((begin + ASKED.fetch_add(1, Ordering::Relaxed)) % ours.len());
    let bound = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok();
    // A system that gives nearly all ports leaves no others.
    let free = (0..ours.len()).filter_map(next).find_map(bound).or_else(|| bound(0)).expect("a loopback port");
    free.local_addr().expect("bound").port()
}

/// A configuration with these sub-interface rules, as a YAML flow list.
pub fn conf(kubelet_root: &Path, rules: &str) -> String {
    format!(
        "iaasNetworkProvider: {{serverUrl: 'http://provider.example'}}
ipamUnixSocketPath: {}
agent:
  networkResourcePlugin:
    enabled: true
    kubeletRootDir: {}
    resourceAdvertisement: {{subENI: {{rules: {rules}}}}}
",
        kubelet_root.join("ipam.sock").display(),
        kubelet_root.display()
    )
}

/// A kubeconfig for an address where nobody listens.
pub fn unreachable_api_server() -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{}'}}}}]
users: [{{name: u, user: {{token: t}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
current-context: c
",
        free_port()
    )
}

/// The agent's conf.yml below `folder`.
pub fn conf_file(folder: &Path) -> PathBuf {
    folder.join("conf/conf.yml")
}

/// One agent and its folder.
#[derive(Debug)]
pub struct Agent {
    /// The process.
    pub process: Running,
    /// Where its log goes.
    pub log: PathBuf,
    admin: SocketAddr,
}

impl Agent {
    /// Starts an agent for `node` with this conf.yml in `folder`; `env` may name a kubeconfig.
    pub fn start(folder: &Path, node: &str, conf: &str, env: &[(&str, &str)]) -> Self {
        let binary = binary().display().to_string();
        Self::start_under(&[&binary], folder, node, conf, env)
    }

    /// As [`Agent::start`], by a command line that ends in running its further arguments.
    pub fn start_under(command: &[&str], folder: &Path, node: &str, conf: &str, env: &[(&str, &str)]) -> Self {
        Self::reconfigure(folder, conf);
        let file = conf_file(folder);
        let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        // A second agent in the same folder has a log of its own.
        let log = folder.join(format!("agent-{}.log", admin.port()));
        let (program, before) = command.split_first().expect("a program");
        let mut arguments: Vec<String> = before.iter().map(ToString::to_string).collect();
        arguments.extend([
            "daemon".to_owned(),
            format!("--config-path={}", file.display()),
            format!("--node-name={node}"),
            format!("--state-dir={}", folder.join("state").display()),
            format!("--admin-address={admin}"),
        ]);
        let sysfs = folder.join("sysfs");
        if sysfs.exists() {
            arguments.push(format!("--sysfs-root={}", sysfs.display()));
        }
        Self { process: Running::start(Path::new(program), &arguments, env, &log), log, admin }
    }

    /// Starts an agent without an API server, for the kubelet whose root folder is `folder`. `rules` are sub-interface
    /// rules, which depend on nothing that differs between machines.
    pub fn alone(folder: &Path, rules: &str) -> Self {
        let away = folder.join("away.kubeconfig");
        std::fs::write(&away, unreachable_api_server()).expect("writable");
        Self::start(folder, "own", &conf(folder, rules), &[("KUBECONFIG", &away.display().to_string())])
    }

    /// Writes the configuration as a kubelet writes a mounted `ConfigMap`: the file is a symlink into `..data`, which is one
    /// to a folder of its own for each version, and which a rename swaps.
    pub fn reconfigure(folder: &Path, text: &str) {
        let file = conf_file(folder);
        let mounted = file.parent().expect("a folder");
        std::fs::create_dir_all(mounted).expect("writable");
        let version = tempfile::Builder::new().prefix("..").tempdir_in(mounted).expect("writable").keep();
        std::fs::write(version.join("conf.yml"), text).expect("writable");
        let (data, temporary) = (mounted.join("..data"), mounted.join("..data_tmp"));
        let old = std::fs::read_link(&data);
        symlink(version.file_name().expect("a name"), &temporary).expect("writable");
        std::fs::rename(temporary, data).expect("writable");
        if file.symlink_metadata().is_err() {
            symlink("..data/conf.yml", &file).expect("writable");
        }
        if let Ok(old) = old {
            std::fs::remove_dir_all(mounted.join(old)).expect("the version before");
        }
    }

    /// What was logged so far.
    pub fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Status and body of a page of the admin port.
    pub async fn page(&self, path: &str) -> Result<(u16, String), std::io::Error> {
        page(self.admin, path).await
    }
}

/// Status and body of a page of an admin port.
pub async fn page(admin: SocketAddr, path: &str) -> Result<(u16, String), std::io::Error> {
    let mut connection = tokio::net::TcpStream::connect(admin).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
    Ok((status, body))
}
