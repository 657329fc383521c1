//! Which devices pods hold, as the kubelet says (`PodResources` API), and as it asked a moment ago (`Allocate`).

use super::handed_out::{FRESH, HandedOut};
use super::pod_resources::{Unknown, ask};
use prometheus_client::metrics::gauge::Gauge;
use runtime::{Chain, Pauses};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// Ids in use by resource name.
pub(crate) type Ids = BTreeMap<String, BTreeSet<String>>;

/// What the kubelet said, and a count that moves when devices were handed out since, or count so no longer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(super) ids: Arc<Ids>,
    handed_out: u64,
}

/// Between two questions to the kubelet when nothing happens.
const ASK: Duration = Duration::from_secs(30);
/// After an `Allocate`; the kubelet lists a pod a moment later.
const ASK_SOON: Duration = Duration::from_secs(1);
/// While many pods start, what they got is put together for this long.
const BURST: Duration = Duration::from_millis(100);
/// Before the agent believes at its start that it will not hear of what is in use. Three refused connections take a
/// quarter of a second.
const TRIES: u32 = 3;
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The latest that is known, and the task that keeps it. `None` until the kubelet has answered, or has not for a few
/// times, which takes some seconds at the most. `known` is 1 while it answers.
pub(crate) fn watch(
    sockets: Vec<PathBuf>,
    known: Gauge,
) -> (HandedOut, watch::Receiver<Option<Listed>>, impl Future<Output = Result<(), Infallible>>) {
    let handed_out = HandedOut::default();
    let (listed, latest) = watch::channel(None);
    let sockets: Arc<[PathBuf]> = sockets.into();
    let ask = move || {
        let sockets = Arc::clone(&sockets);
        async move { ask(&sockets).await }
    };
    (handed_out.clone(), latest, run(ask, handed_out, known, listed))
}

async fn run<Asked: Future<Output = Result<Ids, Unknown>>>(
    mut ask: impl FnMut() -> Asked,
    handed_out: HandedOut,
    known: Gauge,
    latest: watch::Sender<Option<Listed>>,
) -> Result<(), Infallible> {
    let mut listed = Listed::default();
    let mut said = String::new();
    let mut pauses = Pauses::new(PAUSE_MIN, PAUSE_MAX);
    let mut tries = 0;
    loop {
        let began = Instant::now();
        let answer = ask().await;
        known.set(answer.is_ok().into());
        tries = TRIES.min(tries + 1);
        let mut next = Instant::now();
        match answer {
            Ok(ids) => {
                said.clear();
                pauses.reset();
                listed.ids = Arc::new(ids);
                // First what took its place is published; see `HandedOut::in_use`.
                publish(&latest, &listed);
                listed.handed_out += u64::from(handed_out.expire(began));
                next += ASK;
                if let Some(oldest) = handed_out.oldest() {
                    next = next.min(oldest + FRESH);
                }
            }
            Err(error) => {
                let text = Chain(&error).to_string();
                if said != text {
                    tracing::warn!(
                        error = text,
                        "cannot learn which devices are in use; what was known before stays in the lists"
                    );
                    said = text;
                }
                next += pauses.pause();
                if tries < TRIES && latest.borrow().is_none() {
                    sleep_until(next).await;
                    continue;
                }
            }
        }
        loop {
            publish(&latest, &listed);
            // What many pods get while they start is told together.
            sleep(BURST).await;
            if timeout_at(next, handed_out.more()).await.is_err() {
                break;
            }
            listed.handed_out += 1;
            next = next.min(Instant::now() + ASK_SOON);
        }
    }
}

