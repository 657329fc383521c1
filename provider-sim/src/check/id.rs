//! The checks: their names, what the contract says, and what to do.

use serde::Serialize;
use std::str::FromStr;

/// Whether pods suffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Pods get no network, or a wrong one, or addresses leak.
    Must,
    /// It works, but worse than it could.
    Should,
}

/// What is known of a check before it runs.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name.
    pub name: &'static str,
    /// Whether pods suffer.
    pub level: Level,
    /// What the contract says.
    pub contract: &'static str,
    /// What to do if it fails.
    pub remedy: &'static str,
}

/// A check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Id {
    AllocateBinds,
    MacAndVlan,
    RepeatsRequest,
    SeveralAtOnce,
    DistinctVlans,
    AllocateAgain,
    BindsOnce,
    Release,
    ReleaseAgain,
    AllocateAfterRelease,
    ReleaseWithoutNic,
    ReleaseWithoutPod,
    ReleaseNeverBound,
    UnknownFields,
    Budgets,
    NothingAfterBudget,
    AnswersWithinBudget,
}

/// No check has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no check has this name; there are {}", Id::ALL.map(|id| id.about().name).join(", "))]
pub struct NoSuchCheck;

impl FromStr for Id {
    type Err = NoSuchCheck;

    fn from_str(name: &str) -> Result<Self, NoSuchCheck> {
        Self::ALL.into_iter().find(|id| id.about().name == name).ok_or(NoSuchCheck)
    }
}

impl Id {
    /// In the order in which they run.
    pub const ALL: [Self; 17] = [
        Self::AllocateBinds,
        Self::MacAndVlan,
        Self::RepeatsRequest,
        Self::SeveralAtOnce,
        Self::DistinctVlans,
        Self::AllocateAgain,
        Self::BindsOnce,
        Self::Release,
        Self::ReleaseAgain,
        Self::AllocateAfterRelease,
        Self::ReleaseWithoutNic,
        Self::ReleaseWithoutPod,
        Self::ReleaseNeverBound,
        Self::UnknownFields,
        Self::Budgets,
        Self::NothingAfterBudget,
        Self::AnswersWithinBudget,
    ];

    /// What is known of it.
    #[must_use]
    #[allow(clippy::too_many_lines, reason = "a table")]
    pub const fn about(self) -> About {
        let must = Level::Must;
        let should = Level::Should;
        let (name, level, contract, remedy) = match self {
            Self::AllocateBinds => (
                "allocate-binds",
                must,
                "A 2xx answers with JSON that has every asked address once, in the same characters, and no other.",
                "Answer 2xx only when the address is bound, and list exactly what was asked.",
            ),
            Self::MacAndVlan => (
                "mac-and-vlan",
                must,
                "macAddress and vlanId may be left out, but the interface of a new pod cannot be made without them.",
                "Answer the MAC address of one interface (six pairs of digits, not of a group) and a VLAN id from 1 to 4094.",
            ),
            Self::RepeatsRequest => (
                "repeats-request",
                must,
                "parentNicMac and subnet are required in the answer: what the provider used.",
                "Answer both as they were asked.",
            ),
            Self::SeveralAtOnce => (
                "several-at-once",
                must,
                "iaasIPsAllocationRequest is a list: a pod with several interfaces sends all of its addresses in one call.",
                "Bind all addresses of a call, or none of them and answer no 2xx.",
            ),
            Self::DistinctVlans => (
                "distinct-vlans",
                must,
                "The VLAN id tells a pod's interface from others on the same NIC: a kernel makes one device of an id.",
                "Give each address on a NIC an id that no other bound address of this NIC has.",
            ),
            Self::AllocateAgain => (
                "allocate-again",
                should,
                "Not demanded. A pod whose first answer was lost asks again, and starts at once if the answer is the same.",
                "Answer the same pod, node and NIC as before, with the same MAC address and VLAN id.",
            ),
            Self::BindsOnce => (
                "binds-once",
                must,
                "One release ends the binding, however often the address was asked for.",
                "Keep one binding for an address; a repeated call must not make another.",
            ),
            Self::Release => (
                "release",
                must,
                "A release is answered 2xx when it was accepted; the cloud may clean up later.",
                "Answer 2xx once the release cannot be lost any more.",
            ),
            Self::ReleaseAgain => (
                "release-again",
                must,
                "Release is idempotent: an address that is released already is answered 2xx.",
                "Answer 2xx, not 404 or 409, when there is nothing to release.",
            ),
            Self::AllocateAfterRelease => (
                "allocate-after-release",
                must,
                "A released address is free inside the cluster at once; another pod may ask for it.",
                "Let an allocate wait for the cloud's clean-up within its budget, or cancel that.",
            ),
            Self::ReleaseWithoutNic => (
                "release-without-nic",
                must,
                "parentNicMac may be missing or empty in a release: garbage collection runs on no node.",
                "Find the binding by its address.",
            ),
            Self::ReleaseWithoutPod => (
                "release-without-pod",
                must,
                "podName, podNamespace and podUID are optional.",
                "Find the binding by its address.",
            ),
            Self::ReleaseNeverBound => (
                "release-never-bound",
                must,
                "An address that the cloud does not know is answered 2xx: an allocate that was lost is undone that way.",
                "Answer 2xx when there is nothing to release.",
            ),
            Self::UnknownFields => (
                "unknown-fields",
                should,
                "Not demanded. A later version of the contract may send more fields.",
                "Ignore fields that you do not know.",
            ),
            Self::Budgets => (
                "budgets",
                must,
                "X-Request-Timeout-Ms is a positive integer; a pod's calls carry up to 99999.",
                "Read any positive integer and do not demand a fixed one.",
            ),
            Self::NothingAfterBudget => (
                "nothing-after-budget",
                must,
                "The header is the most time that a call may be worked on, counted from when it was received.",
                "Check the time that is left right before the cloud is called, after every wait, and answer no 2xx if it is over.",
            ),
            Self::AnswersWithinBudget => (
                "answers-within-budget",
                should,
                "The provider should answer before the budget is used up. Without an answer an address is unusable for a while.",
                "Answer 429 when the budget is about to end and nothing was done.",
            ),
        };
        About { name, level, contract, remedy }
    }
}
