//! `agent.networkResourcePlugin`: which nodes advertise which network resources.

use super::fault::repeated;
use super::section::{Found, Number, Section};
use super::selector;
use crate::Quoted;
use crate::glob::Glob;
use crate::names;
use crate::resource::{DeviceSet, ListTooLarge, ResourceName};
use crate::selector::NodeSelector;
use std::path::{Component, Path, PathBuf};

/// The rules, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkResourcePlugin {
    /// Off: nothing is advertised.
    pub enabled: bool,
    /// Where the kubelet is said to keep its state. Its device-plugin folder does not follow `--root-dir`, so this is a
    /// place to look, not a fact.
    pub kubelet_root_dir: PathBuf,
    /// Nodes outside advertise nothing at all.
    pub affinity: NodeSelector,
    /// Rules for cloud sub-interfaces; the first that matches decides for its resource name.
    pub sub_eni: Vec<SubEniRule>,
    /// Rules for master NICs; all that match add up.
    pub master_nic: Vec<MasterNicRule>,
}

/// How many cloud sub-interfaces a kind of node can carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubEniRule {
    /// Resource name and count; 0 is advertised as 0.
    pub devices: DeviceSet,
    /// The nodes it holds for.
    pub selector: NodeSelector,
}

/// Which NICs of a kind of node can be masters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterNicRule {
    /// How many pods may name the NIC; says that it exists, not what it carries.
    pub count: u32,
    /// The nodes it holds for.
    pub selector: NodeSelector,
    /// Empty: every physical NIC.
    pub include: Vec<Glob>,
    /// Wins over `include` inside this rule.
    pub exclude: Vec<Glob>,
}

/// Slots of a NIC when a rule gives none, or 0: that a NIC is there cannot be said with 0.
const NIC_COUNT: u32 = 10_000;

impl Default for NetworkResourcePlugin {
    fn default() -> Self {
        Self {
            enabled: false,
            kubelet_root_dir: names::KUBELET_ROOT_DIR.into(),
            affinity: NodeSelector::default(),
            sub_eni: Vec::new(),
            master_nic: Vec::new(),
        }
    }
}

impl NetworkResourcePlugin {
    pub(super) fn read(mut section: Section<'_, '_>) -> Self {
        let enabled = section.flag("enabled").unwrap_or_default();
        let kubelet_root_dir = kubelet_root_dir(&mut section);
        let affinity = section.section("devicePluginAffinity").map(|mut affinity| {
            let selector = selector::read(&mut affinity, "nodeSelector");
            affinity.end();
            selector
        });
        let (mut sub_eni, mut master_nic) = (Vec::new(), Vec::new());
        if let Some(mut advertisement) = section.section("resourceAdvertisement") {
            rules(&mut advertisement, "subENI", |rule| sub_eni.extend(SubEniRule::read(rule)));
            rules(&mut advertisement, "masterNIC", |rule| master_nic.extend(MasterNicRule::read(rule)));
            advertisement.end();
        }
        section.end();
        Self { enabled, kubelet_root_dir, affinity: affinity.unwrap_or_default(), sub_eni, master_nic }
    }
}

impl SubEniRule {
    fn read(mut rule: Section<'_, '_>) -> Option<Self> {
        let name = resource_name(&mut rule);
        let count = count(&mut rule);
        let selector = selector::read(&mut rule, "nodeSelector");
        let devices = name.zip(count).and_then(|(name, count)| {
            let set = DeviceSet::new(name, names::SUB_ENI_STEM.to_owned(), count.value);
            fits(&mut rule, &count, set)
        });
        rule.end();
        Some(Self { devices: devices?, selector })
    }
}