fn publish(latest: &watch::Sender<Option<Listed>>, listed: &Listed) {
    latest.send_if_modified(|before| before.replace(listed.clone()).as_ref() != Some(listed));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::ready;
    use std::sync::Mutex;
    use tokio::task::JoinSet;
    use tokio::time::advance;

    const LISTED: &str = "r-0";
    const GIVEN: &str = "r-7";

    fn answer(id: &str) -> Ids {
        Ids::from([("a/r".to_owned(), [id.to_owned()].into())])
    }

    /// `run` against a script of answers; the last one is given for ever.
    struct Asked {
        handed_out: HandedOut,
        latest: watch::Receiver<Option<Listed>>,
        known: Gauge,
        times: Arc<Mutex<Vec<Instant>>>,
        _task: JoinSet<Result<(), Infallible>>,
    }

    impl Asked {
        fn new(script: Vec<Option<&'static str>>) -> Self {
            let (handed_out, known, times) =
                (HandedOut::default(), Gauge::default(), Arc::<Mutex<Vec<Instant>>>::default());
            let (sender, latest) = watch::channel(None);
            let asked = Arc::clone(&times);
            let ask = move || {
                let mut asked = asked.lock().expect("whole");
                asked.push(Instant::now());
                let answered = script.get(asked.len() - 1).or(script.last()).copied().flatten();
                ready(answered.map(answer).ok_or(Unknown::Slow))
            };
            let mut task = JoinSet::new();
            task.spawn(run(ask, handed_out.clone(), known.clone(), sender));
            Self { handed_out, latest, known, times, _task: task }
        }

        fn give(&self) {
            self.handed_out.note(&"a/r".parse().expect("a name"), vec![GIVEN.to_owned()]);
        }

        fn in_use(&mut self) -> Vec<String> {
            self.handed_out.in_use(&mut self.latest).remove("a/r").unwrap_or_default().into_iter().collect()
        }

        async fn at_first(&mut self) -> Vec<String> {
            self.latest.wait_for(Option::is_some).await.expect("a value");
            self.in_use()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_device_counts_from_the_moment_it_is_handed_out() {
        let mut asked = Asked::new(vec![Some(LISTED)]);
        assert_eq!(asked.at_first().await, [LISTED]);
        asked.give();
        assert_eq!(asked.in_use(), [LISTED, GIVEN]);
        advance(FRESH * 9 / 10).await;
        assert_eq!(asked.in_use(), [LISTED, GIVEN]);
        let started = Instant::now();
        while asked.in_use() != [LISTED] {
            asked.latest.changed().await.expect("the end of the hand-out wakes who follows");
        }
        assert!(started.elapsed() <= FRESH / 10 + BURST, "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn who_knows_that_a_pod_has_gone_has_the_kubelet_asked_soon() {
        let mut asked = Asked::new(vec![Some(GIVEN), Some(LISTED)]);
        assert_eq!(asked.at_first().await, [GIVEN]);
        sleep(ASK / 3).await;
        let started = Instant::now();
        asked.handed_out.ask_soon();
        while asked.in_use() != [LISTED] {
            asked.latest.changed().await.expect("an answer");
        }
        assert!(started.elapsed() <= ASK_SOON + 2 * BURST, "{:?}", started.elapsed());
        sleep(ASK * 9 / 10).await;
        assert_eq!(asked.times.lock().expect("whole").len(), 2, "and once");
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_answer_it_counts_on_however_long() {
        let mut script = vec![Some(LISTED)];
        script.extend([None; 100]);
        script.push(Some(LISTED));
        let mut asked = Asked::new(script);
        assert_eq!(asked.at_first().await, [LISTED]);
        asked.give();
        while asked.times.lock().expect("whole").len() <= 100 {
            assert_eq!(asked.in_use(), [LISTED, GIVEN]);
            sleep(Duration::from_secs(1)).await;
        }
        sleep(PAUSE_MAX).await;
        assert_eq!((asked.in_use(), asked.known.get()), (vec![LISTED.to_owned()], 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_kubelet_that_does_not_say_is_asked_again_soon() {
        let asked = Asked::new(vec![Some(LISTED), None]);
        sleep(3 * ASK).await;
        assert_eq!(asked.known.get(), 0);
        let times = asked.times.lock().expect("whole").clone();
        assert!(times.len() > 10, "{}", times.len());
        let failed = times.get(1..).expect("some");
        let spans: Vec<Duration> = failed.iter().zip(failed.iter().skip(1)).map(|(one, next)| *next - *one).collect();
        assert!(spans.iter().all(|span| *span <= PAUSE_MAX + BURST), "{spans:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_in_use_is_believed_after_some_tries_only() {
        let mut answers_late = Asked::new(vec![None, None, Some(LISTED)]);
        assert_eq!(answers_late.at_first().await, [LISTED]);
        let mut never_answers = Asked::new(vec![None]);
        assert_eq!(never_answers.at_first().await, Vec::<String>::new());
        assert_eq!(never_answers.times.lock().expect("whole").len(), 3);
    }
}
