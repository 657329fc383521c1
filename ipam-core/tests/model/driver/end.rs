//! When nothing goes wrong any more.

use super::Driver;
use crate::world::{PROCESSES, Phase, Up, World};

impl Driver {
    /// Nothing goes wrong any more: whoever lives gets its address, and when all are gone, nothing is left.
    pub(crate) fn calm_down(&mut self) -> Result<(), String> {
        self.setup.faults = false;
        self.world().setup.faults = false;
        let served = |world: &World| {
            world.pods.iter().filter(|pod| pod.phase == Phase::Live).all(|pod| {
                pod.sandboxes.iter().any(|sandbox| sandbox.up == Up::Running && !sandbox.addresses.is_empty())
            })
        };
        self.until(served, "4: a pod that lives gets no address")?;
        {
            let mut world = self.world();
            world.owner = false;
            for pod in &mut world.pods {
                if matches!(pod.phase, Phase::Live | Phase::Terminal) {
                    pod.phase = Phase::Terminating;
                }
            }
        }
        let empty = |world: &World| {
            world.allocations.is_empty()
                && world.bound.is_empty()
                && world.endpoints.is_empty()
                && world.pods.iter().all(|pod| pod.phase == Phase::Gone)
        };
        self.until(empty, "4: something is left for ever")
    }

    fn until(&mut self, done: impl Fn(&World) -> bool, or: &str) -> Result<(), String> {
        for _ in 0..60_000 {
            if done(&self.world()) {
                return Ok(());
            }
            match self.chance.below(100) {
                0..45 => self.answer_one(),
                45..55 => self.provider(),
                55..65 => (0..PROCESSES).for_each(|process| self.world().deliver(process)),
                65..67 => self.late_write(),
                67..72 => self.time_passes(),
                72..86 => self.kubelet(),
                _ => self.background(),
            }
            self.world().check()?;
        }
        let world = self.world();
        Err(format!(
            "{or}: {:#?}\nendpoints {:?}\nbound {:?}\npods {:?}\ntasks {:?}",
            world.allocations,
            world.endpoints,
            world.bound,
            world.pods.iter().filter(|pod| pod.phase != Phase::Gone).collect::<Vec<_>>(),
            self.tasks.iter().map(|task| (&task.what, world.steps.get(&task.id))).collect::<Vec<_>>()
        ))
    }
}
