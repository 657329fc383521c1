//! The controller's own authority: the one that leads makes it and its certificates; all replicas show them.
//!
//! ```text
//! Secret ──watch──> shown: proves the pair ──> admission::certificate
//!    │ ^
//!    │ └───── keep: one step at a time <── plan: which one <── state: what the Secret holds
//!    v              │                        ^                 webhooks: what they trust, since when
//! every entry's  <──┘ patch                  └── now, lifetimes
//! caBundle
//! ```
//!
//! Nothing is shown that not every webhook was seen to trust for a while, and nothing that may still be shown loses that
//! trust. All steps are changes of one Secret, each made on the version that it was planned for: a crash between two of
//! them, and a second controller that takes itself for the leader, cost a step at the most.

mod entries;
mod issue;
mod keep;
mod metrics;
mod named;
mod pem;
mod plan;
mod secret;
mod shown;
mod state;
#[cfg(test)]
mod tests;
mod webhooks;

pub(crate) use metrics::Metrics;
pub(crate) use shown::First;

use crate::args::OwnAuthority;
use crate::lease::Leading;
use keep::Keeper;
use kube::Client;
use plan::Lifetimes;
use runtime::Hold;
use std::convert::Infallible;
use std::time::Duration;

/// Where everything lies.
#[derive(Clone, Debug)]
struct Place {
    namespace: String,
    secret: String,
    /// Name of the two webhook configurations.
    webhooks: String,
}

/// What is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    place: Place,
    /// Names of the certificate, in order.
    names: Vec<String>,
    lifetimes: Lifetimes,
}

/// The command line lacks something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Incomplete {
    #[error("--tls-self-secret needs {0}")]
    Needs(&'static str),
}

impl Wanted {
    /// `None` where the certificate is not ours to make.
    pub(crate) fn of(args: OwnAuthority, namespace: &str) -> Result<Option<Self>, Incomplete> {
        let Some(secret) = args.tls_self_secret else { return Ok(None) };
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let webhooks = given(args.tls_self_webhooks).ok_or(Incomplete::Needs("--tls-self-webhooks"))?;
        let mut names = args.tls_self_names;
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Err(Incomplete::Needs("--tls-self-names"));
        }
        let lifetimes = Lifetimes::of(args.tls_self_valid);
        Ok(Some(Self { place: Place { namespace: namespace.to_owned(), secret, webhooks }, names, lifetimes }))
    }
}

/// The pair in use, the task that shows it and the one that keeps it. `ready` is released once there is a pair.
pub(crate) fn run(
    client: &Client,
    wanted: Wanted,
    leading: Leading,
    ready: Hold,
    metrics: (crate::metrics::Metrics, Metrics),
) -> (First, impl Future<Output = Result<(), Infallible>> + use<>, impl Future<Output = Result<(), Infallible>> + use<>)
{
    let (first, secret, show) = shown::show(client.clone(), wanted.place.clone(), ready, metrics.0);
    (first, show, Keeper::new(client.clone(), wanted, metrics.1, leading, secret).run())
}

impl Place {
    /// As the annotation of webhook configurations names it.
    fn secret(&self) -> String {
        format!("{}/{}", self.namespace, self.secret)
    }
}

/// Reads how long a certificate is to live, such as `2160h`.
pub(crate) fn lifetime(text: &str) -> Result<Duration, String> {
    let unit = |suffix: char, seconds: u64| text.strip_suffix(suffix).map(|count| (count, seconds));
    let (count, seconds) =
        unit('h', 3600).or_else(|| unit('m', 60)).or_else(|| unit('s', 1)).ok_or("it ends with h, m or s")?;
    let count: u64 = count.parse().map_err(|_| "it is a whole number and h, m or s")?;
    match count.checked_mul(seconds).map(Duration::from_secs) {
        Some(lifetime) if (SHORTEST..=LONGEST).contains(&lifetime) => Ok(lifetime),
        _ => Err("it is between 6s and 876000h".to_owned()),
    }
}

/// For tests; dates of certificates are whole seconds.
const SHORTEST: Duration = Duration::from_secs(6);
/// A hundred years.
const LONGEST: Duration = Duration::from_hours(876_000);
