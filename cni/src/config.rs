//! What the network's configuration says.

use crate::args::{Verb, is_name};
use crate::duration;
use crate::error::{Code, Fault};
use crate::version::Version;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// A configuration that can be worked with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) version: Version,
    /// Name of the network.
    pub(crate) name: String,
    pub(crate) link: Link,
    pub(crate) ipam: Ipam,
    /// GC: what is in use.
    pub(crate) valid: Vec<Valid>,
    /// CHECK: the addresses of the earlier result.
    pub(crate) cidrs: Vec<String>,
}

/// What carries the addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) kind: String,
    pub(crate) master: String,
    pub(crate) vlan_id: Option<u16>,
    pub(crate) vlan_mode: String,
    /// Whether the plugin `bridge` puts the gateway's address on its bridge, later.
    pub(crate) becomes_gateway: bool,
}

/// The section `ipam`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ipam {
    pub(crate) ipv4_pools: Vec<String>,
    pub(crate) ipv6_pools: Vec<String>,
    pub(crate) clean_gateway: bool,
    pub(crate) match_master_subnet: bool,
    pub(crate) socket: PathBuf,
    pub(crate) timeout: Duration,
}

/// An attachment that is in use.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Valid {
    #[serde(rename = "containerID")]
    pub(crate) container_id: String,
    #[serde(rename = "ifname")]
    pub(crate) interface: String,
}

const SOCKET: &str = "/var/run/spidernet/spiderpool.sock";
/// The cloud may take 48 s of it; the kubelet gives a sandbox 4 minutes. The agent takes no more than this either.
const TIMEOUT: Duration = Duration::from_secs(100);

impl Default for Ipam {
    fn default() -> Self {
        Self {
            ipv4_pools: Vec::new(),
            ipv6_pools: Vec::new(),
            clean_gateway: false,
            match_master_subnet: false,
            socket: SOCKET.into(),
            timeout: TIMEOUT,
        }
    }
}

/// As it is written. Keys that are not here are other plugins', or of a later version.
#[derive(Deserialize)]
struct Written {
    name: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    ipam: Option<WrittenIpam>,
}

/// Of type `vlan`. Under another type these words are another plugin's.
#[derive(Deserialize)]
struct WrittenLink {
    master: Option<String>,
    #[serde(rename = "vlanId")]
    vlan_id: Option<i64>,
    #[serde(rename = "vlanMode")]
    vlan_mode: Option<String>,
}

/// What GC alone reads.
#[derive(Deserialize)]
struct InUse {
    #[serde(rename = "cni.dev/valid-attachments")]
    valid: Option<Vec<Valid>>,
}

/// What CHECK alone reads: an ADD has its addresses from nobody else, whatever ran before it in a chain.
#[derive(Deserialize)]
struct Before {
    #[serde(rename = "prevResult")]
    previous: Option<Previous>,
}

#[derive(Deserialize)]
struct WrittenIpam {
    default_ipv4_ippool: Option<Vec<String>>,
    default_ipv6_ippool: Option<Vec<String>>,
    clean_gateway: Option<bool>,
    match_master_subnet: Option<bool>,
    ipam_unix_socket_path: Option<PathBuf>,
    #[serde(rename = "agentTimeout")]
    timeout: Option<Value>,
}

#[derive(Deserialize)]
struct Previous {
    ips: Option<Vec<PreviousAddress>>,
}

#[derive(Deserialize)]
struct PreviousAddress {
    address: String,
}

/// The version first: how everything else is printed, errors too, hangs on it. (Absent means 0.1.0 by the specification.)
pub(crate) fn version(text: &Value) -> Result<Version, Fault> {
    let asked = match text.get("cniVersion") {
        None | Some(Value::Null) => "0.1.0",
        Some(version) => version.as_str().unwrap_or("which is no text"),
    };
    let asked = if asked.is_empty() { "0.1.0" } else { asked };
    Version::parse(asked).ok_or_else(|| {
        let all = Version::ALL.map(Version::text).join(", ");
        let text =
            format!("unsupported specified CNI version {asked}, the CNI versions supported by Spiderpool: [{all}]");
        Fault::new(Code::IncompatibleVersion, text)
    })
}

/// An object, whatever is in it.
pub(crate) fn decode(stdin: &[u8]) -> Result<Value, Fault> {
    let value = serde_json::from_slice::<Value>(stdin);
    let value = value.map_err(|error| decode_fault(&format!("is not JSON: {error}")))?;
    if value.is_object() { Ok(value) } else { Err(decode_fault("is not a JSON object")) }
}

