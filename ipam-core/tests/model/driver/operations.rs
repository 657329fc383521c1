//! The API server's and the provider's moods, and time.

use super::Driver;
use crate::sides::{Reply, happen, learn, unknown, unsent};
use crate::world::{Ask, CONTROLLER, node_name};
use ipam_core::{Address, Bound, Outcome, StoreError};
use std::time::Duration;

/// Of its own for each address.
fn vlan(address: Address) -> u16 {
    u16::try_from(address.number() & 0xfff).expect("twelve bits")
}

impl Driver {
    pub(super) fn answer_one(&mut self) {
        let mut world = self.world.lock().expect("whole");
        let ready = |op: &crate::world::Op| match &op.ask {
            Ask::Sleep(until) => world.now + world.skew[op.process] >= *until,
            _ => true,
        };
        let open: Vec<u64> = world.ops.iter().filter(|(_, op)| !op.sent && ready(op)).map(|(id, _)| *id).collect();
        // What nobody waits for any more.
        world.ops.retain(|_, op| !op.sent || matches!(op.ask, Ask::Allocate(_) | Ask::Release(_)));
        let Some(id) = open.get(self.chance.below(open.len())).copied() else { return };
        let Some(mut op) = world.ops.remove(&id) else { return };
        let write = matches!(op.ask, Ask::Reserve(_) | Ask::Advance(..) | Ask::Remove(..) | Ask::Publish(..));
        let read =
            matches!(op.ask, Ask::ReadEndpoint(_) | Ask::ReadPod(_) | Ask::ReadOwner | Ask::Named(_) | Ask::InPool);
        let lost = || Some(Reply::Failed(StoreError::Unknown("lost".to_owned())));
        let process = op.process;
        let reply = if self.setup.faults && write && self.chance.one_in(40) {
            let done = happen(&mut world, id, process, &op.ask);
            drop(done);
            world.note(|| format!("{} a write is done, its answer lost", node_name(process)));
            lost()
        } else if self.setup.faults && write && self.chance.one_in(50) {
            world.note(|| format!("{} a write is late, its answer lost", node_name(process)));
            world.late.push(std::mem::replace(&mut op.ask, Ask::ReadOwner));
            lost()
        } else if self.setup.faults && read && self.chance.one_in(80) {
            Some(Reply::Failed(StoreError::Throttled { after: None }))
        } else {
            let reply = happen(&mut world, id, process, &op.ask);
            if let Some(reply) = &reply {
                learn(&mut world, process, &op.ask, reply);
            }
            reply
        };
        let step = world.steps.get(&op.task).copied();
        if let Some(reply) = reply {
            if !matches!(op.ask, Ask::At) {
                let failed = matches!(reply, Reply::Failed(_));
                world.note(|| format!("{} {step:?}{}", node_name(process), if failed { " fails" } else { "" }));
            }
            world.done.insert(id, reply);
        } else {
            // Its answer comes later.
            op.sent = true;
            world.ops.insert(id, op);
        }
        drop(world);
        self.poll(process);
    }

    pub(super) fn tell(&mut self, from: Option<u64>, reply: Reply) {
        let Some(id) = from else { return };
        let process = {
            let mut world = self.world();
            let Some(op) = world.ops.remove(&id) else { return };
            world.done.insert(id, reply);
            op.process
        };
        self.poll(process);
    }

    pub(super) fn provider(&mut self) {
        let mut world = self.world.lock().expect("whole");
        let at = self.chance.below(world.pending.len());
        let Some(pending) = world.pending.get(at).cloned() else { return };
        let (address, allocate) = (pending.call.address, pending.allocate);
        let (lost, refused, unreached) = (self.chance.one_in(12), self.chance.one_in(12), self.chance.one_in(12));
        let faults = self.setup.faults;
        let reply = if faults && lost {
            // The caller hears no more of it; the provider goes on.
            if let Some(pending) = world.pending.get_mut(at) {
                pending.from = None;
            }
            world.note(|| format!("provider: the answer about {address} is lost"));
            unknown(allocate)
        } else if faults && unreached && pending.from.is_some() {
            world.pending.remove(at);
            world.note(|| format!("provider: {address} never reaches it, allocate {allocate}"));
            unsent(allocate)
        } else if faults && refused {
            world.pending.remove(at);
            world.note(|| format!("provider: refuses {address}, allocate {allocate}"));
            let why = "no".to_owned();
            if allocate { Reply::Bound(Outcome::Rejected(why)) } else { Reply::Released(Outcome::Rejected(why)) }
        } else if pending.from.is_none() && self.chance.one_in(2) {
            world.pending.remove(at);
            world.note(|| format!("provider: drops {address}, allocate {allocate}"));
            return;
        } else {
            world.pending.remove(at);
            world.note(|| format!("provider: does {address}, allocate {allocate}, for {}", pending.call.node));
            if allocate {
                world.bound.insert(address, pending.call.node.clone());
                Reply::Bound(Outcome::Answered(Bound { mac: None, vlan: Some(vlan(address)) }))
            } else {
                world.bound.remove(&address);
                Reply::Released(Outcome::Answered(()))
            }
        };
        drop(world);
        self.tell(pending.from, reply);
    }

    pub(super) fn late_write(&mut self) {
        let mut world = self.world.lock().expect("whole");
        if world.late.is_empty() {
            return;
        }
        let at = self.chance.below(world.late.len());
        let ask = world.late.remove(at);
        if self.chance.one_in(2) {
            let done = happen(&mut world, 0, CONTROLLER, &ask);
            let landed = !matches!(done, Some(Reply::Failed(_)));
            world.note(|| format!("a late write {}", if landed { "lands" } else { "is a conflict" }));
        }
    }

    /// Calls that were announced until then end, one way or the other; a provider may be a little late.
    pub(super) fn time_passes(&mut self) {
        let seconds = u64::try_from(1 + self.chance.below(20)).expect("fits");
        let then = self.world().now + Duration::from_secs(seconds);
        loop {
            let late = {
                let mut world = self.world();
                let over = |pending: &crate::world::Pending| pending.deadline + Duration::from_millis(1500) <= then;
                let Some(at) = world.pending.iter().position(over) else { break };
                world.pending.remove(at)
            };
            if self.chance.one_in(2) {
                let mut world = self.world();
                if late.allocate {
                    world.bound.insert(late.call.address, late.call.node.clone());
                } else {
                    world.bound.remove(&late.call.address);
                }
                world.note(|| format!("provider: does {} in the end, allocate {}", late.call.address, late.allocate));
            }
            self.tell(late.from, unknown(late.allocate));
        }
        self.world().now = then;
        // Those who wait no longer than their deadline.
        let over: Vec<_> = {
            let mut world = self.world();
            let over = |pending: &&mut crate::world::Pending| pending.deadline <= then && pending.from.is_some();
            world.pending.iter_mut().filter(over).map(|pending| (pending.from.take(), pending.allocate)).collect()
        };
        for (from, allocate) in over {
            self.tell(from, unknown(allocate));
        }
    }
}