impl MasterNicRule {
    fn read(mut rule: Section<'_, '_>) -> Option<Self> {
        let count = count(&mut rule).and_then(|count| {
            // The shortest NIC name there can be: what does not fit with it fits with none.
            let set = "spidernet.io/x-nic".parse().map(|name| DeviceSet::new(name, "x-nic".to_owned(), count.value));
            set.ok().and_then(|set| fits(&mut rule, &count, set)).map(|set| set.count())
        });
        let selector = selector::read(&mut rule, "nodeSelector");
        let include = globs(&mut rule, "includeInterfaces");
        let exclude = globs(&mut rule, "excludeInterfaces");
        rule.end();
        let count = match count? {
            0 => NIC_COUNT,
            count => count,
        };
        Some(Self { count, selector, include, exclude })
    }
}

/// The rules of one kind; `{rules: [...]}`.
fn rules(advertisement: &mut Section<'_, '_>, kind: &'static str, read: impl FnMut(Section<'_, '_>)) {
    if let Some(mut section) = advertisement.section(kind) {
        section.sections("rules", read);
        section.end();
    }
}

fn kubelet_root_dir(section: &mut Section<'_, '_>) -> PathBuf {
    let Some(found) = section.text("kubeletRootDir").filter(|found| !found.value.is_empty()) else {
        return names::KUBELET_ROOT_DIR.into();
    };
    if !found.value.starts_with('/') {
        let Found { value, path, line } = found;
        section.fault(
            line,
            format!("{path} must be an absolute path, such as {}: got {value:?}", names::KUBELET_ROOT_DIR),
        );
        return names::KUBELET_ROOT_DIR.into();
    }
    clean(Path::new(found.value))
}

/// `/a/./b/../c/` is `/a/c`: the same path gives the same mounts and messages. Links are not followed.
fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => cleaned.push(name),
            Component::ParentDir => drop(cleaned.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    cleaned
}

fn resource_name(rule: &mut Section<'_, '_>) -> Option<ResourceName> {
    let found = rule.text("resourceName").filter(|found| !found.value.is_empty());
    let (name, path, line) = match &found {
        None => (names::SUB_ENI, "", 0),
        Some(found) => (found.value, found.path.as_str(), found.line),
    };
    match name.parse() {
        Ok(name) => Some(name),
        Err(error) => {
            rule.fault(line, format!("{path} {} is invalid: {error}", Quoted(name)));
            None
        }
    }
}

/// `defaultMaxCount`, 0 when absent; nothing after a fault.
fn count(rule: &mut Section<'_, '_>) -> Option<Found<u32>> {
    let path = rule.path_of("defaultMaxCount");
    let Found { value, line, .. } = match rule.number("defaultMaxCount") {
        Number::Absent => return Some(Found { value: 0, path, line: 0 }),
        Number::Faulty => return None,
        Number::Whole(found) => found,
    };
    if value < 0 {
        rule.fault(line, format!("{path} must be greater than or equal to 0: got {value}"));
        return None;
    }
    let Ok(value) = u32::try_from(value) else {
        rule.fault(line, format!("{path} is too large: {value}"));
        return None;
    };
    Some(Found { value, path, line })
}

fn fits(rule: &mut Section<'_, '_>, count: &Found<u32>, set: Result<DeviceSet, ListTooLarge>) -> Option<DeviceSet> {
    set.map_err(|error| rule.fault(count.line, format!("{} is too large: {error}", count.path))).ok()
}

fn globs(rule: &mut Section<'_, '_>, key: &'static str) -> Vec<Glob> {
    let rule_path = rule.path.clone();
    let mut globs = Vec::new();
    for Found { value, path, line } in rule.texts(key) {
        let shown = repeated(value);
        match value.parse::<Glob>() {
            Err(error) => rule.fault(line, format!("{rule_path} pattern {value:?} is invalid: {error}")),
            Ok(_) if value.is_empty() => {
                rule.fault(line, format!("{path} is empty and would match no interface; remove it"));
            }
            // The kernel allows neither blanks nor '/' in a name; the others are how people write several patterns.
            Ok(_) if value.contains(|c: char| c.is_whitespace() || "/,{}".contains(c)) => {
                let text = format!(
                    "{path} {shown} matches no interface; write one pattern an entry, without blanks, '/', ',' and braces"
                );
                rule.fault(line, text);
            }
            Ok(glob) => globs.push(glob),
        }
    }
    globs
}
