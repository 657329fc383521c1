//! A fault as it is written, and which settings belong to which kind.

use super::alter::Alteration;
use super::plan::{Fault, Shape, Work};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest that a fault waits.
const LONGEST: Duration = Duration::from_mins(10);
/// The largest answer.
const LARGEST: u64 = 1 << 30;
/// Headers of an answer.
const MOST_HEADERS: usize = 32;

/// What goes wrong. `docs/provider.md` says each in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Kind {
    Status,
    StatusAfter,
    CutBefore,
    CutAfter,
    CutMidAnswer,
    PartialStatusLine,
    Late,
    #[serde(rename = "proxy-504")]
    Proxy504,
    Hang,
    HangAfter,
    Slow,
    SlowBody,
    EndlessBody,
    HugeBody,
    Garbage,
    Empty,
    Redirect,
    Missing,
    Extra,
    Duplicate,
    WrongSubnet,
    WrongAddressSpelling,
    BadMac,
    VlanOutOfRange,
    SameVlan,
    NoVlan,
    NoMac,
}

/// A fault with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    /// What goes wrong.
    pub kind: Kind,
    /// Status that is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// Body that is answered: a text as it is, all else as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Headers that are answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// How long until something happens, or between two bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// Size of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The id that is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<i64>,
    /// Where a redirect leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// `false`: the answer is as bad, but nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<bool>,
    /// `true`: the connection ends with a reset, not with an orderly end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<bool>,
    /// `true`: what is done late is done after the budget, too, which no provider may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond_budget: Option<bool>,
}

