//! What a process knows of addresses beyond its own. Advice alone: the API server decides.
//!
//! Addresses are taken block by block: a process that was given one of a block goes on there, where others, who do the same,
//! are not. One refusal tells of a whole block that somebody else is there.

use crate::{Address, Range, Ranges};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So long it counts that somebody had an address, if no list says otherwise. While a pool fills up, what was learnt is as true
/// as before, and forgetting it costs refusals and lists.
const TAKEN: Duration = Duration::from_mins(5);
/// So long it counts that this process freed it.
const RELEASED: Duration = Duration::from_secs(30);
/// No more is remembered of addresses; older ones go first.
const MOST: usize = 1 << 16;
/// Addresses of a block, a power of 2. Two processes that fill a pool of 5000 guess wrong least with 16 to 32.
const BLOCK: u128 = 16;
/// Blocks that are worked through at a time. One that is left with room in it is found again when no new one is left.
const BEGUN: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Notes>);

#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Refused or listed, until then.
    taken: HashMap<Address, Duration>,
    /// Freed by this process, until then: not used again while anything else is free.
    released: HashMap<Address, Duration>,
    /// Being asked for by another flow.
    asked: BTreeSet<Address>,
    /// Blocks in which this process was given addresses, and in which there may be more.
    begun: VecDeque<Range>,
    /// Blocks in which somebody else was met, until then.
    others: HashMap<Range, Duration>,
}

/// An address that a flow asks for, until that has its answer or is dropped.
pub(super) struct Asked<'a> {
    known: &'a Known,
    pub(super) address: Address,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.known.notes().asked.remove(&self.address);
    }
}

impl Known {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the address that is chosen by what is known now.
    pub(super) fn ask(&self, choose: impl FnOnce(&mut Notes) -> Option<Address>) -> Option<Asked<'_>> {
        let mut notes = self.notes();
        let address = choose(&mut notes)?;
        notes.asked.insert(address);
        Some(Asked { known: self, address })
    }

    /// The API server gave it to this process.
    pub(super) fn given(&self, address: Address, now: Duration) {
        let (mut notes, block) = (self.notes(), block(address));
        if notes.begun.contains(&block) || counts(&notes.others, &block, now) {
            return;
        }
        if notes.begun.len() >= BEGUN {
            notes.begun.pop_front();
        }
        notes.begun.push_back(block);
    }

    /// Somebody else has it.
    pub(super) fn refused(&self, address: Address, now: Duration) {
        self.notes().taken(address, now);
    }

    /// What a list of a pool says goes before all that was learnt of it: these others have.
    pub(super) fn listed(&self, pool: &Ranges, others: impl IntoIterator<Item = Address>, now: Duration) {
        let mut notes = self.notes();
        notes.taken.retain(|address, _| !pool.contains(*address));
        notes.others.retain(|block, _| pool.within(*block).is_empty());
        for address in others {
            notes.taken(address, now);
        }
    }

    pub(super) fn released(&self, address: Address, now: Duration) {
        let mut notes = self.notes();
        notes.taken.remove(&address);
        notes.released.insert(address, now.saturating_add(RELEASED));
        tidy(&mut notes.released, now);
    }
}

impl Notes {
    fn taken(&mut self, address: Address, now: Duration) {
        let (until, block) = (now.saturating_add(TAKEN), block(address));
        self.taken.insert(address, until);
        self.others.insert(block, until);
        self.begun.retain(|begun| *begun != block);
        tidy(&mut self.taken, now);
        tidy(&mut self.others, now);
    }

    /// Whether somebody else has it or another flow asks for it.
    pub(super) fn is_taken(&self, address: Address, now: Duration) -> bool {
        self.asked.contains(&address) || counts(&self.taken, &address, now)
    }

    pub(super) fn is_released(&self, address: Address, now: Duration) -> bool {
        counts(&self.released, &address, now)
    }

    /// Whether its block is another's, or another flow tries whether it is.
    pub(super) fn is_entered(&self, address: Address, now: Duration) -> bool {
        let block = block(address);
        self.is_tried(block) || counts(&self.others, &block, now)
    }

    fn is_tried(&self, block: Range) -> bool {
        self.asked.range(block.first()..=block.last()).next().is_some()
    }

