//! Which replica leads. A stand-in, to be replaced as a whole: others bring the lease that all loops share. What the
//! authority needs of it is [`Leading`].

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// Whether this replica leads.
#[derive(Clone, Debug)]
pub(crate) struct Leading(watch::Receiver<Option<Instant>>);

impl Leading {
    /// Checked right before every write.
    pub(crate) fn now(&self) -> bool {
        self.0.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// Returns once it has begun or ended, or was prolonged.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Another may lead when nothing was heard for so long.
const TERM: Duration = Duration::from_secs(6);
/// What is not counted on: clocks run at different speeds.
const MARGIN: Duration = Duration::from_secs(1);
const RENEW: Duration = Duration::from_secs(1);

/// The receiver, and the task that keeps it.
pub(crate) fn hold(
    client: Client,
    namespace: &str,
    name: &str,
) -> (Leading, impl Future<Output = Result<(), Infallible>> + use<>) {
    let (until, latest) = watch::channel(None);
    let (api, name) = (Api::<Lease>::namespaced(client, namespace), name.to_owned());
    let who = format!("{}-{}", std::env::var("HOSTNAME").unwrap_or_default(), std::process::id());
    let keep = async move {
        let mut heard: (Option<Lease>, Instant) = (None, Instant::now());
        loop {
            let begun = Instant::now();
            let found = timeout(RENEW, api.get_opt(&name)).await;
            if let Ok(Ok(found)) = found {
                if heard.0 != found {
                    heard = (found.clone(), Instant::now());
                }
                let holder = found.as_ref().and_then(|lease| lease.spec.as_ref()?.holder_identity.clone());
                let mine = holder.as_deref() == Some(&who);
                if (found.is_none() || mine || heard.1.elapsed() > TERM)
                    && let Ok(Ok(())) = timeout(RENEW, take(&api, &name, &who, found)).await
                {
                    if !mine {
                        tracing::info!(name, "leading");
                    }
                    until.send_replace(Some(begun + TERM.saturating_sub(MARGIN)));
                }
            }
            sleep(RENEW).await;
        }
    };
    (Leading(latest), keep)
}

async fn take(api: &Api<Lease>, name: &str, who: &str, found: Option<Lease>) -> kube::Result<()> {
    let spec = LeaseSpec {
        holder_identity: Some(who.to_owned()),
        renew_time: Some(MicroTime(Timestamp::now())),
        ..LeaseSpec::default()
    };
    if let Some(mut lease) = found {
        lease.spec = Some(spec);
        return api.replace(name, &PostParams::default(), &lease).await.map(drop);
    }
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    api.create(&PostParams::default(), &Lease { metadata, spec: Some(spec) }).await.map(drop)
}
