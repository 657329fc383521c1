//! The next step for one attachment, as a function of what is known.

use super::desired::{Desired, desired};
use super::status::{Standing, conditions};
use crate::attachments::{Config, Definition, Index, Made};
use k8s_api::conf::Conf;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use runtime::Chain;

/// One write; the watches show what came of it, and then the next is planned.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Make the definition, or mend the one of this version.
    Apply { desired: Desired, version: Option<String>, why: &'static str },
    /// Delete a definition that the attachment has left behind under another name.
    Remove { name: String, version: String },
    /// Say where the attachment stands.
    Tell { conditions: Vec<Condition>, standing: Standing },
}

/// What to do for `config` now; nothing if all is as it should be. `refused` is what the API server said to the last try.
pub(super) fn plan(index: &Index, config: &Config, conf: &Conf, refused: Option<&str>, now: Timestamp) -> Option<Step> {
    let tell = |standing: Standing| Some(Step::Tell { conditions: conditions(config, &standing, now)?, standing });
    if !index.multus {
        let message =
            "the cluster has no NetworkAttachmentDefinitions: install Multus (chart value multus.multusCNI.install)";
        return tell(Standing::not_ready("MultusNotInstalled", message.to_owned()));
    }
    let network = &*config.network;
    let wanted = match desired(config, conf) {
        Ok(wanted) => wanted,
        // What Multus knows stays as it is: pods that use it are better off with it than without.
        Err(error) => return tell(Standing::not_ready("Invalid", Chain(&error).to_string())),
    };
    let first = index.of_network(&config.namespace, network).filter(|first| first.name != config.name);
    if let Some(first) = first {
        let message = format!(
            "the net-attach-def {}/{network} already exists and is managed by SpiderMultusConfig {}/{}.",
            config.namespace, first.namespace, first.name
        );
        return tell(Standing::not_ready("NameTaken", message));
    }
    let standing = match index.definition(&config.namespace, network) {
        Some(Definition::Foreign) => {
            let message = format!(
                "the net-attach-def {}/{network} exists and nobody made it from a SpiderMultusConfig; it is left alone. Delete it, or give the attachment another name",
                config.namespace
            );
            return tell(Standing::not_ready("NameTaken", message));
        }
        Some(Definition::Ours(made)) if made.owner.1 != config.uid => {
            let message = format!(
                "the net-attach-def {}/{network} belongs to SpiderMultusConfig {}/{} that is gone or another one; Kubernetes deletes it if so",
                config.namespace, config.namespace, made.owner.0
            );
            return tell(Standing::not_ready("NameTaken", message));
        }
        Some(Definition::Ours(made)) => match drift(&wanted, made) {
            Some(why) => Err((Some(made.version.clone()), why)),
            None => Ok(()),
        },
        None => Err((None, "made")),
    };
    if let Err((version, why)) = standing {
        let told = refused.and_then(|error| tell(Standing::not_ready("Refused", error.to_owned())));
        return told.or(Some(Step::Apply { desired: wanted, version, why }));
    }
    let mut left_behind = index.definitions_in(&config.namespace).filter_map(|(name, definition)| match definition {
        Definition::Ours(made) if made.owner.1 == config.uid && **name != *network => Some((name, made)),
        _ => None,
    });
    if let Some((name, made)) = left_behind.next() {
        return Some(Step::Remove { name: name.clone(), version: made.version.clone() });
    }
    tell(Standing {
        ready: true,
        reason: "Written",
        message: format!("pods may name the network {}/{network}", config.namespace),
        omitted: wanted.omitted,
    })
}

/// In what the definition differs from what it should be.
fn drift(wanted: &Desired, made: &Made) -> Option<&'static str> {
    if wanted.config != made.config {
        return Some("its configuration differed");
    }
    let there = |(key, value): (&String, &String)| made.annotations.get(key) == Some(value);
    let stale = made.written.iter().any(|key| !wanted.annotations.contains_key(key));
    (stale || !wanted.annotations.iter().all(there)).then_some("its annotations differed")
}
