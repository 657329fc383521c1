//! The configuration of this installation, as far as explanations need it.

use crate::api::Server;
use crate::args::System;
use crate::fault::{Fault, NotSeen, Seen};
use k8s_api::conf::Conf;
use k8s_api::{Quoted, syntax};
use k8s_openapi::api::core::v1::ConfigMap;

const KEY: &str = "conf.yml";

/// `conf.yml` of the ConfigMap in the system's namespace.
pub(crate) async fn read(server: &Server, System { namespace, config_map }: &System) -> Result<Seen<Conf>, Fault> {
    if !syntax::is_namespace(namespace) {
        return Err(Fault::Usage(format!("--system-namespace {} is not the name of a namespace", Quoted(namespace))));
    }
    if !syntax::is_subdomain(config_map) {
        return Err(Fault::Usage(format!("--config-map {} is not the name of a ConfigMap", Quoted(config_map))));
    }
    let found = server.get::<ConfigMap>(&format!("/api/v1/namespaces/{namespace}/configmaps"), config_map).await?;
    let found = match found {
        Ok(found) => found,
        Err(why) => return Ok(Err(why)),
    };
    let text = found.and_then(|found| found.data?.remove(KEY));
    let none = || {
        NotSeen(format!(
            "there is no key {KEY} in ConfigMap {config_map} of namespace {namespace}; --system-namespace and --config-map say where it is"
        ))
    };
    Ok(text.ok_or_else(none).and_then(|text| {
        Conf::parse(&text).map_err(|faults| NotSeen(format!("ConfigMap {namespace}/{config_map} has faults: {faults}")))
    }))
}
