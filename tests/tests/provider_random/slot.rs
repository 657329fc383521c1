//! A name of pods: one pod after the other, each with one sandbox after the other, as kubelets and people have it.

use crate::OVER;
use crate::process::Process;
use crate::world::{Shared, stateful_set};
use ipam_core::{Add, Del, Parent, Pod, PodFacts};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::task::TaskTracker;

/// A runtime waits so long for an ADD.
const BUDGET: Duration = Duration::from_secs(100);
/// A kubelet tries again after twice this, more or less.
const RETRY: u64 = 150;
/// As an agent waits for a provider before it answers a DEL.
const DEL: Duration = Duration::from_millis(200);

/// What all names share.
pub struct Stage {
    pub shared: Shared,
    pub url: String,
    pub agents: BTreeMap<String, Process>,
    pub controller: Process,
    pub pool: u32,
    /// Operations that are left.
    pub left: AtomicUsize,
    pub done: Mutex<BTreeMap<&'static str, usize>>,
    /// Sandboxes that go while others come.
    pub going: TaskTracker,
}

impl Stage {
    /// Takes one of the operations, if there are any.
    pub fn takes(&self, what: &'static str) -> bool {
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if taken {
            self.note(what);
        }
        taken
    }

    pub fn note(&self, what: &'static str) {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += 1;
    }
}

pub struct Slot {
    pub stage: Arc<Stage>,
    pub name: String,
    pub retained: bool,
    pub chance: fastrand::Rng,
    pod: Option<Running>,
}

#[derive(Clone)]
struct Running {
    uid: String,
    node: String,
    container: Option<String>,
}

impl Slot {
    pub fn new(stage: &Arc<Stage>, name: String, retained: bool, seed: u64) -> Self {
        Self { stage: Arc::clone(stage), name, retained, chance: fastrand::Rng::with_seed(seed), pod: None }
    }

    /// Random operations, as long as there are any.
    pub async fn churn(&mut self) {
        tokio::time::sleep(Duration::from_millis(self.chance.u64(0..2000))).await;
        loop {
            let draw = self.chance.u8(0..100);
            let on = match &self.pod {
                None => self.stage.takes("pods") && self.create(),
                Some(pod) if pod.container.is_none() && draw < 85 => self.stage.takes("ADDs") && self.add().await,
                Some(pod) if pod.container.is_some() && draw < 20 => {
                    self.stage.takes("repeated") && self.repeat().await
                }
                Some(pod) if pod.container.is_some() && draw < 50 => self.stage.takes("retried") && self.retry().await,
                Some(_) if draw < 75 => self.stage.takes("deleted") && self.delete().await,
                Some(_) => self.stage.takes("forced") && self.force(),
            };
            if !on {
                return;
            }
        }
    }

    /// In the end it has an address, or has no pod.
    pub async fn settle(&mut self, live: bool) {
        if !live {
            self.delete().await;
            return;
        }
        if self.pod.is_none() {
            self.create();
        }
        let tried = async {
            while self.pod.as_ref().is_some_and(|pod| pod.container.is_none()) {
                self.add().await;
            }
        };
        if tokio::time::timeout(OVER, tried).await.is_err() {
            let name = &self.name;
            self.stage.shared.world().broken.push(format!("{name} gets no address in {OVER:?} without any fault"));
        }
    }

    fn create(&mut self) -> bool {
        let node = format!("node-{}", self.chance.usize(0..self.stage.agents.len()));
        let uid = format!("{}-{:08x}", self.name, self.chance.u32(..));
        let owner = self.retained.then(stateful_set);
        let facts = PodFacts { uid: uid.clone(), node: node.clone(), owner, ..PodFacts::default() };
        self.stage.shared.world().pods.insert(self.name.clone(), facts);
        self.pod = Some(Running { uid, node, container: None });
        true
    }

