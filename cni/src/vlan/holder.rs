//! Who has a VLAN of a master already. A kernel makes one link of an id on a NIC, wherever in its namespaces it is.
//!
//! ```text
//! mounts (mountinfo) ──┐
//! processes (/proc) ───┴─> namespaces that can be reached ──> a VLAN link of this id on this master? ──> judge
//! ```

use super::links::Link;
use super::namespace::Namespace;
use super::plan::{Master, is_temporary, owner};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

/// Who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// Nobody for long: a sandbox that is being taken down, in words.
    Leaves(String),
    /// Somebody who does not go for us.
    Stays(String),
}

/// A namespace that can be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Reached {
    mounts: Vec<String>,
    process: Option<u32>,
}

/// More than a node has.
const MOST: usize = 8192;
const MOST_PROCESSES: usize = 1 << 16;

/// Looks for the link `vlan` on the link `parent` of namespace `base`, on behalf of the pod in `pod`. None if it is in no namespace
/// that can be reached: then in one that the kernel is about to end.
pub(super) fn find(
    base: &Namespace,
    pod: &Namespace,
    parent: u32,
    vlan: u16,
    until: Instant,
) -> io::Result<Option<Holder>> {
    let (base_inode, pod_inode) = (base.inode()?, pod.inode()?);
    if let Some(link) = carried(base, None, parent, vlan)? {
        return Ok(Some(judge(&link, Place { reached: None, is_own: base_inode == pod_inode })));
    }
    for (inode, reached) in namespaces().into_iter().take(MOST) {
        if Instant::now() >= until {
            return Ok(Some(Holder::Leaves("by whom was not found out in time".to_owned())));
        }
        if inode == base_inode {
            continue;
        }
        let Some(namespace) = reached.open() else { continue };
        // It may go while it is looked at.
        if let Ok(Some(link)) = carried(&namespace, Some(base), parent, vlan) {
            return Ok(Some(judge(&link, Place { reached: Some(&reached), is_own: inode == pod_inode })));
        }
    }
    Ok(None)
}

fn carried(namespace: &Namespace, base: Option<&Namespace>, parent: u32, vlan: u16) -> io::Result<Option<Link>> {
    let mut netlink = namespace.netlink()?;
    // Links with a parent elsewhere have a name for that place, which the kernel may make up now.
    let links = netlink.links()?;
    let id = base.map(|base| netlink.name_of(base.as_fd())).transpose()?.flatten();
    if base.is_some() && id.is_none() {
        return Ok(None);
    }
    let master = Master { index: parent, namespace: id };
    Ok(links.into_iter().find(|link| link.vlan == Some(vlan) && master.carries(link)))
}

/// Where a link was found: in the master's namespace, if not in a reached one.
#[derive(Clone, Copy)]
struct Place<'a> {
    reached: Option<&'a Reached>,
    is_own: bool,
}

fn judge(link: &Link, place: Place<'_>) -> Holder {
    let name = &link.name;
    let Place { reached, is_own } = place;
    // A run that was killed before it marked its link left the name.
    let cut_off = || is_temporary(name).then_some(("that an ADD was ended in", name.as_str()));
    match (reached, owner(&link.alias).or_else(cut_off)) {
        _ if is_own => Holder::Stays(format!("interface {name} of the same pod has it")),
        (None, _) => {
            Holder::Stays(format!("interface {name} of the node itself has it: remove that, or use another VLAN"))
        }
        (Some(reached), Some((container, interface))) if reached.process.is_none() => {
            let path = reached.mounts.first().map(String::as_str).unwrap_or_default();
            Holder::Leaves(format!(
                "interface {interface} of sandbox {container}, in which nothing runs ({path}), has it still"
            ))
        }
        (Some(reached), Some((container, interface))) => Holder::Stays(format!(
            "interface {interface} of sandbox {container}, which runs ({reached}), has it: no two pods of a NIC can have one VLAN"
        )),
        (Some(reached), None) => Holder::Stays(format!(
            "interface {name} in the network namespace {reached}, which this plugin did not make, has it"
        )),
    }
}

impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.mounts.first(), self.process) {
            (Some(mount), Some(process)) => write!(f, "{mount}, process {process}"),
            (Some(mount), None) => f.write_str(mount),
            (None, Some(process)) => write!(f, "of process {process}"),
            (None, None) => f.write_str("without a name"),
        }
    }
}

impl Reached {
    fn open(&self) -> Option<Namespace> {
        let mount = self.mounts.iter().find_map(|path| Namespace::open(path).ok());
        mount.or_else(|| Namespace::open(&format!("/proc/{}/ns/net", self.process?)).ok())
    }
}

/// By their inodes.
fn namespaces() -> BTreeMap<u64, Reached> {
    let mut all: BTreeMap<u64, Reached> = BTreeMap::new();
    for (inode, path) in mounted(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()) {
        all.entry(inode).or_default().mounts.push(path);
    }
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    for process in processes.take(MOST_PROCESSES) {
        if let Ok(found) = fs::metadata(format!("/proc/{process}/ns/net")) {
            all.entry(found.ino()).or_default().process.get_or_insert(process);
        }
    }
    all
}

/// Namespaces and where they are mounted, of the text of `mountinfo`: `… net:[4026532200] /run/netns/x … - nsfs nsfs rw`.
fn mounted(text: &str) -> Vec<(u64, String)> {
    let one = |line: &str| {
        let mut words = line.split(' ').skip(3);
        let (root, path) = (words.next()?, words.next()?);
        let inode = root.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()?;
        Some((inode, path.replace("\\040", " ")))
    };
    text.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(alias: &str) -> Link {
        Link { name: "net1".into(), alias: alias.into(), vlan: Some(100), ..Link::default() }
    }

    fn judged(alias: &str, mounts: &[&str], process: Option<u32>) -> Holder {
        let reached = Reached { mounts: mounts.iter().map(ToString::to_string).collect(), process };
        judge(&link(alias), Place { reached: Some(&reached), is_own: false })
    }

    #[test]
    fn who_has_it_is_told_and_who_goes_is_waited_for() {
        let Holder::Leaves(text) = judged("spiderpool c-1 net1", &["/run/netns/a"], None) else { panic!("it goes") };
        assert!(text.contains("net1 of sandbox c-1") && text.contains("/run/netns/a"), "{text}");
        let Holder::Stays(text) = judged("spiderpool c-1 net1", &["/run/netns/a"], Some(7)) else { panic!("it runs") };
        assert!(text.contains("net1 of sandbox c-1") && text.contains("process 7"), "{text}");
        let unmarked = Link { name: "vlb212a40debd5".into(), ..link("") };
        let reached = Reached { mounts: vec!["/run/netns/a".into()], process: None };
        let left = judge(&unmarked, Place { reached: Some(&reached), is_own: false });
        assert!(matches!(left, Holder::Leaves(_)), "{left:?}");
        for process in [None, Some(7)] {
            let Holder::Stays(text) = judged("", &["/run/netns/a"], process) else { panic!("not ours") };
            assert!(text.contains("/run/netns/a"), "{text}");
        }
        let Holder::Stays(text) = judge(&link(""), Place { reached: None, is_own: false }) else {
            panic!("the node's")
        };
        assert!(text.contains("net1 of the node"), "{text}");
        let own = Place { reached: Some(&Reached::default()), is_own: true };
        assert!(matches!(judge(&link("spiderpool c-1 net2"), own), Holder::Stays(text) if text.contains("same pod")));
    }

    #[test]
    fn mounts_of_namespaces_are_read() {
        let text = "25 30 0:23 / /run rw,nosuid shared:5 - tmpfs tmpfs rw\n\
                    99 25 0:4 net:[4026532200] /run/netns/cni-a\\040b rw shared:9 - nsfs nsfs rw\n\
                    98 25 0:4 mnt:[4026532201] /run/mnt rw - nsfs nsfs rw\n\nodd\n";
        assert_eq!(mounted(text), [(4_026_532_200, "/run/netns/cni-a b".to_owned())]);
    }

    #[test]
    fn the_own_namespace_is_reached() {
        let own = Namespace::own().expect("opens").inode().expect("has one");
        assert!(namespaces()[&own].process.is_some());
    }
}
