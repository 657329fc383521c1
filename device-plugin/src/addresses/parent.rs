//! The NIC that carries a pod's network in the cloud.

use super::Addresses;
use crate::agent::Asked;
use ipam_core::{AddError, Host, Parent};
use k8s_api::interface;
use std::path::Path;

impl Addresses {
    /// Whom to ask for a provider's network, and for which NIC; none for other networks. The MAC is read anew each time: a NIC
    /// may be replaced, and a bond takes that of whichever member it has then.
    pub(super) fn parent(&self, asked: &Asked) -> Result<Option<Parent>, AddError> {
        let (server, limit) = {
            let conf = self.conf.borrow();
            (conf.provider.as_ref().map(|server| server.id.clone()), conf.call_timeout)
        };
        let Some(server) = server.filter(|_| asked.link.provided()) else { return Ok(None) };
        let left = asked.add.deadline.saturating_sub(self.flows.host().now());
        if left <= limit {
            return Err(AddError::AgentTimeout { left, limit });
        }
        let mac = mac(&self.sysfs, &asked.link.master);
        let mac = mac.map_err(|why| AddError::NoParent { why: format!("network {}: {why}", asked.add.network) })?;
        Ok(Some(Parent { server, mac }))
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum NoMac {
    #[error("its configuration names no master")]
    NoMaster,
    #[error("the master {0:?} is no name of an interface: {1}")]
    Name(String, interface::InvalidInterface),
    #[error(
        "this node has no interface {0}, which is the network's master; a bond has to be made on the host beforehand; `ip link show` tells what there is"
    )]
    Missing(String),
    #[error("the MAC address of {0} cannot be read: {1}")]
    Unreadable(String, std::io::ErrorKind),
    #[error("interface {0} has no MAC address")]
    None(String),
}

fn mac(sysfs: &Path, master: &str) -> Result<String, NoMac> {
    if master.is_empty() {
        return Err(NoMac::NoMaster);
    }
    interface::check(master).map_err(|why| NoMac::Name(master.to_owned(), why))?;
    let path = sysfs.join("class/net").join(master).join("address");
    // Nothing but a kernel's memory is behind it.
    let read = std::fs::read_to_string(path).map_err(|error| error.kind());
    match read.as_deref().map(str::trim) {
        Err(std::io::ErrorKind::NotFound) => Err(NoMac::Missing(master.to_owned())),
        Err(error) => Err(NoMac::Unreadable(master.to_owned(), *error)),
        Ok("" | "00:00:00:00:00:00") => Err(NoMac::None(master.to_owned())),
        Ok(mac) => Ok(mac.to_ascii_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_mac_is_read_anew_and_what_is_wrong_is_said() {
        let sysfs = tempfile::tempdir().expect("a folder");
        let nic = sysfs.path().join("class/net/bond0");
        fs::create_dir_all(&nic).expect("made");
        for (text, read) in
            [("FA:16:3e:00:00:01\n", Some("fa:16:3e:00:00:01")), ("fa:16:3e:00:00:02", Some("fa:16:3e:00:00:02"))]
        {
            fs::write(nic.join("address"), text).expect("written");
            assert_eq!(mac(sysfs.path(), "bond0").ok().as_deref(), read);
        }
        fs::write(nic.join("address"), "00:00:00:00:00:00\n").expect("written");
        assert_eq!(mac(sysfs.path(), "bond0"), Err(NoMac::None("bond0".to_owned())));
        assert_eq!(mac(sysfs.path(), "eth9"), Err(NoMac::Missing("eth9".to_owned())));
        assert_eq!(mac(sysfs.path(), ""), Err(NoMac::NoMaster));
        for name in ["../../etc", "..", "a/b", "a-name-that-is-too-long"] {
            assert!(matches!(mac(sysfs.path(), name), Err(NoMac::Name(..))), "{name}");
        }
    }
}
