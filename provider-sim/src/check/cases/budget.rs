//! What a provider does with its time.
//!
//! The contract has no call that says what is bound, so that a late binding is seen by what it does: calls with a small budget
//! are sent, given up when it ends, and released once they are settled. What binds after that release stands in the way of
//! another pod, or takes the address from it. A binding that is late but done before the release is not seen, and harms nobody;
//! one that comes later than `--watch` is not seen either.

use super::{Seen, Short};
use crate::check::session::{Pod, SETTLE, Session};
use futures::future::join_all;
use ipam_core::Address;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Budgets that calls carry. The last is the most: plugins are given up after 100 s.
const USUAL: [u64; 3] = [20_000, 50_000, 99_999];
/// How long the other pod keeps the address before it is asked for again.
const STAYS: Duration = Duration::from_millis(500);

impl Session {
    pub(super) async fn budgets(&self) -> Seen {
        for milliseconds in USUAL {
            let (pod, address) = (self.pod(), self.address()?);
            let body = self.allocate_body(&pod, &[address]);
            let reply = self.allocate(&body, &[address], Duration::from_millis(milliseconds)).await;
            let asked = || format!("allocate-ips with X-Request-Timeout-Ms: {milliseconds}, {body}");
            reply.good().ok_or_else(|| Short::fail(asked(), &reply))?;
            let _ = self.free(&pod, &[address]).await;
        }
        Ok(format!("{USUAL:?} ms"))
    }

    pub(super) async fn nothing_after_budget(&self) -> Seen {
        let budget = self.bounds.small_budget;
        let calls = (0..self.bounds.burst).map(|_| Ok((self.pod(), self.address()?)));
        let calls = calls.collect::<Result<Vec<(Pod, Address)>, Short>>()?;
        let settled = Instant::now() + budget + SETTLE;
        let replies = join_all(calls.iter().map(async |(pod, address)| {
            self.allocate(&self.allocate_body(pod, &[*address]), &[*address], budget).await
        }));
        let replies = replies.await;
        if let Some(((_, address), taken)) = calls.iter().zip(&replies).find(|(_, reply)| reply.is_conflict()) {
            let came = format!("{taken}; somebody has this address: choose others with --first");
            return Err(Short::fail(format!("allocate-ips of {address}, which no check has used"), came));
        }
        sleep_until(settled).await;
        for (pod, address) in &calls {
            self.free(pod, &[*address]).await?;
        }
        sleep(self.bounds.watch).await;
        let taken = join_all(calls.iter().map(async |(_, address)| {
            let other = self.pod();
            let first = self.bind(&other, &[*address]).await?;
            sleep(STAYS).await;
            let again = self.bind(&other, &[*address]).await?;
            let stayed = first == again;
            let _ = self.free(&other, &[*address]).await;
            if stayed {
                Ok(())
            } else {
                Err(Short::fail("allocate-ips twice for the other pod", "another answer than before"))
            }
        }));
        for ((pod, address), (taken, reply)) in calls.iter().zip(taken.await.into_iter().zip(&replies)) {
            taken.map_err(|short| Short {
                asked: format!(
                    "allocate-ips of {address} with a budget of {budget:?} ({reply}), release {SETTLE:?} after it, and {:?} \
                     later for another pod than {}: {}",
                    self.bounds.watch,
                    pod.name(),
                    short.asked
                ),
                came: format!("{}; the address was bound after its budget, or its release did nothing", short.came),
                ..short
            })?;
        }
        let done = replies.iter().filter(|reply| reply.good().is_some()).count();
        let all = replies.len();
        if done == all {
            return Err(Short::skip(format!(
                "all of {all} calls at once with {budget:?} were answered 2xx, so that none had a chance to be late; more of \
                 them (--burst) or a smaller budget (--small-budget) may show more"
            )));
        }
        Ok(format!("of {all} calls at once with {budget:?}, {done} were answered 2xx and the others not bound later"))
    }

    pub(super) fn answers_within_budget(&self) -> Seen {
        let (late, calls) = self.late();
        match late.split_first() {
            None => Ok(format!("all {calls} calls")),
            Some((first, others)) => {
                let asked = format!("{calls} calls, {} of which had no answer in time", others.len() + 1);
                Err(Short::fail(asked, format!("the first: {first}")))
            }
        }
    }
}
