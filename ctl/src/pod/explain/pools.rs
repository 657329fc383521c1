//! The pools that each interface may use.

use super::super::facts::Facts;
use super::super::wanted::{OfFamily, Place, Wanted, wanted};
use crate::finding::Finding;
use crate::pools::{Pool, Subject, unfit};
use k8s_api::selector::Labels;
use store::Family;

const STEP: &str = "pools";

pub(super) fn pools(facts: &Facts) -> Vec<Finding> {
    let known = match &facts.pools {
        Err(why) => return vec![Finding::not_seen(STEP, why)],
        Ok(known) => known,
    };
    wanted(facts).iter().flat_map(|wanted| interface(facts, known, wanted)).collect()
}

fn interface(facts: &Facts, known: &[Pool], wanted: &Wanted) -> Vec<Finding> {
    let Wanted { interface, network: _, from, families } = wanted;
    let place = match from {
        Err(why) => return vec![Finding::wrong(STEP, format!("{interface}: {why}"), "correct the annotation")],
        Ok(Place::Named(place)) => *place,
        Ok(Place::Default) => "nobody, so the default ones",
    };
    if families.is_empty() {
        let text = format!("{interface}: nobody names a pool, and no pool is the default");
        let todo = "name one in the pod's annotation ipam.spidernet.io/ippools, or in the network, or set spec.default of a pool";
        return vec![Finding::wrong(STEP, text, todo)];
    }
    families.iter().map(|of| family(facts, known, wanted, place, of)).collect()
}

fn family(facts: &Facts, known: &[Pool], wanted: &Wanted, place: &str, of: &OfFamily) -> Finding {
    let Wanted { interface, network, .. } = wanted;
    let OfFamily { family, pools, missing, written } = of;
    let begin = format!("{interface}, {family}, named by {place}");
    if let Ok(conf) = &facts.conf
        && !(if *family == Family::V4 { conf.ipv4 } else { conf.ipv6 })
    {
        let todo = format!("leave these pools out, or set the chart's value ipam.enable{family} to true");
        return Finding::wrong(STEP, format!("{begin}: {family} is disabled"), todo);
    }
    if let [first, ..] = missing.as_slice() {
        let todo = format!("correct the name where it stands, or create the pool {first}: spiderpoolctl pools");
        return Finding::wrong(STEP, format!("{begin}: there is no SpiderIPPool {}", missing.join(", ")), todo);
    }
    if pools.is_empty() {
        let todo = "correct the pattern where it stands: spiderpoolctl pools has the names";
        return Finding::wrong(
            STEP,
            format!("{begin}: no pool of {family} is covered by {}", written.join(", ")),
            todo,
        );
    }
    let found: Vec<_> = pools.iter().filter_map(|name| known.iter().find(|pool| pool.name == *name)).collect();
    let shown = found.iter().map(|pool| one(facts, pool, network)).collect::<Vec<_>>().join("; ");
    let text = format!("{begin}: {shown}");
    // A pod that runs needs nothing of a pool any more.
    if facts.runs()
        || has_address(facts, interface, *family)
        || found.iter().any(|pool| can_give(facts, pool, network, *family))
    {
        return Finding::ok(STEP, text);
    }
    let fits = |pool: &&&Pool| pool.stopped().is_none() && stranger(facts, pool, network).is_none();
    let full = found.iter().find(|pool| fits(pool) && pool.family == Some(*family));
    let todo = match full {
        Some(pool) => format!(
            "give the pool more addresses (kubectl edit spiderippool {0}), or see who has them: spiderpoolctl pools {0}; \
             spiderpoolctl leaks",
            pool.name
        ),
        None => "name another pool, or change one of these: what stands behind each says why it gives none".to_owned(),
    };
    Finding::wrong(STEP, format!("none of its pools has an address to give: {text}"), todo)
}

/// Why the pool is not for the pod.
fn stranger(facts: &Facts, pool: &Pool, network: &str) -> Option<&'static str> {
    let empty = Labels::new();
    let labels = facts.pod.as_ref().and_then(|pod| pod.metadata.labels.as_ref()).unwrap_or(&empty);
    let of_namespace = facts.of_namespace.as_ref().ok().and_then(Option::as_ref);
    let node = facts.nodes.iter().flatten().find(|machine| Some(machine.name.as_str()) == facts.node());
    let subject = Subject {
        labels,
        node: facts.node(),
        node_labels: node.map(|machine| &machine.labels),
        namespace: &facts.namespace,
        namespace_labels: of_namespace.map(|found| found.metadata.labels.as_ref().unwrap_or(&empty)),
        network,
        own_namespace: &facts.system_namespace,
    };
    unfit(&pool.spec, subject)
}

fn can_give(facts: &Facts, pool: &Pool, network: &str, family: Family) -> bool {
    // What could not be counted may have some.
    let left = facts.free.get(&pool.name).and_then(|free| free.as_ref().ok()).is_none_or(|free| *free > 0);
    let gives = pool.stopped().is_none() && pool.family == Some(family);
    gives && left && stranger(facts, pool, network).is_none()
}

fn one(facts: &Facts, pool: &Pool, network: &str) -> String {
    let total = pool.addresses.count();
    let free = match facts.free.get(&pool.name) {
        Some(Ok(free)) => format!("{free} of {total} free"),
        Some(Err(_)) | None => format!("{total} addresses"),
    };
    let stopped = pool.stopped().map(|why| format!(", {why}")).unwrap_or_default();
    let only = match (stranger(facts, pool, network), pool.restrictions.as_slice()) {
        (Some(why), _) => format!(", not for this pod: {why}"),
        (None, []) => String::new(),
        (None, all) => format!(", for {}", all.join(" ")),
    };
    format!("{} ({free}{stopped}{only})", pool.name)
}

/// Whether the interface has one already, so that nothing is needed of a pool.
fn has_address(facts: &Facts, interface: &str, family: Family) -> bool {
    let uids = facts.uids();
    facts.allocations.iter().flatten().filter_map(|held| held.what.as_ref().ok()).any(|one| {
        let its = uids.contains(&one.pod.uid.as_str());
        its && one.interface == interface && one.address.family() == family
    })
}