fn decode_fault(what: &str) -> Fault {
    Fault::new(Code::Decode, format!("the configuration on stdin {what}"))
}

impl Config {
    pub(crate) fn parse(verb: Verb, version: Version, value: &Value) -> Result<Self, Fault> {
        match Self::strict(verb, version, value) {
            // What was set up under a better configuration has to go nevertheless.
            Err(_) if verb == Verb::Del => Ok(Self::rest(version, value)),
            other => other,
        }
    }

    fn strict(verb: Verb, version: Version, value: &Value) -> Result<Self, Fault> {
        let Written { name, kind, ipam } = part(value)?;
        let name = name.filter(|name| is_name(name)).ok_or_else(|| {
            wrong("\"name\" of the network: letters, digits, '.', '_' and '-' are allowed, a letter or digit first")
        })?;
        let valid = match verb {
            // Without the list everything would go.
            Verb::Gc => {
                part::<InUse>(value)?.valid.ok_or_else(|| wrong("\"cni.dev/valid-attachments\" is required for GC"))?
            }
            _ => Vec::new(),
        };
        let addresses = match verb {
            Verb::Check => part::<Before>(value)?.previous.and_then(|previous| previous.ips).unwrap_or_default(),
            _ => Vec::new(),
        };
        Ok(Self {
            version,
            name,
            link: Link::read(kind.unwrap_or_default(), value)?,
            ipam: ipam.map(Ipam::try_from).transpose()?.unwrap_or_default(),
            valid,
            cidrs: addresses.into_iter().map(|ip| ip.address).collect(),
        })
    }

    fn rest(version: Version, value: &Value) -> Self {
        let socket =
            value.pointer("/ipam/ipam_unix_socket_path").and_then(Value::as_str).filter(|path| !path.is_empty());
        let ipam = Ipam { socket: socket.unwrap_or(SOCKET).into(), ..Ipam::default() };
        let name = value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { version, name, link: Link::default(), ipam, valid: Vec::new(), cidrs: Vec::new() }
    }
}

pub(crate) fn part<T: for<'a> Deserialize<'a>>(value: &Value) -> Result<T, Fault> {
    T::deserialize(value).map_err(|error| wrong(format!("in the configuration: {error}")))
}

impl Link {
    fn read(kind: String, value: &Value) -> Result<Self, Fault> {
        if kind != "vlan" {
            let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let is_on = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or_default();
            let becomes_gateway = kind == "bridge" && (is_on("isGateway") || is_on("isDefaultGateway"));
            return Ok(Self { master: text("master"), kind, becomes_gateway, ..Self::default() });
        }
        let WrittenLink { master, vlan_id, vlan_mode } = part(value)?;
        let vlan_id = vlan_id.map(|id| match u16::try_from(id) {
            Ok(id) if id <= 4094 => Ok(id),
            _ => Err(wrong(format!("invalid vlanId {id} (must be 0-4094)"))),
        });
        Ok(Self {
            kind,
            master: master.unwrap_or_default(),
            vlan_id: vlan_id.transpose()?,
            vlan_mode: vlan_mode.unwrap_or_default(),
            becomes_gateway: false,
        })
    }
}

impl TryFrom<WrittenIpam> for Ipam {
    type Error = Fault;

    fn try_from(written: WrittenIpam) -> Result<Self, Fault> {
        let WrittenIpam {
            default_ipv4_ippool,
            default_ipv6_ippool,
            clean_gateway,
            match_master_subnet,
            ipam_unix_socket_path,
            timeout,
        } = written;
        let timeout = timeout.filter(|timeout| !timeout.is_null()).map(|timeout| {
            let text = "ipam.agentTimeout: seconds or a duration such as \"55s\" is expected, not";
            duration::read(&timeout).ok_or_else(|| wrong(format!("{text} {timeout}")))
        });
        Ok(Self {
            ipv4_pools: default_ipv4_ippool.unwrap_or_default(),
            ipv6_pools: default_ipv6_ippool.unwrap_or_default(),
            clean_gateway: clean_gateway.unwrap_or_default(),
            match_master_subnet: match_master_subnet.unwrap_or_default(),
            socket: ipam_unix_socket_path.filter(|path| !path.as_os_str().is_empty()).unwrap_or_else(|| SOCKET.into()),
            timeout: timeout.transpose()?.unwrap_or(TIMEOUT),
        })
    }
}

fn wrong(msg: impl Into<String>) -> Fault {
    Fault::new(Code::Config, msg)
}

#[cfg(test)]
mod tests;
