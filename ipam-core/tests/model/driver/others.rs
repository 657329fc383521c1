//! People, Kubernetes' own controllers, and our loops.

use super::Driver;
use crate::world::{CONTROLLER, Object, PROCESSES, Phase, Pod, Up, node_name};
use ipam_core::{Allocation, Node, ReleaseRequest, Successor};
use std::sync::Arc;

impl Driver {
    pub(super) fn people(&mut self) {
        let choice = self.chance.below(if self.setup.faults { 14 } else { 8 });
        let (node, name) = (self.chance.below(2), ["a-0", "a-1"][self.chance.below(2)]);
        let mut world = self.world.lock().expect("whole");
        let fresh = world.fresh + 1;
        let retained = world.retained();
        let at = self.chance.below(world.pods.len());
        match choice {
            0..5 if world.named(name).is_none() && (!self.setup.retained || retained) => {
                world.fresh = fresh;
                let uid = format!("uid-{fresh}");
                world.note(|| format!("pod {name} {uid} is created on {}", node_name(node)));
                world.pods.push(Pod { uid, name: name.into(), node, phase: Phase::Live, sandboxes: Vec::new() });
            }
            5 | 6 => {
                let Some(pod) = world.pods.get_mut(at) else { return };
                if matches!(pod.phase, Phase::Live | Phase::Terminal) {
                    pod.phase = Phase::Terminating;
                    let uid = pod.uid.clone();
                    world.note(|| format!("pod {uid} is deleted"));
                }
            }
            8 => {
                let Some(pod) = world.pods.get_mut(at) else { return };
                let used = pod.sandboxes.iter().any(|sandbox| !sandbox.addresses.is_empty());
                if pod.phase == Phase::Live && used && self.chance.one_in(2) {
                    pod.phase = Phase::Terminal;
                    let uid = pod.uid.clone();
                    world.note(|| format!("pod {uid} has ended"));
                }
            }
            9 => {
                let Some(pod) = world.pods.get_mut(at) else { return };
                if pod.phase != Phase::Gone && self.chance.one_in(3) {
                    pod.phase = Phase::Gone;
                    let uid = pod.uid.clone();
                    world.note(|| format!("pod {uid} is deleted by force"));
                }
            }
            10 if self.chance.one_in(3) => {
                world.note(|| format!("the endpoint of {name} is lost"));
                world.endpoints.remove(name);
            }
            12 => {
                // Who asks says that nothing uses it any more.
                let over = |(allocation, _): &&Object| {
                    let pod = world.pod(&allocation.pod.uid);
                    pod.is_none_or(|pod| pod.sandboxes.iter().all(|one| one.up == Up::Gone))
                };
                let over: Vec<Object> = world.allocations.values().filter(over).cloned().collect();
                let Some((allocation, version)) = over.get(self.chance.below(over.len())).cloned() else { return };
                let address = allocation.address;
                world.note(|| format!("a person asks for {address}"));
                let text = str::to_owned;
                let request = Some(ReleaseRequest { by: text("ann"), at: text("now"), abandon: false });
                world.replace(address, &version, Allocation { release_request: request, ..allocation });
            }
            11 if retained && self.chance.one_in(20) => {
                world.note(|| "the StatefulSet is deleted".to_owned());
                world.owner = false;
            }
            _ => {}
        }
    }

    /// What kubelets, Kubernetes' own controllers and our loops do from time to time.
    pub(super) fn background(&mut self) {
        let choice = self.chance.below(4);
        let process = self.chance.below(PROCESSES);
        match choice {
            0 => {
                let mut world = self.world();
                for pod in &mut world.pods {
                    if pod.phase == Phase::Terminating && pod.sandboxes.iter().all(|sandbox| sandbox.up == Up::Gone) {
                        pod.phase = Phase::Gone;
                    }
                }
                let over = |pod: &Pod| pod.phase == Phase::Gone && pod.sandboxes.iter().all(|one| one.up == Up::Gone);
                world.pods.retain(|pod| !over(pod));
                let (retained, pods) = (world.retained(), world.pods.clone());
                let gone = |uid: &str| !pods.iter().any(|pod| pod.uid == uid && pod.phase != Phase::Gone);
                // Kubernetes' collector by the ownerReference, our controller by rights: nobody keeps the name, or has anything
                // under it.
                let named = |name: &str| world.allocations.values().any(|(allocation, _)| allocation.pod.name == name);
                let over = |name: &str, endpoint: &ipam_core::Endpoint| {
                    gone(&endpoint.pod.uid) && (!retained || endpoint.goes_with.is_some() || !named(name))
                };
                let over: Vec<String> = (world.endpoints.iter().filter(|(name, (endpoint, _))| over(name, endpoint)))
                    .map(|(name, _)| name.clone())
                    .collect();
                world.endpoints.retain(|name, _| !over.contains(name));
            }
            1 if process == CONTROLLER => self.controller(),
            _ => {
                let known = self.world().index[process].known.clone();
                let known: Vec<_> =
                    known.into_iter().map(|(address, one)| (address, one.value.release_request.is_some())).collect();
                let Some((address, asked)) = known.get(self.chance.below(known.len())).copied() else { return };
                let flows = Arc::clone(&self.flows[process]);
                self.spawn(process, format!("look at {address}"), async move {
                    if process == CONTROLLER && asked {
                        let _ = flows.carry_out(address).await;
                    } else if process == CONTROLLER {
                        let _ = flows.collect(address, false).await;
                    } else {
                        let _ = flows.reconcile(address).await;
                    }
                });
            }
        }
    }

    pub(super) fn controller(&mut self) {
        let known: Vec<_> = {
            let world = self.world();
            let known = world.index[CONTROLLER].known.values().filter(|_| world.setup.retained);
            known.map(|stored| (stored.value.clone(), world.named(&stored.value.pod.name).cloned())).collect()
        };
        let Some((allocation, pod)) = known.get(self.chance.below(known.len())).cloned() else { return };
        let flows = Arc::clone(&self.flows[CONTROLLER]);
        let successor = pod.filter(|pod| pod.phase == Phase::Live && node_name(pod.node) != allocation.node.name);
        match successor {
            Some(pod) => {
                let node = Node { name: node_name(pod.node), ..Node::default() };
                let to = ipam_core::Pod { namespace: "default".into(), name: pod.name, uid: pod.uid };
                let to = Successor { pod: to, node };
                self.spawn(CONTROLLER, format!("move {} to {}", allocation.address, to.node.name), async move {
                    let _ = flows.move_to(allocation.address, &to, false).await;
                });
            }
            None if allocation.held() => {
                self.spawn(CONTROLLER, format!("endpoint follows {}", allocation.address), async move {
                    let _ = flows.follow(&allocation).await;
                });
            }
            None => {}
        }
    }
}
