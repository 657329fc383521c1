//! What a pod asks of its node beside CPU and memory.

use crate::quantity::count;
use k8s_openapi::api::core::v1::{Container, Pod};
use std::collections::BTreeMap;

/// Counts by resource.
pub(crate) type Counts = BTreeMap<String, u64>;

/// Whether a resource is of a device plugin: it has a domain, which is not Kubernetes' own.
pub(crate) fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/")
}

/// What the scheduler counts: all containers and sidecars together, or an init container that needs more.
pub(crate) fn of(pod: &Pod) -> Counts {
    let Some(spec) = &pod.spec else { return Counts::new() };
    let mut sum = Counts::new();
    for container in &spec.containers {
        add(&mut sum, &asked(container));
    }
    let mut first = Counts::new();
    for container in spec.init_containers.iter().flatten() {
        let asked = asked(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut sum, &asked);
        } else {
            for (name, count) in asked {
                let most = first.entry(name).or_default();
                *most = count.max(*most);
            }
        }
    }
    for (name, count) in first {
        let most = sum.entry(name).or_default();
        *most = count.max(*most);
    }
    sum
}

/// Adds `more`, resource by resource.
pub(crate) fn add(sum: &mut Counts, more: &Counts) {
    for (name, count) in more {
        let sum = sum.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
}

fn asked(container: &Container) -> Counts {
    let requests = container.resources.iter().flat_map(|resources| resources.requests.iter().flatten());
    let extended = requests.filter(|(name, _)| is_extended(name));
    extended.filter_map(|(name, quantity)| Some((name.clone(), count(&quantity.0)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn containers_are_added_and_init_containers_come_one_after_the_other() {
        let one =
            |count: &str| json!({"requests": {"spidernet.io/sub-eni": count, "cpu": "1", "kubernetes.io/x": "1"}});
        let pod = json!({"spec": {
            "containers": [{"name": "a", "resources": one("1")}, {"name": "b", "resources": one("2")}, {"name": "c"}],
            "initContainers": [
                {"name": "i", "resources": one("2")}, {"name": "j", "resources": one("1")},
                {"name": "s", "restartPolicy": "Always", "resources": one("1")},
            ],
        }});
        let asked = of(&serde_json::from_value(pod).expect("a pod"));
        assert_eq!(asked, Counts::from([("spidernet.io/sub-eni".to_owned(), 4)]));
    }
}
