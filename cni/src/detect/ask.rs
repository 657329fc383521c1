//! Sends questions again and again, and listens.

use super::ethernet::Frame;
use super::wire::Wire;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How often, and how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) times: u32,
    pub(super) spacing: Duration,
    /// After the last time.
    pub(super) last: Duration,
}

impl Round {
    pub(super) const fn length(&self) -> Duration {
        self.spacing.saturating_mul(self.times.saturating_sub(1)).saturating_add(self.last)
    }
}

/// One frame, and whom it is about.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) about: IpAddr,
    frame: Vec<u8>,
    due: bool,
    sent: bool,
}

impl Question {
    pub(super) fn new(about: IpAddr, frame: Vec<u8>) -> Self {
        Self { about, frame, due: false, sent: false }
    }
}

/// A link that is just coming up, or whose queue is full, takes a frame a moment later.
const AGAIN: Duration = Duration::from_millis(10);

/// Asks until `hear` has an answer, no question is left, the round is over, or it is `end`.
///
/// A question that could not be sent at all is an error: silence would say nothing.
pub(super) fn ask<T>(
    wire: &mut impl Wire,
    round: &Round,
    end: Instant,
    questions: &mut Vec<Question>,
    mut hear: impl FnMut(&Frame<'_>, &mut Vec<Question>) -> Option<T>,
) -> io::Result<Option<T>> {
    let began = Instant::now();
    let end = end.min(began + round.length());
    let mut refused = None;
    let mut buffer = [0; 2048];
    for time in 1..=round.times {
        let next = if time == round.times { end } else { end.min(began + round.spacing.saturating_mul(time)) };
        for question in questions.iter_mut() {
            question.due = true;
        }
        loop {
            for question in questions.iter_mut().filter(|question| question.due) {
                match wire.send(&question.frame) {
                    Ok(()) => (question.due, question.sent) = (false, true),
                    Err(error) if passes(&error) => refused = Some(error),
                    Err(error) => return Err(error),
                }
            }
            let now = Instant::now();
            if now >= next {
                break;
            }
            let due = questions.iter().any(|question| question.due);
            let until = if due { next.min(now + AGAIN) } else { next };
            match wire.receive(&mut buffer, until) {
                Ok(Some(length)) => {
                    let frame = buffer.get(..length).and_then(Frame::read);
                    if let Some(heard) = frame.and_then(|frame| hear(&frame, questions)) {
                        return Ok(Some(heard));
                    }
                    if questions.is_empty() {
                        return Ok(None);
                    }
                }
                Ok(None) => {}
                // A socket says once that its link went down.
                Err(error) if passes(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    match questions.iter().find(|question| !question.sent) {
        None => Ok(None),
        Some(_) => Err(refused.unwrap_or_else(|| ErrorKind::TimedOut.into())),
    }
}

/// Whether the same may work a moment later.
fn passes(error: &io::Error) -> bool {
    let passing = matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::NetworkDown);
    passing || error.raw_os_error() == Some(nix::libc::ENOBUFS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::libc::{EINTR, ENETDOWN, ENOBUFS, ENODEV};
    use std::collections::VecDeque;
    use std::net::Ipv4Addr;

    const ROUND: Round = Round { times: 3, spacing: Duration::from_millis(30), last: Duration::from_millis(60) };

    /// Does as it is told, and is silent when it has been told nothing.
    #[derive(Default)]
    struct Scripted {
        sends: VecDeque<i32>,
        receives: VecDeque<Result<usize, i32>>,
        forever: Option<Result<usize, i32>>,
        refuses: Option<i32>,
        sent: usize,
    }

    impl Wire for Scripted {
        fn send(&mut self, _: &[u8]) -> io::Result<()> {
            if let Some(error) = self.sends.pop_front().or(self.refuses) {
                return Err(io::Error::from_raw_os_error(error));
            }
            self.sent += 1;
            Ok(())
        }

        fn receive(&mut self, _: &mut [u8], until: Instant) -> io::Result<Option<usize>> {
            if let Some(scripted) = self.receives.pop_front().or(self.forever) {
                return scripted.map(Some).map_err(io::Error::from_raw_os_error);
            }
            #[allow(clippy::disallowed_methods, reason = "until then nothing comes")]
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            Ok(None)
        }
    }

    fn questions(count: u8) -> Vec<Question> {
        (0..count).map(|n| Question::new(Ipv4Addr::new(10, 0, 0, n).into(), vec![0; 14])).collect()
    }

    fn hears<T>(
        wire: &mut Scripted,
        count: u8,
        heard: impl Fn(&mut Vec<Question>) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let began = Instant::now();
        let ended = ask(wire, &ROUND, began + Duration::from_secs(9), &mut questions(count), |_, asked| heard(asked));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        ended
    }

    fn nothing(_: &mut Vec<Question>) -> Option<()> {
        None
    }

    #[test]
    fn asks_as_often_as_told_and_listens_to_the_end() {
        let (mut wire, began) = (Scripted::default(), Instant::now());
        assert!(hears(&mut wire, 2, nothing).is_ok_and(|heard| heard.is_none()));
        assert_eq!(wire.sent, 6, "two questions, three times");
        assert!(began.elapsed() >= ROUND.length());
        assert_eq!(ROUND.length(), Duration::from_millis(120));
    }

    #[test]
    fn ends_with_the_answer_or_the_last_question() {
        let mut wire = Scripted { receives: [Ok(3), Ok(14), Ok(14)].into(), ..Scripted::default() };
        assert_eq!(hears(&mut wire, 1, |_| Some(7)).expect("asked"), Some(7));
        assert_eq!((wire.sent, wire.receives.len()), (1, 1), "after the first that is a frame");
        let mut wire = Scripted { forever: Some(Ok(14)), ..Scripted::default() };
        let answered = |asked: &mut Vec<Question>| {
            asked.pop();
            None::<()>
        };
        assert!(hears(&mut wire, 3, answered).is_ok_and(|heard| heard.is_none()));
        assert_eq!(wire.sent, 3, "once");
    }

    #[test]
    fn the_time_is_over_whatever_comes() {
        for forever in [Ok(14), Ok(0), Ok(usize::MAX), Err(EINTR), Err(ENETDOWN)] {
            let mut wire = Scripted { forever: Some(forever), ..Scripted::default() };
            assert!(hears(&mut wire, 1, nothing).is_ok_and(|heard| heard.is_none()), "{forever:?}");
        }
        let (mut wire, began) = (Scripted::default(), Instant::now());
        let round = Round { spacing: Duration::from_mins(1), ..ROUND };
        let ended = ask(&mut wire, &round, began + Duration::from_millis(20), &mut questions(1), |_, _| None::<()>);
        assert!(ended.is_ok_and(|heard| heard.is_none()) && began.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn what_passes_is_tried_again_and_what_does_not_is_an_error() {
        let sends = [EINTR, ENOBUFS, ENETDOWN, ENETDOWN].into();
        let receives = [Err(EINTR), Err(ENETDOWN), Err(ENOBUFS), Ok(14)].into();
        let mut wire = Scripted { sends, receives, ..Scripted::default() };
        assert_eq!(hears(&mut wire, 1, |_| Some(7)).expect("asked"), Some(7));
        let mut wire = Scripted { refuses: Some(ENETDOWN), ..Scripted::default() };
        let error = hears(&mut wire, 1, nothing).expect_err("silence says nothing");
        assert_eq!(error.raw_os_error(), Some(ENETDOWN));
        for wire in [
            &mut Scripted { refuses: Some(ENODEV), ..Scripted::default() },
            &mut Scripted { forever: Some(Err(ENODEV)), ..Scripted::default() },
        ] {
            assert_eq!(hears(wire, 1, nothing).expect_err("gone").raw_os_error(), Some(ENODEV));
        }
    }
}