    /// All that are taken.
    pub(super) fn all_taken(&self, now: Duration) -> Ranges {
        valid(&self.taken, now).map(Range::from).chain(self.asked.iter().copied().map(Range::from)).collect()
    }

    pub(super) fn all_released(&self, now: Duration) -> Ranges {
        valid(&self.released, now).map(Range::from).collect()
    }

    /// All blocks that are entered.
    pub(super) fn all_entered(&self, now: Duration) -> Ranges {
        valid(&self.others, now).chain(self.asked.iter().copied().map(block)).collect()
    }

    /// In the first block of `from` that is begun and has something, what `choose` chooses of it. Blocks that have nothing
    /// more are left.
    pub(super) fn in_begun(
        &mut self,
        from: &Ranges,
        choose: impl Fn(&Self, &Ranges) -> Option<Address>,
    ) -> Option<Address> {
        let mut found = None;
        let mut begun = std::mem::take(&mut self.begun);
        begun.retain(|block| {
            let near = from.within(*block);
            if found.is_some() || near.is_empty() {
                return true;
            }
            found = choose(self, &near);
            found.is_some() || self.is_tried(*block)
        });
        self.begun = begun;
        found
    }
}

fn block(address: Address) -> Range {
    let first = address.number() & !(BLOCK - 1);
    let at = |number| Address::new(address.family(), number);
    let whole = at(first).zip(at(first | (BLOCK - 1))).and_then(|(first, last)| Range::new(first, last).ok());
    // Families have whole blocks; there is no other case.
    whole.unwrap_or_else(|| address.into())
}

fn counts<T: std::hash::Hash + Eq>(times: &HashMap<T, Duration>, what: &T, now: Duration) -> bool {
    times.get(what).is_some_and(|until| *until > now)
}

fn valid<T: Copy>(times: &HashMap<T, Duration>, now: Duration) -> impl Iterator<Item = T> {
    times.iter().filter(move |(_, until)| **until > now).map(|(what, _)| *what)
}

fn tidy<T: std::hash::Hash + Eq>(times: &mut HashMap<T, Duration>, now: Duration) {
    if times.len() > MOST {
        times.retain(|_, until| *until > now);
    }
    if times.len() > MOST {
        times.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().expect("an address")
    }

    fn begun(known: &Known) -> Vec<String> {
        known.notes().begun.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_block_is_begun_until_somebody_is_met_there_and_again_when_that_is_long_ago() {
        let (known, begin) = (Known::default(), Duration::ZERO);
        known.given(address("10.0.0.17"), begin);
        known.given(address("10.0.0.31"), begin);
        assert_eq!(begun(&known), ["10.0.0.16-10.0.0.31"]);
        known.refused(address("10.0.0.20"), begin);
        known.given(address("10.0.0.21"), begin);
        assert!(begun(&known).is_empty(), "somebody else is there");
        known.given(address("10.0.0.22"), begin + TAKEN);
        assert_eq!(begun(&known), ["10.0.0.16-10.0.0.31"]);
    }

    #[test]
    fn a_list_goes_before_what_was_learnt_of_its_pool() {
        let (known, now) = (Known::default(), Duration::ZERO);
        for text in ["10.0.0.1", "10.0.0.200", "10.9.0.1"] {
            known.refused(address(text), now);
        }
        let pool: Ranges = "10.0.0.0-10.0.0.255".parse::<Range>().expect("a range").into();
        known.listed(&pool, [address("10.0.0.200")], now);
        let notes = known.notes();
        let taken = ["10.0.0.1", "10.0.0.200", "10.9.0.1"].map(|text| notes.is_taken(address(text), now));
        assert_eq!(taken, [false, true, true]);
        let entered = ["10.0.0.1", "10.0.0.201", "10.9.0.9"].map(|text| notes.is_entered(address(text), now));
        assert_eq!(entered, [false, true, true]);
    }

    #[test]
    fn what_is_asked_for_is_taken_until_the_answer() {
        let (known, now) = (Known::default(), Duration::ZERO);
        let asked = known.ask(|_| Some(address("10.0.0.1"))).expect("chosen");
        assert!(known.notes().is_taken(asked.address, now) && known.notes().is_entered(address("10.0.0.2"), now));
        drop(asked);
        assert!(!known.notes().is_taken(address("10.0.0.1"), now));
    }
}
