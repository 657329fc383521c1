//! A provider that the configuration does not name any more, and addresses that no provider binds.

use crate::node::{Going, PROVIDER, Pool, Who, add_and_undo, alone, asked, look_after, spend, start, tried, who};
use crate::world::{Shared, Trouble};
use ipam_core::{
    AddError, Candidate, Chosen, Del, Family, NoPool, Node, Parent, Pod, PodFacts, Pools, Range, Step, Stopped,
    StoreError, Successor, Wanted,
};
use std::time::Duration;

fn provided(name: &str, uid: &str, container: &str) -> Who {
    Who { provided: true, ..who(name, uid, container) }
}

fn configured(shared: &Shared, is: bool) {
    let mut world = shared.world();
    world.unserved.clear();
    if !is {
        world.unserved.insert(PROVIDER.to_owned());
    }
}

/// The world refuses calls to it by an assertion.
#[test]
fn what_may_be_bound_at_a_provider_that_nobody_names_is_kept_until_somebody_does() {
    let shared = Shared::new();
    shared.world().replicas = 1;
    let (agent, other, controller) = (start(&shared, "node"), start(&shared, "other"), start(&shared, ""));
    for name in ["lives", "dies", "db-0"] {
        shared.pod(name, &format!("{name}-uid"), "node");
        let who = provided(name, &format!("{name}-uid"), &format!("{name}-1"));
        alone(&shared, add_and_undo(&agent, &shared, &who, &Pool(9))).expect("ends").expect("given");
    }
    configured(&shared, false);
    let before = shared.world().allocations.clone();
    let calls = shared.world().calls.len();

    // One that runs has all that it needs, also in another sandbox.
    let again = asked(&shared, &provided("lives", "lives-uid", "lives-1"));
    let kept = tried(&shared, &agent, &again, &Pool(9)).expect("it has one");
    assert_eq!(shared.world().shown("lives"), [kept.addresses[0].address]);

    shared.pod_goes("dies");
    shared.world().gone.insert("dies-1".to_owned());
    let del = Del { container_id: "dies-1".into(), interface: "net1".into(), pod_uid: "dies-uid".into() };
    let ended = alone(&shared, agent.del(&del)).expect("it ends at once");
    assert!(matches!(ended, Err(Stopped::Unserved { ref server, .. }) if server == PROVIDER), "{ended:?}");

    // It comes back on another node.
    shared.pod("db-0", "db-0-later", "other");
    shared.world().gone.insert("db-0-1".to_owned());
    let to = Successor {
        pod: Pod { namespace: "default".into(), name: "db-0".into(), uid: "db-0-later".into() },
        node: Node { name: "other".into(), ..Node::default() },
    };
    shared.pass(Duration::from_mins(5));
    let of_set = before.values().find(|one| one.value.pod.name == "db-0").expect("there").value.address;
    let ended = alone(&shared, controller.move_to(of_set, &to, true)).expect("it ends");
    assert!(matches!(ended, Err(Stopped::Unserved { .. })), "{ended:?}");
    look_after(&shared, &[&agent, &other], &controller, true);
    {
        let world = shared.world();
        let same = |(address, one): (&_, &_)| before.get(address).is_some_and(|was| was == one);
        let changed: Vec<_> = world.allocations.iter().filter(|one| !same(*one)).collect();
        assert!(changed.len() <= 1, "but for the sandbox of the one that runs: {changed:?}");
        assert_eq!(world.allocations.len(), 3, "nothing is deleted");
        assert_eq!((world.calls.len(), world.bound.len()), (calls, 3), "nobody is called");
    }

    configured(&shared, true);
    look_after(&shared, &[&agent, &other], &controller, false);
    alone(&shared, controller.move_to(of_set, &to, false)).expect("it ends").expect("moves");
    let back = tried(&shared, &other, &asked(&shared, &provided("db-0", "db-0-later", "db-0-2")), &Pool(9));
    assert_eq!(back.expect("it is there").addresses[0].address, of_set);
    let world = shared.world();
    let mut names: Vec<_> = world.allocations.values().map(|one| one.value.pod.name.clone()).collect();
    names.sort_unstable();
    assert_eq!(names, ["db-0", "lives"]);
    assert_eq!((world.bound.len(), world.bound[&of_set].as_str()), (2, "other"));
}

