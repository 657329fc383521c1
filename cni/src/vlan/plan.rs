//! What is to be done about the links that are there.

use super::given::{Address, Given};
use super::links::{Held, Link};

/// A link of ours says so in its alias, with the sandbox, the interface and the network that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    text: String,
    temporary: String,
}

const OURS: &str = "spiderpool ";
/// The kernel takes less than 256 bytes.
const ALIAS_MAX: usize = 255;

impl Mark {
    pub(super) fn new(container: &str, interface: &str, network: &str) -> Self {
        let whole = format!("{OURS}{container} {interface} {network}");
        let hash = hash(&whole);
        // Of 15 bytes, which is what a name may have.
        let temporary = format!("vl{:012x}", hash & 0xffff_ffff_ffff);
        let text = if whole.len() > ALIAS_MAX { format!("{OURS}{hash:016x} {interface} ") } else { whole };
        Self { text, temporary }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// What the link is called until it is marked. The same in each run, so that what a killed one left is found.
    pub(super) fn temporary(&self) -> &str {
        &self.temporary
    }
}

/// FNV-1a: the same in each version of this program, and that is all that it has to be.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Sandbox and interface that a link of ours is for.
pub(super) fn owner(alias: &str) -> Option<(&str, &str)> {
    let (container, rest) = alias.strip_prefix(OURS)?.split_once(' ')?;
    Some((container, rest.split(' ').next()?))
}

/// Whether a link is called as ours are until they are marked.
pub(super) fn is_temporary(name: &str) -> bool {
    name.strip_prefix("vl").is_some_and(|hash| hash.len() == 12 && hash.chars().all(|c| c.is_ascii_hexdigit()))
}

/// A master, in its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Master {
    pub(super) index: u32,
    /// What its namespace is called in the pod's; none if it is the pod's.
    pub(super) namespace: Option<i32>,
}

impl Master {
    pub(super) fn carries(&self, link: &Link) -> bool {
        link.vlan.is_some() && link.parent == self.index && link.parent_in == self.namespace
    }
}

/// What becomes of the link that has the interface's name already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// There is none.
    Make,
    /// It is what is wanted, made by an earlier ADD for the same sandbox.
    Keep,
    /// It is ours and is not what is wanted.
    Replace,
    /// It is not ours.
    Refuse(&'static str),
}

/// `there` with its addresses, if it is there.
pub(super) fn step(there: Option<(&Link, &[Held])>, mark: &Mark, master: &Master, mtu: u32, given: &Given) -> Step {
    let Some((link, held)) = there else { return Step::Make };
    if link.alias != mark.text {
        return Step::Refuse(match (link.vlan, owner(&link.alias)) {
            (None, _) => "which is no VLAN link",
            (Some(_), None) => "a VLAN link that was not made by this plugin",
            (Some(_), Some(_)) => "a VLAN link of another network or sandbox",
        });
    }
    let same = link.vlan == Some(given.vlan)
        && master.carries(link)
        && link.mtu == mtu
        && given.mac.is_none_or(|mac| link.mac == Some(mac));
    // What the kernel made up of an advertisement is nobody's.
    let foreign = |held: &Held| !held.is_of_kernel && given.addresses.iter().all(|address| !is(held, address));
    if same && !held.iter().any(foreign) { Step::Keep } else { Step::Replace }
}

fn is(held: &Held, address: &Address) -> bool {
    (held.ip, held.prefix) == (address.ip, address.prefix)
}

