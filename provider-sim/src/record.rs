//! What was asked and what came of it, the latest of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::VecDeque;

/// So many are kept.
const MOST: usize = 10_000;
/// Bytes of bodies that are kept in all.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// What came of a call in the cloud. What was answered is another matter: that is where faults come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is not decided yet.
    #[default]
    Pending,
    /// The addresses are bound.
    Bound,
    /// The address was bound and is no more.
    Unbound,
    /// As [`Outcome::Unbound`], but it was bound for a pod of another UID than the one that sent the release.
    ForeignUnbound,
    /// The address was not bound.
    NotBound,
    /// Refused; nothing was done.
    Refused,
    /// A fault was asked for in which nothing is done.
    Skipped,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Counts from 1.
    pub seq: u64,
    /// Which call.
    pub path: String,
    /// Its body; `null` if it is no JSON.
    pub body: Value,
    /// What `X-Request-Timeout-Ms` announced; `null` if that cannot be read.
    pub budget_ms: Option<u64>,
    /// When it came, in milliseconds since 1970.
    pub at: u64,
    /// What came of it.
    pub outcome: Outcome,
    /// The status that was answered, or begun to be; `null` if none was.
    pub status: Option<u16>,
    /// The fault that was asked for.
    pub fault: Option<String>,
}

/// The latest records. The oldest go first.
#[derive(Debug, Default)]
pub(crate) struct Records {
    kept: VecDeque<(usize, Record)>,
    bytes: usize,
    last: u64,
}

impl Records {
    /// A call came. Returns its number.
    pub(crate) fn open(&mut self, path: &str, at: u64) -> u64 {
        self.last = self.last.saturating_add(1);
        let record = Record {
            seq: self.last,
            path: path.to_owned(),
            body: Value::Null,
            budget_ms: None,
            at,
            outcome: Outcome::Pending,
            status: None,
            fault: None,
        };
        self.kept.push_back((0, record));
        self.trim();
        self.last
    }

    /// Its body was read.
    pub(crate) fn body(&mut self, seq: u64, body: &[u8]) {
        let value = serde_json::from_slice(body).unwrap_or_default();
        if let Some((bytes, record)) = self.find(seq) {
            *bytes = body.len();
            record.body = value;
            self.bytes = self.bytes.saturating_add(body.len());
        }
        self.trim();
    }

    /// Something is known of it.
    pub(crate) fn note(&mut self, seq: u64, change: impl FnOnce(&mut Record)) {
        if let Some((_, record)) = self.find(seq) {
            change(record);
        }
    }

    /// Those after number `after`, oldest first.
    pub(crate) fn since(&self, after: u64) -> impl Iterator<Item = &Record> {
        self.kept.iter().map(|(_, record)| record).filter(move |record| record.seq > after)
    }

    /// Forgets all of them. Numbers go on.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.bytes = 0;
    }

    fn find(&mut self, seq: u64) -> Option<&mut (usize, Record)> {
        let at = self.kept.binary_search_by_key(&seq, |(_, record)| record.seq).ok()?;
        self.kept.get_mut(at)
    }

    fn trim(&mut self) {
        while self.kept.len() > MOST || self.bytes > MOST_BYTES {
            let Some((bytes, _)) = self.kept.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first() {
        let mut records = Records::default();
        let large = format!("\"{}\"", "x".repeat(MOST_BYTES / 4));
        for _ in 0..6 {
            let seq = records.open("/", 0);
            records.body(seq, large.as_bytes());
        }
        let kept: Vec<u64> = records.since(0).map(|record| record.seq).collect();
        assert_eq!(kept, [4, 5, 6], "three of a quarter and two bytes");
        records.note(1, |_| panic!("it is gone"));
        records.note(5, |record| record.status = Some(200));
        assert_eq!(records.since(4).map(|record| record.status).collect::<Vec<_>>(), [Some(200), None]);

        let mut records = Records::default();
        for _ in 0..MOST + 5 {
            records.open("/", 0);
        }
        assert_eq!(records.since(0).count(), MOST);
    }
}
