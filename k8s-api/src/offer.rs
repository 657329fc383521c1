//! What a node offers: rules times labels times NICs.

use crate::conf::plugin::{MasterNicRule, NetworkResourcePlugin};
use crate::names;
use crate::nic::{Nic, NicKind};
use crate::resource::{DeviceSet, ResourceName};
use crate::selector::Labels;
use std::collections::{BTreeMap, BTreeSet};

mod slots;

pub use slots::slots;

/// What is known of a node. `None` means not read yet; it never comes back once it was read.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Labels of the Node object.
    pub labels: Option<&'a Labels>,
    /// Links of the host's network namespace.
    pub nics: Option<&'a [Nic]>,
    /// Whether a cloud provider is configured; sub-interfaces are offered only then.
    pub provider: bool,
}

/// The resources to advertise, and those that cannot be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// One entry a resource: sub-interfaces in the order of their rules, then NICs by name.
    pub resources: Vec<DeviceSet>,
    /// What a rule selected but a kubelet would refuse; the other resources are not touched by it.
    pub refused: Vec<Refused>,
}

/// A resource that a rule asks for and that cannot be offered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refused {
    /// The name it would have had.
    pub resource: String,
    /// Why, and what to do.
    pub reason: String,
}

/// Links of container runtimes and tunnels. They come and go with pods, so a pattern does not select them; a rule that
/// spells such a name out does.
const PASSING: [&str; 13] = [
    "cni",
    "flannel",
    "veth",
    "docker",
    "br-",
    "virbr",
    "tun",
    "tap",
    "cali",
    "lxc",
    "cilium_",
    "kube-ipvs",
    "nodelocaldns",
];

/// Evaluates every rule. Equal input gives equal output, in a stable order.
#[must_use]
pub fn offer(plugin: &NetworkResourcePlugin, known: Known<'_>) -> Offer {
    let mut offer = Offer::default();
    if !plugin.enabled || !plugin.affinity.matches(known.labels) {
        return offer;
    }
    let undecided = if known.provider { offer_sub_eni(plugin, known.labels, &mut offer) } else { BTreeSet::default() };
    for (nic, count) in nic_counts(&plugin.master_nic, known) {
        offer_nic(nic, count, &undecided, &mut offer);
    }
    offer
}

/// The first rule that matches decides for its resource name. While labels are not known a rule with a selector may be
/// that first one, so no later rule answers for its name: a count that changes once the labels are read would, for that
/// moment, promise what the node does not have or fail pods that hold what it has. The names that wait so are returned.
fn offer_sub_eni<'a>(
    plugin: &'a NetworkResourcePlugin,
    labels: Option<&Labels>,
    offer: &mut Offer,
) -> BTreeSet<&'a str> {
    let mut undecided = BTreeSet::new();
    for rule in &plugin.sub_eni {
        let name = rule.devices.name();
        if undecided.contains(name.as_str()) || offer.resources.iter().any(|set| set.name() == name) {
            continue;
        }
        if rule.selector.matches(labels) {
            offer.resources.push(rule.devices.clone());
        } else if labels.is_none() {
            undecided.insert(name.as_str());
        }
    }
    undecided
}

/// The union over the rules; a NIC in several of them gets the largest count.
fn nic_counts<'a>(rules: &[MasterNicRule], known: Known<'a>) -> BTreeMap<&'a str, u32> {
    let mut counts = BTreeMap::new();
    for rule in rules.iter().filter(|rule| rule.selector.matches(known.labels)) {
        for nic in known.nics.unwrap_or_default().iter().filter(|nic| selects(rule, nic)) {
            let count = counts.entry(nic.name.as_str()).or_insert(rule.count);
            *count = rule.count.max(*count);
        }
    }
    counts
}

