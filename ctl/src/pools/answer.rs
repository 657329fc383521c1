//! What is said of pools.

use super::{Pool, Taken};
use crate::fault::{NotSeen, Seen};
use crate::held::{self, Held, Row};
use crate::plain::plain;
use crate::table::table;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use std::fmt::Write;
use store::Ranges;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    pools: Vec<One>,
    /// With a name: who has which address.
    #[serde(skip_serializing_if = "Option::is_none")]
    addresses: Option<Vec<Row>>,
    /// Why reserved addresses are not taken off what is free.
    #[serde(skip_serializing_if = "Option::is_none")]
    reserved_not_seen: Option<String>,
    #[serde(skip)]
    states: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each by itself, as the object says it")]
struct One {
    name: String,
    subnet: String,
    version: Option<i64>,
    total: u64,
    allocated: u64,
    free: u64,
    /// As the status says.
    status: Status,
    default: bool,
    disabled: bool,
    terminating: bool,
    unadopted: bool,
    restrictions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    allocated: Option<i64>,
    total: Option<i64>,
}

impl Answer {
    pub(super) fn new(
        pools: &[Pool],
        reserved: &Seen<Ranges>,
        taken: &Taken,
        addresses: Option<&[Held]>,
        now: Timestamp,
    ) -> Self {
        let none = Ranges::default();
        let off = reserved.as_ref().unwrap_or(&none);
        let state = |held: &Held| held.what.as_ref().map_or_else(|why| format!("cannot be read: {why}"), held::state);
        Self {
            pools: pools.iter().map(|pool| One::new(pool, off, taken)).collect(),
            addresses: addresses.map(|all| all.iter().map(|held| Row::of(held, now)).collect()),
            reserved_not_seen: reserved.as_ref().err().map(|NotSeen(why)| why.clone()),
            states: addresses.unwrap_or_default().iter().map(state).collect(),
        }
    }

    pub(super) fn table(&self) -> String {
        let rows: Vec<_> = self.pools.iter().map(One::row).collect();
        let headers = ["NAME", "SUBNET", "VERSION", "TOTAL", "ALLOCATED", "FREE", "STATE", "FOR"];
        let mut text = if rows.is_empty() { "no pools\n".to_owned() } else { table(headers, &rows) };
        if let Some(why) = &self.reserved_not_seen {
            // A `String` takes everything.
            let _ = writeln!(text, "\nreserved addresses are counted as free, they could not be read: {}", plain(why));
        }
        let Some(addresses) = &self.addresses else { return text };
        let headers = ["ADDRESS", "NAMESPACE", "POD", "INTERFACE", "NODE", "STATE", "AGE"];
        let rows: Vec<_> = addresses.iter().zip(&self.states).map(|(row, state)| cells(row, state)).collect();
        let all = if rows.is_empty() { "nobody has an address of it\n".to_owned() } else { table(headers, &rows) };
        format!("{text}\n{all}")
    }
}

/// One address as people read it.
fn cells(row: &Row, state: &str) -> [String; 7] {
    let or_dash =
        |text: &Option<String>| text.clone().filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned());
    [
        row.address.clone(),
        or_dash(&row.namespace),
        or_dash(&row.pod),
        or_dash(&row.interface),
        or_dash(&row.node),
        state.to_owned(),
        held::age(row.age_seconds),
    ]
}

impl One {
    fn new(pool: &Pool, reserved: &Ranges, taken: &Taken) -> Self {
        let mine = taken.get(&pool.name).map(Vec::as_slice).unwrap_or_default();
        // JSON of other languages has no more bits.
        let most = |count: u128| u64::try_from(count).unwrap_or(u64::MAX).min(i64::MAX.unsigned_abs());
        let [allocated, total] = pool.status;
        Self {
            name: pool.name.clone(),
            subnet: pool.subnet.clone(),
            version: pool.family.map(store::Family::version),
            total: most(pool.addresses.count()),
            allocated: u64::try_from(mine.len()).unwrap_or(u64::MAX),
            free: most(pool.free(reserved, mine)),
            status: Status { allocated, total },
            default: pool.default,
            disabled: pool.disabled,
            terminating: pool.terminating,
            unadopted: pool.unadopted,
            restrictions: pool.restrictions.clone(),
            fault: pool.fault.clone(),
        }
    }

    fn row(&self) -> [String; 8] {
        let same = |live: u64, said: Option<i64>| said.is_some_and(|said| u64::try_from(said) == Ok(live));
        let with = |live: u64, said: Option<i64>| match said {
            _ if same(live, said) => live.to_string(),
            Some(said) => format!("{live} (status: {said})"),
            None => format!("{live} (status: none)"),
        };
        let states = [
            (self.fault.is_some(), "cannot be read"),
            (self.terminating, "terminating"),
            (self.disabled, "disabled"),
            (self.unadopted, "not adopted"),
            (self.default, "default"),
        ];
        let states: Vec<_> = states.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
        let dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        [
            self.name.clone(),
            dash(self.subnet.clone()),
            self.version.map_or_else(|| "-".to_owned(), |version| version.to_string()),
            with(self.total, self.status.total),
            with(self.allocated, self.status.allocated),
            self.free.to_string(),
            dash(states.join(",")),
            if self.restrictions.is_empty() { "everybody".to_owned() } else { self.restrictions.join(" ") },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_shown_where_it_differs() {
        let ranges: Ranges = ["10.0.0.1-10.0.0.4".parse::<store::Range>().expect("a range")].into_iter().collect();
        let pool = |name: &str, status| Pool {
            name: name.to_owned(),
            subnet: "10.0.0.0/24".to_owned(),
            family: Some(store::Family::V4),
            addresses: ranges.clone(),
            status,
            ..Pool::default()
        };
        let pools = [pool("a", [Some(1), Some(4)]), pool("b", [Some(2), Some(4)]), pool("c", [None, None])];
        let taken = Taken::from([("a".to_owned(), vec!["10.0.0.1".parse().expect("an address")])]);
        let answer = Answer::new(&pools, &Ok(Ranges::default()), &taken, None, Timestamp::UNIX_EPOCH);
        assert_eq!(
            answer.table(),
            "NAME   SUBNET        VERSION   TOTAL              ALLOCATED          FREE   STATE   FOR\n\
             a      10.0.0.0/24   4         4                  1                  3      -       everybody\n\
             b      10.0.0.0/24   4         4                  0 (status: 2)      4      -       everybody\n\
             c      10.0.0.0/24   4         4 (status: none)   0 (status: none)   4      -       everybody\n"
        );
    }
}
