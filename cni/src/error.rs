//! Errors as CNI prints them.

use crate::version::Version;
use serde_json::json;

/// Codes of the CNI specification that this plugin gives by itself, and its own. The agent has more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    IncompatibleVersion,
    Environment,
    Io,
    Decode,
    Config,
    /// The namespace is none of a pod.
    Namespace,
    TryAgain,
    NotAvailable,
    /// From 100 on a plugin's own: a fault of this plugin or of the agent.
    Plugin,
    /// Another device has an address.
    Conflict,
    /// A gateway does not answer.
    NoGateway,
    /// The node has no such master.
    NoMaster,
    /// The master has this VLAN already, for somebody else.
    VlanTaken,
}

impl Code {
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::IncompatibleVersion => 1,
            Self::Environment => 4,
            Self::Io => 5,
            Self::Decode => 6,
            Self::Config => 7,
            Self::Namespace => 8,
            Self::TryAgain => 11,
            Self::NotAvailable => 50,
            Self::Plugin => 100,
            Self::Conflict => 107,
            Self::NoGateway => 108,
            Self::NoMaster => 109,
            Self::VlanTaken => 110,
        }
    }
}

/// Why a verb was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: u32,
    pub(crate) msg: String,
    pub(crate) details: String,
}

/// Longest text: runtimes put it into events, which the API server bounds.
const TEXT_MAX: usize = 4096;

impl Fault {
    pub(crate) fn new(code: Code, msg: impl Into<String>) -> Self {
        Self { code: code.number(), msg: msg.into(), details: String::new() }
    }

    /// With the code of another program.
    pub(crate) fn of(code: u32, msg: impl Into<String>) -> Self {
        // A runtime takes 0 for success.
        Self { code: if code == 0 { Code::Plugin.number() } else { code }, msg: msg.into(), details: String::new() }
    }

    pub(crate) fn text(&self, version: Version) -> String {
        let mut text = json!({"cniVersion": version.text(), "code": self.code, "msg": cut(&self.msg)});
        if let (false, Some(object)) = (self.details.is_empty(), text.as_object_mut()) {
            object.insert("details".to_owned(), cut(&self.details).into());
        }
        text.to_string()
    }
}

impl From<proto::agent::Fault> for Fault {
    fn from(fault: proto::agent::Fault) -> Self {
        let proto::agent::Fault { code, msg, details } = fault;
        Self { details, ..Self::of(code, msg) }
    }
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(TEXT_MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_json_of_the_specification() {
        let fault = Fault::new(Code::TryAgain, "not yet \"é\"\n");
        assert_eq!(
            fault.text(Version::V0_4_0),
            r#"{"cniVersion":"0.4.0","code":11,"msg":"not yet \"é\"\n"}"#,
            "without details that are not there"
        );
        let fault = Fault { details: "é".repeat(5000), ..fault };
        let text: serde_json::Value = serde_json::from_str(&fault.text(Version::LATEST)).expect("JSON");
        assert_eq!(text["details"], "é".repeat(TEXT_MAX / 2));
    }

    #[test]
    fn no_error_of_an_agent_is_a_success() {
        assert_eq!(Fault::from(proto::agent::Fault::default()).code, 100);
    }
}
