//! What an object stands beside: other attachments, other pools, and addresses that pods have.

use crate::attachments::{self, Config};
use crate::objects::ip_pool::{self, Pool};
use crate::objects::{Findings, Object, multus_config};
use crate::pools::{self, Known, Live, NotAsked, Recent};
use kube::api::DynamicObject;
use kube::{Api, Client};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// A list of everything takes less, and the API server waits no longer.
const SYNC: Duration = Duration::from_secs(3);
/// An API server that takes longer is not there.
const ANSWER: Duration = Duration::from_secs(2);
/// Pools that are looked at again before they count against a new one; those beyond count as they are known.
const ASKED: usize = 8;

/// Cannot be judged; the webhook's failurePolicy decides.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unresolved {
    #[error("the attachments of the cluster are not known yet; try again")]
    NoAttachments,
    #[error("the address pools of the cluster are not known yet; try again")]
    NoPools,
    #[error("cannot tell which addresses of {0} are in use; try again")]
    InUse(String, #[source] NotAsked),
    #[error("cannot tell whether {0} is still there; try again")]
    StillThere(String, #[source] NotAsked),
    #[error("the object could not be judged in time; try again")]
    Slow,
}

/// What is known of all others. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Beside {
    pub(crate) attachments: watch::Receiver<attachments::Index>,
    pub(crate) pools: watch::Receiver<pools::Index>,
    /// Pools that were admitted a moment ago.
    pub(crate) recent: Recent<Pool>,
    /// Networks of attachments (`namespace/name`) that were admitted a moment ago.
    pub(crate) recent_networks: Recent<String>,
    pub(crate) client: Client,
}

impl Beside {
    /// Addresses that the pool is about to lose while pods have them.
    pub(super) async fn in_use(
        &self,
        name: &str,
        before: &Pool,
        after: &Pool,
        status: &Value,
    ) -> Result<Findings, Unresolved> {
        let taken = before.addresses.difference(&after.addresses);
        if taken.is_empty() {
            return Ok(Findings::default());
        }
        let mut holders = match ip_pool::recorded(status) {
            Ok(holders) => holders,
            Err(error) => {
                // Nothing says that they are free, and giving one away twice is worse than a refusal.
                let mut findings = Findings::default();
                let text = format!(
                    "addresses cannot be taken away while it is not known which are in use: {error}. Repair the status, or leave the addresses and set spec.disable"
                );
                findings.forbidden("spec.ips", text);
                return Ok(findings);
            }
        };
        let live = Live::new(self.client.clone());
        let now = live.holders(name, &taken).await.map_err(|error| Unresolved::InUse(name.to_owned(), error))?;
        holders.extend(now);
        Ok(ip_pool::held(&taken, holders))
    }

    /// Pools that have something in common with this one. Where there is none, and `remember` is set, this one counts for
    /// those that follow.
    pub(super) async fn of_pool(&self, name: &str, pool: &Pool, remember: bool) -> Result<Findings, Unresolved> {
        let mut index = self.pools.clone();
        if !timeout(SYNC, index.wait_for(|index| index.synced)).await.is_ok_and(|index| index.is_ok()) {
            return Err(Unresolved::NoPools);
        }
        // What the API server says now, for those that the watch has against it: it may be behind.
        let mut now: BTreeMap<String, Option<Known>> = BTreeMap::new();
        loop {
            let found = self.against(name, pool, remember, &now);
            let doubtful = found.iter().filter(|(name, _)| name.as_ref().is_some_and(|name| !now.contains_key(name)));
            let doubtful: Vec<String> = doubtful.filter_map(|(name, _)| name.clone()).collect();
            if doubtful.is_empty() || now.len() >= ASKED {
                return Ok(found.into_iter().fold(Findings::default(), |all, (_, one)| all.and(one)));
            }
            let live = Live::new(self.client.clone());
            for name in doubtful.into_iter().take(ASKED - now.len()) {
                let found = live.pool(&name).await;
                let found = found.map_err(|error| Unresolved::StillThere(format!("SpiderIPPool {name}"), error))?;
                now.insert(name, found);
            }
        }
    }

    /// What speaks against the pool, with the name of the other where the watch says so.
    fn against(
        &self,
        name: &str,
        pool: &Pool,
        remember: bool,
        now: &BTreeMap<String, Option<Known>>,
    ) -> Vec<(Option<String>, Findings)> {
        self.recent.admit(name, Some(pool).filter(|_| remember), |recent| {
            let speaks = |findings: Findings| Some(findings).filter(|findings| !findings.faults.is_empty());
            let mut found: Vec<(Option<String>, Findings)> = recent
                .filter_map(|(other, theirs)| Some((None, speaks(ip_pool::overlap(pool, other, theirs))?)))
                .collect();
            let index = self.pools.borrow();
            for (other, known) in index.pools.iter().filter(|(other, _)| *other != name) {
                let known = match now.get(other) {
                    None => Some(known),
                    Some(now) => now.as_ref(),
                };
                let overlap =
                    known.and_then(Known::pool).and_then(|theirs| speaks(ip_pool::overlap(pool, other, theirs)));
                found.extend(overlap.map(|overlap| (Some(other.clone()), overlap)));
            }
            if found.is_empty() { Ok(found) } else { Err(found) }
        })
    }

    /// What stands already under the name of the attachment's network.
    pub(super) async fn of_attachment(
        &self,
        namespace: &str,
        object: &Object,
        remember: bool,
    ) -> Result<Findings, Unresolved> {
        let mut index = self.attachments.clone();
        if !timeout(SYNC, index.wait_for(|index| index.synced)).await.is_ok_and(|index| index.is_ok()) {
            return Err(Unresolved::NoAttachments);
        }
        let (name, network) = (object.name(), multus_config::network(object));
        let (own, full) = (format!("{namespace}/{name}"), format!("{namespace}/{network}"));
        let other = self.recent_networks.admit(&own, Some(&full).filter(|_| remember), |mut recent| {
            let recent = Iterator::find(&mut recent, |(_, theirs)| **theirs == full)
                .and_then(|(other, _)| other.split_once('/'));
            let known = self.attachments.borrow().other_of_network(namespace, network, name);
            let other = recent.map(|(_, other)| other.to_owned()).or(known);
            if other.is_none() { Ok(other) } else { Err(other) }
        });
        let other = match other {
            Some(other) if self.is_network(namespace, &other, network).await? => Some(other),
            _ => None,
        };
        let foreign = self.attachments.borrow().has_foreign_definition(namespace, network);
        Ok(multus_config::neighbours(object, namespace, other.as_deref(), foreign))
    }

    /// Whether the network of `name` is called so now: the watch may be behind.
    async fn is_network(&self, namespace: &str, name: &str, network: &str) -> Result<bool, Unresolved> {
        let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), namespace, &attachments::configs());
        let unresolved = |error| Unresolved::StillThere(format!("SpiderMultusConfig {namespace}/{name}"), error);
        let object = timeout(ANSWER, api.get_opt(name)).await.map_err(|_| unresolved(NotAsked::Slow))?;
        let object = object.map_err(|error| unresolved(NotAsked::Failed(error.into())))?;
        Ok(object.is_some_and(|object| *Config::of(&object).network == *network))
    }
}
