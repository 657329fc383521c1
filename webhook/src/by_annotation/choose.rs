//! From a pod to the networks that it gets, waiting a moment for what is new.

use super::select::{Refused, select};
use super::wish::{On, Wish};
use crate::attachments::{Index, SYNC, WAIT};
use crate::injection::{Pod, Selected};
use crate::{attachments, namespaces};
use k8s_api::conf::Conf;
use k8s_api::multus::{self, Reference};
use tokio::sync::watch;
use tokio::time::timeout;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct ByAnnotation {
    conf: watch::Receiver<Conf>,
    index: watch::Receiver<Index>,
    namespaces: namespaces::Lookup,
}

/// What a pod is given by annotation; nothing by default.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    /// The whole annotation that names its networks, where it changes.
    pub(crate) networks: Option<String>,
    /// Everything that was selected, also what the pod names by itself.
    pub(crate) selected: Selected,
    pub(crate) warnings: Vec<String>,
    /// For the audit log.
    pub(crate) reason: Option<String>,
}

/// Why a pod is given nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// It never can be: the pod is refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It is not known.
    #[error(transparent)]
    Namespace(#[from] namespaces::Unresolved),
    /// It is not known.
    #[error(transparent)]
    Attachments(#[from] attachments::Unresolved),
}

impl ByAnnotation {
    pub(crate) fn new(
        conf: watch::Receiver<Conf>,
        index: watch::Receiver<Index>,
        namespaces: namespaces::Lookup,
    ) -> Self {
        Self { conf, index, namespaces }
    }

    /// What annotations of the pod, else of its namespace, select for it. What the author of the pod wrote wins.
    pub(crate) async fn given(&self, pod: &Pod<'_>, namespace: &str) -> Result<Given, Fault> {
        let (mut wish, mut warning) = Wish::of(On::Pod, &pod.inject());
        if wish.is_none() {
            (wish, warning) = Wish::of(On::Namespace, &self.namespaces.inject(namespace).await?);
        }
        let Some(wish) = wish else { return Ok(Given::default()) };
        let networks = self.networks(&wish, namespace).await?;
        Ok(given(&wish, pod.networks(), namespace, &networks, warning)?)
    }

    /// Those that are known, or that become known in a moment.
    async fn networks(&self, wish: &Wish, namespace: &str) -> Result<Vec<Reference>, Fault> {
        let (mut index, mut namespaces) = (self.index.clone(), self.namespaces.latest().clone());
        let index_synced = timeout(SYNC, index.wait_for(|index| index.synced)).await.is_ok_and(|index| index.is_ok());
        let synced = timeout(SYNC, namespaces.wait_for(|known| known.synced)).await.is_ok_and(|known| known.is_ok());
        if !index_synced {
            return Err(attachments::Unresolved::NotSynced.into());
        }
        if !synced {
            return Err(namespaces::Unresolved::NotSynced.into());
        }
        let appeared = async {
            loop {
                let found = self.select(wish, namespace);
                if !matches!(found, Err(Refused::NoneFound(_))) {
                    return found;
                }
                tokio::select! {
                    Ok(()) = index.changed() => {}
                    Ok(()) = namespaces.changed() => {}
                    else => return found,
                }
            }
        };
        let found = timeout(WAIT, appeared).await;
        Ok(found.unwrap_or_else(|_| self.select(wish, namespace))?)
    }

    fn select(&self, wish: &Wish, namespace: &str) -> Result<Vec<Reference>, Refused> {
        let (conf, index, namespaces) = (self.conf.borrow(), self.index.borrow(), self.namespaces.latest().borrow());
        select(wish, namespace, &index, &namespaces, &conf.multus)
    }
}

/// Merges what was selected with what the pod names by itself.
pub(super) fn given(
    wish: &Wish,
    own: Option<&str>,
    namespace: &str,
    networks: &[Reference],
    warning: Option<String>,
) -> Result<Given, Refused> {
    let merged = multus::with(own.unwrap_or_default(), namespace, networks);
    let merged = merged.map_err(|source| Refused::Networks { annotation: wish.kind.annotation(), source })?;
    let named = |Reference { namespace, name, .. }: &Reference| format!("{namespace}/{name}");
    let all = networks.iter().map(named).collect::<Vec<_>>().join(",");
    Ok(Given {
        networks: merged,
        selected: networks.iter().map(|one| (one.namespace.clone(), one.name.clone())).collect(),
        warnings: warning.into_iter().collect(),
        reason: Some(format!("{wish} selects {all}")),
    })
}