/// Physical NICs unless the rule's own include names a virtual one; its exclude wins over its include.
fn selects(rule: &MasterNicRule, nic: &Nic) -> bool {
    let name = nic.name.as_str();
    if nic.kind == NicKind::Loopback || rule.exclude.iter().any(|glob| glob.matches(name)) {
        return false;
    }
    if rule.include.iter().any(|glob| glob.spells_out(name)) {
        return true;
    }
    let passing = PASSING.iter().any(|prefix| name.starts_with(prefix));
    let named = match rule.include.as_slice() {
        [] => nic.kind == NicKind::Physical,
        globs => globs.iter().any(|glob| glob.matches(name)),
    };
    named && !passing
}

impl MasterNicRule {
    /// Whether some node's NIC of this name would be selected: whether it is hardware is known on the node alone.
    #[must_use]
    pub fn could_select(&self, name: &str) -> bool {
        let physical = Nic { name: name.to_owned(), kind: NicKind::Physical };
        selects(self, &physical)
    }
}

fn offer_nic(nic: &str, count: u32, undecided: &BTreeSet<&str>, offer: &mut Offer) {
    let stem = format!("{nic}{}", names::NIC_SUFFIX);
    let resource = format!("{}/{stem}", names::DOMAIN);
    if undecided.contains(resource.as_str()) {
        return;
    }
    match device_set(&resource, stem, count, &offer.resources) {
        Ok(set) => offer.resources.push(set),
        Err(reason) => offer.refused.push(Refused { resource, reason }),
    }
}

