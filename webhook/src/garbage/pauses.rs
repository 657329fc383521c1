//! Who is looked at when: what was looked at and stays is left in peace for longer each time.

use crate::usage::{Suspect, Suspects, Suspicion, Wanted};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

const FIRST: Duration = Duration::from_secs(5);
/// Of what stays suspect: a few reads each time.
const MOST: Duration = Duration::from_mins(10);
/// Of a machine that may be started at any time, and mostly is not.
const MOST_MACHINE: Duration = Duration::from_mins(1);
/// A pod may wait for it.
const MOST_URGENT: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub(super) struct Pauses(HashMap<Suspect, Pause>);

#[derive(Debug)]
struct Pause {
    suspicion: Suspicion,
    until: Instant,
    length: Duration,
}

impl Pauses {
    /// Those whose time has come, urgent ones first. Who is suspect no more is forgotten, and who is suspect for another reason is due.
    pub(super) fn due(&mut self, suspects: &Suspects, now: Instant) -> Vec<(Suspect, Suspicion)> {
        self.0.retain(|suspect, pause| suspects.get(suspect) == Some(&pause.suspicion));
        let due = suspects.iter().filter(|(suspect, _)| self.0.get(*suspect).is_none_or(|pause| pause.until <= now));
        let mut due: Vec<_> = due.map(|(suspect, suspicion)| (suspect.clone(), suspicion.clone())).collect();
        due.sort_by_key(|(_, suspicion)| !suspicion.is_urgent());
        due
    }

    /// It was looked at, and is not to be looked at for a while.
    pub(super) fn looked(&mut self, suspect: Suspect, suspicion: Suspicion, now: Instant) {
        let most = match suspicion.wanted {
            _ if suspicion.is_urgent() => MOST_URGENT,
            Wanted::Perhaps => MOST_MACHINE,
            Wanted::No | Wanted::Yes => MOST,
        };
        let before = self.0.get(&suspect).map(|pause| pause.length * 2);
        let length = before.unwrap_or(FIRST).min(most);
        self.0.insert(suspect, Pause { suspicion, until: now + length, length });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_something_changes() {
        let suspect = Suspect::Endpoint("a".into(), "b".into());
        let suspects = |version: &str, wanted: bool| {
            let wanted = if wanted { Wanted::Yes } else { Wanted::No };
            let suspicion = Suspicion { version: version.into(), wanted, ..Suspicion::default() };
            Suspects::from([(suspect.clone(), suspicion)])
        };
        let (mut pauses, mut now) = (Pauses::default(), Instant::now());
        let mut waits = |suspects: &Suspects| {
            let mut seconds = 0;
            while pauses.due(suspects, now).is_empty() {
                (seconds, now) = (seconds + 1, now + Duration::from_secs(1));
            }
            for (suspect, suspicion) in pauses.due(suspects, now) {
                pauses.looked(suspect, suspicion, now);
            }
            seconds
        };
        let same = suspects("1", false);
        assert_eq!([0; 9].map(|_: i32| waits(&same)), [0, 5, 10, 20, 40, 80, 160, 320, 600]);
        let wanted = suspects("2", true);
        assert_eq!([0; 4].map(|_: i32| waits(&wanted)), [0, 5, 10, 15], "due at once, and soon again");
        assert_eq!(waits(&suspects("3", true)), 0, "another version");

        let calm = (Suspect::Endpoint("a".into(), "calm".into()), Suspicion::default());
        let both: Suspects = suspects("4", true).into_iter().chain([calm]).collect();
        assert_eq!(pauses.due(&both, now)[0].0, suspect);
    }
}