/// Whether a DEL may take a link that has the interface's name. One without a mark was made by another `vlan` before this one
/// was installed, if it is a VLAN of this network.
pub(super) fn is_ours(link: &Link, mark: &Mark, master: Option<&Master>, vlan: Option<u16>) -> bool {
    match link.alias.as_str() {
        "" => master.is_some_and(|master| master.carries(link)) && vlan.is_none_or(|vlan| link.vlan == Some(vlan)),
        alias => link.vlan.is_some() && alias == mark.text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::Mac;
    use serde_json::{Value, json};

    const MASTER: Master = Master { index: 3, namespace: Some(0) };

    fn mark() -> Mark {
        Mark::new("c-1", "net1", "a")
    }

    fn link() -> Link {
        Link {
            index: 2,
            name: "net1".into(),
            mac: Some(Mac([2, 0, 0, 0, 0, 1])),
            mtu: 1500,
            up: true,
            alias: "spiderpool c-1 net1 a".into(),
            vlan: Some(100),
            parent: 3,
            parent_in: Some(0),
        }
    }

    fn given() -> Given {
        let address = Address { ip: "10.6.0.9".parse().expect("one"), prefix: 24, gateway: None };
        Given {
            vlan: 100,
            mac: Some(Mac([2, 0, 0, 0, 0, 1])),
            addresses: vec![address],
            routes: vec![],
            dns: json!({}),
            told_routes: Value::Null,
        }
    }

    fn held(ip: &str, is_of_kernel: bool) -> Held {
        Held { ip: ip.parse().expect("one"), prefix: 24, is_of_kernel, is_tentative: false, is_taken: false }
    }

    fn step_of(change: impl Fn(&mut Link), held: &[Held]) -> Step {
        let mut link = link();
        change(&mut link);
        step(Some((&link, held)), &mark(), &MASTER, 1500, &given())
    }

    #[test]
    fn what_is_wanted_is_kept_and_what_is_not_is_replaced() {
        assert_eq!(step(None, &mark(), &MASTER, 1500, &given()), Step::Make);
        assert_eq!(step_of(|_| {}, &[]), Step::Keep, "killed before its addresses");
        assert_eq!(step_of(|link| link.up = false, &[held("10.6.0.9", false), held("fe80::1", true)]), Step::Keep);
        assert_eq!(step_of(|_| {}, &[held("10.6.0.8", false)]), Step::Replace);
        let changes: [fn(&mut Link); 5] = [
            |link| link.vlan = Some(101),
            |link| link.parent = 4,
            |link| link.parent_in = None,
            |link| link.mtu = 1400,
            |link| link.mac = Some(Mac([2, 0, 0, 0, 0, 2])),
        ];
        for change in changes {
            assert_eq!(step_of(change, &[]), Step::Replace);
        }
    }

    #[test]
    fn what_is_not_ours_is_refused() {
        let changes: [fn(&mut Link); 5] = [
            |link| link.alias.clear(),
            |link| link.alias = "uplink".into(),
            |link| link.alias = "spiderpool c-2 net1 a".into(),
            |link| link.alias = "spiderpool c-1 net1 b".into(),
            |link| (link.vlan, link.alias) = (None, String::new()),
        ];
        for change in changes {
            assert!(matches!(step_of(change, &[]), Step::Refuse(_)));
        }
    }

    #[test]
    fn a_del_takes_no_strangers_link() {
        let ours = |change: fn(&mut Link), vlan| {
            let mut link = link();
            change(&mut link);
            is_ours(&link, &mark(), Some(&MASTER), vlan)
        };
        assert!(ours(|_| {}, None) && ours(|link| link.vlan = Some(5), Some(100)), "the mark proves it");
        assert!(ours(|link| link.alias.clear(), Some(100)) && ours(|link| link.alias.clear(), None));
        assert!(!ours(|link| (link.alias, link.vlan) = (String::new(), Some(5)), Some(100)), "of another network");
        assert!(!ours(|link| (link.alias, link.parent) = (String::new(), 9), Some(100)), "of another master");
        assert!(!ours(|link| link.alias = "uplink".into(), None));
        assert!(!ours(|link| link.vlan = None, None), "none of VLAN");
        let unmarked = Link { alias: String::new(), ..link() };
        assert!(!is_ours(&unmarked, &mark(), None, Some(100)), "without a master there are no VLANs on it");
    }

    #[test]
    fn a_mark_has_room_in_a_link() {
        let long = Mark::new(&"c".repeat(300), "net1", "a");
        assert!(long.text().len() <= ALIAS_MAX && long.temporary().len() <= 15);
        assert_eq!(owner(long.text()).map(|(_, interface)| interface), Some("net1"));
        assert_eq!(owner(mark().text()), Some(("c-1", "net1")));
        assert_eq!((owner("uplink"), owner("spiderpool ")), (None, None));
        assert!(is_temporary(mark().temporary()) && !is_temporary("vlan100") && !is_temporary("vlan100-of-node"));
        assert_ne!(mark().temporary(), Mark::new("c-2", "net1", "a").temporary());
        assert_eq!(mark().temporary(), "vld190765ed12a", "the same in each version");
    }
}
