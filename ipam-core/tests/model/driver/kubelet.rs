//! Kubelets: sandboxes come and go, with their ADDs and DELs.

use super::{Driver, ThePools};
use crate::world::{INTERFACE, Phase, Sandbox, Up};
use ipam_core::{Add, Del, Parent};
use std::sync::Arc;
use std::time::Duration;

impl Driver {
    pub(super) fn kubelet(&mut self) {
        let count = self.world().pods.len();
        let at = self.chance.below(count);
        let choice = self.chance.below(10);
        let faults = self.setup.faults;
        let mut world = self.world.lock().expect("whole");
        let container = format!("sandbox-{}", world.fresh + 1);
        let Some(pod) = world.pods.get_mut(at) else { return };
        if pod.phase == Phase::Gone && pod.sandboxes.iter().all(|sandbox| sandbox.up == Up::Gone) {
            return;
        }
        let (uid, node, phase) = (pod.uid.clone(), pod.node, pod.phase);
        let all_gone = pod.sandboxes.iter().all(|one| one.up == Up::Gone);
        let last = pod.sandboxes.last_mut();
        match (last, choice) {
            (_, 0..4) if phase == Phase::Live && all_gone => {
                pod.sandboxes.push(Sandbox {
                    id: container.clone(),
                    up: Up::Running,
                    addresses: Vec::new(),
                    asked: true,
                });
                world.fresh += 1;
                drop(world);
                self.ask_for(&uid, &container);
            }
            (Some(last), 0..4)
                if phase == Phase::Live && last.up == Up::Running && last.addresses.is_empty() && !last.asked =>
            {
                last.asked = true;
                let id = last.id.clone();
                drop(world);
                self.ask_for(&uid, &id);
            }
            (Some(last), 4) if faults && last.asked => last.asked = false,
            (Some(last), 5) if last.up == Up::Running && (phase != Phase::Live || faults) => {
                // What is asked for it is cancelled.
                (last.up, last.asked) = (Up::Stopping, false);
                let id = last.id.clone();
                world.note(|| format!("kubelet stops {id} of {uid}"));
                drop(world);
                self.del(node, &id);
            }
            (Some(last), 6..8) if last.up == Up::Stopping => {
                (last.up, last.addresses) = (Up::Gone, Vec::new());
                let id = last.id.clone();
                world.note(|| format!("{id} of {uid} is gone"));
            }
            // A DEL that comes again.
            (Some(_), 8) => {
                let id =
                    pod.sandboxes.iter().find(|sandbox| sandbox.up != Up::Running).map(|sandbox| sandbox.id.clone());
                drop(world);
                if let Some(id) = id {
                    self.del(node, &id);
                }
            }
            _ => {}
        }
    }

    pub(super) fn ask_for(&mut self, uid: &str, container: &str) {
        let (pod, now) = {
            let world = self.world();
            let Some(pod) = world.pod(uid).cloned() else { return };
            (pod.clone(), world.now + world.skew[pod.node])
        };
        let add = Add {
            pod: ipam_core::Pod { namespace: "default".into(), name: pod.name.clone(), uid: uid.to_owned() },
            container_id: container.to_owned(),
            interface: INTERFACE.into(),
            network: "default/net".into(),
            netns: None,
            boot_id: "boot".into(),
            parent: self
                .setup
                .provider
                .then(|| Parent { server: "http://provider".into(), mac: "02:00:00:00:00:01".into() }),
            clean_gateway: false,
            deadline: now + Duration::from_secs(100),
        };
        let (flows, world, pools) =
            (Arc::clone(&self.flows[pod.node]), Arc::clone(&self.world), ThePools(self.setup.addresses));
        let (uid, id) = (uid.to_owned(), container.to_owned());
        self.spawn(pod.node, format!("ADD {id} of {uid}"), async move {
            let (addresses, undo) = match flows.add(&add, &pools).await {
                Ok(entry) => (entry.addresses.iter().map(|assigned| assigned.address).collect(), None),
                Err(failed) => {
                    world.lock().expect("whole").note(|| format!("ADD {id} of {uid} fails: {}", failed.error));
                    (Vec::new(), failed.undo)
                }
            };
            {
                let mut world = world.lock().expect("whole");
                let sandboxes = world.pods.iter_mut().filter(|pod| pod.uid == uid).flat_map(|pod| &mut pod.sandboxes);
                for sandbox in
                    sandboxes.filter(|sandbox| sandbox.id == id && sandbox.asked && sandbox.up == Up::Running)
                {
                    sandbox.asked = false;
                    sandbox.addresses.clone_from(&addresses);
                }
            }
            if let Some(undo) = undo {
                let _ = flows.undo(undo).await;
            }
        });
    }

    pub(super) fn del(&mut self, node: usize, container: &str) {
        let flows = Arc::clone(&self.flows[node]);
        let del = Del { container_id: container.to_owned(), interface: INTERFACE.into(), pod_uid: String::new() };
        self.spawn(node, format!("DEL {container}"), async move {
            let _ = flows.del(&del).await;
        });
    }
}