impl Spec {
    /// A fault of this kind, with what it has when nothing is said.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            code: None,
            body: None,
            headers: None,
            ms: None,
            bytes: None,
            vlan: None,
            location: None,
            work: None,
            reset: None,
            beyond_budget: None,
        }
    }

    /// Settings that a kind takes; the marked ones it needs.
    const fn takes(kind: Kind) -> &'static [(&'static str, bool)] {
        match kind {
            Kind::Status | Kind::StatusAfter => &[("code", true), ("body", false), ("headers", false)],
            Kind::CutBefore | Kind::CutAfter => &[("reset", false)],
            Kind::CutMidAnswer | Kind::PartialStatusLine => &[("reset", false), ("work", false)],
            Kind::Late => &[("ms", true), ("reset", false), ("beyondBudget", false)],
            Kind::Proxy504 => &[("ms", true), ("beyondBudget", false)],
            Kind::Hang | Kind::HangAfter => &[],
            Kind::Slow => &[("ms", true)],
            Kind::SlowBody => &[("ms", false), ("work", false)],
            Kind::HugeBody => &[("bytes", true), ("work", false)],
            Kind::Redirect => &[("code", false), ("location", false), ("work", false)],
            Kind::VlanOutOfRange => &[("vlan", true), ("work", false)],
            Kind::EndlessBody
            | Kind::Garbage
            | Kind::Empty
            | Kind::Missing
            | Kind::Extra
            | Kind::Duplicate
            | Kind::WrongSubnet
            | Kind::WrongAddressSpelling
            | Kind::BadMac
            | Kind::SameVlan
            | Kind::NoVlan
            | Kind::NoMac => &[("work", false)],
        }
    }

    fn given(&self) -> [(&'static str, bool); 10] {
        let Self { kind: _, code, body, headers, ms, bytes, vlan, location, work, reset, beyond_budget } = self;
        [
            ("code", code.is_some()),
            ("body", body.is_some()),
            ("headers", headers.is_some()),
            ("ms", ms.is_some()),
            ("bytes", bytes.is_some()),
            ("vlan", vlan.is_some()),
            ("location", location.is_some()),
            ("work", work.is_some()),
            ("reset", reset.is_some()),
            ("beyondBudget", beyond_budget.is_some()),
        ]
    }

    /// What it comes to, or which setting is wrong and why.
    pub(super) fn check(&self) -> Result<Fault, (&'static str, String)> {
        let takes = Self::takes(self.kind);
        for (name, given) in self.given() {
            match takes.iter().find(|(taken, _)| *taken == name) {
                None if given => return Err((name, "this kind does not take it; leave it out".to_owned())),
                Some((_, true)) if !given => return Err((name, "this kind needs it".to_owned())),
                None | Some(_) => {}
            }
        }
        let pause = Duration::from_millis(self.ms.unwrap_or(100));
        if pause > LONGEST {
            return Err(("ms", format!("it is more than {} ms", LONGEST.as_millis())));
        }
        let done = if self.work == Some(false) { Work::Never } else { Work::First };
        let later = Work::Later { pause, beyond_budget: self.beyond_budget == Some(true) };
        let cut = Shape::Cut { reset: self.reset == Some(true) };
        let altered = |alteration| Shape::Altered(alteration);
        let (work, shape) = match self.kind {
            Kind::Status => (Work::Never, self.status(None)?),
            Kind::StatusAfter => (Work::First, self.status(None)?),
            Kind::CutBefore => (Work::Never, cut),
            Kind::CutAfter => (Work::First, cut),
            Kind::CutMidAnswer => (done, Shape::Half { reset: self.reset == Some(true) }),
            Kind::PartialStatusLine => (done, Shape::PartialStatusLine { reset: self.reset == Some(true) }),
            Kind::Late => (later, cut),
            Kind::Proxy504 => (later, self.status(Some(504))?),
            Kind::Hang => (Work::Never, Shape::Silence),
            Kind::HangAfter => (Work::First, Shape::Silence),
            Kind::Slow => (Work::First, Shape::After(pause)),
            Kind::SlowBody => (done, Shape::Drip(pause)),
            Kind::EndlessBody => (done, Shape::Endless),
            Kind::HugeBody => (done, Shape::Huge(self.size()?)),
            Kind::Garbage => (done, Shape::Garbage),
            Kind::Empty => (done, Shape::Empty),
            Kind::Redirect => (done, self.redirect()?),
            Kind::Missing => (done, altered(Alteration::Missing)),
            Kind::Extra => (done, altered(Alteration::Extra)),
            Kind::Duplicate => (done, altered(Alteration::Duplicate)),
            Kind::WrongSubnet => (done, altered(Alteration::WrongSubnet)),
            Kind::WrongAddressSpelling => (done, altered(Alteration::WrongAddressSpelling)),
            Kind::BadMac => (done, altered(Alteration::BadMac)),
            Kind::VlanOutOfRange => (done, altered(Alteration::Vlan(self.vlan_out_of_range()?))),
            Kind::SameVlan => (done, altered(Alteration::SameVlan)),
            Kind::NoVlan => (done, altered(Alteration::NoVlan)),
            Kind::NoMac => (done, altered(Alteration::NoMac)),
        };
        Ok(Fault { kind: self.kind, plan: super::Plan { work, shape } })
    }

    fn status(&self, fallback: Option<u16>) -> Result<Shape, (&'static str, String)> {
        let wrong = || ("code", "it is no status; write one from 200 to 599".to_owned());
        let code = self.code.or(fallback).filter(|code| (200..600).contains(code)).ok_or_else(wrong)?;
        let status = StatusCode::from_u16(code).map_err(|_| wrong())?;
        let given = self.headers.clone().unwrap_or_default();
        if given.len() > MOST_HEADERS {
            return Err(("headers", format!("there are more than {MOST_HEADERS}")));
        }
        let mut headers = Vec::with_capacity(given.len());
        for (name, value) in given {
            let header = name.parse::<HeaderName>().ok().zip(value.parse::<HeaderValue>().ok());
            headers.push(header.ok_or_else(|| ("headers", format!("{name:?} is no header")))?);
        }
        let body = match &self.body {
            None => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(value) => Some(value.to_string()),
        };
        Ok(Shape::Status { status, body, headers })
    }

    fn redirect(&self) -> Result<Shape, (&'static str, String)> {
        let wrong = || ("code", "it is no redirect; write one from 300 to 399".to_owned());
        let code = Some(self.code.unwrap_or(307)).filter(|code| (300..400).contains(code)).ok_or_else(wrong)?;
        let status = StatusCode::from_u16(code).map_err(|_| wrong())?;
        let location = self.location.clone().unwrap_or_else(|| "/moved".to_owned());
        let location = location.parse::<HeaderValue>();
        Ok(Shape::Redirect { status, location: location.map_err(|_| ("location", "it is no header".to_owned()))? })
    }

    fn size(&self) -> Result<u64, (&'static str, String)> {
        let bytes = self.bytes.unwrap_or_default();
        if bytes > LARGEST { Err(("bytes", format!("it is more than {LARGEST}"))) } else { Ok(bytes) }
    }

    fn vlan_out_of_range(&self) -> Result<i64, (&'static str, String)> {
        let vlan = self.vlan.unwrap_or_default();
        let legal = (1..=i64::from(crate::cloud::LAST_VLAN)).contains(&vlan);
        if legal { Err(("vlan", format!("{vlan} is an id that a VLAN can have"))) } else { Ok(vlan) }
    }
}
