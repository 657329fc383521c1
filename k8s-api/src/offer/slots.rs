//! Which resource stands for the node's slots.

use crate::conf::plugin::NetworkResourcePlugin;
use crate::resource::{DeviceSet, ResourceName};

/// The resource, of those on offer, that slots are taken from when the cloud has bindings that no pod holds.
///
/// A node has its slots once, whatever names its rules give them. The first rule's name is the one that pods are given, on
/// every node; where that is not on offer, the next one in the order of the rules stands in for it.
#[must_use]
pub fn slots<'a>(plugin: &NetworkResourcePlugin, offered: &'a [DeviceSet]) -> Option<&'a ResourceName> {
    // A NIC may be offered under the name of a rule that is not in force here.
    let by_rule = |set: &&DeviceSet| plugin.sub_eni.iter().any(|rule| rule.devices == **set);
    let place = |set: &&DeviceSet| plugin.sub_eni.iter().position(|rule| rule.devices.name() == set.name());
    offered.iter().filter(by_rule).min_by_key(place).map(DeviceSet::name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::Conf;
    use crate::nic::{Nic, NicKind};
    use crate::offer::{Known, offer};

    #[test]
    fn slots_are_those_of_the_first_name_that_is_on_offer() {
        let of = |rules: &str| {
            let text = format!(
                "agent: {{networkResourcePlugin: {{enabled: true, resourceAdvertisement: {{masterNIC: {{rules: [{{}}]}}, subENI: {{rules: [{rules}]}}}}}}}}"
            );
            let plugin = Conf::parse(&text).expect("valid").plugin;
            let nics = [Nic { name: "eth1".to_owned(), kind: NicKind::Physical }];
            let labels = [("here".to_owned(), "yes".to_owned())].into();
            let offer = offer(&plugin, Known { labels: Some(&labels), nics: Some(&nics), provider: true });
            slots(&plugin, &offer.resources).map(ToString::to_string)
        };
        let a = "{resourceName: example.com/a, defaultMaxCount: 4";
        let b = "{resourceName: example.com/b, defaultMaxCount: 3}";
        let found = |name: &str| Some(name.to_owned());
        assert_eq!(of(&format!("{a}}}, {b}")), found("example.com/a"));
        let elsewhere = format!("{a}, nodeSelector: {{here: 'no'}}}}");
        assert_eq!(of(&format!("{elsewhere}, {b}")), found("example.com/b"));
        let later = "{resourceName: example.com/a, defaultMaxCount: 2}";
        assert_eq!(of(&format!("{elsewhere}, {b}, {later}")), found("example.com/a"), "by another rule of that name");
        let nic = "{resourceName: spidernet.io/eth1-nic, defaultMaxCount: 1, nodeSelector: {here: 'no'}}";
        assert_eq!(of(&format!("{nic}, {b}")), found("example.com/b"), "a NIC of the first rule's name is none");
        assert_eq!(of(nic), None);
    }
}
