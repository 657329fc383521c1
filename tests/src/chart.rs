//! What the chart brings to an API server: kinds, rights, policies, and tokens as its agents have them.

use crate::answer::{Answer, send};
use crate::api_server::{ADMIN, ApiServer};
use crate::controller::rendered;
use crate::wait;
use anyhow::ensure;
use kube::Client;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SOON: Duration = Duration::from_mins(2);
const GROUP: &str = "/apis/spiderpool.spidernet.io/v2beta1";
const ACCOUNT: &str = "/api/v1/namespaces/kube-system/serviceaccounts";

/// Creates an object in the collection at `path`.
pub async fn create(client: &Client, path: &str, object: &Value) -> Answer {
    send(client, "POST", path, "application/json", object.to_string().into_bytes()).await.expect("answers")
}

/// Installs our kinds and waits until they are served.
pub async fn kinds(admin: &Client) {
    for definition in k8s_api::crd::definitions() {
        let definition = serde_json::to_value(definition).expect("JSON");
        let answer = create(admin, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
        answer.accepted();
        assert_eq!(answer.warnings, Vec::<String>::new(), "{}", definition["metadata"]["name"]);
    }
    for kind in ["spidermultusconfigs", "spiderippools", "spiderendpoints", "spiderreservedips", "spideripallocations"]
    {
        wait::until(format!("{kind} to be served"), SOON, async || {
            let answer = send(admin, "GET", &format!("{GROUP}/{kind}"), "application/json", Vec::new()).await?;
            ensure!(answer.status == 200, "{answer:?}");
            Ok(())
        })
        .await;
    }
}

/// Installs the objects of a template.
pub async fn install(admin: &Client, template: &str) {
    install_for(admin, template, None).await;
}

/// Installs the objects of a template, with a user in the place of the account that is bound to a role.
pub async fn install_for(admin: &Client, template: &str, user: Option<&str>) {
    for mut document in rendered(template, &[]) {
        if let Some(user) = user.filter(|_| document.get("subjects").is_some()) {
            document["subjects"] = json!([{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]);
        }
        let kind = document["kind"].as_str().unwrap_or_default().to_lowercase();
        let group = document["apiVersion"].as_str().expect("a version");
        let plural = if let Some(stem) = kind.strip_suffix('y') { format!("{stem}ies") } else { format!("{kind}s") };
        let part = match document["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("namespaces/{namespace}/"),
            None => String::new(),
        };
        let root = if group.contains('/') { "apis" } else { "api" };
        create(admin, &format!("/{root}/{group}/{part}{plural}"), &document).await.accepted();
    }
}

/// Installs accounts, rights and policies, and waits until the policies are in force.
pub async fn guard(admin: &Client) {
    for account in ["spiderpool-agent", "spiderpool-controller"] {
        create(admin, ACCOUNT, &json!({"metadata": {"name": account}})).await.accepted();
    }
    for template in ["configmap.yaml", "agent/rbac.yaml", "policies.yaml"] {
        install(admin, template).await;
    }
    wait::until("the policies to be in force", SOON, async || {
        let definition =
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/spideripallocations.spiderpool.spidernet.io";
        let refused = send(admin, "DELETE", &format!("{definition}?dryRun=All"), "application/json", Vec::new()).await?;
        let allocation = json!({
            "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderIPAllocation", "metadata": {"name": "10.9.9.9"},
            "spec": {"pool": "p", "address": "10.9.9.9", "node": {"name": "a"}, "state": "Held",
                     "pod": {"namespace": "default", "name": "p", "uid": "u"}},
        });
        let allocation = create(admin, &format!("{GROUP}/spideripallocations?dryRun=All"), &allocation).await;
        let endpoint = json!({
            "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderEndpoint", "metadata": {"name": "probe"},
            "status": {"current": {"uid": "u", "node": "a", "ips": []}},
        });
        let endpoint =
            create(admin, &format!("{GROUP}/namespaces/default/spiderendpoints?dryRun=All"), &endpoint).await;
        let status = [refused.status, allocation.status, endpoint.status];
        ensure!(status == [403, 403, 403], "{status:?}");
        Ok(())
    })
    .await;
}

/// A pod of the agent's account on a Node, and the token that is bound to it.
pub async fn token(admin: &Client, node: &str) -> String {
    let pod = json!({
        "metadata": {"name": format!("agent-{node}")},
        "spec": {"nodeName": node, "serviceAccountName": "spiderpool-agent", "containers": [{"name": "a", "image": "a"}]},
    });
    let pod = create(admin, "/api/v1/namespaces/kube-system/pods", &pod).await;
    let uid = &pod.accepted()["metadata"]["uid"];
    let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": format!("agent-{node}"), "uid": uid});
    let asked = json!({"spec": {"expirationSeconds": 7200, "boundObjectRef": bound}});
    let token = create(admin, &format!("{ACCOUNT}/spiderpool-agent/token"), &asked).await;
    token.accepted()["status"]["token"].as_str().expect("a token").to_owned()
}

/// A token of this account that is bound to nothing.
pub async fn account_token(admin: &Client, account: &str) -> String {
    let asked = json!({"spec": {"expirationSeconds": 7200}});
    let token = create(admin, &format!("{ACCOUNT}/{account}/token"), &asked).await;
    token.accepted()["status"]["token"].as_str().expect("a token").to_owned()
}

/// Grants the controller's account what the chart grants it.
pub async fn controller_rights(admin: &Client) {
    for document in rendered("controller/rbac.yaml", &[]) {
        let kind = document["kind"].as_str().unwrap_or_default().to_lowercase();
        if kind == "serviceaccount" {
            continue;
        }
        let part = document["metadata"]["namespace"].as_str().map(|name| format!("namespaces/{name}/"));
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{}{kind}s", part.unwrap_or_default());
        create(admin, &path, &document).await.accepted();
    }
}

/// A kubeconfig with this token, in `folder`.
pub fn kubeconfig(server: &ApiServer, token: &str, folder: &Path) -> PathBuf {
    let text = std::fs::read_to_string(server.kubeconfig(ADMIN)).expect("readable");
    let path = folder.join("kubeconfig");
    std::fs::write(&path, text.replace("admin-token", token)).expect("writable");
    path
}
