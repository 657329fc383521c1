//! The result of an interface as a file.

use super::records::{Found, Name, Records};
use ipam_core::{Address, Assigned, Interface, Kept, Route};
use serde::{Deserialize, Serialize};

/// Keys are only added: an agent of an earlier version may read it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    name: String,
    addresses: Vec<FileAddress>,
    vlan: Option<u16>,
    mac: Option<String>,
    clean_gateway: bool,
    routes: Vec<FileRoute>,
    bind_id: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct FileAddress {
    address: String,
    prefix: u8,
    pool: String,
    gateway: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct FileRoute {
    dst: String,
    gw: String,
}

/// A UID has no `_`, so that two pairs never share a file.
pub(super) fn name(pod_uid: &str, interface: &str) -> Option<Name> {
    if pod_uid.contains('_') { None } else { Name::new(&format!("{pod_uid}_{interface}.json")) }
}

/// What is there and cannot be understood may be a result all the same.
pub(super) fn read(records: &Records, name: &Name) -> Kept {
    match records.read(name) {
        Found::Content(content) => parse(&content).map_or(Kept::Unreadable, |result| Kept::Result(Box::new(result))),
        Found::Nothing => Kept::Nothing,
        Found::Unreadable => Kept::Unreadable,
    }
}

pub(super) fn bytes(interface: &Interface) -> Vec<u8> {
    let Interface { name, addresses, vlan, mac, clean_gateway, routes, bind_id } = interface.clone();
    let address = |assigned: Assigned| {
        let Assigned { address, prefix, pool, gateway } = assigned;
        FileAddress { address: address.to_string(), prefix, pool, gateway: gateway.as_ref().map(Address::to_string) }
    };
    let file = File {
        name,
        addresses: addresses.into_iter().map(address).collect(),
        vlan,
        mac,
        clean_gateway,
        routes: routes.into_iter().map(|Route { dst, gw }| FileRoute { dst, gw }).collect(),
        bind_id,
    };
    // Text and numbers always have a form.
    serde_json::to_vec(&file).unwrap_or_default()
}

fn parse(content: &[u8]) -> Option<Interface> {
    let File { name, addresses, vlan, mac, clean_gateway, routes, bind_id } = serde_json::from_slice(content).ok()?;
    let address = |file: FileAddress| {
        let FileAddress { address, prefix, pool, gateway } = file;
        let gateway = gateway.map(|gateway| gateway.parse()).transpose().ok()?;
        Some(Assigned { address: address.parse().ok()?, prefix, pool, gateway })
    };
    Some(Interface {
        name,
        addresses: addresses.into_iter().map(address).collect::<Option<_>>()?,
        vlan,
        mac,
        clean_gateway,
        routes: routes.into_iter().map(|FileRoute { dst, gw }| Route { dst, gw }).collect(),
        bind_id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::answer::tests::both_families;

    #[test]
    fn comes_back_as_it_was() {
        assert_eq!(parse(&bytes(&both_families())), Some(both_families()));
        let bare = Interface { addresses: vec![], vlan: None, mac: None, bind_id: None, ..both_families() };
        assert_eq!(parse(&bytes(&bare)), Some(bare));
    }

    #[test]
    fn torn_files_are_not_taken_for_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records::open(folder.path().to_owned(), 10).expect("opens");
        let name = name("uid", "net1").expect("a name");
        assert_eq!(read(&records, &name), Kept::Nothing);
        let whole = bytes(&both_families());
        for length in [0, 1, whole.len() - 1] {
            records.write(&name, &whole[..length]).expect("writes");
            assert_eq!(read(&records, &name), Kept::Unreadable, "{length}");
        }
        records.write(&name, &whole).expect("writes");
        assert!(matches!(read(&records, &name), Kept::Result(_)));
    }

    #[test]
    fn two_pairs_have_two_files() {
        assert_eq!(name("a_b", "c"), None);
        assert_eq!(name("a", "../c"), None);
        assert_ne!(name("a", "b_c"), name("a", "b"));
    }
}
