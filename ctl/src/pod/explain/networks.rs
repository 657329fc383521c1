//! The networks that the pod names: are they there, and does Multus know them?

use super::super::facts::Facts;
use super::super::mentions::mentions;
use super::super::network::{Config, Definition, Network};
use super::named;
use crate::finding::Finding;
use k8s_api::conf::Conf;
use k8s_api::names::INJECT;

const STEP: &str = "networks";

pub(super) fn networks(facts: &Facts) -> Vec<Finding> {
    let Some(pod) = &facts.pod else { return Vec::new() };
    let default = Conf::default();
    let multus = &facts.conf.as_ref().unwrap_or(&default).multus;
    let faults = mentions(pod, &facts.namespace, multus).faults;
    let mut findings: Vec<_> = faults.into_iter().map(|(key, why)| unreadable(key, &why)).collect();
    findings.extend(facts.networks.iter().map(|network| one(facts, network)));
    if findings.is_empty() {
        findings.push(none(facts));
    }
    // Without it, bare names and the cluster's default network are read as the chart's defaults have them.
    findings.extend(facts.conf.as_ref().err().map(|why| Finding::not_seen("configuration", why)));
    findings
}

fn unreadable(key: &str, why: &str) -> Finding {
    let todo = "correct the annotation where the pod is made from (its Deployment, StatefulSet…): Multus refuses the pod as it is";
    Finding::wrong(STEP, format!("annotation {key}: {why}"), todo)
}

fn none(facts: &Facts) -> Finding {
    let selects = INJECT.iter().find_map(|key| Some((*key, facts.annotation(key)?)));
    match selects {
        Some((key, value)) => Finding::wrong(
            STEP,
            format!("annotation {key} is {value:?}, and yet the pod was given no network"),
            "either no SpiderMultusConfig that the pod may use has this value, or no controller answered when the pod was made: \
             see kubectl get smc -A and the controller, then delete the pod",
        ),
        None => {
            Finding::note(STEP, "names none: it has addresses of ours only if the node's own network asks for them")
        }
    }
}

fn one(facts: &Facts, network: &Network) -> Finding {
    let Network { mention, config, definition } = network;
    let (interface, name) = (&mention.interface, mention.network());
    if !mention.reference.is_possible() {
        let text = format!("{interface}: {name} is a name that no network can have");
        return Finding::wrong(STEP, text, "correct the annotation; a namespace stands in a field of its own in JSON");
    }
    if let Ok(conf) = &facts.conf
        && mention.index > 0
        && !conf.multus.reaches(&facts.namespace, &mention.reference.namespace)
    {
        let text =
            format!("{interface}: Multus keeps namespaces apart, and refuses {name} to pods of {}", facts.namespace);
        return Finding::wrong(
            STEP,
            text,
            "use a network of the pod's namespace, or list the other in multusCNI.globalNamespaces",
        );
    }
    match (config, definition) {
        (Ok(Some(config)), Ok(Some(_))) => ours(interface, &name, config),
        (Ok(Some(config)), Ok(None)) => undefined(interface, &name, config),
        (Ok(Some(config)), Err(why)) => {
            let Finding { text, .. } = ours(interface, &name, config);
            Finding::note(STEP, format!("{text}; its NetworkAttachmentDefinition was not looked at: {}", why.0))
        }
        (Ok(None), Ok(Some(definition))) => foreign(interface, &name, definition),
        (Ok(None), Ok(None)) => {
            let todo =
                "correct the name in the pod's annotation, or create a SpiderMultusConfig of it: kubectl get smc -A";
            Finding::wrong(STEP, format!("{interface}: there is no network {name}"), todo)
        }
        (Err(why), _) | (Ok(None), Err(why)) => Finding::not_seen(STEP, why),
    }
}

fn ours(interface: &str, name: &str, config: &Config) -> Finding {
    let spec = match &config.spec {
        Err(why) => {
            let text = format!("{interface}: SpiderMultusConfig {name} cannot be read: {why}");
            return Finding::wrong(STEP, text, "correct it: kubectl edit smc");
        }
        Ok(spec) => spec,
    };
    let alias = if name.ends_with(&format!("/{}", config.name)) {
        String::new()
    } else {
        format!(" (SpiderMultusConfig {})", config.name)
    };
    let text = format!("{interface}: {name}{alias}, {}", named::network(spec));
    match config.ready.as_ref().filter(|ready| ready.status == "False") {
        Some(ready) => Finding::wrong(
            STEP,
            format!("{text}; it is not ready: {}: {}", ready.reason, ready.message),
            format!("mend what the condition says: kubectl describe smc -n {}", name.replacen('/', " ", 1)),
        ),
        None => Finding::ok(STEP, text),
    }
}

fn undefined(interface: &str, name: &str, config: &Config) -> Finding {
    let why = config.ready.as_ref().map(|ready| format!(": {}: {}", ready.reason, ready.message));
    let text = format!(
        "{interface}: {name} has a SpiderMultusConfig and no NetworkAttachmentDefinition, so Multus does not know it{}",
        why.unwrap_or_default()
    );
    let todo = "the controller that leads makes it within a second: see whether one does (kubectl get lease -A, its log), and \
                whether Multus's definition is installed (kubectl get crd network-attachment-definitions.k8s.cni.cncf.io)";
    Finding::wrong(STEP, text, todo)
}

fn foreign(interface: &str, name: &str, definition: &Definition) -> Finding {
    match &definition.pools {
        Err(why) => Finding::wrong(
            STEP,
            format!("{interface}: NetworkAttachmentDefinition {name}: {why}"),
            "correct it: kubectl edit network-attachment-definitions",
        ),
        Ok(Some(_)) => {
            Finding::ok(STEP, format!("{interface}: {name}, of no SpiderMultusConfig; its addresses are ours"))
        }
        Ok(None) => {
            Finding::note(STEP, format!("{interface}: {name}, of no SpiderMultusConfig; its addresses are not ours"))
        }
    }
}
