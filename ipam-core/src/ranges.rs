//! Sets of addresses.

use crate::address::Address;
use crate::range::Range;
use std::fmt;

/// A set of addresses, of one family or both. Its ranges are in order and apart: no address is in two of them, and two that
/// touch are one. So two sets are equal exactly if they have the same addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ranges(Vec<Range>);

impl Ranges {
    /// The ranges, in order and apart.
    pub fn iter(&self) -> impl Iterator<Item = Range> {
        self.0.iter().copied()
    }

    /// Whether there is no address.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many addresses; what does not fit is the largest number.
    #[must_use]
    pub fn count(&self) -> u128 {
        self.iter().fold(0, |sum, range| sum.saturating_add(range.count()))
    }

    /// Whether `address` is one of them.
    #[must_use]
    pub fn contains(&self, address: Address) -> bool {
        let after = self.0.partition_point(|range| range.first() <= address);
        let before = after.checked_sub(1).and_then(|at| self.0.get(at));
        before.is_some_and(|range| range.contains(address))
    }

    /// Those that lie in `range`.
    #[must_use]
    pub fn within(&self, range: Range) -> Self {
        let from = self.0.partition_point(|one| one.last() < range.first());
        let near = self.0.iter().skip(from).take_while(|one| one.first() <= range.last());
        Self(near.filter_map(|one| one.intersection(range)).collect())
    }

    /// Address number `n` of the set, from 0.
    #[must_use]
    pub fn nth(&self, mut n: u128) -> Option<Address> {
        for range in self.iter() {
            // The whole of IPv6 has one more than its count; nobody can ask for that.
            match n.checked_sub(range.count()) {
                Some(rest) => n = rest,
                None => return Address::new(range.family(), range.first().number().checked_add(n)?),
            }
        }
        None
    }

    /// The addresses of both together.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.iter().chain(other.iter()).collect()
    }

    /// The addresses that both have.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut mine, mut theirs) = (self.iter().peekable(), other.iter().peekable());
        let mut common = Vec::new();
        while let (Some(a), Some(b)) = (mine.peek().copied(), theirs.peek().copied()) {
            common.extend(a.intersection(b));
            // The one that ends first meets nothing more.
            if a.last() < b.last() {
                mine.next()
            } else {
                theirs.next()
            };
        }
        Self(common)
    }

    /// The addresses that `other` lacks.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut theirs = other.iter().peekable();
        let mut left = Vec::new();
        for range in self.iter() {
            let mut rest = Some(range);
            while let (Some(mine), Some(hole)) = (rest, theirs.peek().copied()) {
                if hole.first() > mine.last() {
                    break;
                }
                if hole.last() >= mine.first() {
                    left.extend(between(mine.first(), hole.first().previous()));
                    rest = hole.last().next().and_then(|next| Range::new(next, mine.last()).ok());
                    if hole.last() > mine.last() {
                        // It may reach into the next one too.
                        break;
                    }
                }
                theirs.next();
            }
            left.extend(rest);
        }
        Self(left)
    }
}

fn between(first: Address, last: Option<Address>) -> Option<Range> {
    Range::new(first, last?).ok()
}

impl FromIterator<Range> for Ranges {
    fn from_iter<T: IntoIterator<Item = Range>>(ranges: T) -> Self {
        let mut all: Vec<Range> = ranges.into_iter().collect();
        all.sort_unstable();
        let mut apart: Vec<Range> = Vec::with_capacity(all.len());
        for range in all {
            let joined = apart.last_mut().and_then(|before| Some((join(*before, range)?, before)));
            match joined {
                Some((whole, before)) => *before = whole,
                None => apart.push(range),
            }
        }
        Self(apart)
    }
}

/// Two ranges as one, where nothing lies between them. `before` does not begin after `range`.
fn join(before: Range, range: Range) -> Option<Range> {
    let touches = before.family() == range.family() && before.last().next().is_none_or(|next| range.first() <= next);
    if touches { Range::new(before.first(), before.last().max(range.last())).ok() } else { None }
}

impl From<Range> for Ranges {
    fn from(only: Range) -> Self {
        Self(vec![only])
    }
}

