//! Extended resources and the devices behind them.

use crate::syntax;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Largest list that a kubelet takes, in bytes: gRPC's default receive limit, which the device manager does not raise.
pub const LIST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A name that the kubelet accepts for an extended resource.
///
/// Source: `IsExtendedResourceName` of the kubelet: a domain, a name of at most 63 bytes, nothing of `kubernetes.io`,
/// and `requests.` before it must still be a qualified name, since quotas count it under that name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceName(String);

/// Why a kubelet would refuse a resource name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidResourceName {
    /// `cpu` and its kind belong to Kubernetes.
    #[error("an extended resource needs a domain, such as spidernet.io/sub-eni")]
    NoDomain,
    /// Names with `kubernetes.io/` in them are native.
    #[error("the domain kubernetes.io is reserved; use one of your own")]
    Native,
    /// Quotas write `requests.` before the name.
    #[error("the prefix \"requests.\" is reserved for quotas")]
    Requests,
    /// The part before the slash.
    #[error(
        "the part before the slash must be a DNS name of at most 244 bytes: lower-case letters, digits, '-' and '.', each label starting and ending with a letter or digit"
    )]
    Domain,
    /// The part after the slash.
    #[error(
        "the part after the slash must have 1 to 63 letters, digits, '-', '_' or '.', and start and end with a letter or digit"
    )]
    Name,
}

impl ResourceName {
    /// The whole name, `domain/name`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ResourceName {
    type Err = InvalidResourceName;

    fn from_str(text: &str) -> Result<Self, InvalidResourceName> {
        const QUOTA_PREFIX: &str = "requests.";
        let (domain, name) = text.split_once('/').ok_or(InvalidResourceName::NoDomain)?;
        if text.contains("kubernetes.io/") {
            return Err(InvalidResourceName::Native);
        }
        if text.starts_with(QUOTA_PREFIX) {
            return Err(InvalidResourceName::Requests);
        }
        if !syntax::is_subdomain(domain) || domain.len() + QUOTA_PREFIX.len() > syntax::SUBDOMAIN_MAX {
            return Err(InvalidResourceName::Domain);
        }
        if !syntax::is_name(name) {
            return Err(InvalidResourceName::Name);
        }
        Ok(Self(text.to_owned()))
    }
}

/// The devices of one resource: `stem-0` to `stem-(count-1)`.
///
/// Ids depend on nothing but these fields, so a kubelet's checkpoint fits them after every restart and upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSet {
    name: ResourceName,
    stem: String,
    count: u32,
}

/// One device as the kubelet is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its id.
    pub id: String,
    /// Whether it may be given to a pod.
    pub healthy: bool,
}

/// The kubelet would refuse the list of devices, and the node would show 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name} with {count} devices makes a list of {bytes} bytes, and a kubelet takes less than {LIST_BYTES_MAX}; at most {most} fit"
)]
pub struct ListTooLarge {
    name: ResourceName,
    count: u32,
    bytes: usize,
    most: u32,
}

impl DeviceSet {
    /// Guards the size of the list: a kubelet drops one of 4 MiB or more without telling the plugin.
    pub fn new(name: ResourceName, stem: String, count: u32) -> Result<Self, ListTooLarge> {
        let bytes = list_bytes(&stem, count);
        if bytes < LIST_BYTES_MAX {
            return Ok(Self { name, stem, count });
        }
        let most = largest_below(count, |n| list_bytes(&stem, n) < LIST_BYTES_MAX);
        Err(ListTooLarge { name, count, bytes, most })
    }

