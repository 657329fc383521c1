//! What was last said to the pod.

use super::super::facts::{Facts, Occurred};
use super::advice::advice;
use crate::finding::Finding;
use crate::held::age;

const STEP: &str = "events";
/// Others repeat them.
const SHOWN: usize = 3;
/// What a runtime makes of a CNI error is long, and the cause stands at its end.
const LONGEST: usize = 700;

pub(super) fn events(facts: &Facts) -> Vec<Finding> {
    let all = match &facts.events {
        Err(why) => return vec![Finding::not_seen(STEP, why)],
        Ok(all) => all,
    };
    let mut seen = Vec::new();
    for event in all.iter().filter(|event| event.warning) {
        // The text has the name of a sandbox, which is another one each time.
        if seen.len() < SHOWN && !seen.iter().any(|one: &&Occurred| one.reason == event.reason) {
            seen.push(event);
        }
    }
    seen.into_iter().map(|event| one(facts, event)).collect()
}

fn one(facts: &Facts, event: &Occurred) -> Finding {
    let since = event.at.map(|at| format!("{} ago, ", age(facts.now.as_second() - at.as_second())));
    let text = format!("{}{}: {}", since.unwrap_or_default(), event.reason, shortened(&event.message));
    // What was said to a pod that runs is over; why it is on no node is said above.
    if event.reason == "FailedCreatePodSandBox" && facts.pod.is_some() && !facts.runs() && !facts.has_ended() {
        return Finding::wrong(STEP, text, advice(&event.message));
    }
    Finding::note(STEP, text)
}

fn shortened(text: &str) -> String {
    let count = text.chars().count();
    match count.checked_sub(LONGEST).filter(|more| *more > 0) {
        None => text.to_owned(),
        Some(more) => format!("…{}", text.chars().skip(more).collect::<String>()),
    }
}
