//! A provider that is away.

use crate::node::{PROVIDER, Pool, Who, alone, asked, del, start, tried, who};
use crate::world::{Called, Mood, Shared};
use ipam_core::{AddError, NotYet};

fn provided(name: &str, uid: &str, container: &str) -> Who {
    Who { provided: true, ..who(name, uid, container) }
}

fn releases(shared: &Shared) -> Vec<Called> {
    shared.world().calls.iter().filter(|one| !one.allocate).cloned().collect()
}

/// A request that never left leaves nothing to take back: the provider is not told of an address that it never heard of.
#[test]
fn what_never_left_is_not_released() {
    let shared = Shared::new();
    shared.world().mood = Mood::Unsent;
    shared.world().replicas = 1;
    for (name, kept) in [("a", false), ("db-0", true)] {
        shared.pod(name, "uid", "node");
        let agent = start(&shared, "node");
        let tell = |container: &str| {
            tried(&shared, &agent, &asked(&shared, &provided(name, "uid", container)), &Pool(3)).map(drop)
        };
        let error = tell("c-1").expect_err("nobody listens");
        assert!(matches!(error, AddError::NotYet(NotYet::Unreached { .. })) && error.again(), "{error}");
        let held: Vec<_> = shared.world().allocations.values().cloned().collect();
        assert_eq!(held.len(), usize::from(kept), "{name}: a retained pod keeps its address");
        assert!(held.iter().all(|one| one.value.held() && one.value.provider.is_none()), "unbound: {held:?}");
        let first = shared.addresses();
        tell("c-2").expect_err("nobody listens yet");
        assert!(!kept || shared.addresses() == first, "the same one");
        assert!(releases(&shared).is_empty(), "{:?}", releases(&shared));
        shared.world().mood = Mood::Works;
        tell("c-3").expect("it listens");
        assert!(!kept || shared.addresses() == first, "the same one");
        assert!(releases(&shared).is_empty(), "{:?}", releases(&shared));
        alone(&shared, del(&agent, &provided(name, "uid", "c-3"))).expect("it ends");
        shared.world().mood = Mood::Unsent;
        shared.world().allocations.clear();
        shared.world().endpoints.clear();
        shared.world().bound.clear();
    }
    assert_eq!(shared.world().calls[0].call.server, PROVIDER);
}
