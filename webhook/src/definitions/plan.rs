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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn config(name: &str, uid: &str, annotations: &Value) -> Config {
        let object = json!({
            "metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": "1", "generation": 1, "annotations": annotations},
            "spec": {"cniType": "vlan", "vlan": {"master": ["eth1"]}},
        });
        Config::of(&serde_json::from_value(object).expect("an object"))
    }

    fn index(configs: &[Config]) -> Index {
        let mut index = Index::default();
        (index.synced, index.multus) = (true, true);
        configs.iter().for_each(|config| index.put_config(config.clone()));
        index
    }

    /// What the watch shows once a step is done.
    fn follow(index: &mut Index, config: &Config, step: &Step) -> Config {
        let mut config = config.clone();
        match step {
            Step::Apply { desired, .. } => {
                let made = Made {
                    version: "7".to_owned(),
                    owner: (config.name.clone(), config.uid.clone()),
                    config: desired.config.clone(),
                    annotations: desired.annotations.clone(),
                    written: desired.annotations.keys().cloned().collect(),
                };
                index.put_definition("ns".to_owned(), config.network.to_string(), Definition::Ours(Box::new(made)));
            }
            Step::Remove { name, .. } => index.remove_definition("ns", name),
            Step::Tell { conditions, .. } => {
                config.conditions = conditions.clone().into();
                index.put_config(config.clone());
            }
        }
        config
    }

    /// Every step to the end.
    fn settle(index: &mut Index, config: &Config, conf: &Conf) -> Vec<Step> {
        let (mut config, mut steps) = (config.clone(), Vec::new());
        while let Some(step) = plan(index, &config, conf, None, Timestamp::UNIX_EPOCH) {
            config = follow(index, &config, &step);
            steps.push(step);
            assert!(steps.len() < 6, "it comes to an end: {steps:?}");
        }
        steps
    }

    fn reason(steps: &[Step]) -> Option<&str> {
        steps.iter().rev().find_map(|step| match step {
            Step::Tell { standing, .. } => Some(standing.reason),
            _ => None,
        })
    }

    #[test]
    fn made_told_and_then_nothing() {
        let config = config("a", "u", &json!({}));
        let mut index = index(std::slice::from_ref(&config));
        let steps = settle(&mut index, &config, &Conf::default());
        assert!(matches!(steps.as_slice(), [Step::Apply { version: None, .. }, Step::Tell { .. }]), "{steps:?}");
        assert_eq!(reason(&steps), Some("Written"));
    }

    #[test]
    fn drift_is_mended_against_the_version_that_was_seen() {
        let config = config("a", "u", &json!({"k": "v", "kubectl.kubernetes.io/last-applied-configuration": "{}"}));
        let mut index = index(std::slice::from_ref(&config));
        settle(&mut index, &config, &Conf::default());
        let Some(Definition::Ours(good)) = index.definition("ns", "a").cloned() else { panic!("there is one") };
        assert_eq!(good.annotations.keys().collect::<Vec<_>>(), ["k"], "what kubectl wrote is no part of the network");
        for change in [
            |made: &mut Made| made.config.push(' '),
            |made: &mut Made| made.annotations.extend([("k".to_owned(), "other".to_owned())]),
            |made: &mut Made| made.written.extend(["old".to_owned()]),
        ] {
            let mut made = good.clone();
            change(&mut made);
            index.put_definition("ns".to_owned(), "a".to_owned(), Definition::Ours(made));
            let step = plan(&index, &config, &Conf::default(), None, Timestamp::UNIX_EPOCH);
            assert!(matches!(&step, Some(Step::Apply { version: Some(version), .. }) if version == "7"), "{step:?}");
        }
        let mut made = good;
        made.annotations.insert("another's".to_owned(), "stays".to_owned());
        index.put_definition("ns".to_owned(), "a".to_owned(), Definition::Ours(made));
        assert_eq!(reason(&settle(&mut index, &config, &Conf::default())), Some("Written"));
    }

    #[test]
    fn what_is_not_of_this_attachment_is_never_written() {
        let config = config("a", "u", &json!({}));
        let dead = Made { owner: ("a".to_owned(), "older".to_owned()), ..Made::default() };
        for there in [Definition::Foreign, Definition::Ours(Box::new(dead))] {
            let mut index = index(std::slice::from_ref(&config));
            index.put_definition("ns".to_owned(), "a".to_owned(), there);
            let steps = settle(&mut index, &config, &Conf::default());
            assert!(matches!(steps.as_slice(), [Step::Tell { .. }]), "{steps:?}");
            assert_eq!(reason(&steps), Some("NameTaken"));
        }
    }

    #[test]
    fn of_two_attachments_with_one_network_the_first_has_it() {
        let named = json!({"multus.spidernet.io/cr-name": "net"});
        let (a, b) = (config("a", "u1", &named), config("b", "u2", &named));
        let mut index = index(&[a.clone(), b.clone()]);
        assert_eq!(reason(&settle(&mut index, &b, &Conf::default())), Some("NameTaken"));
        assert_eq!(reason(&settle(&mut index, &a, &Conf::default())), Some("Written"));
    }

    #[test]
    fn an_old_name_goes_after_the_new_one_is_there() {
        let renamed = config("a", "u", &json!({"multus.spidernet.io/cr-name": "old"}));
        let mut index = index(std::slice::from_ref(&renamed));
        settle(&mut index, &renamed, &Conf::default());
        let plain = config("a", "u", &json!({}));
        index.put_config(plain.clone());
        let steps = settle(&mut index, &plain, &Conf::default());
        assert!(
            matches!(steps.as_slice(), [Step::Apply { .. }, Step::Remove { name, .. }, Step::Tell { .. }] if name == "old"),
            "{steps:?}"
        );
    }

    #[test]
    fn what_cannot_be_written_is_told_once_and_tried_again() {
        let config = config("a", "u", &json!({}));
        let mut index = index(std::slice::from_ref(&config));
        let step = plan(&index, &config, &Conf::default(), Some("not here"), Timestamp::UNIX_EPOCH).expect("a step");
        assert!(matches!(&step, Step::Tell { standing, .. } if standing.reason == "Refused"), "{step:?}");
        let config = follow(&mut index, &config, &step);
        let step = plan(&index, &config, &Conf::default(), Some("not here"), Timestamp::UNIX_EPOCH);
        assert!(matches!(step, Some(Step::Apply { .. })), "{step:?}");
    }
}
