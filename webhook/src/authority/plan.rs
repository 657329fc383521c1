//! Which step comes next. A function of values: what the Secret holds, what each webhook trusts, and the time.
//!
//! ```text
//!            nothing trusted yet                       a third of its life left, names changed
//! (nothing) ─────────────────────> authority, certificate <─────────────────────> new certificate
//!     │ something is trusted           │ the authority has a third of its life left
//!     └───────────────┬────────────────┘
//!                     v
//!        next authority in the bundle ── every webhook was seen to trust it, for an overlap ──> certificate of it
//!                                                                                                    │ linger
//!                                                                            former ones leave <─────┘
//! ```

use super::pem::Certificate;
use super::state::State;
use std::time::Duration;

/// How long things live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetimes {
    /// Of a certificate, in seconds. It is renewed when a third is left.
    pub(super) certificate: i64,
    /// Of an authority, in seconds. The next one is made when a third is left, before certificates become shorter.
    pub(super) authority: i64,
    /// From when every webhook was seen to trust an authority until a certificate of it is shown: API servers learn of
    /// what we see by watches of their own.
    pub(super) overlap: Duration,
    /// How long a former authority stays trusted, in seconds: a controller may have missed that there is a new certificate.
    pub(super) linger: i64,
}

impl Lifetimes {
    /// Everything follows from how long a certificate lives.
    pub(crate) fn of(certificate: Duration) -> Self {
        let seconds = i64::try_from(certificate.as_secs()).unwrap_or(i64::MAX / 8);
        Self {
            certificate: seconds,
            authority: seconds.saturating_mul(4),
            overlap: (certificate / 12).min(Duration::from_mins(1)),
            linger: (seconds / 4).min(24 * 3600),
        }
    }
}

/// What webhooks trust, all of them known.
#[derive(Clone, Debug, Default)]
pub(super) struct Trust {
    /// Everything that one of them trusts.
    pub(super) any: Vec<Certificate>,
    /// What all of them trust, and for how long that has been seen.
    pub(super) all: Vec<(Certificate, Duration)>,
    /// For how long there has been no webhook at all. Then everything is trusted by all.
    pub(super) none: Option<Duration>,
}

impl Trust {
    fn in_authority(&self, certificate: &Certificate) -> Duration {
        let found = self.all.iter().find(|(trusted, _)| trusted == certificate);
        self.none.or(found.map(|(_, since)| *since)).unwrap_or_default()
    }
}

/// One change of the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// An authority and a certificate of it: nobody trusts anything yet.
    Make,
    /// Another authority, trusted beside these.
    Announce { beside: Vec<Certificate> },
    /// A certificate of the authority.
    Issue,
    /// A certificate of the next authority, which becomes the authority.
    Promote,
    /// Another bundle; the authorities stay.
    Trust(Vec<Certificate>),
}

impl Step {
    /// Webhooks must not be given the bundle of before: it may lack what they trust already.
    pub(super) fn extends_trust(&self) -> bool {
        matches!(self, Self::Make | Self::Announce { .. } | Self::Trust(_))
    }
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Do(Step),
    /// Nothing before then, unless something changes.
    Wait(Duration),
}

/// The next step at `now`, in seconds since the epoch. `names` are in order.
pub(super) fn plan(state: &State, trust: &Trust, names: &[String], now: i64, lifetimes: &Lifetimes) -> Plan {
    let authority = state.authority.as_ref().map(|authority| &authority.certificate).filter(|one| one.is_valid(now));
    let next = state.next.as_ref().map(|next| &next.certificate).filter(|next| next.is_valid(now));
    let shown = state.shown.as_ref().map(|shown| &shown.certificate);
    let valid = |certificate: &&Certificate| certificate.is_valid(now);
    let kept = || state.bundle.iter().filter(valid).cloned();
    let trusted = || trust.any.iter().filter(valid).cloned();
    // Without its authority the bundle is not what it was: what webhooks trust may be what controllers show.
    let base = |more: &[&Certificate]| -> Vec<Certificate> {
        let first = more.iter().copied().cloned();
        match authority {
            Some(_) => distinct(first.chain(kept())),
            None => distinct(first.chain(kept()).chain(trusted())),
        }
    };
    let mut soonest = Soonest { now, wait: AT_LEAST_EVERY };

    let Some(signer) = authority.or(next) else {
        let anybody = trusted().next().is_some();
        return Plan::Do(if anybody { Step::Announce { beside: base(&[]) } } else { Step::Make });
    };
    let needed: Vec<&Certificate> = [authority, next].into_iter().flatten().collect();
    if needed.iter().any(|certificate| !state.bundle.contains(certificate)) {
        return Plan::Do(Step::Trust(base(&needed)));
    }
    if let Some(next) = next {
        match lifetimes.overlap.checked_sub(trust.in_authority(next)) {
            None | Some(Duration::ZERO) => return Plan::Do(Step::Promote),
            Some(left) => soonest.within(left),
        }
    } else if now >= signer.last_third() {
        return Plan::Do(Step::Announce { beside: base(&[]) });
    } else {
        soonest.at(signer.last_third());
    }
    let Some(authority) = authority else { return Plan::Wait(soonest.wait) };

    let is_own = shown.is_some_and(|shown| shown.is_of(authority));
    let due = shown.is_none_or(|shown| !is_own || shown.names != names || now >= shown.last_third());
    // At the end of an authority a new certificate would live no longer than the one that there is.
    let longer = shown.is_none_or(|shown| !is_own || shown.names != names || authority.not_after > shown.not_after);
    if due && longer {
        let left = lifetimes.overlap.saturating_sub(trust.in_authority(authority));
        if is_own || left.is_zero() || trusted().next().is_none() {
            return Plan::Do(Step::Issue);
        }
        soonest.within(left);
    }
    if let Some(shown) = shown.filter(|_| is_own && longer) {
        soonest.at(shown.last_third());
    }

    let gone = shown.filter(|_| is_own).map(|shown| shown.made().saturating_add(lifetimes.linger));
    let stays = |one: &Certificate| needed.contains(&one) || (one.is_valid(now) && gone.is_none_or(|gone| now < gone));
    if let Some(former) = state.bundle.iter().find(|one| !stays(one)) {
        tracing::debug!(?former, "no longer needed");
        return Plan::Do(Step::Trust(state.bundle.iter().filter(|one| stays(one)).cloned().collect()));
    }
    for former in state.bundle.iter().filter(|one| !needed.contains(one)) {
        soonest.at(former.not_after.saturating_add(1).min(gone.unwrap_or(i64::MAX)));
    }
    Plan::Wait(soonest.wait)
}

/// Clocks are set and hosts sleep.
const AT_LEAST_EVERY: Duration = Duration::from_hours(1);

struct Soonest {
    now: i64,
    wait: Duration,
}

impl Soonest {
    fn at(&mut self, moment: i64) {
        self.within(Duration::from_secs(u64::try_from(moment.saturating_sub(self.now)).unwrap_or_default()));
    }

    fn within(&mut self, wait: Duration) {
        self.wait = self.wait.min(wait);
    }
}

fn distinct(certificates: impl Iterator<Item = Certificate>) -> Vec<Certificate> {
    let mut all = Vec::new();
    for certificate in certificates {
        if !all.contains(&certificate) && all.len() < TRUSTED_MAX {
            all.push(certificate);
        }
    }
    all
}

/// Ours are three at the most; what an earlier method left comes on top.
const TRUSTED_MAX: usize = 16;
