//! Writes the Secret, on the version that was seen and on no other.

use super::Place;
use super::named::Known;
use super::state::{Data, State};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use std::time::Duration;
use tokio::time::timeout;

/// The Secret cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum CannotWrite {
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("the API server refuses it; if rights are missing, upgrade the release")]
    Refused(#[source] kube::Error),
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Done,
    /// Somebody else has written meanwhile.
    Conflict,
}

pub(super) fn data(known: &Known<Secret>) -> Data {
    match known {
        Known::There(secret) => secret.data.clone().unwrap_or_default(),
        Known::Unknown | Known::Absent => Data::new(),
    }
}

pub(super) fn version(known: &Known<Secret>) -> Option<&str> {
    match known {
        Known::There(secret) => secret.metadata.resource_version.as_deref(),
        Known::Unknown | Known::Absent => None,
    }
}

/// Makes the Secret say what the state is.
pub(super) async fn write(
    client: &Client,
    place: &Place,
    seen: &Known<Secret>,
    state: &State,
    deadline: Duration,
) -> Result<Written, CannotWrite> {
    let api = Api::<Secret>::namespaced(client.clone(), &place.namespace);
    let mut data = data(seen);
    state.write(&mut data);
    let params = PostParams::default();
    let send = async {
        match seen {
            Known::There(old) => {
                // With the version that was seen, so that a change in between is a conflict.
                let mut new = old.clone();
                new.data = Some(data);
                api.replace(&place.secret, &params, &new).await.map(drop)
            }
            Known::Unknown | Known::Absent => {
                let metadata = ObjectMeta { name: Some(place.secret.clone()), ..ObjectMeta::default() };
                let new = Secret { metadata, data: Some(data), ..Secret::default() };
                api.create(&params, &new).await.map(drop)
            }
        }
    };
    match timeout(deadline, send).await.map_err(|_| CannotWrite::Late(deadline))? {
        Ok(()) => Ok(Written::Done),
        // 404: deleted since it was seen.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(Written::Conflict),
        Err(error) => Err(CannotWrite::Refused(error)),
    }
}

/// Whether what was seen is still how it is, asked of the API server itself.
pub(super) async fn is_latest(
    client: &Client,
    place: &Place,
    seen: &Known<Secret>,
    deadline: Duration,
) -> Result<bool, CannotWrite> {
    let api = Api::<Secret>::namespaced(client.clone(), &place.namespace);
    let found =
        timeout(deadline, api.get_metadata_opt(&place.secret)).await.map_err(|_| CannotWrite::Late(deadline))?;
    let found = found.map_err(CannotWrite::Refused)?;
    Ok(found.and_then(|found| found.metadata.resource_version).as_deref() == version(seen))
}
