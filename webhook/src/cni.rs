//! CNI configurations that users write as text. Source: the CNI specification, "Network configuration format".

use k8s_api::Quoted;
use serde_json::Value;

/// Chained after the interface is made: routes and checks of an earlier system. Not of this chart.
pub(crate) const COORDINATOR: &str = "coordinator";
/// Chained before it: makes bonds and VLANs of the host. Not of this chart.
pub(crate) const IFACER: &str = "ifacer";

/// A text that no runtime could use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotCni {
    #[error("{0}")]
    Json(String),
    #[error("it is not a JSON object")]
    NoObject,
    #[error("it has no \"type\", the name of a CNI plugin")]
    NoType,
    #[error("\"type\" is not text")]
    TypeIsNoText,
    #[error("\"type\" is {}, which is not the name of a CNI plugin", Quoted(.0))]
    NoName(String),
    #[error("\"plugins\" is not a list of plugins")]
    NoList,
    #[error("plugins[{at}]: {fault}")]
    Plugin { at: usize, fault: Box<NotCni> },
}

/// One plugin's configuration.
pub(crate) fn plugin(text: &str) -> Result<Value, NotCni> {
    let value = read(text)?;
    kind(&value)?;
    Ok(value)
}

/// The plugins of a whole configuration: those of its list, or the one that it is.
pub(crate) fn plugins(text: &str) -> Result<Vec<Value>, NotCni> {
    let mut whole = read(text)?;
    let object = whole.as_object_mut().ok_or(NotCni::NoObject)?;
    match object.remove("plugins") {
        None => {
            kind(&whole)?;
            // They belong to the list that the plugin is put into.
            if let Some(object) = whole.as_object_mut() {
                object.remove("name");
                object.remove("cniVersion");
            }
            Ok(vec![whole])
        }
        Some(Value::Array(plugins)) if !plugins.is_empty() => {
            for (at, plugin) in plugins.iter().enumerate() {
                kind(plugin).map_err(|fault| NotCni::Plugin { at, fault: Box::new(fault) })?;
            }
            Ok(plugins)
        }
        Some(_) => Err(NotCni::NoList),
    }
}

/// The plugin that a configuration names.
pub(crate) fn kind(plugin: &Value) -> Result<&str, NotCni> {
    match plugin.as_object().ok_or(NotCni::NoObject)?.get("type") {
        // It is looked up as a file of that name.
        Some(Value::String(name)) if !name.is_empty() && !name.contains('/') => Ok(name),
        Some(Value::String(name)) => Err(NotCni::NoName(name.clone())),
        Some(_) => Err(NotCni::TypeIsNoText),
        None => Err(NotCni::NoType),
    }
}

fn read(text: &str) -> Result<Value, NotCni> {
    serde_json::from_str(text).map_err(|error| NotCni::Json(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_configuration_is_one_plugin_or_a_list() {
        let host_local = r#"{"cniVersion":"1.0.0","name":"x","type":"macvlan","ipam":{"type":"host-local"}}"#;
        assert_eq!(plugins(host_local), Ok(vec![json!({"type": "macvlan", "ipam": {"type": "host-local"}})]));
        let list = r#"{"name":"x","plugins":[{"type":"a"},{"type":"b"}]}"#;
        assert_eq!(plugins(list), Ok(vec![json!({"type": "a"}), json!({"type": "b"})]));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (text, fault) in [
            ("[]", "it is not a JSON object"),
            ("null", "it is not a JSON object"),
            ("{}", "it has no \"type\", the name of a CNI plugin"),
            (r#"{"type":5}"#, "\"type\" is not text"),
            (r#"{"type":"a/b"}"#, "\"type\" is \"a/b\", which is not the name of a CNI plugin"),
            (r#"{"plugins":[]}"#, "\"plugins\" is not a list of plugins"),
            (r#"{"plugins":5,"type":"a"}"#, "\"plugins\" is not a list of plugins"),
            (r#"{"plugins":[{"type":"a"},{}]}"#, "plugins[1]: it has no \"type\", the name of a CNI plugin"),
        ] {
            assert_eq!(plugins(text).expect_err(text).to_string(), fault);
        }
        for text in ["", "{"] {
            assert!(matches!(plugins(text), Err(NotCni::Json(_))) && matches!(plugin(text), Err(NotCni::Json(_))));
        }
    }
}
