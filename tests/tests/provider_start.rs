//! What people look for in the log when a provider's settings have a fault: agent and controller alike.

use std::path::Path;
use std::time::Duration;
use tests::process::Running;
use tests::{agent, controller, wait};

/// Both end before they ask anybody for anything.
const SOON: Duration = Duration::from_secs(20);

const CONF: &str = "\
iaasNetworkProvider:
  serverUrl: ftp://user:S3cret@provider.example
  httpRequestTimeout: 100s
";

/// The log of a program that ends with 1.
async fn ended(program: &Path, arguments: &[String], log: &Path) -> String {
    let mut running = Running::start(program, arguments, &[], log);
    let code = wait::until("its end", SOON, async || running.ended().ok_or("it runs")).await;
    let logged = std::fs::read_to_string(log).expect("a log");
    assert_eq!(code, 1, "{logged}");
    logged
}

#[tokio::test]
async fn faults_of_the_provider_end_agent_and_controller_with_the_words_that_people_look_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("conf.yml");
    std::fs::write(&file, CONF).expect("writable");
    let conf = format!("--config-path={}", file.display());
    let state = format!("--state-dir={}", folder.path().display());
    let of_agent = ["daemon".to_owned(), conf.clone(), "--node-name=own".to_owned(), state];
    let of_controller = ["daemon".to_owned(), conf, "--namespace=own".to_owned(), "--pod-name=own".to_owned()];
    for (program, arguments) in [(agent::binary(), of_agent), (controller::binary(), of_controller)] {
        let logged = ended(&program, &arguments, &folder.path().join("log")).await;
        for part in [
            "line 2: IaaS provider configuration validation failed: invalid iaasNetworkProvider.serverUrl \"ftp://provider.example\": must start with http:// or https://",
            "line 3: IaaS provider configuration validation failed: invalid iaasNetworkProvider.httpRequestTimeout \"100s\": timeout 1m40s must be less than CNI client timeout 1m40s",
        ] {
            // Log lines of text quote what has quotes in it.
            assert!(logged.replace("\\\"", "\"").contains(part), "{part}\nis not in\n{logged}");
        }
        assert!(!logged.contains("S3cret"), "{logged}");
    }
}
