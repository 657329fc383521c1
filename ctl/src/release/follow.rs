//! Waits until the controller has done it, or says why not.

use super::answer::{Handled, Outcome};
use super::look::Target;
use crate::api::Server;
use crate::fault::{Fault, Seen, chain};
use crate::held::{self, Held};
use crate::plain::plain;
use crate::progress::Progress;
use k8s_api::names::{RELEASE_DECLINED, release_declined};
use k8s_openapi::api::core::v1::Event;
use kube::api::DynamicObject;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// So often its event is looked for.
const TOLD: u32 = 6;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// An API server that does not answer is asked again until the time is over.
pub(super) async fn follow(server: &Server, by: &str, mut asked: Vec<Target>, limit: Duration) -> Vec<Handled> {
    let end = Instant::now() + limit;
    let (mut progress, mut results) = (Progress::new("waiting for the controller"), Vec::new());
    let mut last = None;
    while !asked.is_empty() {
        let mut waiting = Vec::new();
        for target in asked {
            match look(server, by, &target).await {
                Ok(Some(result)) => {
                    eprintln!("{}: {}", result.address, plain(&result.text));
                    results.push(result);
                }
                Ok(None) => waiting.push(target),
                Err(fault) => {
                    last = Some(chain(&fault));
                    waiting.push(target);
                }
            }
        }
        asked = waiting;
        if asked.is_empty() || Instant::now() >= end {
            break;
        }
        let names: Vec<_> = asked.iter().map(|target| target.address.to_string()).collect();
        progress.at(&names.join(", "));
        sleep(PAUSE).await;
    }
    let why = last.map(|why| format!(" (the last fault: {why})")).unwrap_or_default();
    let late = asked.into_iter().map(|target| {
        let asks = match &target.one.provider {
            Some(binding) => format!(", whether {} answers (kubectl logs of the controller)", binding.server),
            None => String::new(),
        };
        let text = format!(
            "asked for, and not free after {limit:?}{why}; the wish stays: see whether a controller leads{asks}, and spiderpoolctl leaks"
        );
        Handled::new(target.address, Outcome::Waits, text)
    });
    results.extend(late);
    results
}

/// What has become of it; nothing while it is as it was asked for.
async fn look(server: &Server, by: &str, target: &Target) -> Result<Option<Handled>, Fault> {
    let found = server.get::<DynamicObject>(&held::path(), &store::name_of(target.address)).await?;
    let found = server.needed("get SpiderIPAllocations", found)?;
    let Some(now) = found.as_ref().map(Held::read).filter(|now| now.uid == target.held.uid) else {
        return Ok(Some(Handled::new(target.address, Outcome::Released, "it is free".to_owned())));
    };
    if now.what.is_ok_and(|one| one.release_request.is_none()) {
        let mut why = said(server, by, target).await?;
        // It writes the event after that.
        for _ in 0..TOLD {
            if !matches!(why, Ok(None)) {
                break;
            }
            sleep(PAUSE).await;
            why = said(server, by, target).await?;
        }
        let text = match why {
            Ok(Some(why)) => format!("the controller has turned it down: {why}"),
            Ok(None) => "the wish was taken off: a pod has it again".to_owned(),
            Err(_) => {
                format!("the wish was taken off; events say why: kubectl describe spiderippool {}", target.one.pool)
            }
        };
        return Ok(Some(Handled::new(target.address, Outcome::TurnedDown, text)));
    }
    Ok(None)
}

/// What the controller's event on the pool says to this person of this pod.
async fn said(server: &Server, by: &str, target: &Target) -> Result<Seen<Option<String>>, Fault> {
    let Target { address, one, .. } = target;
    let fields = format!("involvedObject.kind=SpiderIPPool,involvedObject.name={},reason={RELEASE_DECLINED}", one.pool);
    let all = server.list::<Event>("/api/v1/namespaces/default/events", &fields, "").await?;
    let wanted = release_declined(address, by, &format!("{}/{}", one.pod.namespace, one.pod.name));
    Ok(all.map(|all| all.into_iter().filter_map(|event| event.message).find(|message| *message == wanted)))
}
