//! Which attachments a value selects for a pod, and why it gets none. Values in, values out.

use super::wish::Wish;
use crate::attachments::{Config, Index};
use crate::namespaces::Namespaces;
use k8s_api::attachment::by_annotation::{Kind, NotGiven, check, rank};
use k8s_api::conf::Multus;
use k8s_api::multus::{InvalidNetworks, NETWORKS, Reference};
use k8s_api::names::INJECT_FROM;
use std::fmt;

/// The pod cannot be given what it, or its namespace, asks for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{0}")]
    NoneFound(NoneFound),
    #[error(transparent)]
    NotGiven(NotGiven),
    #[error("spidermultusconfig {namespace}/{name}, which {annotation} selects, cannot be read: {error}")]
    Unreadable { namespace: String, name: String, annotation: &'static str, error: String },
    #[error("annotation {NETWORKS} cannot take the networks that {annotation} selects")]
    Networks { annotation: &'static str, source: InvalidNetworks },
}

/// Nothing that the pod may have. Others' names are nobody's business: how many there are is all that is said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoneFound {
    kind: Kind,
    value: String,
    /// The pod's.
    namespace: String,
    /// Attachments of namespaces that do not share them.
    unshared: usize,
    /// Attachments that are shared, and that Multus keeps apart.
    apart: usize,
}

/// The networks of the attachments, in the order in which the pod gets them.
pub(super) fn select(
    wish: &Wish,
    namespace: &str,
    index: &Index,
    namespaces: &Namespaces,
    multus: &Multus,
) -> Result<Vec<Reference>, Refused> {
    let Wish { kind, value, .. } = wish;
    let (mut found, mut unshared, mut apart) = (Vec::new(), 0, 0);
    for config in index.selected(*kind, value) {
        if !namespaces.shares(&config.namespace, namespace) {
            unshared += 1;
        } else if !multus.reaches(namespace, &config.namespace) {
            apart += 1;
        } else {
            found.push(ranked(config, *kind)?);
        }
    }
    if found.is_empty() {
        let (value, namespace) = (value.clone(), namespace.to_owned());
        return Err(Refused::NoneFound(NoneFound { kind: *kind, value, namespace, unshared, apart }));
    }
    found.sort_unstable_by_key(|(rank, config)| (*rank, &config.namespace, &config.name));
    let reference = |config: &Config| Reference {
        namespace: config.namespace.clone(),
        name: config.network.to_string(),
        interface: String::new(),
    };
    Ok(found.into_iter().map(|(_, config)| reference(config)).collect())
}

/// The config and what it is ordered by, if a pod can be given it.
fn ranked(config: &Config, kind: Kind) -> Result<(&str, &Config), Refused> {
    let Config { namespace, name, spec, .. } = config;
    let spec = spec.as_ref().map_err(|error| Refused::Unreadable {
        namespace: namespace.clone(),
        name: name.clone(),
        annotation: kind.annotation(),
        error: error.to_string(),
    })?;
    check(spec, kind, namespace, name).map_err(Refused::NotGiven)?;
    Ok((rank(spec), config))
}

impl fmt::Display for NoneFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, value, namespace, unshared, apart } = self;
        let key = kind.annotation();
        write!(f, "no spidermultusconfigs with annotation: {key}:{value:.100} found for namespace {namespace}")?;
        if *unshared > 0 {
            let (are, them) = plural(*unshared);
            write!(
                f,
                "; {are} in namespaces that do not share {them} with it: annotate the namespace of one with \
                 {INJECT_FROM}: {namespace}"
            )?;
        }
        if *apart > 0 {
            let (are, them) = plural(*apart);
            write!(
                f,
                "; {are} in namespaces that Multus keeps apart from it: name those of {them} in \
                 multus.multusCNI.globalNamespaces, as Multus has them"
            )?;
        }
        if unshared + apart == 0 {
            write!(f, "; give one in this namespace the annotation, or correct the value")?;
        }
        Ok(())
    }
}

fn plural(count: usize) -> (String, &'static str) {
    if count == 1 { ("1 is".to_owned(), "it") } else { (format!("{count} are"), "them") }
}
