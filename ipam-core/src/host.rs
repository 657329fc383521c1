//! The process and the machine under it, as the flows need them.

use crate::{Allocation, Interface};
use std::future::Future;
use std::time::Duration;

/// Clock, chance, disk and sandboxes.
pub trait Host: Send + Sync {
    /// A clock that never goes back and counts sleep of the machine (`CLOCK_BOOTTIME`). Compared with itself alone.
    fn now(&self) -> Duration;
    /// Waits.
    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send;
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
    ($($(#[doc = $text:literal])+ $name:ident,)+) => {
        /// Where a flow stands. Between any two of them the process may die.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Step { $($(#[doc = $text])+ $name,)+ }
        impl Step {
            /// Every step.
            pub const ALL: &[Self] = &[$(Self::$name,)+];
        }
    };
}

steps! {
    /// Reads the pod.
    ReadPod,
    /// Reads the endpoint.
    ReadEndpoint,
    /// Looks whether another node has a retained allocation.
    LookUp,
    /// Reads whether the pod's controller still has a place for it.
    ReadOwner,
    /// Creates an allocation.
    Reserve,
    /// Lists a pool in which too many guesses failed.
    ListPool,
    /// Swaps the sandbox, the binding or the pod of an allocation that is there.
    Swap,
    /// Asks the cloud to bind.
    Bind,
    /// Shows the addresses on the endpoint.
    Publish,
    /// Keeps the result on disk.
    Keep,
    /// Reads the result on disk.
    ReadKept,
    /// Asks whether a sandbox is gone.
    LookAtSandbox,
    /// Takes the entry off the endpoint.
    Withdraw,
    /// Marks an allocation as being released.
    Fence,
    /// Waits until earlier calls cannot take effect any more.
    Settle,
    /// Marks a release again, before it is repeated.
    Renew,
    /// Asks the cloud to unbind.
    Unbind,
    /// Waits until a call of unknown outcome cannot take effect any more.
    SettleUnknown,
    /// Deletes an allocation.
    Remove,
    /// Gives an unbound allocation back to its pod.
    GiveBack,
    /// Marks an allocation whose sandbox has gone.
    Detach,
    /// Takes over a release whose process is gone.
    TakeOver,
    /// Hands an allocation to its pod's new node.
    Move,
    /// Makes the endpoint follow.
    Follow,
}

impl<T: Host> Host for std::sync::Arc<T> {
    fn now(&self) -> Duration {
        T::now(self)
    }
    async fn sleep(&self, time: Duration) {
        T::sleep(self, time).await;
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
