//! `adoption`: what an earlier system has recorded is taken over.

use super::section::Section;
use crate::Quoted;

/// How the controller that leads takes it over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adoption {
    /// `adoption.dryRun`: whether it is only said what would be taken over.
    pub dry_run: bool,
    /// `adoption.apiServers`: `host:port` of each; where none is named, those of Service `default/kubernetes`.
    pub api_servers: Vec<String>,
}

impl Adoption {
    pub(super) fn read(mut section: Section<'_, '_>) -> Self {
        let dry_run = section.flag("dryRun").unwrap_or_default();
        let mut api_servers = Vec::new();
        for found in section.texts("apiServers") {
            if is_place(found.value) {
                api_servers.push(found.value.to_owned());
            } else {
                let text = format!("{} {} must be host:port, IPv6 in brackets", found.path, Quoted(found.value));
                section.fault(found.line, text);
            }
        }
        section.end();
        Self { dry_run, api_servers }
    }
}

/// It becomes the authority of a URL.
fn is_place(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let host = match inner {
        Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.chars().all(plain),
    };
    host && port.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use crate::conf::Conf;

    #[test]
    fn places_have_a_port_and_nothing_else() {
        let adoption =
            Conf::parse("adoption: {dryRun: true, apiServers: ['10.0.0.1:6443', '[fd00::1]:6443', 'a.b:1']}");
        let adoption = adoption.expect("valid").adoption;
        assert_eq!((adoption.dry_run, adoption.api_servers.len()), (true, 3));
        for odd in ["10.0.0.1", ":6443", "fd00::1:6443", "[x]:1", "a:0", "a:65536", "u@a:1", "a/b:1", "https://a:1"] {
            let faults = Conf::parse(&format!("adoption: {{apiServers: [{odd:?}]}}")).expect_err(odd).to_string();
            assert!(faults.contains("must be host:port"), "{faults}");
        }
    }
}
