//! What plugins send, checked.

use super::ipam::{Asked, Link};
use ipam_core::{Add, Del, Netns, Pod, UNKNOWN_SANDBOX};
use proto::agent::{AddRequest, Attachment, GcRequest};
use std::time::Duration;

/// The plugin sent what no runtime would say (CNI code 4).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Invalid {
    #[error("the request names no attachment")]
    NoAttachment,
    #[error("{0:?} is no id of a container")]
    Container(String),
    #[error("{0:?} is no name of an interface")]
    Interface(String),
    #[error("{namespace}/{name} with the UID {uid:?} is no pod", namespace = .0.namespace, name = .0.name, uid = .0.uid)]
    Pod(Pod),
    #[error("{0} is no VLAN id: 0 to 4094 are")]
    Vlan(u32),
}

/// What the machine adds to a request.
pub(super) struct Here {
    pub(super) netns: Option<Netns>,
    pub(super) boot_id: String,
    pub(super) deadline: Duration,
}

pub(super) fn add(request: AddRequest, here: Here) -> Result<Asked, Invalid> {
    let AddRequest {
        attachment,
        link,
        default_ipv4_ippool,
        default_ipv6_ippool,
        clean_gateway,
        match_master_subnet,
        args: _,
    } = request;
    let proto::agent::Link { r#type, master, vlan_id, vlan_mode } = link.unwrap_or_default();
    let vlan = |id: u32| u16::try_from(id).ok().filter(|id| *id <= 4094).ok_or(Invalid::Vlan(id));
    Ok(Asked {
        add: Add { clean_gateway, ..interface(attachment, here)? },
        link: Link { kind: r#type, master, vlan_id: vlan_id.map(vlan).transpose()?, vlan_mode },
        ipv4_pools: default_ipv4_ippool,
        ipv6_pools: default_ipv6_ippool,
        match_master_subnet,
    })
}

/// For ADD and CHECK: everything has to be there.
pub(super) fn interface(attachment: Option<Attachment>, here: Here) -> Result<Add, Invalid> {
    let attachment = attachment.ok_or(Invalid::NoAttachment)?;
    let Attachment { container_id, interface, network, netns: _, pod } = attachment;
    let proto::agent::Pod { namespace, name, uid } = pod.unwrap_or_default();
    let pod = Pod { namespace, name, uid };
    let Del { container_id, interface, .. } = sandbox(container_id, interface)?;
    if !is_object(&pod.namespace) || !is_object(&pod.name) || !is_name(&pod.uid) {
        return Err(Invalid::Pod(pod));
    }
    let Here { netns, boot_id, deadline } = here;
    Ok(Add { pod, container_id, interface, network, netns, boot_id, parent: None, clean_gateway: false, deadline })
}

pub(super) fn del(attachment: Option<Attachment>) -> Result<Del, Invalid> {
    let Attachment { container_id, interface, pod, .. } = attachment.ok_or(Invalid::NoAttachment)?;
    let pod_uid = pod.map(|pod| pod.uid).filter(|uid| is_name(uid)).unwrap_or_default();
    Ok(Del { pod_uid, ..sandbox(container_id, interface)? })
}

/// One entry that cannot be read would let go of what it stands for, so none may.
pub(super) fn gc(request: GcRequest) -> Result<(String, Vec<Del>), Invalid> {
    let GcRequest { network, valid } = request;
    let in_use: Result<_, _> = valid.into_iter().map(|valid| sandbox(valid.container_id, valid.interface)).collect();
    Ok((network, in_use?))
}

fn sandbox(container_id: String, interface: String) -> Result<Del, Invalid> {
    if !is_name(&container_id) || container_id == UNKNOWN_SANDBOX {
        return Err(Invalid::Container(container_id));
    }
    let odd = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    if interface.is_empty() || interface.len() > 15 || matches!(&*interface, "." | "..") || interface.contains(odd) {
        return Err(Invalid::Interface(interface));
    }
    Ok(Del { container_id, interface, pod_uid: String::new() })
}

/// By the CNI specification, and short enough for a file's name.
fn is_name(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric();
    text.len() <= 128 && text.starts_with(first) && text.chars().all(|c| first(c) || matches!(c, '.' | '_' | '-'))
}

/// As Kubernetes names pods and namespaces; it becomes part of the path of a request.
fn is_object(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let all = text.chars().all(|c| edge(c) || matches!(c, '.' | '-'));
    text.len() <= 253 && text.starts_with(edge) && text.ends_with(edge) && all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> AddRequest {
        AddRequest {
            attachment: Some(Attachment {
                container_id: "c-1".to_owned(),
                interface: "net1".to_owned(),
                network: "a-net".to_owned(),
                netns: None,
                pod: Some(proto::agent::Pod { namespace: "ns".into(), name: "pod".into(), uid: "uid".into() }),
            }),
            link: Some(proto::agent::Link { r#type: "vlan".into(), ..Default::default() }),
            clean_gateway: true,
            ..AddRequest::default()
        }
    }

    fn read(request: AddRequest) -> Result<Asked, Invalid> {
        add(request, Here { netns: None, boot_id: "boot".to_owned(), deadline: Duration::from_secs(7) })
    }

    #[test]
    fn a_good_one_is_taken_over() {
        let asked = read(good()).expect("good");
        assert!(asked.link.provided() && asked.add.clean_gateway);
        assert_eq!((asked.add.boot_id.as_str(), asked.add.deadline), ("boot", Duration::from_secs(7)));
        let mut manual = good();
        manual.link.as_mut().expect("there").vlan_id = Some(0);
        assert!(!read(manual).expect("good").link.provided(), "0 is an id that somebody wrote");
    }

    #[test]
    fn a_spoilt_one_is_refused() {
        let table: [fn(&mut Attachment); 21] = [
            |a| a.container_id.clear(),
            |a| a.container_id = "../x".into(),
            |a| a.container_id = "c".repeat(129),
            |a| a.interface.clear(),
            |a| a.interface = "..".into(),
            |a| a.interface = "a/b".into(),
            |a| a.interface = "interface-of-16b".into(),
            |a| a.interface = "a\0".into(),
            |a| a.pod = None,
            |a| a.pod.as_mut().expect("there").name.clear(),
            |a| a.pod.as_mut().expect("there").uid.clear(),
            |a| a.pod.as_mut().expect("there").uid = "a/../b".into(),
            |a| a.pod.as_mut().expect("there").name = "../nodes/n".into(),
            |a| a.pod.as_mut().expect("there").name = "a?b".into(),
            |a| a.pod.as_mut().expect("there").name = "Pod".into(),
            |a| a.pod.as_mut().expect("there").name = "a%2fb".into(),
            |a| a.pod.as_mut().expect("there").name = "a\n".into(),
            |a| a.pod.as_mut().expect("there").name = "x".repeat(254),
            |a| a.pod.as_mut().expect("there").namespace = "..".into(),
            |a| a.pod.as_mut().expect("there").namespace = "é".into(),
            |a| a.pod.as_mut().expect("there").uid = "é".into(),
        ];
        for (at, spoil) in table.into_iter().enumerate() {
            let mut request = good();
            spoil(request.attachment.as_mut().expect("there"));
            assert!(read(request).is_err(), "{at}");
        }
        assert_eq!(read(AddRequest { attachment: None, ..good() }).expect_err("empty"), Invalid::NoAttachment);
        let link = proto::agent::Link { vlan_id: Some(4095), ..Default::default() };
        assert_eq!(read(AddRequest { link: Some(link), ..good() }).expect_err("too large"), Invalid::Vlan(4095));
    }

    #[test]
    fn a_list_of_what_is_in_use_is_read_whole_or_not_at_all() {
        let valid = |id: &str| proto::agent::gc_request::Valid { container_id: id.into(), interface: "net1".into() };
        let request = |ids: &[&str]| GcRequest { network: "n".into(), valid: ids.iter().map(|id| valid(id)).collect() };
        assert_eq!(gc(request(&["a", "b"])).expect("good").1.len(), 2);
        assert!(gc(request(&["a", "/"])).is_err());
    }
}
