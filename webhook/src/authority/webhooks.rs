//! Our two webhook configurations: what they trust, since when, and how that is changed.

use super::Place;
use super::entries::Configuration;
use super::named::{Known, follow};
use super::pem::Certificate;
use super::plan::Trust;
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Mutating,
    Validating,
}

/// One of them has changed.
pub(super) type Change = (Kind, Known<Configuration>);

/// Both, whenever one changes. One that is not there, or not yet, is as good as any.
pub(super) fn watch(client: &Client, name: &str) -> impl Stream<Item = Change> + Send + use<> {
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone());
    let validating = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    stream::select(
        follow(mutating, name, "the MutatingWebhookConfiguration").map(|known| (Kind::Mutating, read(&known))),
        follow(validating, name, "the ValidatingWebhookConfiguration").map(|known| (Kind::Validating, read(&known))),
    )
    .boxed()
}

fn read<'a, K>(known: &'a Known<K>) -> Known<Configuration>
where
    Configuration: From<&'a K>,
{
    match known {
        Known::Unknown => Known::Unknown,
        Known::Absent => Known::Absent,
        Known::There(object) => Known::There(Configuration::from(object)),
    }
}

/// What was seen of them.
#[derive(Debug, Default)]
pub(super) struct Seen {
    mutating: Known<Configuration>,
    validating: Known<Configuration>,
    /// What every entry trusts, and since when that was seen. Empty while one of the two is not known.
    all: Vec<(Certificate, Instant)>,
    /// Since when there has been no entry.
    none: Option<Instant>,
}

impl Seen {
    pub(super) fn take(&mut self, (kind, known): Change, now: Instant) {
        match kind {
            Kind::Mutating => self.mutating = known,
            Kind::Validating => self.validating = known,
        }
        let entries = self.entries();
        let common: Vec<Certificate> =
            entries.as_deref().and_then(|entries| entries.split_first()).map_or_else(Vec::new, |(first, others)| {
                first.iter().filter(|one| others.iter().all(|other| other.contains(one))).cloned().collect()
            });
        let none = entries.is_some_and(|entries| entries.is_empty()).then(|| self.none.unwrap_or(now));
        let since = |one: &Certificate| {
            self.all
                .iter()
                .find(|(known, _)| known == one)
                .map_or_else(|| self.none.unwrap_or(now), |(_, since)| *since)
        };
        let all = common.into_iter().map(|one| (since(&one), one)).map(|(since, one)| (one, since)).collect();
        (self.all, self.none) = (all, none);
    }

    /// `None` while one of them is not known.
    fn entries(&self) -> Option<Vec<&[Certificate]>> {
        let mut entries = Vec::new();
        for known in [&self.mutating, &self.validating] {
            match known {
                Known::Unknown => return None,
                Known::Absent => {}
                Known::There(configuration) => entries.extend(configuration.trusted()),
            }
        }
        Some(entries)
    }

    /// `None` while one of them is not known.
    pub(super) fn trust(&self, now: Instant) -> Option<Trust> {
        let any = self.entries()?.concat();
        let all = self.all.iter().map(|(one, since)| (one.clone(), now.saturating_duration_since(*since)));
        Some(Trust { any, all: all.collect(), none: self.none.map(|since| now.saturating_duration_since(since)) })
    }

    /// Patches after which every entry trusts the bundle.
    pub(super) fn patches(&self, secret: &str, bundle: &str) -> Vec<(Kind, Value)> {
        let patch = |known: &Known<Configuration>| match known {
            Known::There(configuration) => configuration.patch(secret, bundle),
            Known::Unknown | Known::Absent => None,
        };
        let both = [(Kind::Mutating, patch(&self.mutating)), (Kind::Validating, patch(&self.validating))];
        both.into_iter().filter_map(|(kind, patch)| Some((kind, patch?))).collect()
    }
}

/// The API server did not take a patch.
#[derive(Debug, thiserror::Error)]
pub(super) enum CannotPatch {
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("a webhook configuration cannot be read as one that has JSON patches; a fault of this program")]
    Patch(#[source] serde_json::Error),
    #[error("the API server refuses it")]
    Refused(#[source] kube::Error),
}

/// Sends one patch. One that comes to nothing since the configuration has changed is no error: the watch shows the change.
pub(super) async fn patch(
    client: &Client,
    place: &Place,
    kind: Kind,
    patch: Value,
    deadline: Duration,
) -> Result<bool, CannotPatch> {
    let patch = serde_json::from_value(patch).map_err(CannotPatch::Patch)?;
    let (patch, params) = (Patch::<()>::Json(patch), PatchParams::default());
    let send = async {
        match kind {
            Kind::Mutating => {
                let api = Api::<MutatingWebhookConfiguration>::all(client.clone());
                api.patch_metadata(&place.webhooks, &params, &patch).await.map(drop)
            }
            Kind::Validating => {
                let api = Api::<ValidatingWebhookConfiguration>::all(client.clone());
                api.patch_metadata(&place.webhooks, &params, &patch).await.map(drop)
            }
        }
    };
    match tokio::time::timeout(deadline, send).await.map_err(|_| CannotPatch::Late(deadline))? {
        Ok(()) => Ok(true),
        // A test failed, another was faster, or it is gone.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => Ok(false),
        Err(error) => Err(CannotPatch::Refused(error)),
    }
}
