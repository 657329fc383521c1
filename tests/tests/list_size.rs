//! The guard for the size of a list, held against the encoding that a kubelet really gets.

use k8s_api::resource::{DeviceSet, LIST_BYTES_MAX, ListTooLarge};
use proptest::prelude::*;
use prost::Message;
use proto::deviceplugin::{Device, ListAndWatchResponse};
use std::collections::BTreeSet;

fn set(stem: &str, count: u32) -> Result<DeviceSet, ListTooLarge> {
    DeviceSet::new("example.com/x".parse().expect("a name"), stem.to_owned(), count)
}

/// Size of the list when every device carries the longer of the two health words.
fn encoded(set: &DeviceSet) -> usize {
    let unhealthy = set.listed(&BTreeSet::new(), set.count()).inspect(|device| assert!(!device.healthy));
    let device = |id| Device { id, health: "Unhealthy".to_owned(), topology: None };
    ListAndWatchResponse { devices: unhealthy.map(|one| device(one.id)).collect() }.encoded_len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn the_largest_count_that_is_accepted_is_the_largest_that_fits(stem in "[a-z0-9.]{1,15}-nic") {
        let (mut fits, mut too_large) = (0, 1_000_000);
        while too_large - fits > 1 {
            let middle = u32::midpoint(fits, too_large);
            if set(&stem, middle).is_ok() { fits = middle } else { too_large = middle }
        }
        let largest = encoded(&set(&stem, fits).expect("accepted"));
        let one_more = Device { id: format!("{stem}-{fits}"), health: "Unhealthy".to_owned(), topology: None };
        let one_more = ListAndWatchResponse { devices: vec![one_more] }.encoded_len();
        prop_assert!(largest < LIST_BYTES_MAX, "{fits} devices make {largest} bytes");
        prop_assert!(largest + one_more >= LIST_BYTES_MAX, "{too_large} devices would have fitted: {}", largest + one_more);
    }
}