/// The configuration changes while a release waits for earlier calls, or between two of its tries.
#[test]
fn a_release_that_is_under_way_stops_and_is_gone_on_with() {
    for tried in [false, true] {
        let shared = Shared::new();
        shared.pod("a", "uid", "node");
        let agent = start(&shared, "node");
        let who = provided("a", "uid", "c-1");
        alone(&shared, add_and_undo(&agent, &shared, &who, &Pool(9))).expect("ends").expect("given");
        shared.world().pods.clear();
        if !tried {
            // What it showed says that the call was answered.
            shared.world().endpoints.clear();
        }
        shared.trouble(|_, _, step| match step {
            Step::Unbind => Trouble::Refuse(StoreError::Refused("maintenance".to_owned())),
            _ => Trouble::None,
        });
        let del = Del { container_id: "c-1".into(), interface: "net1".into(), pod_uid: "uid".into() };
        let mut going: Vec<Going<'_, ()>> = vec![Box::pin(async { drop(agent.del(&del).await) })];
        spend(&shared, &mut going, Duration::from_millis(400));
        let asked = shared.world().calls.len();
        assert_eq!(asked, if tried { 2 } else { 1 });
        configured(&shared, false);
        spend(&shared, &mut going, Duration::from_mins(2));
        assert_eq!((going.len(), shared.world().calls.len()), (0, asked), "nobody repeats it for ever");
        drop(going);
        let releasing = || shared.world().allocations.values().filter(|one| !one.value.held()).count();
        assert_eq!(releasing(), 1);
        shared.no_trouble();
        look_after(&shared, &[&agent], &start(&shared, ""), false);
        assert_eq!(releasing(), 1, "kept");
        configured(&shared, true);
        look_after(&shared, &[&agent], &start(&shared, ""), false);
        assert!(shared.addresses().is_empty() && shared.world().bound.is_empty());
    }
}

/// Pools of these families.
struct Of(Vec<Family>);

impl Pools for Of {
    fn wanted(&self, _: &PodFacts) -> Result<Chosen, NoPool> {
        let wanted = |family: &Family| {
            let name = if *family == Family::V4 { "four" } else { "six" };
            Wanted { family: *family, candidates: self.of(name).into_iter().collect() }
        };
        Ok(Chosen { wanted: self.0.iter().map(wanted).collect(), ..Chosen::default() })
    }
    fn of(&self, pool: &str) -> Option<Candidate> {
        let (subnet, range) =
            if pool == "four" { ("10.0.0.0/24", "10.0.0.1-10.0.0.9") } else { ("fd00::/64", "fd00::1-fd00::9") };
        let addresses = range.parse::<Range>().into_iter().collect();
        let subnet = subnet.parse().expect("a subnet");
        Some(Candidate { pool: pool.to_owned(), subnet, addresses, gateway: None, routes: Vec::new() })
    }
}

#[test]
fn what_a_provider_cannot_bind_is_refused_before_anything_is_written() {
    for families in [vec![Family::V6], vec![Family::V4, Family::V6]] {
        let shared = Shared::new();
        shared.pod("a", "uid", "node");
        let agent = start(&shared, "node");
        let mut add = asked(&shared, &provided("a", "uid", "c-1"));
        let error = tried(&shared, &agent, &add, &Of(families.clone())).expect_err("a provider binds IPv4");
        assert!(matches!(&error, AddError::NotIpv4 { network } if network == "default/net"), "{error}");
        assert!(!error.again(), "somebody has to change something");
        {
            let world = shared.world();
            assert!(world.allocations.is_empty() && world.endpoints.is_empty() && world.calls.is_empty());
        }
        let parent: Option<Parent> = add.parent.take();
        assert!(parent.is_some());
        let answer = tried(&shared, &agent, &add, &Of(families.clone())).expect("no provider has to");
        assert_eq!(answer.addresses.len(), families.len());
    }
}