    /// The same resource with no devices: what a kubelet hears before the resource goes.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self { name: self.name.clone(), stem: self.stem.clone(), count: 0 }
    }

    /// The resource that these devices make up.
    #[must_use]
    pub fn name(&self) -> &ResourceName {
        &self.name
    }

    /// How many devices are offered.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The devices to list while `in_use` are held by pods and `bindings` of the node's slots are taken without a pod.
    ///
    /// No device in use is ever left out or called unhealthy: to the kubelet one that vanishes is a broken one, and it may
    /// fail the pod. Unused ones with the lowest numbers fill up to the count. Of these, the ones with the highest numbers
    /// are unhealthy, one for each binding as far as there are any, so that the kubelet gives no pod a slot that is taken.
    pub fn listed<'a>(&'a self, in_use: &BTreeSet<u32>, bindings: u32) -> impl Iterator<Item = Device> + use<'a> {
        let above: Vec<u32> = in_use.iter().copied().filter(|n| *n >= self.count).collect();
        let below: BTreeSet<u32> = in_use.iter().copied().filter(|n| *n < self.count).collect();
        let mut unused = self.unused(in_use);
        let withheld = bindings.min(unused);
        let listed = (0..self.count).filter_map(move |n| {
            if below.contains(&n) {
                return Some((n, true));
            }
            let healthy = unused > withheld;
            unused = unused.checked_sub(1)?;
            Some((n, healthy))
        });
        let listed = listed.chain(above.into_iter().map(|n| (n, true)));
        listed.map(|(n, healthy)| Device { id: format!("{}-{n}", self.stem), healthy })
    }

    /// How many of the listed devices no pod holds.
    #[must_use]
    pub fn unused(&self, in_use: &BTreeSet<u32>) -> u32 {
        self.count.saturating_sub(u32::try_from(in_use.len()).unwrap_or(u32::MAX))
    }

    /// Whether `id` has our form, whatever the count is now: the kubelet may hand out a device that a lowered count
    /// just took away, and refusing it would make that pod fail for good.
    #[must_use]
    pub fn owns(&self, id: &str) -> bool {
        self.number(id).is_some()
    }

    /// The number in an id of our form.
    #[must_use]
    pub fn number(&self, id: &str) -> Option<u32> {
        let digits = id.strip_prefix(self.stem.as_str())?.strip_prefix('-')?;
        digits.parse::<u32>().ok().filter(|number| number.to_string() == digits)
    }
}

/// Size of the encoded `ListAndWatchResponse` when every device carries the longer of the two health words.
///
/// Protobuf: a device is tag, length, then two strings of tag, length, bytes each. Lengths stay below 128, one byte.
fn list_bytes(stem: &str, count: u32) -> usize {
    let fixed = (2 + 2 + stem.len() + 1) + (2 + "Unhealthy".len());
    let (mut bytes, mut low, mut digits) = (0_usize, 0_u64, 1_usize);
    while low < u64::from(count) {
        let next = 10_u64.saturating_pow(u32::try_from(digits).unwrap_or(u32::MAX));
        let ids = u64::from(count).min(next) - low;
        bytes = bytes.saturating_add(usize::try_from(ids).unwrap_or(usize::MAX).saturating_mul(fixed + digits));
        low = next;
        digits += 1;
    }
    bytes
}

