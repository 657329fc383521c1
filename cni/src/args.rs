//! What the runtime says in the environment.

use crate::error::{Code, Fault};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Add,
    Del,
    Check,
    Status,
    Gc,
    Version,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "ADD",
            Self::Del => "DEL",
            Self::Check => "CHECK",
            Self::Status => "STATUS",
            Self::Gc => "GC",
            Self::Version => "VERSION",
        })
    }
}

/// The variables of one run.
pub(crate) struct Environment<F>(pub(crate) F);

/// An interface of a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) container_id: String,
    pub(crate) interface: String,
    /// Empty for a DEL whose sandbox has none any more.
    pub(crate) netns: String,
    pub(crate) pod: Pod,
    /// `CNI_ARGS`, all of them.
    pub(crate) args: BTreeMap<String, String>,
}

/// The pod, as the kubelet has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl<F: Fn(&str) -> Option<OsString>> Environment<F> {
    pub(crate) fn verb(&self) -> Result<Verb, Fault> {
        match self.required("CNI_COMMAND")?.as_str() {
            "ADD" => Ok(Verb::Add),
            "DEL" => Ok(Verb::Del),
            "CHECK" => Ok(Verb::Check),
            "STATUS" => Ok(Verb::Status),
            "GC" => Ok(Verb::Gc),
            "VERSION" => Ok(Verb::Version),
            other => {
                Err(wrong(format!("CNI_COMMAND is {other:?}: ADD, DEL, CHECK, STATUS, GC or VERSION is expected")))
            }
        }
    }

    /// For ADD and CHECK everything has to be there; a DEL of what is half gone is served with what is left.
    pub(crate) fn attachment(&self, verb: Verb) -> Result<Attachment, Fault> {
        let mut attachment = self.sandbox(verb)?;
        if verb != Verb::Del {
            attachment.pod = pod(&attachment.args)?;
        }
        Ok(attachment)
    }

    /// The same for whoever need not know the pod.
    pub(crate) fn sandbox(&self, verb: Verb) -> Result<Attachment, Fault> {
        let container_id = self.required("CNI_CONTAINERID")?;
        if !is_name(&container_id) {
            return Err(wrong(format!(
                "CNI_CONTAINERID is {container_id:?}: letters, digits, '.', '_' and '-' are allowed, a letter or digit first"
            )));
        }
        let interface = self.required("CNI_IFNAME")?;
        if let Some(why) = no_interface(&interface) {
            return Err(wrong(format!("CNI_IFNAME is {interface:?}, which {why}")));
        }
        if verb != Verb::Del && is_no_single_one(&interface) {
            return Err(wrong(format!("CNI_IFNAME is {interface:?}, by which the kernel means another or several")));
        }
        if verb == Verb::Del {
            let args = self.args().unwrap_or_default();
            let netns = self.value("CNI_NETNS").ok().flatten().unwrap_or_default();
            return Ok(Attachment { container_id, interface, netns, pod: pod(&args).unwrap_or_default(), args });
        }
        let netns = self.required("CNI_NETNS")?;
        let args = self.args()?;
        Ok(Attachment { container_id, interface, netns, pod: pod(&args).unwrap_or_default(), args })
    }

    fn args(&self) -> Result<BTreeMap<String, String>, Fault> {
        let text = self.value("CNI_ARGS")?.unwrap_or_default();
        let pairs = text.split(';').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| pair.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        let split: Option<_> = pairs.map(pair).collect();
        split.ok_or_else(|| wrong(format!("CNI_ARGS is {text:?}: KEY=VALUE;… is expected")))
    }

    fn required(&self, name: &str) -> Result<String, Fault> {
        let value = self.value(name)?.filter(|value| !value.is_empty());
        value.ok_or_else(|| wrong(format!("{name} is not set: this program is started by a container runtime")))
    }

    fn value(&self, name: &str) -> Result<Option<String>, Fault> {
        let value = (self.0)(name).map(OsString::into_string).transpose();
        value.map_err(|value| wrong(format!("{name} is no text: {}", value.display())))
    }
}

fn pod(args: &BTreeMap<String, String>) -> Result<Pod, Fault> {
    let required = |key: &str| {
        let value = args.get(key).filter(|value| !value.is_empty()).cloned();
        value.ok_or_else(|| {
            wrong(format!(
                "K8S_POD_NAME, K8S_POD_NAMESPACE and K8S_POD_UID are required in CNI_ARGS; {key} is not there"
            ))
        })
    };
    Ok(Pod {
        namespace: required("K8S_POD_NAMESPACE")?,
        name: required("K8S_POD_NAME")?,
        uid: required("K8S_POD_UID")?,
    })
}

