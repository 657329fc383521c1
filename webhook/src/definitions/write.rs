//! Does one step at the API server.

use super::plan::Step;
use super::queue::Outcome;
use crate::attachments::{Config, FIELD_MANAGER, configs, definitions};
use crate::lease::Leading;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use runtime::Chain;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// One write.
const ANSWER: Duration = Duration::from_secs(5);

/// Writes if this controller leads, and for no longer than it is sure to.
pub(super) async fn write(client: Client, config: &Config, step: &Step, leading: &Leading) -> Outcome {
    let limit = ANSWER.min(leading.left());
    if limit.is_zero() {
        return Outcome::Failed;
    }
    let written = timeout(limit, send(client, config, step)).await;
    let (namespace, name) = (&config.namespace, &config.name);
    match written {
        Ok(Ok(outcome)) => outcome,
        // What was planned for has changed; the watches will show it.
        Ok(Err(kube::Error::Api(status)))
            if status.code == 409 && !matches!(step, Step::Apply { version: None, .. }) =>
        {
            Outcome::Failed
        }
        Ok(Err(kube::Error::Api(status))) if (400..500).contains(&status.code) && status.code != 429 => {
            tracing::warn!(namespace, name, error = status.message, "the API server refuses what an attachment needs");
            Outcome::Refused(status.message.clone())
        }
        Ok(Err(error)) => {
            tracing::warn!(namespace, name, error = %Chain(&error), "cannot write for an attachment; trying again");
            Outcome::Failed
        }
        Err(_) => {
            tracing::warn!(namespace, name, "the API server did not answer within {limit:?}; trying again");
            Outcome::Failed
        }
    }
}

async fn send(client: Client, config: &Config, step: &Step) -> Result<Outcome, kube::Error> {
    let of_definitions = || Api::<DynamicObject>::namespaced_with(client.clone(), &config.namespace, &definitions());
    match step {
        Step::Apply { desired, version, .. } => {
            let mut object = definition(config, &desired.config, &json!(desired.annotations));
            let mut params = PatchParams::apply(FIELD_MANAGER);
            if let Some(version) = version {
                // Whatever else wrote our fields is wrong; whoever wrote since is looked at first.
                params = params.force();
                if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.insert("resourceVersion".to_owned(), version.as_str().into());
                }
            }
            // Without a version there was none: if somebody has made one since, their fields conflict and stay.
            of_definitions().patch(&config.network, &params, &Patch::Apply(object)).await?;
            Ok(Outcome::Written)
        }
        Step::Remove { name, version } => {
            let preconditions = Preconditions { resource_version: Some(version.clone()), uid: None };
            let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            match of_definitions().delete(name, &params).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                deleted => drop(deleted?),
            }
            Ok(Outcome::Removed)
        }
        Step::Tell { conditions, .. } => {
            let api = Api::<DynamicObject>::namespaced_with(client, &config.namespace, &configs());
            let change = json!({"metadata": {"resourceVersion": config.version}, "status": {"conditions": conditions}});
            api.patch_status(&config.name, &PatchParams::default(), &Patch::Merge(change)).await?;
            Ok(Outcome::Told)
        }
    }
}

/// Kubernetes deletes it with the attachment. It does not hold up the deletion of that, so no right to finalizers is needed.
fn definition(config: &Config, network: &str, annotations: &Value) -> Value {
    let (owner, kind) = (configs(), definitions());
    json!({
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": *config.network,
            "namespace": config.namespace,
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "name": config.name,
                "uid": config.uid,
                "controller": true,
            }],
        },
        "spec": {"config": network},
    })
}
