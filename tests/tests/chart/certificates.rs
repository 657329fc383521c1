//! What each method of certificates brings, and what it does not.

use super::{documents, render, rendered};
use serde_json::{Value, json};

const METHOD: &str = "spiderpoolController.tls.method";

fn with(template: &str, method: &str) -> Vec<Value> {
    documents(template, &["--set", &format!("{METHOD}={method}")])
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents.iter().filter(|document| document["kind"] == kind).collect()
}

/// One Secret, two configurations, each by its name; nothing with the other methods.
#[test]
fn only_controllers_that_make_certificates_may_write_them() {
    let own = with("controller/certificate.yaml", "self");
    let rules = |kind: &str| of_kind(&own, kind)[0]["rules"].clone();
    let secret = "spiderpool-controller-self-certs";
    assert_eq!(
        rules("Role"),
        json!([
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret], "verbs": ["get", "list", "watch", "update"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
        ])
    );
    let configurations = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    assert_eq!(
        rules("ClusterRole"),
        json!([{"apiGroups": ["admissionregistration.k8s.io"], "resources": configurations, "resourceNames": ["spiderpool-controller"], "verbs": ["list", "watch", "patch"]}])
    );
    assert_eq!(of_kind(&own, "Secret")[0]["data"], Value::Null, "Helm would write over what controllers wrote");
    for method in ["auto", "certmanager"] {
        let all = rendered(&["-f", "docs/examples/quick-start.yaml", "--set", &format!("{METHOD}={method}")]);
        assert!(!all.contains("resources: [secrets]") && !all.contains("webhookconfigurations]"), "{method}");
        assert!(!all.contains("--tls-self") && !all.contains("ca-bundle-from") && !all.contains(secret), "{method}");
    }
}

#[test]
fn controllers_that_make_certificates_mount_none() {
    let deployment = with("controller/deployment.yaml", "self");
    let pod = &of_kind(&deployment, "Deployment")[0]["spec"]["template"]["spec"];
    let text = pod.to_string();
    assert!(!text.contains("/etc/tls") && !text.contains("--tls-server"), "{text}");
    let arguments = pod["containers"][0]["args"].as_array().expect("a list");
    for argument in [
        "--tls-self-secret=spiderpool-controller-self-certs",
        "--tls-self-webhooks=spiderpool-controller",
        "--tls-self-names=spiderpool-controller.kube-system.svc,spiderpool-controller.kube-system,spiderpool-controller.kube-system.svc.cluster.local",
        "--tls-self-valid=2160h",
    ] {
        assert!(arguments.contains(&argument.into()), "{argument}: {arguments:?}");
    }
    let entries = with("controller/webhook.yaml", "self").pop().expect("webhooks")["webhooks"].take();
    assert!(entries.as_array().expect("a list").iter().all(|entry| entry["clientConfig"]["caBundle"] == Value::Null));
    let same =
        format!("{METHOD}=self,spiderpoolController.tls.self.secretName=a,spiderpoolController.tls.secretName=a");
    let error = render(&["--set", &same]).expect_err("one Secret for two methods");
    assert!(error.contains("must differ"), "{error}");
}

#[test]
fn cert_manager_is_asked_for_what_the_webhooks_call() {
    let own = with("controller/certificate.yaml", "certmanager");
    let issuers: Vec<_> = of_kind(&own, "Issuer").iter().map(|issuer| issuer["spec"].clone()).collect();
    assert_eq!(issuers, [json!({"selfSigned": {}}), json!({"ca": {"secretName": "spiderpool-controller-ca"}})]);
    let certificates = of_kind(&own, "Certificate");
    let (authority, certificate) = (&certificates[0]["spec"], &certificates[1]["spec"]);
    assert_eq!((&authority["isCA"], &authority["privateKey"]["rotationPolicy"]), (&true.into(), &"Never".into()));
    assert_eq!(certificate["secretName"], "spiderpool-controller-server-certs");
    assert_eq!(certificate["dnsNames"][0], "spiderpool-controller.kube-system.svc");
    assert_eq!((&certificate["duration"], &certificate["renewBefore"]), (&"2160h".into(), &"720h".into()));
    assert_eq!(certificate["privateKey"], json!({"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"}));
    let webhooks = with("controller/webhook.yaml", "certmanager").pop().expect("webhooks");
    assert_eq!(
        webhooks["metadata"]["annotations"],
        json!({"cert-manager.io/inject-ca-from": "kube-system/spiderpool-controller-server-certs"})
    );

    let manager = "spiderpoolController.tls.certmanager";
    let set = format!("{METHOD}=certmanager,{manager}.issuerRef.name=mine,{manager}.issuerRef.kind=ClusterIssuer");
    let mine = documents("controller/certificate.yaml", &["--set", &set]);
    assert_eq!(mine.len(), 1, "nothing beside it");
    assert_eq!(mine[0]["spec"]["issuerRef"], json!({"name": "mine", "kind": "ClusterIssuer"}));
    let error = render(&["--set", &format!("{METHOD}=certmanager,{manager}.renewBeforeDays=90")]).expect_err("at once");
    assert!(error.contains("renewBeforeDays must be below validDays"), "{error}");
}