/// Names of containers and networks, by the CNI specification.
pub(crate) fn is_name(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(first) && text.chars().all(|c| first(c) || matches!(c, '.' | '_' | '-'))
}

fn no_interface(name: &str) -> Option<&'static str> {
    match name {
        _ if name.len() > 15 => Some("is longer than 15 bytes"),
        "." | ".." => Some("is no name of an interface"),
        _ if name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace()) => {
            Some("holds a blank, a slash or a colon")
        }
        _ => None,
    }
}

/// Patterns, and names under which the kernel keeps settings of all interfaces.
fn is_no_single_one(name: &str) -> bool {
    name.contains('%') || matches!(name, "all" | "default")
}

fn wrong(msg: String) -> Fault {
    Fault::new(Code::Environment, msg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    const POD: &str = "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME=pod;K8S_POD_UID=uid;X=a=b";

    /// A good environment with one change.
    fn with(change: (&'static str, Option<&'static [u8]>)) -> Environment<impl Fn(&str) -> Option<OsString>> {
        Environment(move |name: &str| {
            if name == change.0 {
                return change.1.map(|value| OsString::from_vec(value.to_vec()));
            }
            let good = match name {
                "CNI_COMMAND" => "ADD",
                "CNI_CONTAINERID" => "c-1",
                "CNI_IFNAME" => "net1",
                "CNI_NETNS" => "/proc/self/ns/net",
                "CNI_ARGS" => POD,
                _ => return None,
            };
            Some(good.into())
        })
    }

    #[test]
    fn a_good_environment_is_read() {
        let environment = with(("", None));
        let attachment = environment.attachment(Verb::Add).expect("good");
        assert_eq!(environment.verb(), Ok(Verb::Add));
        assert_eq!((attachment.pod.name.as_str(), attachment.args["X"].as_str()), ("pod", "a=b"));
    }

    #[test]
    fn what_is_wrong_has_code_4_and_its_name() {
        let long = b"interface-of-16b";
        let table: &[(&'static str, Option<&'static [u8]>)] = &[
            ("CNI_CONTAINERID", None),
            ("CNI_CONTAINERID", Some(b"")),
            ("CNI_CONTAINERID", Some(b"-a")),
            ("CNI_CONTAINERID", Some(b"../../etc")),
            ("CNI_CONTAINERID", Some(b"a b")),
            ("CNI_CONTAINERID", Some("é".as_bytes())),
            ("CNI_CONTAINERID", Some(b"\xff")),
            ("CNI_IFNAME", None),
            ("CNI_IFNAME", Some(long)),
            ("CNI_IFNAME", Some(b"..")),
            ("CNI_IFNAME", Some(b"a/b")),
            ("CNI_IFNAME", Some(b"a:b")),
            ("CNI_IFNAME", Some(b"a\tb")),
            ("CNI_NETNS", None),
            ("CNI_NETNS", Some(b"\xff")),
            ("CNI_ARGS", None),
            ("CNI_ARGS", Some(b"K8S_POD_NAME")),
            ("CNI_ARGS", Some(b"K8S_POD_NAMESPACE=ns;K8S_POD_NAME=pod;K8S_POD_UID=")),
            ("CNI_ARGS", Some(b"\xff=1")),
        ];
        for (name, value) in table {
            let fault = with((name, *value)).attachment(Verb::Add).expect_err(name);
            assert_eq!(fault.code, 4, "{name} {value:?}");
            assert!(fault.msg.contains(name), "{} does not name {name}", fault.msg);
        }
        for command in [None, Some(b"".as_slice()), Some(b"add"), Some(b"UPDATE"), Some(b"\xff")] {
            let fault = with(("CNI_COMMAND", command)).verb().expect_err("no verb");
            assert!(fault.code == 4 && fault.msg.contains("CNI_COMMAND"), "{fault:?}");
        }
    }

    #[test]
    fn a_del_is_served_with_what_is_left() {
        for (name, value) in [
            ("CNI_NETNS", None),
            ("CNI_NETNS", Some(b"\xff".as_slice())),
            ("CNI_ARGS", None),
            ("CNI_ARGS", Some(b"garbage")),
            ("CNI_ARGS", Some(b"\xff")),
        ] {
            assert!(with((name, value)).attachment(Verb::Del).is_ok(), "{name} {value:?}");
        }
        assert!(with(("CNI_CONTAINERID", None)).attachment(Verb::Del).is_err());
        assert!(with(("CNI_IFNAME", None)).attachment(Verb::Del).is_err());
    }
}
