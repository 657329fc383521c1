//! Another mutating webhook, as clusters have several: it does one thing to every pod.

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use axum_server::tls_rustls::RustlsConfig;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, TcpListener};

/// One that runs until the test ends.
#[derive(Debug)]
pub struct OtherWebhook {
    /// Where it serves.
    pub url: String,
    /// Its certificate, PEM.
    pub authority: String,
}

impl OtherWebhook {
    /// Starts one that answers with these operations (RFC 6902) as long as the pod has not the label `mutated`, which
    /// they are to add.
    pub async fn started(operations: Value) -> Self {
        runtime::install_crypto();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a pair");
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let tls = RustlsConfig::from_pem(certificate.clone().into_bytes(), key.into_bytes()).await.expect("a pair");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let url = format!("https://localhost:{}/", listener.local_addr().expect("bound").port());
        let router = Router::new().route("/", post(answer)).with_state(operations);
        let server = axum_server::from_tcp_rustls(listener, tls).expect("serves").serve(router.into_make_service());
        tokio::spawn(server);
        Self { url, authority: certificate }
    }

    /// Its configuration; the API server calls webhooks in the order of these names.
    pub fn configuration(&self, name: &str) -> Value {
        json!({"metadata": {"name": name}, "webhooks": [{
            "name": "pods.other.example", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": self.url, "caBundle": STANDARD.encode(&self.authority)},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
        }]})
    }
}

async fn answer(State(operations): State<Value>, Json(review): Json<Value>) -> Json<Value> {
    let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
    if review["request"]["object"]["metadata"]["labels"]["mutated"].is_null() {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(operations.to_string()).into();
    }
    Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}
