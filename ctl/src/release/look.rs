//! Who has an address, before anybody asks for its release.

use crate::api::Server;
use crate::fault::{Fault, NotSeen, Seen};
use crate::held::{self, Held};
use k8s_api::crd::endpoint::SpiderEndpoint;
use k8s_api::syntax;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use kube::api::DynamicObject;
use store::{Address, Allocation, Endpoint};

/// What a look at an address came to.
pub(super) enum Looked {
    /// It is free.
    Nobody,
    /// Why it is not to be released.
    Refused(String),
    Target(Box<Target>),
}

/// One to ask for.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) address: Address,
    pub(super) held: Held,
    pub(super) one: Allocation,
    /// How it stands with the pod, in words.
    pub(super) pod: String,
}

impl Target {
    pub(super) fn shown(&self) -> String {
        let Target { one, .. } = self;
        let bound = match &one.provider {
            Some(binding) => format!(", bound at {}", binding.server),
            None => String::new(),
        };
        format!(
            "{} of {}: pod {}/{} ({}), {} on node {}, {}{bound}",
            self.address,
            one.pool,
            one.pod.namespace,
            one.pod.name,
            self.pod,
            one.interface,
            if one.node.name.is_empty() { "(none)" } else { &one.node.name },
            held::state(one),
        )
    }
}

pub(super) async fn look(server: &Server, address: Address) -> Result<Looked, Fault> {
    let found = server.get::<DynamicObject>(&held::path(), &store::name_of(address)).await?;
    let Some(object) = server.needed("get SpiderIPAllocations", found)? else { return Ok(Looked::Nobody) };
    let held = Held::read(&object);
    let one = match held.what.clone() {
        Ok(one) => one,
        Err(why) => return Ok(Looked::Refused(format!("its SpiderIPAllocation cannot be read: {why}"))),
    };
    let (namespace, name) = (&one.pod.namespace, &one.pod.name);
    // Names of an object that others wrote must lead to no other path.
    if !syntax::is_namespace(namespace) || !syntax::is_subdomain(name) {
        return Ok(Looked::Target(Box::new(Target {
            address,
            held,
            one,
            pod: "of a name that no pod has".to_owned(),
        })));
    }
    let pod = server.get::<Pod>(&format!("/api/v1/namespaces/{namespace}/pods"), name).await?;
    let endpoint = server.get::<DynamicObject>(&SpiderEndpoint::url_path(&(), Some(namespace)), name).await?;
    let endpoint = endpoint.map(|found| found.and_then(|object| store::endpoint_of(&object).ok()));
    Ok(match judge(&one, &pod, endpoint.ok().flatten().as_ref()) {
        Ok(pod) => Looked::Target(Box::new(Target { address, held, one, pod })),
        Err(why) => Looked::Refused(why),
    })
}

/// How it stands with the pod; or why its address stays.
fn judge(one: &Allocation, pod: &Seen<Option<Pod>>, endpoint: Option<&Endpoint>) -> Result<String, String> {
    let pod = match pod {
        Err(NotSeen(why)) => return Ok(format!("not looked at: {why}")),
        Ok(None) => return Ok("gone".to_owned()),
        Ok(Some(pod)) => pod,
    };
    let hash = pod.metadata.annotations.as_ref().and_then(|all| all.get("kubernetes.io/config.hash"));
    let is = [pod.metadata.uid.as_ref(), hash].into_iter().flatten().any(|uid| *uid == one.pod.uid);
    if !is {
        return Ok("gone; another pod has its name".to_owned());
    }
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
    if matches!(phase, "Succeeded" | "Failed") {
        return Ok(format!("ended: {phase}"));
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return Ok(format!("{phase}, being deleted"));
    }
    if endpoint.and_then(|endpoint| endpoint.entry(one)).is_some() {
        let (namespace, name) = (&one.pod.namespace, &one.pod.name);
        return Err(format!(
            "its pod {namespace}/{name} lives ({phase}) and uses it; delete the pod instead: kubectl delete pod -n {namespace} {name}"
        ));
    }
    Ok(format!("{phase}, and not shown with it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn one() -> Allocation {
        let object = json!({
            "metadata": {"name": "10.0.0.1", "uid": "a", "resourceVersion": "1"},
            "spec": {"pool": "p", "address": "10.0.0.1", "node": {"name": "n"}, "state": "Held", "interface": "net1",
                     "pod": {"namespace": "default", "name": "web", "uid": "u"}},
        });
        Held::read(&serde_json::from_value(object).expect("an object")).what.expect("readable")
    }

    fn endpoint(uid: &str) -> Endpoint {
        let object = json!({
            "metadata": {"namespace": "default", "name": "web", "uid": "e", "resourceVersion": "1"},
            "status": {"current": {"uid": uid, "node": "n", "ips": [{"interface": "net1", "ipv4": "10.0.0.1/24"}]}},
        });
        store::endpoint_of(&serde_json::from_value(object).expect("an object")).expect("readable")
    }

    #[test]
    fn only_what_a_living_pod_uses_is_refused() {
        let pod = |more: Value| {
            let mut pod = json!({"metadata": {"uid": "u"}, "status": {"phase": "Running"}});
            pod.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
            Ok(Some(serde_json::from_value::<Pod>(pod).expect("a pod")))
        };
        let living = pod(json!({}));
        assert!(judge(&one(), &living, Some(&endpoint("u"))).expect_err("in use").contains("delete the pod instead"));
        assert_eq!(judge(&one(), &living, None).as_deref(), Ok("Running, and not shown with it"));
        assert_eq!(judge(&one(), &living, Some(&endpoint("v"))).as_deref(), Ok("Running, and not shown with it"));
        let ended = pod(json!({"status": {"phase": "Failed"}}));
        assert_eq!(judge(&one(), &ended, Some(&endpoint("u"))).as_deref(), Ok("ended: Failed"));
        let other = pod(json!({"metadata": {"uid": "v"}}));
        assert_eq!(judge(&one(), &other, Some(&endpoint("v"))).as_deref(), Ok("gone; another pod has its name"));
        let fixed = pod(json!({"metadata": {"uid": "x", "annotations": {"kubernetes.io/config.hash": "u"}}}));
        assert!(judge(&one(), &fixed, Some(&endpoint("u"))).is_err(), "a static pod");
        assert_eq!(judge(&one(), &Ok(None), Some(&endpoint("u"))).as_deref(), Ok("gone"));
        let blind = judge(&one(), &Err(NotSeen("no right".to_owned())), None);
        assert_eq!(blind.as_deref(), Ok("not looked at: no right"));
    }
}
