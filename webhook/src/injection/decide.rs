//! Which requests a pod is given, and what its author should know.

use super::Pod;
use super::quantity::less_than;
use k8s_api::Quoted;
use k8s_api::attachment::{Device, Needs};
use k8s_api::conf::Conf;
use k8s_api::multus::Reference;
use k8s_api::names;
use k8s_api::resource::ResourceName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One network of a pod, with what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Mention {
    pub(crate) reference: Reference,
    pub(crate) attachment: Attachment,
}

/// What stands behind a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attachment {
    /// A SpiderMultusConfig.
    Ours(Arc<Needs>),
    /// A SpiderMultusConfig that cannot be read, and why.
    Unreadable(Arc<str>),
    /// A SpiderMultusConfig of this name whose network has another.
    Renamed(Arc<str>),
    /// Another's NetworkAttachmentDefinition.
    Foreign,
    /// Nothing, or not yet.
    Missing,
}

/// Namespaces and names of the networks that an annotation selects.
pub(crate) type Selected = BTreeSet<(String, String)>;

/// How many nodes offer a resource now; `None` while that is not known.
pub(crate) type Offers = BTreeMap<String, usize>;

/// What to do with one pod.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Resource and quantity, for the first container.
    pub(crate) add: BTreeMap<String, u32>,
    /// For the author of the pod, in the order of importance.
    pub(crate) warnings: Vec<String>,
    /// For the audit log: what was added and why, or why nothing was.
    pub(crate) reason: String,
}

/// How much of a resource is wanted.
#[derive(Default)]
struct Wanted {
    /// For each interface that takes one of its own.
    each: u32,
    /// Whether it has to be there, however often it is named.
    there: bool,
    because: BTreeSet<String>,
}

impl Wanted {
    fn count(&self) -> u32 {
        self.each.max(u32::from(self.there))
    }
}

/// Decides about one pod. Called with what it decided applied, it decides to add nothing. Devices of other plugins are
/// requested for networks that an annotation selects alone: for others, somebody else may do so.
pub(crate) fn decide(
    pod: &Pod<'_>,
    mentions: &[Mention],
    selected: &Selected,
    conf: &Conf,
    offers: Option<&Offers>,
) -> Decision {
    let mut decision = Decision::default();
    let mut all: BTreeMap<String, Wanted> = BTreeMap::new();
    for mention in mentions {
        let name = shown(&mention.reference);
        let needs = match &mention.attachment {
            Attachment::Ours(needs) => needs,
            other => {
                decision.warnings.extend(unusable(&name, other));
                continue;
            }
        };
        if let Some(device) = needs.device.as_ref().filter(|_| selected.contains(&key(&mention.reference))) {
            match device.resource().parse::<ResourceName>() {
                Ok(resource) => {
                    let wanted = all.entry(resource.to_string()).or_default();
                    match device {
                        Device::Shared(_) => wanted.there = true,
                        Device::Own(_) => wanted.each += 1,
                    }
                    wanted.because.insert(name.clone());
                }
                Err(error) => {
                    let written = Quoted(device.resource());
                    let text = format!("{name}: {written} is no resource name, so nothing is requested: {error}");
                    decision.warnings.push(text);
                }
            }
        }
        for master in &needs.masters {
            match nic(conf, master) {
                Ok(None) => {}
                // A NIC is there or not; how often it is named does not matter.
                Ok(Some(resource)) => {
                    let wanted = all.entry(resource.to_string()).or_default();
                    wanted.there = true;
                    wanted.because.insert(name.clone());
                }
                Err(error) => {
                    decision.warnings.push(format!("{name}: master {master:?} makes no resource name: {error}"));
                }
            }
        }
        if needs.sub_eni {
            match sub_eni(conf) {
                Ok(resource) => {
                    let wanted = all.entry(resource.to_string()).or_default();
                    wanted.each += 1;
                    wanted.because.insert(name.clone());
                }
                Err(reason) => {
                    decision.warnings.push(format!("{name} takes its VLAN from the cloud provider, but {reason}"));
                }
            }
        }
    }
    let mut reasons = Vec::new();
    for (resource, wanted) in all {
        let count = wanted.count();
        let because = wanted.because.into_iter().collect::<Vec<_>>().join(",");
        let written = pod.wrote(&resource);
        if written.is_empty() {
            decision.warnings.extend(unobtainable(conf, &resource, offers));
            reasons.push(format!("{resource}={count} for {because}"));
            decision.add.insert(resource, count);
            continue;
        }
        if less_than(&written, count) == Some(true) {
            let text =
                format!("{because} need {resource}: {count}, and the containers ask for less; it is left as written");
            decision.warnings.push(text);
        }
        reasons.push(format!("{resource} left as written for {because}"));
    }
    let mut said = BTreeSet::new();
    decision.warnings.retain(|warning| said.insert(warning.clone()));
    decision.reason = match (reasons.as_slice(), decision.warnings.first()) {
        ([], None) => "nothing needed".to_owned(),
        ([], Some(warning)) => format!("nothing added: {warning}"),
        (reasons, _) => reasons.join("; "),
    };
    decision
}

