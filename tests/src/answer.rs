//! Requests to an API server as they are, with all that it answers; and pods to send.

use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};

/// What the API server answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The object, or a Status.
    pub body: Value,
    /// Texts of the warning headers.
    pub warnings: Vec<String>,
}

impl Answer {
    /// The object, where it was accepted.
    pub fn accepted(&self) -> &Value {
        assert!(self.status < 300, "{self:?}");
        &self.body
    }

    /// The message, where it was refused.
    pub fn refused(&self) -> &str {
        assert!(self.status >= 400, "{self:?}");
        self.body["message"].as_str().unwrap_or_default()
    }

    /// What the container asks for of the resource, in requests and limits alike.
    pub fn requested(&self, container: usize, resource: &str) -> Option<&str> {
        let resources = &self.accepted()["spec"]["containers"][container]["resources"];
        let (request, limit) = (&resources["requests"][resource], &resources["limits"][resource]);
        assert_eq!(request, limit, "requests and limits are alike");
        request.as_str()
    }
}

/// Sends one request and reads all of the answer.
pub async fn send(client: &Client, method: &str, path: &str, kind: &str, body: Vec<u8>) -> anyhow::Result<Answer> {
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind).body(body.into())?;
    let response = client.send(request).await?;
    let status = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter().filter_map(|warning| warning.to_str().ok());
    // `299 - "text"`
    let text = |warning: &str| warning.split_once('"').map(|(_, rest)| rest.trim_end_matches('"').to_owned());
    let warnings = warnings.filter_map(text).collect();
    let bytes = response.into_body().collect().await?.to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes)));
    Ok(Answer { status, body, warnings })
}

/// A pod that names networks.
pub fn annotated(networks: &str) -> Value {
    pod_with(&json!({"k8s.v1.cni.cncf.io/networks": networks}))
}

/// A pod with these annotations.
pub fn pod_with(annotations: &Value) -> Value {
    json!({
        "metadata": {"generateName": "pod-", "annotations": annotations},
        "spec": {"containers": [{"name": "test", "image": "busybox"}]},
    })
}
