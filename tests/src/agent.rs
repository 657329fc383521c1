//! The agent's binary, as it is installed.

use crate::process::{Running, root};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Builds the agent, if need be, and says where it is.
pub fn binary() -> PathBuf {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--bin", "spiderpool-agent"]).current_dir(root());
    assert!(build.status().expect("cargo runs").success(), "the agent builds");
    let test = std::env::current_exe().expect("a test knows its own program");
    let profile = test.ancestors().nth(2).expect("target/debug/deps/test");
    profile.join("spiderpool-agent")
}

/// A port of the loopback address that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port");
    listener.local_addr().expect("bound").port()
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
    pub fn start(folder: &std::path::Path, node: &str, conf: &str, env: &[(&str, &str)]) -> Self {
        let file = folder.join("conf.yml");
        std::fs::write(&file, conf).expect("a folder to write to");
        let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let log = folder.join("agent.log");
        let arguments = [
            "daemon".to_owned(),
            format!("--config-path={}", file.display()),
            format!("--node-name={node}"),
            format!("--admin-address={admin}"),
        ];
        Self { process: Running::start(&binary(), &arguments, env, &log), log, admin }
    }

    /// What was logged so far.
    pub fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Status and body of a page of the admin port.
    pub async fn page(&self, path: &str) -> Result<(u16, String), std::io::Error> {
        let mut connection = tokio::net::TcpStream::connect(self.admin).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: agent\r\nconnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await?;
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        Ok((status, body))
    }
}
