//! What entries of a webhook configuration trust, and the patch that makes them trust something else.

use super::pem::Certificate;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// On configurations whose `caBundle` is ours to keep: the chart writes it, with `namespace/name` of the Secret. A chart
/// that has gone over to another method takes it off in the same change in which it writes a bundle of its own.
const KEPT: &str = "spiderpool.spidernet.io/ca-bundle-from";

/// One of the two kinds, by what matters here.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Configuration {
    version: String,
    kept: Option<String>,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    name: String,
    bundle: Vec<u8>,
    trusted: Vec<Certificate>,
}

impl Configuration {
    fn new<'a>(metadata: &ObjectMeta, entries: impl Iterator<Item = (&'a str, &'a WebhookClientConfig)>) -> Self {
        let entry = |(name, config): (&str, &WebhookClientConfig)| {
            let bundle = config.ca_bundle.clone().unwrap_or_default().0;
            Entry { name: name.to_owned(), trusted: Certificate::all(&bundle), bundle }
        };
        Self {
            version: metadata.resource_version.clone().unwrap_or_default(),
            kept: metadata.annotations.as_ref().and_then(|annotations| annotations.get(KEPT)).cloned(),
            entries: entries.map(entry).collect(),
        }
    }

    /// What each entry trusts.
    pub(super) fn trusted(&self) -> impl Iterator<Item = &[Certificate]> {
        self.entries.iter().map(|entry| entry.trusted.as_slice())
    }

    /// The JSON patch after which all entries trust the bundle of that Secret; `None` if they do, or are not ours to keep.
    /// It fails if anything has changed since this was read.
    pub(super) fn patch(&self, secret: &str, bundle: &str) -> Option<Value> {
        if self.kept.as_deref() != Some(secret) || self.entries.iter().all(|entry| entry.bundle == bundle.as_bytes()) {
            return None;
        }
        let version = json!({"op": "test", "path": "/metadata/resourceVersion", "value": self.version});
        let bundle = json!(ByteString(bundle.as_bytes().to_vec()));
        let entries = self.entries.iter().enumerate().flat_map(|(at, entry)| {
            [
                json!({"op": "test", "path": format!("/webhooks/{at}/name"), "value": entry.name}),
                json!({"op": "add", "path": format!("/webhooks/{at}/clientConfig/caBundle"), "value": bundle}),
            ]
        });
        Some([version].into_iter().chain(entries).collect())
    }
}

impl From<&MutatingWebhookConfiguration> for Configuration {
    fn from(read: &MutatingWebhookConfiguration) -> Self {
        let entries = read.webhooks.iter().flatten().map(|entry| (entry.name.as_str(), &entry.client_config));
        Self::new(&read.metadata, entries)
    }
}

impl From<&ValidatingWebhookConfiguration> for Configuration {
    fn from(read: &ValidatingWebhookConfiguration) -> Self {
        let entries = read.webhooks.iter().flatten().map(|entry| (entry.name.as_str(), &entry.client_config));
        Self::new(&read.metadata, entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(bundles: &[&str]) -> (Value, Configuration) {
        let entries = bundles.iter().enumerate().map(|(at, bundle)| {
            json!({
                "name": format!("{at}.example"),
                "clientConfig": {"url": "https://localhost", "caBundle": ByteString(bundle.as_bytes().to_vec())},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            })
        });
        let annotations = json!({KEPT: "ns/secret"});
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "x", "resourceVersion": "7", "annotations": annotations},
            "webhooks": entries.collect::<Vec<_>>(),
        });
        let read: MutatingWebhookConfiguration = serde_json::from_value(object.clone()).expect("a configuration");
        (object, Configuration::from(&read))
    }

    #[test]
    fn a_patch_changes_bundles_alone_and_only_of_what_was_seen() {
        let (mut object, read) = configuration(&["", "old"]);
        let patch: json_patch::Patch =
            serde_json::from_value(read.patch("ns/secret", "new").expect("a patch")).expect("JSON");
        let (mut later, _) = configuration(&["", "old"]);
        later["metadata"]["resourceVersion"] = "8".into();
        assert!(json_patch::patch(&mut later, &patch).is_err(), "another version");
        json_patch::patch(&mut object, &patch).expect("it applies");
        let (expected, after) = configuration(&["new", "new"]);
        assert_eq!(object, expected);
        assert_eq!(after.patch("ns/secret", "new"), None);
        assert_eq!(read.patch("ns/other", "new"), None, "kept from another Secret");
        let none = Configuration { kept: None, ..read };
        assert_eq!(none.patch("ns/secret", "new"), None, "another method's");
    }
}
