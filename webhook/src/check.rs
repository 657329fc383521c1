//! Is a pod that names a network shown to a controller, and answered by it? Asks the API server, as any user would.

use crate::args::Check;
use anyhow::{Context, bail};
use k8s_api::multus;
use kube::{Client, Config};
use serde_json::json;
use std::time::Duration;

/// The API server waits up to 5 s for a webhook, and for each of several.
const ANSWER: Duration = Duration::from_secs(30);
/// What every warning of ours begins with.
pub(crate) const OURS: &str = "spiderpool: ";

pub(crate) fn run(check: Check) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(ask(check))
}

/// Creates a pod as a dry run. It names a network that is nowhere, so a controller that is asked has something to say.
async fn ask(Check { namespace }: Check) -> anyhow::Result<()> {
    let mut config = Config::infer().await.context("cannot tell where the API server is")?;
    config.read_timeout = Some(ANSWER);
    let container = json!({"name": "check", "image": "check", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}});
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "spiderpool-check-", "annotations": {multus::NETWORKS: "spiderpool-check-is-nowhere"}},
        "spec": {
            "containers": [container],
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        },
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(pod.to_string().into_bytes().into())?;
    let answer = Client::try_from(config)?.send(request).await.context("the API server does not answer")?;
    let warnings = answer.headers().get_all("warning").iter().filter_map(|warning| warning.to_str().ok());
    let said: Vec<&str> = warnings.filter(|warning| warning.contains(OURS)).collect();
    if !answer.status().is_success() {
        let body = http_body_util::BodyExt::collect(answer.into_body()).await?.to_bytes();
        bail!("a pod with a network is refused in namespace {namespace}: {}", String::from_utf8_lossy(&body));
    }
    if said.is_empty() {
        bail!(
            "no controller was asked about a pod with a network in namespace {namespace}: is the namespace excluded, or a failurePolicy Ignore and no controller ready?"
        );
    }
    println!("asked about a pod in namespace {namespace}, a controller answers: {}", said.join("; "));
    Ok(())
}
