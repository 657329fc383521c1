//! The process and the machine under it, as the flows need them.

use crate::{Allocation, Interface};
use std::fmt;
use std::future::Future;
use std::time::Duration;

/// Clock, chance, disk and sandboxes.
pub trait Host: Send + Sync {
    /// A clock that never goes back and counts sleep of the machine (`CLOCK_BOOTTIME`). Compared with itself alone.
    fn now(&self) -> Duration;
    /// Waits.
    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send;
    /// Waits before something that a later process may as well do; at once `false` when this one is to end.
    fn pause(&self, time: Duration) -> impl Future<Output = bool> + Send;
    /// A try to release it failed, and is repeated: for logs and the events of people.
    fn unreleased(&self, allocation: &Allocation, why: String);
    /// Chance: for identifiers, choices and jitter.
    fn random(&self) -> u128;
    /// The result that was last kept for an interface of a pod.
    fn kept(&self, pod_uid: &str, interface: &str) -> impl Future<Output = Kept> + Send;
    /// Keeps the result of an interface on disk. One that cannot be kept is no fault of the pod's: it is logged.
    fn keep(&self, pod_uid: &str, result: &Interface) -> impl Future<Output = ()> + Send;
    /// Whether the sandbox of an allocation is certainly gone: its DEL was handled, or the path of its network namespace is
    /// absent or another inode, or the machine has booted since.
    fn sandbox_gone(&self, allocation: &Allocation) -> impl Future<Output = bool> + Send;
    /// Called before every step of a flow. Does nothing but note it.
    fn at(&self, step: Step) -> impl Future<Output = ()> + Send;
}

/// What is kept of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Its result, with the binding that it shows.
    Result(Box<Interface>),
    /// None.
    Nothing,
    /// The disk cannot be read: there may be one.
    Unreadable,
}

macro_rules! steps {
    ($($(#[doc = $text:literal])+ $name:ident = $words:literal,)+) => {
        /// Where a flow stands. Between any two of them the process may die.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Step { $($(#[doc = $text])+ $name,)+ }
        impl Step {
            /// Every step.
            pub const ALL: &[Self] = &[$(Self::$name,)+];
        }
        /// For the events of pods.
        impl fmt::Display for Step {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $words,)+ })
            }
        }
    };
}

steps! {
    /// Reads the pod.
    ReadPod = "reading the pod",
    /// Reads the endpoint.
    ReadEndpoint = "reading the SpiderEndpoint",
    /// Looks whether another node has a retained allocation.
    LookUp = "looking for addresses of the pod's name",
    /// Reads whether the pod's controller still has a place for it.
    ReadOwner = "reading the pod's controller",
    /// Creates an allocation.
    Reserve = "reserving an address",
    /// Lists a pool in which too many guesses failed.
    ListPool = "listing the pool's addresses",
    /// Swaps the sandbox, the binding or the pod of an allocation that is there.
    Swap = "writing the sandbox into the SpiderIPAllocation",
    /// Asks the cloud to bind.
    Bind = "waiting for the provider to bind",
    /// Shows the addresses on the endpoint.
    Publish = "writing the SpiderEndpoint",
    /// Keeps the result on disk.
    Keep = "keeping the result on disk",
    /// Reads the result on disk.
    ReadKept = "reading the result on disk",
    /// Asks whether a sandbox is gone.
    LookAtSandbox = "looking at the sandbox",
    /// Takes the entry off the endpoint.
    Withdraw = "clearing the SpiderEndpoint",
    /// Marks an allocation as being released.
    Fence = "marking the SpiderIPAllocation as being released",
    /// Waits until earlier calls cannot take effect any more.
    Settle = "waiting for earlier calls of the provider to settle",
    /// Marks a release again, before it is repeated.
    Renew = "marking the release anew",
    /// Asks the cloud to unbind.
    Unbind = "waiting for the provider to release",
    /// Waits until a call of unknown outcome cannot take effect any more.
    SettleUnknown = "waiting for a release of unknown outcome to settle",
    /// Deletes an allocation.
    Remove = "deleting the SpiderIPAllocation",
    /// Gives an unbound allocation back to its pod.
    GiveBack = "giving the address back to its pod",
    /// Marks an allocation whose sandbox has gone.
    Detach = "marking the SpiderIPAllocation as without a sandbox",
    /// Takes over a release whose process is gone.
    TakeOver = "taking a release over",
    /// Hands an allocation to its pod's new node.
    Move = "moving the SpiderIPAllocation",
    /// Takes a person's request off an allocation whose pod is there.
    Decline = "declining the request to release",
    /// Makes the endpoint follow.
    Follow = "moving the SpiderEndpoint",
}

impl<T: Host> Host for std::sync::Arc<T> {
    fn now(&self) -> Duration {
        T::now(self)
    }
    async fn sleep(&self, time: Duration) {
        T::sleep(self, time).await;
    }
    async fn pause(&self, time: Duration) -> bool {
        T::pause(self, time).await
    }
    fn unreleased(&self, allocation: &Allocation, why: String) {
        T::unreleased(self, allocation, why);
    }
    fn random(&self) -> u128 {
        T::random(self)
    }
    async fn kept(&self, pod_uid: &str, interface: &str) -> Kept {
        T::kept(self, pod_uid, interface).await
    }
    async fn keep(&self, pod_uid: &str, result: &Interface) {
        T::keep(self, pod_uid, result).await;
    }
    async fn sandbox_gone(&self, allocation: &Allocation) -> bool {
        T::sandbox_gone(self, allocation).await
    }
    async fn at(&self, step: Step) {
        T::at(self, step).await;
    }
}
