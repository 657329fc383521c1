//! The checks themselves.

mod binding;
mod budget;
mod releasing;

use super::id::Id;
use super::report::Verdict;
use super::session::Session;

/// How a check ended: what came of it, or what stood in its way.
pub(super) type Seen = Result<String, Short>;

/// A check that fell short.
#[derive(Clone, Debug)]
pub(super) struct Short {
    pub(super) verdict: Verdict,
    pub(super) asked: String,
    pub(super) came: String,
}

impl Short {
    #[allow(clippy::needless_pass_by_value, reason = "texts and replies are handed over alike")]
    pub(super) fn fail(asked: impl Into<String>, came: impl ToString) -> Self {
        Self { verdict: Verdict::Fail, asked: asked.into(), came: came.to_string() }
    }

    pub(super) fn skip(why: impl Into<String>) -> Self {
        Self { verdict: Verdict::Skip, asked: String::new(), came: why.into() }
    }
}

impl Session {
    /// Runs a check.
    pub(super) async fn look(&self, id: Id) -> Seen {
        match id {
            Id::AllocateBinds => self.allocate_binds().await,
            Id::MacAndVlan => self.mac_and_vlan().await,
            Id::RepeatsRequest => self.repeats_request().await,
            Id::SeveralAtOnce => self.several_at_once().await,
            Id::DistinctVlans => self.distinct_vlans().await,
            Id::AllocateAgain => self.allocate_again().await,
            Id::BindsOnce => self.binds_once().await,
            Id::Release => self.release_is_accepted().await,
            Id::ReleaseAgain => self.release_again().await,
            Id::AllocateAfterRelease => self.allocate_after_release().await,
            Id::ReleaseWithoutNic => self.release_without_nic().await,
            Id::ReleaseWithoutPod => self.release_without_pod().await,
            Id::ReleaseNeverBound => self.release_never_bound().await,
            Id::UnknownFields => self.unknown_fields().await,
            Id::Budgets => self.budgets().await,
            Id::NothingAfterBudget => self.nothing_after_budget().await,
            Id::AnswersWithinBudget => self.answers_within_budget(),
        }
    }
}