    async fn ask(&mut self, container: &str) -> Option<Result<ipam_core::Interface, String>> {
        let pod = self.pod.clone()?;
        let nic = pod.node.rsplit('-').next().unwrap_or_default();
        let add = Add {
            pod: Pod { namespace: "default".to_owned(), name: self.name.clone(), uid: pod.uid.clone() },
            container_id: container.to_owned(),
            interface: "net1".to_owned(),
            network: "default/net".to_owned(),
            netns: None,
            boot_id: "boot".to_owned(),
            parent: Some(Parent { server: self.stage.url.clone(), mac: format!("02:00:00:00:00:0{nic}") }),
            clean_gateway: false,
            deadline: runtime::since_boot() + BUDGET,
        };
        let answer = self.stage.agents.get(&pod.node)?.add(add, self.stage.pool).await;
        if let Some(Ok(given)) = &answer {
            self.stage.shared.given(&self.name, &pod.uid, &pod.node, given);
        }
        self.stage.note(match &answer {
            Some(Ok(_)) => "given",
            Some(Err(_)) => "not given",
            None => "cut",
        });
        answer
    }

    async fn add(&mut self) -> bool {
        let container = format!("{:016x}", self.chance.u64(..));
        let answer = self.ask(&container).await;
        if let Some(Ok(_)) = answer {
            if let Some(pod) = &mut self.pod {
                pod.container = Some(container);
            }
            return true;
        }
        // The sandbox is taken down; nobody is told, sometimes.
        let told = self.chance.u8(0..5) > 0;
        let (node, uid) = self.pod.as_ref().map(|pod| (pod.node.clone(), pod.uid.clone())).unwrap_or_default();
        tear_down(&self.stage, &node, &uid, &container, told).await;
        tokio::time::sleep(Duration::from_millis(RETRY + self.chance.u64(0..2 * RETRY))).await;
        true
    }

    /// The same sandbox once more: a runtime whose call was cut.
    async fn repeat(&mut self) -> bool {
        if let Some(container) = self.pod.as_ref().and_then(|pod| pod.container.clone()) {
            let _ = self.ask(&container).await;
        }
        true
    }

    /// The sandbox dies and the pod gets another one.
    async fn retry(&mut self) -> bool {
        let told = self.chance.u8(0..5) > 0;
        let Some(pod) = &mut self.pod else { return true };
        let Some(container) = pod.container.take() else { return true };
        let pod = pod.clone();
        self.stage.shared.world().unused(&pod.uid);
        tear_down(&self.stage, &pod.node, &pod.uid, &container, told).await;
        self.add().await
    }

    async fn delete(&mut self) -> bool {
        let told = self.chance.u8(0..5) > 0;
        let Some(pod) = self.pod.take() else { return true };
        {
            let mut world = self.stage.shared.world();
            world.unused(&pod.uid);
            if let Some(facts) = world.pods.get_mut(&self.name) {
                facts.terminating = true;
            }
        }
        if let Some(container) = &pod.container {
            tear_down(&self.stage, &pod.node, &pod.uid, container, told).await;
        }
        self.stage.shared.world().pods.remove(&self.name);
        true
    }

    /// Its object goes first; its sandbox while the next pod of the name may be there.
    fn force(&mut self) -> bool {
        let (told, after) = (self.chance.bool(), Duration::from_millis(self.chance.u64(0..400)));
        let Some(pod) = self.pod.take() else { return true };
        {
            let mut world = self.stage.shared.world();
            world.unused(&pod.uid);
            world.pods.remove(&self.name);
        }
        let Some(container) = pod.container else { return true };
        let stage = Arc::clone(&self.stage);
        self.stage.going.spawn(async move {
            tokio::time::sleep(after).await;
            tear_down(&stage, &pod.node, &pod.uid, &container, told).await;
        });
        true
    }
}

/// A sandbox goes, and a DEL may come.
async fn tear_down(stage: &Stage, node: &str, uid: &str, container: &str, told: bool) {
    stage.shared.world().gone.insert(container.to_owned());
    let Some(agent) = stage.agents.get(node).filter(|_| told) else { return };
    stage.note("DELs");
    let del = Del { container_id: container.to_owned(), interface: "net1".to_owned(), pod_uid: uid.to_owned() };
    let (tell, told) = futures::channel::oneshot::channel::<()>();
    agent.run(async move |flows| {
        let _ = flows.del(&del).await;
        drop(tell);
    });
    // It goes on in the agent.
    let _ = tokio::time::timeout(DEL, told).await;
}