/// The largest `n <= limit` for which `fits` holds, given that it holds for 0 and fails for all above some number.
fn largest_below(limit: u32, fits: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, limit);
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(count: u32) -> Result<DeviceSet, ListTooLarge> {
        DeviceSet::new("spidernet.io/sub-eni".parse().expect("legal"), "sub-eni".into(), count)
    }

    #[test]
    fn names_a_kubelet_takes() {
        for name in ["spidernet.io/sub-eni", "spidernet.io/eth1.100-nic", "a/b", "example.com/UPPER_case.9"] {
            assert_eq!(name.parse::<ResourceName>().map(|n| n.to_string()), Ok(name.to_owned()));
        }
    }

    #[test]
    fn names_a_kubelet_refuses() {
        use InvalidResourceName::{Domain, Name, Native, NoDomain, Requests};
        let long_domain = format!("{}a/x", "a.".repeat(122));
        let long_name = format!("a/{}", "x".repeat(64));
        for (name, why) in [
            ("cpu", NoDomain),
            ("", NoDomain),
            ("kubernetes.io/x", Native),
            ("node.kubernetes.io/x", Native),
            ("requests.example.com/x", Requests),
            ("/x", Domain),
            ("Example.com/x", Domain),
            ("a..b/x", Domain),
            ("-a/x", Domain),
            (long_domain.as_str(), Domain),
            ("a/", Name),
            ("a/b/c", Name),
            ("a/b@c", Name),
            ("a/-b", Name),
            ("a/b.", Name),
            (long_name.as_str(), Name),
        ] {
            assert_eq!(name.parse::<ResourceName>(), Err(why), "{name}");
        }
    }

    #[test]
    fn ids_are_short_unique_and_stable() {
        let set = set(3).expect("small");
        let ids: Vec<String> = set.listed(&BTreeSet::new(), 0).map(|device| device.id).collect();
        assert_eq!(ids, ["sub-eni-0", "sub-eni-1", "sub-eni-2"]);
    }

    #[test]
    fn what_is_in_use_stays_when_a_count_goes_down() {
        let listed = |count, in_use: &[u32]| -> Vec<u32> {
            let set = set(count).expect("small");
            let listed = set.listed(&in_use.iter().copied().collect(), 0);
            listed.map(|device| set.number(&device.id).expect("ours")).collect()
        };
        assert_eq!(listed(4, &[1, 3]), [0, 1, 2, 3], "nothing to do");
        assert_eq!(listed(4, &[1, 9]), [0, 1, 2, 9], "one above takes the place of an unused one");
        assert_eq!(listed(2, &[1, 8, 9]), [1, 8, 9], "more in use than the count: those and no other");
        assert_eq!(listed(0, &[5]), [5]);
    }

    #[test]
    fn bindings_without_a_pod_take_unused_devices_from_above() {
        let unhealthy = |count, in_use: &[u32], bindings| -> Vec<u32> {
            let set = set(count).expect("small");
            let listed = set.listed(&in_use.iter().copied().collect(), bindings);
            listed.filter(|device| !device.healthy).map(|device| set.number(&device.id).expect("ours")).collect()
        };
        assert_eq!(unhealthy(4, &[], 0), [0; 0]);
        assert_eq!(unhealthy(4, &[], 1), [3]);
        assert_eq!(unhealthy(4, &[3], 2), [1, 2], "what is in use is passed over");
        assert_eq!(unhealthy(4, &[0, 1, 3], 9), [2], "more bindings than unused devices");
        assert_eq!(unhealthy(4, &[1, 9], 1), [2], "one above the count has the place of the last");
        assert_eq!(unhealthy(2, &[1, 8, 9], 1), [0; 0], "none is unused");
    }

    proptest! {
        #[test]
        fn no_device_in_use_is_touched_and_the_others_are_as_many_as_can_be_given(
            count in 0_u32..40, in_use in prop::collection::btree_set(0_u32..60, 0..30), bindings in 0_u32..50,
        ) {
            let set = set(count).expect("small");
            let listed: Vec<(u32, bool)> =
                set.listed(&in_use, bindings).map(|one| (set.number(&one.id).expect("ours"), one.healthy)).collect();
            let numbers: BTreeSet<u32> = listed.iter().map(|(number, _)| *number).collect();
            prop_assert!(numbers.is_superset(&in_use));
            prop_assert_eq!((listed.len(), listed.len()), (numbers.len(), in_use.len().max(count.try_into().expect("small"))));
            let unused: Vec<(u32, bool)> = listed.into_iter().filter(|(number, healthy)| {
                let used = in_use.contains(number);
                assert!(*healthy || !used, "{number} is in use");
                !used
            }).collect();
            prop_assert_eq!(unused.len(), usize::try_from(set.unused(&in_use)).expect("small"));
            let healthy = unused.iter().filter(|(_, healthy)| *healthy).count();
            prop_assert_eq!(healthy, unused.len().saturating_sub(bindings.try_into().expect("small")));
            prop_assert!(unused.iter().take(healthy).all(|(_, healthy)| *healthy), "the highest go first: {:?}", unused);
        }
    }

    #[test]
    fn owns_every_id_of_its_form_and_no_other() {
        let set = set(3).expect("small");
        for id in ["sub-eni-0", "sub-eni-2", "sub-eni-3", "sub-eni-4294967295"] {
            assert!(set.owns(id), "{id}");
        }
        for id in [
            "",
            "sub-eni",
            "sub-eni-",
            "sub-eni-00",
            "sub-eni-+1",
            "sub-eni--1",
            "sub-eni-x",
            "eth1-nic-0",
            "sub-eni-4294967296",
        ] {
            assert!(!set.owns(id), "{id}");
        }
    }

    #[test]
    fn a_list_that_a_kubelet_would_drop_is_refused_with_what_fits() {
        let error = set(10_000_000).expect_err("too large");
        assert!(set(error.most).is_ok());
        assert!(set(error.most + 1).is_err());
        assert!(error.to_string().contains(&format!("at most {} fit", error.most)), "{error}");
        assert!(set(u32::MAX).is_err());
    }
}