fn device_set(resource: &str, stem: String, count: u32, taken: &[DeviceSet]) -> Result<DeviceSet, String> {
    let name: ResourceName =
        resource.parse().map_err(|error| format!("{error}; rename the NIC, or list it in excludeInterfaces"))?;
    if taken.iter().any(|set| *set.name() == name) {
        return Err("a subENI rule offers a resource of this name; rename the rule's resourceName".to_owned());
    }
    DeviceSet::new(name, stem, count).map_err(|error| format!("{error}; lower masterNIC.rules[].defaultMaxCount"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::Conf;

    const PROVIDER: bool = true;

    fn conf(rules: &str) -> NetworkResourcePlugin {
        let text = format!("agent:\n  networkResourcePlugin:\n    enabled: true\n{rules}");
        Conf::parse(&text).expect("valid").plugin
    }

    fn advertisement(rules: &str) -> NetworkResourcePlugin {
        let indented = rules.replace('\n', "\n      ");
        conf(&format!("    resourceAdvertisement:\n      {indented}\n"))
    }

    fn nic(name: &str, kind: NicKind) -> Nic {
        Nic { name: name.to_owned(), kind }
    }

    fn node() -> Vec<Nic> {
        use NicKind::{Loopback, Physical, Virtual};
        [
            ("lo", Loopback),
            ("eth0", Physical),
            ("eth1", Physical),
            ("tap9", Physical),
            ("bond0", Virtual),
            ("eth1.100", Virtual),
            ("cali12", Virtual),
            ("veth34", Virtual),
            ("docker0", Virtual),
        ]
        .map(|(name, kind)| nic(name, kind))
        .into()
    }

    fn labels(all: &[(&str, &str)]) -> Labels {
        all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    /// `name=count` of every resource, in order.
    fn offered(plugin: &NetworkResourcePlugin, labels: Option<&Labels>, nics: &[Nic], provider: bool) -> Vec<String> {
        let offer = offer(plugin, Known { labels, nics: Some(nics), provider });
        assert_eq!(offer.refused, [], "nothing is refused here");
        offer.resources.iter().map(|set| format!("{}={}", set.name(), set.count())).collect()
    }

    #[test]
    fn the_quick_start_of_the_contract() {
        let plugin = advertisement(
            "masterNIC:
  rules:
    - defaultMaxCount: 10000
      nodeSelector:
        kubernetes.io/os: linux
      includeInterfaces: [eth1]
      excludeInterfaces: [eth0]
subENI:
  rules:
    - resourceName: spidernet.io/sub-eni
      defaultMaxCount: 256
      nodeSelector:
        matchLabels: {key: value}",
        );
        let linux = labels(&[("kubernetes.io/os", "linux")]);
        let both = labels(&[("kubernetes.io/os", "linux"), ("key", "value")]);
        assert_eq!(offered(&plugin, Some(&linux), &node(), PROVIDER), ["spidernet.io/eth1-nic=10000"]);
        assert_eq!(
            offered(&plugin, Some(&both), &node(), PROVIDER),
            ["spidernet.io/sub-eni=256", "spidernet.io/eth1-nic=10000"]
        );
        assert_eq!(offered(&plugin, Some(&both), &node(), false), ["spidernet.io/eth1-nic=10000"], "no provider");
        assert!(offered(&plugin, Some(&labels(&[])), &node(), PROVIDER).is_empty());
        assert!(offered(&plugin, None, &node(), PROVIDER).is_empty(), "labels that are not known select nothing");
    }

    #[test]
    fn nothing_is_offered_when_disabled_or_outside_the_affinity() {
        let rules = "    resourceAdvertisement: {masterNIC: {rules: [{}]}}\n";
        let everywhere = conf(rules);
        assert_eq!(
            offered(&everywhere, None, &node(), false),
            ["spidernet.io/eth0-nic=10000", "spidernet.io/eth1-nic=10000"],
            "a rule without selector waits for nobody"
        );
        let some = conf(&format!("{rules}    devicePluginAffinity: {{nodeSelector: {{matchLabels: {{a: b}}}}}}\n"));
        assert!(offered(&some, Some(&labels(&[])), &node(), false).is_empty());
        assert!(offered(&some, None, &node(), false).is_empty());
        assert_eq!(offered(&some, Some(&labels(&[("a", "b")])), &node(), false).len(), 2);
        let disabled = NetworkResourcePlugin { enabled: false, ..everywhere };
        assert!(offered(&disabled, None, &node(), PROVIDER).is_empty());
    }

    #[test]
    fn the_first_matching_rule_decides_for_its_name_and_names_add_up() {
        let plugin = advertisement(
            "subENI:
  rules:
    - {defaultMaxCount: 1, nodeSelector: {big: 'yes'}}
    - {defaultMaxCount: 2}
    - {defaultMaxCount: 3, resourceName: example.com/other}
    - {defaultMaxCount: 4}",
        );
        let big = labels(&[("big", "yes")]);
        assert_eq!(offered(&plugin, Some(&big), &[], PROVIDER), ["spidernet.io/sub-eni=1", "example.com/other=3"]);
        assert_eq!(
            offered(&plugin, Some(&labels(&[])), &[], PROVIDER),
            ["spidernet.io/sub-eni=2", "example.com/other=3"]
        );
    }

    #[test]
    fn while_labels_are_unknown_no_later_rule_answers_for_a_selective_one() {
        for (selective, general) in [(64, 256), (256, 64)] {
            let plugin = advertisement(&format!(
                "masterNIC: {{rules: [{{}}]}}
subENI:
  rules:
    - {{defaultMaxCount: {selective}, nodeSelector: {{small: 'yes'}}}}
    - {{defaultMaxCount: {general}}}
    - {{defaultMaxCount: 1, resourceName: spidernet.io/eth0-nic, nodeSelector: {{small: 'yes'}}}}
    - {{defaultMaxCount: 3, resourceName: example.com/other}}"
            ));
            assert_eq!(
                offered(&plugin, None, &node(), PROVIDER),
                ["example.com/other=3", "spidernet.io/eth1-nic=10000"],
                "names that no selective rule comes first for wait for nobody"
            );
            let small = labels(&[("small", "yes")]);
            assert_eq!(
                offered(&plugin, Some(&small), &[], PROVIDER),
                [&format!("spidernet.io/sub-eni={selective}"), "spidernet.io/eth0-nic=1", "example.com/other=3"]
            );
            assert_eq!(
                offered(&plugin, Some(&labels(&[])), &[], PROVIDER),
                [&format!("spidernet.io/sub-eni={general}"), "example.com/other=3"]
            );
        }
    }

    #[test]
    fn a_rule_without_selector_that_comes_first_waits_for_nobody() {
        let plugin = advertisement(
            "subENI:
  rules:
    - {defaultMaxCount: 2}
    - {defaultMaxCount: 1, nodeSelector: {small: 'yes'}}",
        );
        assert_eq!(offered(&plugin, None, &[], PROVIDER), ["spidernet.io/sub-eni=2"], "nothing can go before it");
    }

    #[test]
    fn zero_sub_interfaces_are_offered_as_zero() {
        let plugin = advertisement("subENI: {rules: [{defaultMaxCount: 0}]}");
        assert_eq!(offered(&plugin, None, &[], PROVIDER), ["spidernet.io/sub-eni=0"]);
    }

    #[test]
    fn nic_rules_are_a_union_and_the_larger_count_wins() {
        let plugin = advertisement(
            "masterNIC:
  rules:
    - {defaultMaxCount: 5, includeInterfaces: ['eth*'], excludeInterfaces: [eth1]}
    - {defaultMaxCount: 9, includeInterfaces: [eth0]}
    - {defaultMaxCount: 2, includeInterfaces: [eth1]}
    - {defaultMaxCount: 1, includeInterfaces: [eth0]}",
        );
        assert_eq!(
            offered(&plugin, None, &node(), false),
            ["spidernet.io/eth0-nic=9", "spidernet.io/eth1-nic=2", "spidernet.io/eth1.100-nic=5"],
            "an exclude holds inside its own rule only"
        );
    }

    #[test]
    fn a_virtual_nic_is_offered_only_by_the_rule_that_names_it() {
        let plugin = advertisement(
            "masterNIC:
  rules:
    - {defaultMaxCount: 1}
    - {defaultMaxCount: 2, includeInterfaces: [bond0]}",
        );
        assert_eq!(
            offered(&plugin, None, &node(), false),
            ["spidernet.io/bond0-nic=2", "spidernet.io/eth0-nic=1", "spidernet.io/eth1-nic=1"],
            "the include of one rule does not open another to virtual NICs"
        );
    }

    #[test]
    fn passing_links_are_offered_only_when_spelt_out() {
        let with = |include: &str| {
            let plugin = advertisement(&format!("masterNIC: {{rules: [{{includeInterfaces: [{include}]}}]}}"));
            offered(&plugin, None, &node(), false)
        };
        assert!(with("'veth*'").is_empty());
        assert!(with("'tap?'").is_empty());
        assert!(with("lo").is_empty(), "never the loopback");
        assert_eq!(with("tap9"), ["spidernet.io/tap9-nic=10000"]);
    }

    #[test]
    fn a_nic_that_cannot_be_a_resource_is_refused_alone() {
        let plugin = advertisement("masterNIC: {rules: [{}]}");
        let nics = [nic("eth0", NicKind::Physical), nic("eth1@a", NicKind::Physical), nic(".x", NicKind::Physical)];
        let offer = offer(&plugin, Known { labels: None, nics: Some(&nics), provider: false });
        assert_eq!(offer.resources.len(), 1);
        let refused: Vec<&str> = offer.refused.iter().map(|r| r.resource.as_str()).collect();
        assert_eq!(refused, ["spidernet.io/.x-nic", "spidernet.io/eth1@a-nic"]);
        assert!(offer.refused[0].reason.contains("must have 1 to 63 letters"), "{}", offer.refused[0].reason);
    }

    #[test]
    fn a_sub_interface_resource_keeps_its_name_from_a_nic() {
        let plugin = advertisement(
            "masterNIC: {rules: [{}]}
subENI: {rules: [{resourceName: spidernet.io/eth1-nic, defaultMaxCount: 7}]}",
        );
        let offer = offer(&plugin, Known { labels: None, nics: Some(&node()), provider: PROVIDER });
        let names: Vec<String> = offer.resources.iter().map(|s| format!("{}={}", s.name(), s.count())).collect();
        assert_eq!(names, ["spidernet.io/eth1-nic=7", "spidernet.io/eth0-nic=10000"]);
        assert_eq!(offer.refused.len(), 1);
    }
}
