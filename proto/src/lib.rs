//! Wire contracts: the kubelet's, compiled from its own files, and [`agent`], ours.
//!
//! [`deviceplugin`] is the API as it stands. [`plugin`] is the plugin's side of it with one difference: the list of
//! devices is already encoded ([`EncodedList`]). A list has up to 150 000 entries and goes out on every stream; held as
//! messages it would cost two allocations an entry each time it is sent.

mod encoded;

pub use encoded::EncodedList;

/// `k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1`.
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic, clippy::restriction)]
pub mod deviceplugin {
    tonic::include_proto!("v1beta1");
}

/// `k8s.io/kubelet/pkg/apis/podresources/v1`.
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic, clippy::restriction)]
pub mod podresources {
    tonic::include_proto!("v1");
}

/// What CNI plugins ask of the node agent.
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic, clippy::restriction)]
pub mod agent {
    tonic::include_proto!("spiderpool.agent.v1");
}

/// The same API for a plugin to serve, with encoded lists.
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic, clippy::restriction)]
pub mod plugin {
    include!(concat!(env!("OUT_DIR"), "/plugin/v1beta1.rs"));
}

/// Stands in each of our programs `vlan`: by it the installer knows them from those of others.
pub const VLAN_MARK: &str = "spiderpool.spidernet.io/cni-plugin-vlan";

/// Version that a plugin announces when it registers.
pub const DEVICE_PLUGIN_VERSION: &str = "v1beta1";
