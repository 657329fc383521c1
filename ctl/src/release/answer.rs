//! What became of each address.

use crate::table::table;
use serde::{Serialize, Serializer};
use store::Address;

/// What came of a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Outcome {
    /// The controller has freed it.
    Released,
    /// Nobody had it.
    Free,
    /// It was not asked for.
    Refused,
    /// The controller does not do it.
    TurnedDown,
    /// A right is missing.
    Forbidden,
    /// Asked for, and not free yet.
    Waits,
    /// Not asked for, whatever was tried.
    Failed,
}

/// One address.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Handled {
    #[serde(serialize_with = "text")]
    pub(super) address: Address,
    pub(super) outcome: Outcome,
    pub(super) text: String,
}

fn text<S: Serializer>(address: &Address, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(address)
}

impl Handled {
    pub(super) fn new(address: Address, outcome: Outcome, text: String) -> Self {
        Self { address, outcome, text }
    }
}

/// All of them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    addresses: Vec<Handled>,
}

impl Answer {
    pub(super) fn new(addresses: Vec<Handled>) -> Self {
        Self { addresses }
    }

    pub(super) fn is_ok(&self) -> bool {
        self.addresses.iter().all(|result| matches!(result.outcome, Outcome::Released | Outcome::Free))
    }

    pub(super) fn table(&self) -> String {
        let word = |outcome| match outcome {
            Outcome::Released => "released",
            Outcome::Free => "free",
            Outcome::Refused => "REFUSED",
            Outcome::TurnedDown => "TURNED DOWN",
            Outcome::Forbidden => "FORBIDDEN",
            Outcome::Waits => "WAITS",
            Outcome::Failed => "FAILED",
        };
        let row = |one: &Handled| [one.address.to_string(), word(one.outcome).to_owned(), one.text.clone()];
        let rows: Vec<_> = self.addresses.iter().map(row).collect();
        table(["ADDRESS", "OUTCOME", "WHY"], &rows)
    }
}
