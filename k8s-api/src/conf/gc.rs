//! `gc`: addresses and endpoints that were left behind.

use super::section::Section;
use crate::{Quoted, duration};
use std::time::Duration;

/// What the controller that leads does about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gc {
    /// `gc.enabled`: whether they are looked for at all.
    pub enabled: bool,
    /// `gc.dryRun`: whether it is only said what would be freed.
    pub dry_run: bool,
    /// `gc.nodeGoneAfter`: so long a Node has to be missed until its machine counts as switched off.
    pub node_gone_after: Duration,
}

/// A kubelet that lost its Node registers it again well within the lower one.
const GONE_MIN: Duration = Duration::from_mins(1);
const GONE_MAX: Duration = Duration::from_hours(24);

impl Default for Gc {
    fn default() -> Self {
        Self { enabled: true, dry_run: false, node_gone_after: Duration::from_mins(10) }
    }
}

impl Gc {
    pub(super) fn read(mut section: Section<'_, '_>) -> Self {
        let mut gc = Self::default();
        gc.enabled = section.flag("enabled").unwrap_or(gc.enabled);
        gc.dry_run = section.flag("dryRun").unwrap_or_default();
        if let Some(found) = section.text("nodeGoneAfter").filter(|found| !found.value.is_empty()) {
            match duration::read(found.value).filter(|read| (GONE_MIN..=GONE_MAX).contains(read)) {
                Some(read) => gc.node_gone_after = read,
                None => section.fault(
                    found.line,
                    format!("{} {} must be a duration from 1m to 24h, such as 10m", found.path, Quoted(found.value)),
                ),
            }
        }
        section.end();
        gc
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::Conf;

    #[test]
    fn what_is_not_said_is_as_it_always_was() {
        for text in ["{}", "gc: {}", "gc: {enabled: true, nodeGoneAfter: ''}"] {
            assert_eq!(Conf::parse(text).expect("valid").gc, Gc::default(), "{text:?}");
        }
        let gc = Conf::parse("gc: {enabled: false, dryRun: true, nodeGoneAfter: 1h30m}").expect("valid").gc;
        assert_eq!(gc, Gc { enabled: false, dry_run: true, node_gone_after: Duration::from_mins(90) });
    }

    #[test]
    fn a_time_that_frees_what_lives_or_nothing_is_refused() {
        for odd in ["0s", "59s", "-10m", "24h1s", "10", "ten", "99999999999h", "99999999999999999999999999h", "1h-5m"] {
            let faults = Conf::parse(&format!("gc: {{nodeGoneAfter: {odd:?}}}")).expect_err(odd).to_string();
            assert!(
                faults.contains(&format!("gc.nodeGoneAfter {odd:?} must be a duration from 1m to 24h")),
                "{faults}"
            );
        }
        let faults = Conf::parse("gc: {interval: 600}").expect_err("unknown").to_string();
        assert!(faults.contains("gc.interval"), "{faults}");
    }
}
