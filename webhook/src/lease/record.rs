//! What a Lease says, and what follows from it.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

/// How long a Lease is another's after its last change.
pub(super) const DURATION: Duration = Duration::from_secs(15);
const DURATION_SECONDS: i32 = 15;
/// How long a renewal lasts for the holder itself; what it began by then ends before [`DURATION`] does.
pub(super) const HELD: Duration = Duration::from_secs(10);

/// A Lease, and since when it is known to say what it says.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) lease: Lease,
    since: Instant,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is ours: say so again.
    Renew,
    /// It is nobody's, or its holder has been silent.
    Take,
    /// Another has it.
    Wait,
}

impl Seen {
    /// The Lease as it is read now. If it says what it said before, it has been silent since then.
    pub(super) fn again(before: Option<Self>, lease: Lease, now: Instant) -> Self {
        match before {
            Some(before) if before.lease.spec == lease.spec => Self { lease, since: before.since },
            _ => Self { lease, since: now },
        }
    }

    /// Who has it.
    pub(super) fn holder(&self) -> Option<&str> {
        let holder = self.lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
        holder.filter(|holder| !holder.is_empty())
    }

    /// What `me` does.
    pub(super) fn step(&self, me: &str, now: Instant) -> Step {
        let told = self.lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
        let told = told.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
        match self.holder() {
            None => Step::Take,
            Some(holder) if holder == me => Step::Renew,
            Some(_) if now.duration_since(self.since) > told.unwrap_or(DURATION) => Step::Take,
            Some(_) => Step::Wait,
        }
    }

    /// The Lease as `me` writes it; refused by the API server if anybody wrote it meanwhile.
    pub(super) fn held_by(&self, me: &str, wall: Timestamp) -> Lease {
        let mut lease = self.lease.clone();
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(me) {
            spec.acquire_time = Some(MicroTime(wall));
            spec.lease_transitions = Some(spec.lease_transitions.unwrap_or_default().saturating_add(1));
        }
        spec.holder_identity = Some(me.to_owned());
        spec.lease_duration_seconds = Some(DURATION_SECONDS);
        spec.renew_time = Some(MicroTime(wall));
        lease
    }

    /// The Lease as its holder leaves it.
    pub(super) fn left(&self) -> Lease {
        let mut lease = self.lease.clone();
        let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions);
        lease.spec = Some(LeaseSpec { lease_transitions: transitions, ..LeaseSpec::default() });
        lease
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, renewed: i64) -> Lease {
        let renew_time = Timestamp::from_second(renewed).ok().map(MicroTime);
        let spec = LeaseSpec { holder_identity: Some(holder.to_owned()), renew_time, ..LeaseSpec::default() };
        Lease { spec: Some(spec), ..Lease::default() }
    }

    #[test]
    fn a_silent_holder_is_succeeded_whatever_its_clock_says() {
        let start = Instant::now();
        // One clock is ten years ahead, another at the epoch.
        for renewed in [4_000_000_000, 0] {
            let seen = Seen::again(None, lease("other", renewed), start);
            assert_eq!(seen.step("me", start), Step::Wait);
            let seen = Seen::again(Some(seen), lease("other", renewed), start + DURATION);
            assert_eq!(seen.step("me", start + DURATION), Step::Wait);
            assert_eq!(seen.step("me", start + DURATION + Duration::from_millis(1)), Step::Take);
            let seen = Seen::again(Some(seen), lease("other", renewed + 1), start + DURATION);
            assert_eq!(seen.step("me", start + DURATION * 2), Step::Wait, "it spoke again");
        }
    }

    #[test]
    fn ours_is_renewed_and_nobodys_is_taken() {
        let now = Instant::now();
        let renew = Seen::again(None, lease("me", 0), now);
        assert_eq!(renew.step("me", now + DURATION * 9), Step::Renew);
        let empty = Seen::again(None, Lease::default(), now);
        assert_eq!(empty.step("me", now), Step::Take);
        let held = empty.held_by("me", Timestamp::UNIX_EPOCH);
        let spec = held.spec.clone().expect("a spec");
        assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("me"), Some(1)));
        let again = Seen::again(None, held, now).held_by("me", Timestamp::UNIX_EPOCH).spec.expect("a spec");
        assert_eq!(again.lease_transitions, Some(1), "a renewal is no change of hands");
        let left = Seen::again(None, Lease { spec: Some(again), ..Lease::default() }, now).left();
        assert_eq!(Seen::again(None, left, now).step("other", now), Step::Take);
    }

    #[test]
    fn the_holder_stops_before_another_may_begin() {
        // A renewal counts from before it was sent; another counts from when it saw it, which is later.
        assert!(HELD < DURATION);
    }
}
