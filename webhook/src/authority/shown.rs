//! Follows the Secret and shows the pair in it, once it is proven. A pair that cannot be used leaves the old one in its place.

use super::named::{Known, follow};
use super::state::{CERTIFICATE, KEY};
use super::{Place, secret};
use crate::admission::certificate::{self, BadPair, Pair};
use crate::metrics::{Metrics, count};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use runtime::{Chain, Hold};
use std::convert::Infallible;
use std::path::Path;
use tokio::sync::{oneshot, watch};

/// The pair in use, as soon as there is one.
#[derive(Debug)]
pub(crate) enum First {
    There(watch::Receiver<Pair>),
    Later(oneshot::Receiver<watch::Receiver<Pair>>),
}

impl First {
    pub(crate) async fn pair(self) -> watch::Receiver<Pair> {
        match self {
            Self::There(pair) => pair,
            Self::Later(when) => match when.await {
                Ok(pair) => pair,
                // The task that follows the Secret has ended, and with it the process does.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

/// The pair in use, the Secret, and the task that keeps both. `ready` is released once there is a pair.
pub(super) fn show(
    client: Client,
    place: Place,
    ready: Hold,
    metrics: Metrics,
) -> (First, watch::Receiver<Known<Secret>>, impl Future<Output = Result<(), Infallible>> + use<>) {
    let (first, when) = oneshot::channel();
    let (seen, latest) = watch::channel(Known::Unknown);
    let mut shown = Shown { metrics, first: Some((first, ready)), in_use: None, refused: String::new() };
    let keep = async move {
        let api = Api::<Secret>::namespaced(client, &place.namespace);
        let mut changes = std::pin::pin!(follow(api, &place.secret, "the certificate's Secret"));
        while let Some(known) = changes.next().await {
            if let Known::There(_) = known {
                shown.take(&secret::data(&known));
            }
            seen.send_replace(known);
        }
        Ok(())
    };
    (First::Later(when), latest, keep)
}

struct Shown {
    metrics: Metrics,
    first: Option<(oneshot::Sender<watch::Receiver<Pair>>, Hold)>,
    in_use: Option<watch::Sender<Pair>>,
    refused: String,
}

impl Shown {
    fn take(&mut self, data: &super::state::Data) {
        let bytes = |name: &str| data.get(name).map_or(&[][..], |bytes| &bytes.0);
        if bytes(CERTIFICATE).is_empty() && bytes(KEY).is_empty() {
            return;
        }
        let pair = certificate::prove((Path::new(CERTIFICATE), bytes(CERTIFICATE)), (Path::new(KEY), bytes(KEY)));
        match pair.and_then(|pair| if pair.is_valid_now() { Ok(pair) } else { Err(BadPair::NotNow) }) {
            Ok(pair) => self.put(pair),
            Err(error) => {
                let error = Chain(&error).to_string();
                if self.refused != error {
                    count(&self.metrics.certificate_reloads, "refused");
                    tracing::error!(error, "the changed certificate is not used; the last good one stays");
                    self.refused = error;
                }
            }
        }
    }

    fn put(&mut self, pair: Pair) {
        let mended = !std::mem::take(&mut self.refused).is_empty();
        let changed = self.in_use.as_ref().is_none_or(|in_use| *in_use.borrow() != pair);
        if !changed && !mended {
            return;
        }
        certificate::tell(&pair, &self.metrics);
        let Some(in_use) = &self.in_use else {
            let (in_use, latest) = watch::channel(pair);
            self.in_use = Some(in_use);
            if let Some((first, ready)) = self.first.take() {
                // Nobody waits if the process stops.
                let _ = first.send(latest);
                ready.release();
            }
            return;
        };
        in_use.send_replace(pair);
        count(&self.metrics.certificate_reloads, "applied");
    }
}
