//! Allocations and endpoints, as far as they matter here. One that cannot be read whole still counts.

pub(super) use ipam_core::Owner;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

/// A pod, told apart from others of its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

/// Who has an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Allocation {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) pool: String,
    pub(super) address: String,
    pub(super) pod: Pod,
    pub(super) owner: Option<Owner>,
    pub(super) node: String,
    pub(super) node_uid: String,
    pub(super) machine: String,
    pub(super) interface: String,
    pub(super) held: bool,
    /// Its sandbox is gone.
    pub(super) detached: bool,
    /// Of the cloud's binding, if there may be one.
    pub(super) bind_id: Option<String>,
    /// A person wants it to be released.
    pub(super) asked: bool,
}

/// What an endpoint shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) pod_uid: String,
    pub(super) node: String,
    pub(super) entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    interface: String,
    /// Without prefix.
    addresses: Vec<String>,
    pools: Vec<String>,
    bind_id: Option<String>,
}

impl Allocation {
    pub(super) fn of(object: &DynamicObject) -> Self {
        let text = |at: &str| text(&object.data, at);
        let owner = |_: &Value| Owner {
            api_version: text("/spec/owner/apiVersion"),
            kind: text("/spec/owner/kind"),
            name: text("/spec/owner/name"),
            uid: text("/spec/owner/uid"),
        };
        let pod =
            Pod { namespace: text("/spec/pod/namespace"), name: text("/spec/pod/name"), uid: text("/spec/pod/uid") };
        let provider = object.data.pointer("/spec/provider").filter(|provider| !provider.is_null());
        Self {
            name: object.name_any(),
            version: object.resource_version().unwrap_or_default(),
            pool: text("/spec/pool"),
            address: text("/spec/address"),
            pod,
            owner: object.data.pointer("/spec/owner").filter(|owner| !owner.is_null()).map(owner),
            node: text("/spec/node/name"),
            node_uid: text("/spec/node/uid"),
            machine: text("/spec/node/machineID"),
            interface: text("/spec/interface"),
            held: text("/spec/state") == "Held",
            detached: object.data.pointer("/spec/detached").and_then(Value::as_bool).unwrap_or_default(),
            bind_id: provider.map(|_| text("/spec/provider/bindId")),
            asked: object.data.pointer("/spec/releaseRequest").is_some_and(|asked| !asked.is_null()),
        }
    }

    /// Whether the endpoint of its pod shows it. An entry of another pod or another binding is no entry.
    pub(super) fn is_shown(&self, endpoint: Option<&Endpoint>) -> bool {
        let Some(endpoint) = endpoint.filter(|endpoint| self.held && endpoint.pod_uid == self.pod.uid) else {
            return false;
        };
        endpoint.entries.iter().any(|entry| {
            entry.interface == self.interface
                && entry.bind_id == self.bind_id
                && entry.addresses.contains(&self.address)
        })
    }
}

impl Endpoint {
    /// Of the addresses that it shows.
    pub(super) fn pools(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().flat_map(|entry| &entry.pools).map(String::as_str)
    }

    pub(super) fn of(object: &DynamicObject) -> Self {
        let entries = object.data.pointer("/status/current/ips").and_then(Value::as_array);
        let entry = |value: &Value| Entry {
            interface: text(value, "/interface"),
            addresses: ["/ipv4", "/ipv6"]
                .into_iter()
                .filter_map(|at| value.pointer(at)?.as_str()?.split('/').next())
                .map(ToOwned::to_owned)
                .collect(),
            pools: ["/ipv4Pool", "/ipv6Pool"].map(|at| text(value, at)).into(),
            bind_id: value.get("bindId").and_then(Value::as_str).map(ToOwned::to_owned),
        };
        Self {
            pod_uid: text(&object.data, "/status/current/uid"),
            node: text(&object.data, "/status/current/node"),
            entries: entries.into_iter().flatten().map(entry).collect(),
        }
    }
}

fn text(value: &Value, at: &str) -> String {
    value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}