fn key(Reference { namespace, name, .. }: &Reference) -> (String, String) {
    (namespace.clone(), name.clone())
}

/// In JSON a name may be any text, and a warning is a header.
fn shown(reference: &Reference) -> String {
    let name = format!("{}/{}", reference.namespace, reference.name);
    if reference.is_possible() { name } else { Quoted(&name).to_string() }
}

fn unusable(name: &str, attachment: &Attachment) -> Option<String> {
    match attachment {
        Attachment::Ours(_) | Attachment::Foreign => None,
        Attachment::Unreadable(error) => {
            Some(format!("{name} cannot be read, so no resources are requested for it: {error}"))
        }
        Attachment::Renamed(network) => Some(format!("network {name} is called {network}; write that name")),
        Attachment::Missing => Some(format!(
            "there is no attachment {name:.120}; the pod will not start before there is, and gets no requests for it"
        )),
    }
}

/// The resource of a NIC; none while NICs are not advertised.
fn nic(conf: &Conf, master: &str) -> Result<Option<ResourceName>, k8s_api::resource::InvalidResourceName> {
    let plugin = &conf.plugin;
    if !plugin.enabled || plugin.master_nic.is_empty() {
        return Ok(None);
    }
    format!("{}/{master}{}", names::DOMAIN, names::NIC_SUFFIX).parse().map(Some)
}

/// The resource of a sub-interface: that of the first rule, whichever a node will match. Or why there is none.
fn sub_eni(conf: &Conf) -> Result<&ResourceName, &'static str> {
    let plugin = &conf.plugin;
    match plugin.sub_eni.first() {
        _ if conf.provider.is_none() => Err("iaasNetworkProvider.serverUrl is empty"),
        _ if !plugin.enabled => Err("networkResourcePlugin.enabled is false: nothing limits where it is scheduled"),
        None => Err("subENI.rules is empty: nothing limits where it is scheduled"),
        Some(rule) => Ok(rule.devices.name()),
    }
}

/// What to say of a resource that a pod will wait for.
fn unobtainable(conf: &Conf, resource: &str, offers: Option<&Offers>) -> Option<String> {
    let nic =
        resource.strip_prefix(names::DOMAIN).and_then(|rest| rest.strip_prefix('/')?.strip_suffix(names::NIC_SUFFIX));
    let some_rule = nic.is_none_or(|nic| conf.plugin.master_nic.iter().any(|rule| rule.could_select(nic)));
    if !some_rule {
        return Some(format!(
            "no masterNIC rule selects {}; the pod will stay Pending for {resource}",
            nic.unwrap_or_default()
        ));
    }
    let offered = offers.is_none_or(|offers| offers.contains_key(resource));
    (!offered).then(|| format!("no node offers {resource} now; the pod will stay Pending until one does"))
}
