//! Does this pod only give way to another, or does Multus go?

use k8s_openapi::api::apps::v1::DaemonSet;
use kube::core::PartialObjectMeta;
use kube::{Api, Client, Error};
use std::time::Duration;
use tokio::time::timeout;

/// For an answer of the API server.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether the DaemonSet outlives this pod.
pub(crate) async fn stays(client: Client, namespace: &str, name: &str) -> bool {
    let daemon_sets = Api::<DaemonSet>::namespaced(client, namespace);
    let Ok(answer) = timeout(PATIENCE, daemon_sets.get_metadata_opt(name)).await else {
        tracing::warn!("the API server does not answer; nothing is removed");
        return true;
    };
    decide(&answer)
}

/// Rights and account go with the DaemonSet and after it, so a refusal says that it is gone. No answer says nothing: it
/// comes with a node or an API server that restarts.
fn decide(answer: &Result<Option<PartialObjectMeta<DaemonSet>>, Error>) -> bool {
    match answer {
        Ok(found) => found.as_ref().is_some_and(|found| found.metadata.deletion_timestamp.is_none()),
        Err(Error::Api(status)) => !matches!(status.code, 401 | 403),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kube::core::{ObjectMeta, Status};

    fn found(deletion_timestamp: Option<Time>) -> PartialObjectMeta<DaemonSet> {
        let metadata = ObjectMeta { deletion_timestamp, ..ObjectMeta::default() };
        PartialObjectMeta { metadata, ..PartialObjectMeta::default() }
    }

    #[test]
    fn only_what_says_that_the_daemon_set_goes_removes_anything() {
        let then = Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH);
        let refused = |code| Err(Error::Api(Box::new(Status { code, ..Status::default() })));
        assert!(decide(&Ok(Some(found(None)))), "an upgrade, a restart");
        assert!(!decide(&Ok(Some(found(Some(then))))), "deleted in the foreground");
        assert!(!decide(&Ok(None)), "deleted in the background");
        assert!(!decide(&refused(401)) && !decide(&refused(403)), "the account or its rights are gone already");
        assert!(decide(&refused(500)) && decide(&refused(429)), "the API server has troubles");
        assert!(decide(&Err(Error::LinesCodecMaxLineLengthExceeded)), "no answer at all");
    }
}
