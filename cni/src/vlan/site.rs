//! Where a link is made: the pod's namespace and the master's, with a socket in each.

use super::config::Network;
use super::links::Link;
use super::namespace::{Namespace, failed};
use super::netlink::Netlink;
use super::plan::Master;
use crate::error::{Code, Fault};

/// Both ends of a link that is to be.
pub(super) struct Site {
    pub(super) pod: Namespace,
    /// The node's, or the pod's once more (`linkInContainer`).
    pub(super) base: Namespace,
    pub(super) in_pod: Netlink,
    pub(super) in_base: Netlink,
}

impl Site {
    pub(super) fn open(network: &Network, netns: &str) -> Result<Self, Fault> {
        let of =
            |namespace: std::io::Result<Namespace>| namespace.map_err(failed("a network namespace cannot be opened"));
        let pod = of(Namespace::open(netns))?;
        let own = of(Namespace::own())?;
        if pod.inode().ok() == own.inode().ok() {
            let text = format!("CNI_NETNS is {netns:?}, which is the node's own network namespace and no pod's");
            return Err(Fault::new(Code::Namespace, text));
        }
        let base = if network.is_in_pod { of(Namespace::open(netns))? } else { own };
        let entered = |namespace: &Namespace| {
            namespace.netlink().map_err(failed("the network namespace of the pod cannot be entered"))
        };
        let in_pod = entered(&pod)?;
        let in_base =
            if network.is_in_pod { entered(&base)? } else { Netlink::open().map_err(failed("no netlink"))? };
        Ok(Self { pod, base, in_pod, in_base })
    }

    /// The master as it is, if it is there.
    pub(super) fn link(&mut self, master: &str) -> Result<Option<Link>, Fault> {
        self.in_base.find(master).map_err(failed(&format!("master {master} cannot be looked at")))
    }

    /// The pod's namespace gives the master's a name when the first link goes across.
    pub(super) fn master(&mut self, link: &Link, is_in_pod: bool) -> Result<Master, Fault> {
        let namespace = if is_in_pod {
            None
        } else {
            self.in_pod
                .name_of(self.base.as_fd())
                .map_err(failed("the node's network namespace has no name in the pod's"))?
        };
        Ok(Master { index: link.index, namespace })
    }
}

/// The master, if it can carry anything, and the MTU that a link on it gets.
pub(super) fn usable(network: &Network, master: Option<Link>) -> Result<(Link, u32), Fault> {
    let name = &network.master;
    let place = if network.is_in_pod { "in the pod's network namespace" } else { "on this node" };
    let Some(master) = master else {
        let text = format!(
            "master {name} is not there: no interface of this name is {place}; correct \"master\" of the network"
        );
        return Err(Fault::new(Code::NoMaster, text));
    };
    if !master.up {
        return Err(down(name));
    }
    match network.mtu {
        0 => {
            let mtu = master.mtu;
            Ok((master, mtu))
        }
        mtu if mtu <= master.mtu => Ok((master, mtu)),
        mtu => {
            let text = format!("mtu {mtu} of the network is above {}, that of its master {name}", master.mtu);
            Err(Fault::new(Code::Config, text))
        }
    }
}

pub(super) fn down(master: &str) -> Fault {
    Fault::new(Code::TryAgain, format!("master {master} is down, nothing gets through: ip link set {master} up"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Verb;
    use crate::version::Version;
    use serde_json::json;

    fn network(mtu: u32) -> Network {
        let text = json!({"name": "n", "master": "eth1", "vlanId": 7, "mtu": mtu, "ipam": {"type": "static"}});
        Network::parse(Verb::Add, Version::LATEST, &text).expect("good")
    }

    #[test]
    fn a_master_is_there_and_up_and_wide_enough() {
        let master = Link { name: "eth1".into(), up: true, mtu: 1500, ..Link::default() };
        let of = |mtu| usable(&network(mtu), Some(master.clone())).map(|(_, mtu)| mtu).map_err(|fault| fault.code);
        assert_eq!([of(0), of(1500), of(1400), of(1501)], [Ok(1500), Ok(1500), Ok(1400), Err(7)]);
        let fault = usable(&network(0), None).expect_err("none");
        assert!(fault.code == 109 && fault.msg.contains("master eth1 is not there"), "{fault:?}");
        let fault = usable(&network(0), Some(Link { up: false, ..master })).expect_err("down");
        assert!(fault.code == 11 && fault.msg.contains("master eth1 is down"), "{fault:?}");
    }
}
