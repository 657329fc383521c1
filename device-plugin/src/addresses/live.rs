//! Pods of this node that live, as its pod watch shows them.

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::Event;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// What is known of this node's pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// UIDs of those that are there and have not ended, and the hashes of static ones. None until they have been listed.
    pub(super) live: Option<Arc<BTreeSet<String>>>,
    /// When the watch failed, if it has shown nothing since: pods may be missing from the above.
    pub(super) failed: Option<Instant>,
}

/// Keeps it. Holds no more than the node's pods, twice while they are listed anew.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// By UID; with the hash of its file, if it is a static one.
    pods: BTreeMap<String, Option<String>>,
    /// A list that is not whole yet.
    listing: BTreeMap<String, Option<String>>,
    listed: bool,
    failed: Option<Instant>,
}

impl Live {
    /// What the watch showed.
    pub(super) fn shown(&mut self, event: &Event<Pod>) {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(pod) => put(&mut self.listing, pod),
            Event::InitDone => {
                self.pods = std::mem::take(&mut self.listing);
                (self.listed, self.failed) = (true, None);
            }
            Event::Apply(pod) => {
                put(&mut self.pods, pod);
                self.failed = None;
            }
            Event::Delete(pod) => {
                self.pods.remove(pod.metadata.uid.as_deref().unwrap_or_default());
                self.failed = None;
            }
        }
    }

    /// The watch failed; it goes on by itself, and says nothing of that.
    pub(super) fn failed(&mut self, now: Instant) {
        self.failed = Some(now);
    }

    /// Tells those who follow, if it is another than before.
    pub(super) fn tell(&self, known: &watch::Sender<Known>) {
        let names = self.pods.iter().flat_map(|(uid, hash)| [Some(uid), hash.as_ref()]).flatten();
        let live = self.listed.then(|| Arc::new(names.cloned().collect()));
        let now = Known { live, failed: self.failed };
        known.send_if_modified(|before| {
            let other = *before != now;
            if other {
                *before = now;
            }
            other
        });
    }
}

/// A pod that is being deleted has its devices until it has ended or is gone.
fn put(pods: &mut BTreeMap<String, Option<String>>, pod: &Pod) {
    let Some(uid) = pod.metadata.uid.clone() else { return };
    if is_terminal(pod) {
        pods.remove(&uid);
    } else {
        pods.insert(uid, config_hash(pod).cloned());
    }
}

/// Its containers have stopped, for good.
pub(super) fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Static pods are known by the hash of their files.
pub(super) fn config_hash(pod: &Pod) -> Option<&String> {
    const HASH: &str = "kubernetes.io/config.hash";
    pod.metadata.annotations.as_ref()?.get(HASH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(uid: &str, phase: &str, hash: Option<&str>, deleted: bool) -> Pod {
        let mut pod = json!({
            "metadata": {"name": uid, "uid": uid, "annotations": {}},
            "status": {"phase": phase},
        });
        if let Some(hash) = hash {
            pod["metadata"]["annotations"]["kubernetes.io/config.hash"] = hash.into();
        }
        if deleted {
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        serde_json::from_value(pod).expect("a pod")
    }

    fn running(uid: &str) -> Pod {
        pod(uid, "Running", None, false)
    }

    #[derive(Default)]
    struct Watched {
        live: Live,
        known: watch::Sender<Known>,
    }

    impl Watched {
        /// What is known then.
        fn shown(&mut self, events: impl IntoIterator<Item = Event<Pod>>) -> Vec<String> {
            for event in events {
                self.live.shown(&event);
                self.live.tell(&self.known);
            }
            let live = self.known.borrow().live.clone();
            live.map_or_else(|| vec!["unknown".to_owned()], |live| live.iter().cloned().collect())
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn pods_live_until_they_have_ended_or_are_gone() {
        use Event::{Apply, Delete, Init, InitApply, InitDone};
        let mut watched = Watched::default();
        let listed = [InitApply(running("a")), InitApply(pod("b", "Failed", None, false))];
        assert_eq!(watched.shown([Init].into_iter().chain(listed)), ["unknown"], "not whole yet");
        assert_eq!(watched.shown([InitDone]), names(&["a"]));
        assert_eq!(watched.shown([Apply(pod("a", "Running", None, true))]), names(&["a"]), "it is being deleted");
        assert_eq!(watched.shown([Apply(pod("s", "Pending", Some("h"), false))]), names(&["a", "h", "s"]));
        assert_eq!(watched.shown([Apply(pod("a", "Succeeded", None, true))]), names(&["h", "s"]));
        assert_eq!(watched.shown([Delete(pod("s", "Running", Some("h"), true))]), names(&[]));
        assert_eq!(watched.shown([Apply(running("c")), Init, InitApply(running("d"))]), names(&["c"]));
        assert_eq!(watched.shown([InitDone]), names(&["d"]), "what a list has not, is gone");
    }

    #[test]
    fn a_mirror_pod_that_is_made_anew_has_its_hash_as_before() {
        let mut watched = Watched::default();
        let both = [("m1", "h"), ("m2", "h")].map(|(uid, hash)| Event::Apply(pod(uid, "Running", Some(hash), false)));
        watched.shown([Event::InitDone]);
        assert_eq!(watched.shown(both), names(&["h", "m1", "m2"]));
        assert_eq!(watched.shown([Event::Delete(pod("m1", "Running", Some("h"), false))]), names(&["h", "m2"]));
    }

    #[test]
    fn a_failure_stands_until_something_is_shown() {
        let mut watched = Watched::default();
        watched.shown([Event::Init, Event::InitDone]);
        for over in [Event::Apply(running("a")), Event::Delete(running("a")), Event::InitDone] {
            let now = Instant::now();
            watched.live.failed(now);
            watched.shown([Event::Init, Event::InitApply(running("x"))]);
            assert_eq!(watched.known.borrow().failed, Some(now), "a list that is not whole says nothing");
            watched.shown([over]);
            assert_eq!(watched.known.borrow().failed, None);
        }
    }

    #[test]
    fn only_what_is_news_is_told() {
        let mut watched = Watched::default();
        watched.shown([Event::Init, Event::InitDone, Event::Apply(running("a"))]);
        let mut told = watched.known.subscribe();
        told.mark_unchanged();
        watched.shown([Event::Apply(running("a"))]);
        assert!(!told.has_changed().expect("there"));
        watched.shown([Event::Apply(running("b"))]);
        assert!(told.has_changed().expect("there"));
    }
}
