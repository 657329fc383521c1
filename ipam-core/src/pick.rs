//! One address by chance.

use crate::{Address, Ranges};

/// Guesses before what is left is worked out. Of a pool that is nine tenths full one more is needed in 1 of 5 picks.
const GUESSES: usize = 16;
/// Numbers that are thrown away because they would favour low addresses; each is needed in less than every other case.
const REDRAWS: usize = 64;

/// One of `from` that is not used, each with the same chance; `None` exactly if there is none. A pool costs what its ranges
/// cost, however many addresses they have; only of one that is nearly full are the `used` ones, all of them, asked for.
#[must_use]
pub(crate) fn pick(
    from: &Ranges,
    is_used: impl Fn(Address) -> bool,
    used: impl FnOnce() -> Ranges,
    mut random: impl FnMut() -> u128,
) -> Option<Address> {
    let count = from.count();
    for _ in 0..GUESSES {
        let guess = from.nth(below(count, &mut random)?)?;
        if !is_used(guess) {
            return Some(guess);
        }
    }
    let left = from.difference(&used());
    left.nth(below(left.count(), &mut random)?)
}

/// A number below `count`, each with the same chance.
fn below(count: u128, random: &mut impl FnMut() -> u128) -> Option<u128> {
    // What is beyond the last whole multiple would give the low numbers a chance more.
    let beyond = (u128::MAX.checked_rem(count)? + 1) % count;
    let mut drawn = random();
    for _ in 0..REDRAWS {
        if drawn <= u128::MAX - beyond {
            break;
        }
        drawn = random();
    }
    drawn.checked_rem(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, Range};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn pick(from: &Ranges, used: &BTreeSet<Address>, random: impl FnMut() -> u128) -> Option<Address> {
        let all = || used.iter().copied().map(Range::from).collect();
        super::pick(from, |address| used.contains(&address), all, random)
    }

    /// A known generator (`SplitMix64`), twice for each number.
    fn chance(seed: u64) -> impl FnMut() -> u128 {
        let mut state = seed;
        let mut next = move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        move || (u128::from(next()) << 64) | u128::from(next())
    }

    fn ranges(text: &str) -> Ranges {
        text.split_whitespace().map(|range| range.parse::<Range>().expect("a range")).collect()
    }

    fn at(number: u128) -> Address {
        Address::new(Family::V4, number).expect("an address")
    }

    proptest! {
        #[test]
        fn numbers_count_the_set(spans in proptest::collection::vec((0_u128..300, 0_u128..20), 0..12)) {
            let set: Ranges = spans.iter().filter_map(|(a, n)| Range::new(at(*a), at(a + n)).ok()).collect();
            let spelt: Vec<_> = (0..400).map(at).filter(|address| set.contains(*address)).collect();
            let counted: Vec<_> = (0..400).map_while(|n| set.nth(n)).collect();
            prop_assert_eq!(&counted, &spelt);
            prop_assert_eq!(set.nth(set.count()), None);
        }

        #[test]
        fn never_one_that_is_used_and_none_exactly_when_none_is_left(
            spans in proptest::collection::vec((0_u128..60, 0_u128..8), 0..4),
            used in proptest::collection::btree_set(0_u128..70, 0..70),
            seed: u64,
        ) {
            let set: Ranges = spans.iter().filter_map(|(a, n)| Range::new(at(*a), at(a + n)).ok()).collect();
            let used: BTreeSet<_> = used.into_iter().map(at).collect();
            let free = (0..70).map(at).any(|address| set.contains(address) && !used.contains(&address));
            let picked = pick(&set, &used, chance(seed));
            prop_assert_eq!(picked.is_some(), free);
            if let Some(address) = picked {
                prop_assert!(set.contains(address) && !used.contains(&address));
            }
        }
    }

    /// Chi-square of 5000 picks; the bound is that of 1 in 10 000 for so many kinds.
    fn is_uniform(from: &Ranges, used: &BTreeSet<Address>, kinds: u32, bound: f64) {
        const PICKS: u32 = 5_000;
        let (mut random, mut seen) = (chance(7), BTreeMap::<Address, u32>::new());
        for _ in 0..PICKS {
            *seen.entry(pick(from, used, &mut random).expect("some are free")).or_default() += 1;
        }
        assert_eq!(seen.len(), usize::try_from(kinds).expect("small"));
        let expected = f64::from(PICKS) / f64::from(kinds);
        let square: f64 = seen.values().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
        assert!(square < bound, "{square} of {kinds} kinds");
    }

    #[test]
    fn each_has_the_same_chance() {
        let two = ranges("10.0.0.0-10.0.0.31 10.0.9.0-10.0.9.67");
        is_uniform(&two, &BTreeSet::new(), 100, 161.4);
        let half = two.iter().flat_map(|range| std::iter::successors(Some(range.first()), |at| at.next()).take(16));
        is_uniform(&two, &half.collect(), 68, 120.5);
        // So few are left that guesses mostly fail: what is exact must be as fair.
        let crowded = ranges("10.0.0.0-10.0.3.255");
        let first = crowded.iter().next().expect("one").first().number();
        let used = (0..1024).filter(|n| n % 100 != 0).map(|n| at(first + n)).collect();
        is_uniform(&crowded, &used, 11, 35.6);
    }

    #[test]
    fn ends_of_the_largest_sets_are_reached() {
        let all = ranges("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 10.0.0.0-10.255.255.255");
        let none = BTreeSet::new();
        assert!(pick(&all, &none, chance(1)).is_some());
        assert_eq!(pick(&Ranges::default(), &none, chance(1)), None);
        assert_eq!(pick(&ranges("10.0.0.7"), &none, || u128::MAX), Some(ranges("10.0.0.7").nth(0).expect("one")));
        assert!(pick(&ranges("10.0.0.7-10.0.0.9"), &none, || u128::MAX).is_some(), "a broken source ends too");
    }
}
