//! Writes the wish.

use super::answer::{Handled, Outcome};
use super::look::{Looked, Target, look};
use crate::api::{Server, Written};
use crate::fault::Fault;
use crate::held;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::json;

/// Writes that somebody else was faster than, for one address.
const TRIES: usize = 5;

/// As whom the API server knows us: the policy wants this name in the wish.
pub(super) async fn user(server: &Server) -> Result<String, Fault> {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let told = server.review(path, &SelfSubjectReview::default()).await?;
    let name = told.status.and_then(|status| status.user_info?.username);
    name.ok_or_else(|| Fault::Usage("the API server does not say who we are".to_owned()))
}

/// Asks for the release of exactly what was looked at. A result if there is nothing to wait for.
pub(super) async fn ask(server: &Server, by: &str, abandon: bool, target: &Target) -> Result<Option<Handled>, Fault> {
    let (address, name) = (target.address, store::name_of(target.address));
    let mut target = target.clone();
    for _ in 0..TRIES {
        let before = target.one.release_request.as_ref();
        if before.is_some_and(|request| request.by == by && request.abandon == abandon) {
            eprintln!("{address}: asked for already, by {by} at {}", crate::plain::plain(&before_at(&target)));
            return Ok(None);
        }
        let at = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default();
        let change = json!({
            "metadata": {"uid": target.held.uid, "resourceVersion": target.held.version},
            "spec": {"releaseRequest": {"by": by, "at": at.to_string(), "abandon": abandon}},
        });
        match server.merge::<DynamicObject>(&held::path(), &name, &change).await? {
            Written::Done(_) => return Ok(None),
            Written::Gone => return Ok(Some(Handled::new(address, Outcome::Released, "it is free".to_owned()))),
            Written::Forbidden(said) => {
                return Ok(Some(Handled::new(address, Outcome::Forbidden, forbidden(by, &said))));
            }
            Written::Conflict => {}
        }
        // Somebody wrote meanwhile: what was agreed to is another thing unless it is the same pod's still.
        match look(server, address).await? {
            Looked::Nobody => return Ok(Some(Handled::new(address, Outcome::Released, "it is free".to_owned()))),
            Looked::Refused(why) => return Ok(Some(Handled::new(address, Outcome::Refused, why))),
            Looked::Target(now) if now.held.uid == target.held.uid && now.one.pod == target.one.pod => target = *now,
            Looked::Target(_) => {
                return Ok(Some(Handled::new(
                    address,
                    Outcome::Refused,
                    "another pod has got it meanwhile".to_owned(),
                )));
            }
        }
    }
    Ok(Some(Handled::new(address, Outcome::Failed, "somebody else keeps changing it; try again".to_owned())))
}

fn before_at(target: &Target) -> String {
    target.one.release_request.as_ref().map(|request| request.at.clone()).unwrap_or_default()
}

/// The server's words, and how to get the right.
fn forbidden(by: &str, said: &str) -> String {
    format!(
        "{said}. It takes the verbs patch and release on spideripallocations: kubectl create clusterrole spiderpool-release \
         --verb=get,patch,release --resource=spideripallocations.spiderpool.spidernet.io (the chart has it), and \
         kubectl create clusterrolebinding spiderpool-release --clusterrole=spiderpool-release --user={by}"
    )
}
