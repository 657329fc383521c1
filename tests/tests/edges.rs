//! Which crate may depend on which. A crate or an edge that is not listed fails.

use cargo_metadata::{DependencyKind, MetadataCommand, Package};
use std::collections::BTreeSet;

/// Crate, and what of ours it may use.
const EDGES: [(&str, &[&str]); 11] = [
    ("proto", &[]),
    ("k8s-api", &[]),
    ("ipam-core", &[]),
    ("store", &["ipam-core", "k8s-api"]),
    ("runtime", &[]),
    ("device-plugin", &["ipam-core", "k8s-api", "proto", "runtime", "store"]),
    ("cni", &["proto"]),
    ("ctl", &["k8s-api", "store"]),
    ("webhook", &["ipam-core", "k8s-api", "runtime", "store"]),
    ("provider-sim", &["ipam-core", "runtime"]),
    ("tests", &["ipam-core", "k8s-api", "proto", "provider-sim", "runtime", "store"]),
];

/// Crates that only read values: no client, no socket, no spawning. (What a feature brings, who wants it asks for: the
/// client of providers in ipam-core.)
const PURE: [(&str, &[&str]); 2] = [
    ("k8s-api", &["kube-client", "tonic", "tokio", "rtnetlink", "hyper", "reqwest", "notify"]),
    ("ipam-core", &["kube", "kube-client", "k8s-openapi", "tonic", "tokio", "rtnetlink", "hyper", "reqwest", "notify"]),
];

fn packages() -> Vec<Package> {
    let metadata =
        MetadataCommand::new().no_deps().other_options(["--offline".to_owned()]).exec().expect("cargo metadata");
    metadata.packages
}

/// Names of what `package` depends on outside its tests.
fn uses(package: &Package) -> BTreeSet<&str> {
    let normal = package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
    normal.map(|dependency| dependency.name.as_str()).collect()
}

#[test]
fn crates_depend_only_along_the_listed_edges() {
    let packages = packages();
    let ours: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    assert_eq!(ours, EDGES.iter().map(|(name, _)| *name).collect(), "every crate is listed");
    for package in &packages {
        let (name, allowed) = EDGES.iter().find(|(name, _)| package.name == *name).expect("listed");
        for used in uses(package).intersection(&ours) {
            assert!(allowed.contains(used), "{name} must not use {used}");
        }
    }
}

#[test]
fn pure_crates_stay_pure() {
    let packages = packages();
    for (name, banned) in PURE {
        let package = packages.iter().find(|package| package.name == name).expect("a crate of the workspace");
        let always = package.dependencies.iter().filter(|dependency| !dependency.optional);
        let always: BTreeSet<&str> = always.map(|dependency| dependency.name.as_str()).collect();
        for used in uses(package).intersection(&always) {
            assert!(!banned.contains(used), "{name} only reads values, it must not use {used}");
        }
        let kube = package.dependencies.iter().find(|dependency| dependency.name == "kube");
        let plain = kube.is_none_or(|kube| !kube.uses_default_features && kube.features == ["derive"]);
        assert!(plain, "{name} uses kube for types alone, never for its client");
    }
}
