//! Asks the kubelet to take a resource.

use super::Kubelet;
use super::dial::dial;
use k8s_api::resource::ResourceName;
use proto::DEVICE_PLUGIN_VERSION;
use proto::deviceplugin::registration_client::RegistrationClient;
use proto::deviceplugin::{DevicePluginOptions, RegisterRequest};
use std::time::Duration;

/// The kubelet dials back and asks for the options before it answers; it gives itself 10 s for that.
const REGISTER: Duration = Duration::from_secs(10);

/// The kubelet did not take the resource.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRegistered {
    #[error("cannot connect to the kubelet")]
    Connect(#[source] tonic::transport::Error),
    #[error("the kubelet refused the registration: {}", .0.message())]
    Refused(tonic::Status),
    #[error("the kubelet did not answer the registration within {REGISTER:?}")]
    Slow,
}

/// Registers `resource`, served at `endpoint` in the kubelet's folder.
pub(crate) async fn register(kubelet: &Kubelet, resource: &ResourceName, endpoint: &str) -> Result<(), NotRegistered> {
    let request = RegisterRequest {
        version: DEVICE_PLUGIN_VERSION.to_owned(),
        endpoint: endpoint.to_owned(),
        resource_name: resource.to_string(),
        options: Some(DevicePluginOptions::default()),
    };
    let call = async {
        let channel = dial(&kubelet.socket_path()).await.map_err(NotRegistered::Connect)?;
        RegistrationClient::new(channel).register(request).await.map_err(NotRegistered::Refused)
    };
    tokio::time::timeout(REGISTER, call).await.map_err(|_| NotRegistered::Slow)??;
    Ok(())
}
