//! From the networks that a pod names to what they are.

use super::index::Index;
use super::live::Live;
use crate::flights::NotAsked;
use crate::injection::{Attachment, Mention};
use futures::future::try_join_all;
use k8s_api::multus::Reference;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// An attachment that is created in the same second as its pod reaches the watch within this time.
pub(crate) const WAIT: Duration = Duration::from_millis(300);

/// A list of all attachments takes less, and the API server waits no longer.
pub(crate) const SYNC: Duration = Duration::from_secs(3);

/// It cannot be known what a pod needs; what happens to it then is the webhook's failurePolicy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unresolved {
    #[error("the attachments of the cluster are not known yet; try again")]
    NotSynced,
    #[error("cannot tell what {namespace}/{name:.100} is; try again")]
    NotAsked { namespace: String, name: String, source: NotAsked },
}

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Lookup {
    index: watch::Receiver<Index>,
    live: Live,
}

impl Lookup {
    pub(crate) fn new(index: watch::Receiver<Index>, live: Live) -> Self {
        Self { index, live }
    }

    /// Resolves every reference: from the index at once, else from the index a moment later, else by asking.
    pub(crate) async fn resolve(&self, references: Vec<Reference>) -> Result<Vec<Mention>, Unresolved> {
        if references.is_empty() {
            return Ok(Vec::new());
        }
        let mut index = self.index.clone();
        let synced = timeout(SYNC, index.wait_for(|index| index.synced)).await.is_ok_and(|index| index.is_ok());
        if !synced {
            return Err(Unresolved::NotSynced);
        }
        if let Some(mentions) = known(&self.index.borrow(), &references) {
            return Ok(mentions);
        }
        let appeared =
            async { index.wait_for(|index| references.iter().all(|one| could_be(one, index))).await.is_ok() };
        // Late or not: what is known by then is looked at next.
        let _ = timeout(WAIT, appeared).await;
        try_join_all(references.into_iter().map(|reference| self.one(reference))).await
    }

    async fn one(&self, reference: Reference) -> Result<Mention, Unresolved> {
        let found = self.index.borrow().find(&reference);
        let attachment = match found {
            Some(attachment) => attachment,
            None if !reference.is_possible() => Attachment::Missing,
            None => match self.live.ask(&reference).await {
                Ok(attachment) => attachment,
                // The watch does not know it after a while, and others ask for too much that is nowhere.
                Err(NotAsked::TooMany) => Attachment::Missing,
                Err(source) => {
                    let Reference { namespace, name, .. } = reference;
                    return Err(Unresolved::NotAsked { namespace, name, source });
                }
            },
        };
        Ok(Mention { reference, attachment })
    }
}

/// Known, or of a name that no object can have: nothing to wait for.
fn could_be(reference: &Reference, index: &Index) -> bool {
    !reference.is_possible() || index.find(reference).is_some()
}

fn known(index: &Index, references: &[Reference]) -> Option<Vec<Mention>> {
    let mention = |reference: &Reference| {
        let attachment = match index.find(reference) {
            None if !reference.is_possible() => Attachment::Missing,
            found => found?,
        };
        Some(Mention { reference: reference.clone(), attachment })
    };
    references.iter().map(mention).collect()
}
