//! What each upgrade does with authority and certificate, by `lookup` in a real API server.

use super::{decoded, rendered, verifies};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use tests::api_server::{ADMIN, ApiServer};
use tests::process::run;

const HOST: &str = "spiderpool-controller.kube-system.svc";
const SECRET: &str = "spiderpool-controller-server-certs";
const END: &str = "spiderpool.spidernet.io/not-after";
const AUTHORITY_END: &str = "spiderpool.spidernet.io/ca-not-after";
const DAY: u64 = 86_400;

/// The Secret as it stands.
#[derive(Clone, Debug, PartialEq)]
struct State {
    certificate: String,
    authorities: Vec<String>,
    has_authority_key: bool,
    annotations: Value,
}

impl State {
    fn is_signed_by_first(&self) -> bool {
        verifies(&self.certificate, &self.authorities[0], HOST)
    }

    fn trusts(&self, other: &Self) -> bool {
        verifies(&other.certificate, &self.authorities.concat(), HOST)
    }

    fn ends(&self, annotation: &str) -> u64 {
        self.annotations[annotation].as_str().expect("an annotation").parse().expect("seconds")
    }
}

struct Release {
    kubeconfig: PathBuf,
    secrets: Api<Secret>,
    webhooks: Api<MutatingWebhookConfiguration>,
    _api_server: ApiServer,
}

impl Release {
    fn helm(&self, arguments: &[&str]) {
        let kubeconfig = format!("--kubeconfig={}", self.kubeconfig.display());
        run("helm", [&[kubeconfig.as_str(), "--namespace=kube-system"], arguments].concat());
    }

    async fn upgraded(&self, values: &str) -> State {
        let quick_start = ["upgrade", "--install", "spiderpool", "charts/spiderpool", "--set=crds.install=false"];
        self.helm(&[&quick_start[..], &["-f", "docs/examples/quick-start.yaml", "--set", values]].concat());
        self.state().await
    }