/// `a-b, c`: at most ten ranges, and how many more there are.
impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        for (n, range) in self.iter().take(SHOWN).enumerate() {
            write!(f, "{}{range}", if n == 0 { "" } else { ", " })?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Family;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn ranges(texts: &[&str]) -> Ranges {
        texts.iter().map(|text| text.parse::<Range>().expect("a range")).collect()
    }

    /// Both families near both of their ends, so that nothing may run over.
    fn address(at: u8) -> Address {
        let (family, low) = match at / 64 {
            0 => (Family::V4, 0),
            1 => (Family::V4, Family::V4.last() - 63),
            2 => (Family::V6, 0),
            _ => (Family::V6, Family::V6.last() - 63),
        };
        Address::new(family, low + u128::from(at % 64)).expect("in the family")
    }

    /// Ranges within one of the four stretches.
    fn some() -> impl Strategy<Value = Vec<(u8, u8)>> {
        let one = (0_u8..4, 0_u8..64, 0_u8..64)
            .prop_map(|(stretch, a, b)| (stretch * 64 + a.min(b), stretch * 64 + a.max(b)));
        proptest::collection::vec(one, 0..12)
    }

    fn set(of: &[(u8, u8)]) -> Ranges {
        of.iter().map(|(a, b)| Range::new(address(*a), address(*b)).expect("in order")).collect()
    }

    fn naive(of: &[(u8, u8)]) -> BTreeSet<u8> {
        of.iter().flat_map(|(a, b)| *a..=*b).collect()
    }

    /// The set that a naive one stands for, address by address.
    fn spelt(of: &BTreeSet<u8>) -> Ranges {
        of.iter().map(|at| Range::from(address(*at))).collect()
    }

    proptest! {
        #[test]
        fn agrees_with_sets_of_single_addresses(a in some(), b in some()) {
            let (mine, theirs) = (set(&a), set(&b));
            let (x, y) = (naive(&a), naive(&b));
            prop_assert_eq!(&mine, &spelt(&x));
            prop_assert_eq!(mine.count(), u128::try_from(x.len()).expect("small"));
            prop_assert_eq!(mine.union(&theirs), spelt(&(&x | &y)));
            prop_assert_eq!(mine.intersection(&theirs), spelt(&(&x & &y)));
            prop_assert_eq!(mine.difference(&theirs), spelt(&(&x - &y)));
            for range in theirs.iter() {
                prop_assert_eq!(mine.within(range), mine.intersection(&range.into()));
            }
            for at in 0..=255 {
                prop_assert_eq!(mine.contains(address(at)), x.contains(&at));
            }
            prop_assert!(mine.is_empty() == x.is_empty());
        }

        #[test]
        fn ranges_are_in_order_and_apart(a in some()) {
            let all: Vec<_> = set(&a).iter().collect();
            for pair in all.windows(2) {
                let [before, after] = pair else { unreachable!("windows of two") };
                let apart = before.last().next().is_none_or(|next| next < after.first());
                prop_assert!(before.last() < after.first() && (apart || before.family() != after.family()));
            }
        }
    }

    #[test]
    fn large_sets_cost_nothing() {
        let all = ranges(&["10.0.0.0-10.255.255.255", "fd00::-fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]);
        let without = all.difference(&ranges(&["10.0.0.5", "fd00::7"]));
        assert_eq!(without.iter().count(), 4);
        assert_eq!(all.difference(&without), ranges(&["10.0.0.5", "fd00::7"]));
        assert_eq!(ranges(&["::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "1.1.1.1"]).count(), u128::MAX);
    }

    #[test]
    fn is_shown_shortly() {
        assert_eq!(ranges(&["10.0.0.3", "10.0.0.1-10.0.0.2", "10.0.0.9"]).to_string(), "10.0.0.1-10.0.0.3, 10.0.0.9");
        let many: Ranges = (0..12_u128).filter_map(|n| Address::new(Family::V4, n * 2)).map(Range::from).collect();
        assert!(many.to_string().ends_with("0.0.0.18 and 2 more"), "{many}");
        assert_eq!(ranges(&[]).to_string(), "");
    }
}
