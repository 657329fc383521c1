//! One flow at a time for an interface of a pod.

use futures::lock::{Mutex as AsyncMutex, OwnedMutexGuard};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// (pod UID, interface)
pub(super) type Key = (String, String);

/// Everything that may free or bind an address anew holds the lock of its pod and interface, from before its reads until its
/// first write is answered, and to the end if it deletes.
#[derive(Debug, Default)]
pub(super) struct Locks(Mutex<HashMap<Key, Arc<AsyncMutex<()>>>>);

/// A lock, held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    guard: Option<OwnedMutexGuard<()>>,
    all: Arc<Locks>,
    key: Key,
}

impl Locks {
    /// Waits for it.
    pub(super) async fn take(self: &Arc<Self>, key: Key) -> Lock {
        let waiting = Waiting { all: self, key: Some(key.clone()) };
        let guard = self.entry(&key).lock_owned().await;
        Lock { guard: Some(guard), all: Arc::clone(self), key: waiting.done().unwrap_or(key) }
    }

    /// Takes it if nobody has it.
    pub(super) fn try_take(self: &Arc<Self>, key: Key) -> Option<Lock> {
        let guard = self.entry(&key).try_lock_owned()?;
        Some(Lock { guard: Some(guard), all: Arc::clone(self), key })
    }

    fn entry(&self, key: &Key) -> Arc<AsyncMutex<()>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(key.clone()).or_default())
    }

    /// Forgets a lock that nobody has or waits for.
    fn forget(&self, key: &Key) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            all.remove(key);
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.guard.take();
        self.all.forget(&self.key);
    }
}

/// Forgets the entry when a wait is given up.
struct Waiting<'a> {
    all: &'a Locks,
    key: Option<Key>,
}

impl Waiting<'_> {
    fn done(mut self) -> Option<Key> {
        self.key.take()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.all.forget(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn key() -> Key {
        ("uid".to_owned(), "net1".to_owned())
    }

    #[test]
    fn one_at_a_time_and_nothing_is_left() {
        let locks = Arc::new(Locks::default());
        let first = locks.take(key()).now_or_never().expect("free");
        assert!(locks.try_take(key()).is_none());
        let mut second = Box::pin(locks.take(key()));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        let second = second.now_or_never().expect("its turn");
        assert!(locks.take(key()).now_or_never().is_none(), "given up");
        drop(second);
        assert!(locks.0.lock().expect("whole").is_empty());
    }
}