    async fn state(&self) -> State {
        let secret = serde_json::to_value(self.secrets.get(SECRET).await.expect("a Secret")).expect("JSON");
        let webhooks = self.webhooks.get("spiderpool-controller").await.expect("webhooks");
        for webhook in serde_json::to_value(webhooks).expect("JSON")["webhooks"].as_array().expect("a list") {
            assert_eq!(webhook["clientConfig"]["caBundle"], secret["data"]["ca.crt"]);
        }
        let bundle = decoded(&secret["data"]["ca.crt"]);
        let end = "-----END CERTIFICATE-----";
        let authorities = bundle.split_inclusive(end).filter(|text| text.ends_with(end));
        let annotations = secret["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
        State {
            certificate: decoded(&secret["data"]["tls.crt"]),
            authorities: authorities.map(|text| text.trim().to_owned() + "\n").collect(),
            has_authority_key: secret["data"]["ca.key"].is_string(),
            annotations: annotations.into_iter().filter(|(key, _)| key.starts_with("spiderpool.")).collect(),
        }
    }

    async fn patch(&self, patch: Value) {
        self.secrets.patch(SECRET, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
    }

    /// As if that many days were left.
    async fn days_left(&self, annotation: &str, days: u64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        self.patch(json!({"metadata": {"annotations": {annotation: (now + days * DAY).to_string()}}})).await;
    }
}

async fn release() -> Release {
    let api_server = ApiServer::start().await;
    let client = api_server.client(ADMIN).await;
    Release {
        kubeconfig: api_server.kubeconfig(ADMIN),
        secrets: Api::namespaced(client.clone(), "kube-system"),
        webhooks: Api::all(client),
        _api_server: api_server,
    }
}

const SAME: &str = "crds.install=false";

fn named(name: &str) -> String {
    format!("spiderpoolController.tls.auto.extraDnsNames={{{name}}}")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authority_outlives_certificates_and_rollbacks() {
    let release = release().await;
    let first = release.upgraded(SAME).await;
    assert!(first.is_signed_by_first() && first.has_authority_key && first.authorities.len() == 1, "{first:?}");
    assert_eq!(first.ends(AUTHORITY_END) - first.ends(END), 3650 * DAY);
    assert_eq!(release.upgraded(SAME).await, first, "nothing changed");

    let mut before = first.clone();
    for name in ["one.example", "two.example"] {
        let after = release.upgraded(&named(name)).await;
        assert!(after.certificate != before.certificate && after.is_signed_by_first(), "{after:?}");
        assert!(verifies(&after.certificate, &after.authorities[0], name));
        assert_eq!(after.authorities, first.authorities, "only the names changed");
        before = after;
    }
    release.helm(&["rollback", "spiderpool", "1"]);
    assert_eq!(release.state().await, first);

    release.days_left(END, 364).await;
    let renewed = release.upgraded(SAME).await;
    assert!(renewed.certificate != first.certificate && renewed.is_signed_by_first());
    assert_eq!(renewed.authorities, first.authorities, "only the certificate was old");
    release.days_left(END, 366).await;
    assert_eq!(release.upgraded(SAME).await.certificate, renewed.certificate, "nine tenths are not over");

    release.days_left(AUTHORITY_END, 731).await;
    let short = release.upgraded(&named("short.example")).await;
    assert_eq!(short.authorities, first.authorities, "nine tenths are not over");
    assert!(short.ends(END) <= short.ends(AUTHORITY_END), "it ends with its authority: {short:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_authority_leaves_the_former_ones_trusted() {
    let release = release().await;
    let mut states = vec![release.upgraded(SAME).await];
    for round in 1..=5 {
        // Once as an older chart left it: the authority's key was not kept.
        if round == 2 {
            let gone = json!({AUTHORITY_END: null});
            release.patch(json!({"data": {"ca.key": null}, "metadata": {"annotations": gone}})).await;
        } else {
            release.days_left(AUTHORITY_END, 729).await;
        }
        let state = release.upgraded(SAME).await;
        let former = states.last().expect("one");
        assert!(state.is_signed_by_first() && state.has_authority_key && state.trusts(former), "{round}");
        assert_ne!(state.authorities[0], former.authorities[0], "{round}");
        assert_eq!(state.authorities[1..], former.authorities[..former.authorities.len().min(3)], "{round}");
        assert_eq!(release.upgraded(SAME).await, state, "{round}: nothing changed");
        states.push(state);
    }
    assert!(states[5].trusts(&states[2]) && !states[5].trusts(&states[1]), "three former ones");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_method_keeps_trust() {
    let release = release().await;
    let auto = release.upgraded(SAME).await;
    let provided = || {
        let made = rendered(&["--show-only=templates/controller/webhook.yaml"]);
        let secret = made.split("\n---").find(|document| document.contains("kind: Secret")).expect("a Secret");
        let secret: Value = serde_saphyr::from_str(secret).expect("YAML");
        let of = |value: &str, key: &str| {
            format!(",spiderpoolController.tls.provided.{value}={}", secret["data"][key].as_str().expect("data"))
        };
        let values = [of("tlsCert", "tls.crt"), of("tlsKey", "tls.key"), of("tlsCa", "ca.crt")].concat();
        format!("spiderpoolController.tls.method=provided{values}")
    };
    let (one, other) = (provided(), provided());
    let own = release.upgraded(&one).await;
    assert!(own.is_signed_by_first() && own.trusts(&auto) && own.authorities.len() == 2);
    assert!(!own.has_authority_key && own.annotations == json!({}), "{own:?}");
    assert_eq!(release.upgraded(&one).await, own, "nothing changed");
    let changed = release.upgraded(&other).await;
    assert!(changed.is_signed_by_first() && changed.trusts(&own) && changed.trusts(&auto));
    assert_eq!(release.upgraded(&other).await, changed, "nothing changed");
    let back = release.upgraded(SAME).await;
    assert!(back.is_signed_by_first() && back.has_authority_key && back.trusts(&changed) && back.trusts(&own));
}

const OWN: &str = "spiderpool-controller-self-certs";
const SELF: &str = "crds.install=false,spiderpoolController.tls.method=self";

/// With `self` the Secret is the controllers': Helm leaves alone what they write, keeps what webhooks trust, and takes over
/// what was trusted when the method changes, in both directions.
#[tokio::test(flavor = "multi_thread")]
async fn the_controllers_secret_survives_upgrades_and_trust_survives_the_change_of_method() {
    let release = release().await;
    let bundles = async || {
        let webhooks = release.webhooks.get("spiderpool-controller").await.expect("webhooks");
        let entries = webhooks.webhooks.into_iter().flatten();
        let bundles: Vec<_> = entries.map(|entry| entry.client_config.ca_bundle.unwrap_or_default().0).collect();
        assert!(bundles.len() > 2 && bundles.iter().all(|bundle| *bundle == bundles[0]), "all entries alike");
        String::from_utf8(bundles[0].clone()).expect("PEM")
    };
    let upgrade = |values: &str| {
        let quick_start = ["upgrade", "--install", "spiderpool", "charts/spiderpool"];
        release.helm(&[&quick_start[..], &["-f", "docs/examples/quick-start.yaml", "--set", values]].concat());
    };
    let auto = release.upgraded(SAME).await;
    upgrade(SELF);
    assert_eq!(bundles().await.trim(), auto.authorities.concat().trim(), "pods of before are trusted");
    assert!(release.secrets.get_opt(SECRET).await.expect("answers").is_none(), "nobody reads it any more");
    let own = release.secrets.get(OWN).await.expect("a Secret");
    assert_eq!((own.data, own.type_.as_deref()), (None, Some("Opaque")));
    upgrade(SELF);
    assert_eq!(bundles().await.trim(), auto.authorities.concat().trim(), "also if no controller has come up yet");

    // What a controller does.
    let made = rcgen::generate_simple_self_signed([HOST.to_owned()]).expect("a pair");
    let bundle = format!("{}{}", made.cert.pem(), auto.authorities.concat());
    let data = json!({"stringData": {"ca.crt": bundle, "tls.crt": made.cert.pem(), "tls.key": made.signing_key.serialize_pem()}});
    release.secrets.patch(OWN, &PatchParams::default(), &Patch::Merge(data)).await.expect("patched");
    let filled = release.secrets.get(OWN).await.expect("a Secret").data;
    for values in [SELF.to_owned(), format!("{SELF},spiderpoolController.replicas=3")] {
        upgrade(&values);
        assert_eq!(bundles().await, bundle, "what the controllers have published");
        assert_eq!(release.secrets.get(OWN).await.expect("a Secret").data, filled, "Helm did not write it");
    }
    release.helm(&["rollback", "spiderpool"]);
    assert_eq!(release.secrets.get(OWN).await.expect("a Secret").data, filled, "nor does a rollback");

    let back = release.upgraded(SAME).await;
    assert!(back.is_signed_by_first() && back.has_authority_key);
    assert!(verifies(&made.cert.pem(), &back.authorities.concat(), HOST), "pods of before are trusted");
    assert!(release.secrets.get_opt(OWN).await.expect("answers").is_none());
    let annotations = release.webhooks.get("spiderpool-controller").await.expect("webhooks").metadata.annotations;
    let kept = |annotations: &std::collections::BTreeMap<String, String>| {
        annotations.contains_key("spiderpool.spidernet.io/ca-bundle-from")
    };
    assert!(!annotations.as_ref().is_some_and(kept), "controllers of before leave the bundle alone");
}
