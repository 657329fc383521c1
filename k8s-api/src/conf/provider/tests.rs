//! The section `iaasNetworkProvider`, one mutation each, the message checked.

use super::*;
use crate::conf::Conf;

const VALID: &str = "\
iaasNetworkProvider:
  serverUrl: https://user:S3cret@Provider.Example:443/base/
  httpRequestTimeout: 45s
  credentials: /etc/spiderpool/provider/current
  insecureSkipVerify: true
  formerServers:
    - url: http://user:S3cret@old.example:80/
      useUrl: https://new.example
      credentials: /etc/spiderpool/provider/former-0
    - url: http://older.example
      insecureSkipVerify: true
";

fn conf(text: &str) -> Conf {
    Conf::parse(text).unwrap_or_else(|faults| panic!("{faults}\n{text}"))
}

fn faults(text: &str) -> Vec<String> {
    match Conf::parse(text) {
        Ok(conf) => panic!("accepted as {conf:?}:\n{text}"),
        Err(faults) => faults.all().iter().map(ToString::to_string).collect(),
    }
}

/// The valid text with `from` replaced; it must be there exactly once.
fn mutated(from: &str, to: &str) -> String {
    assert_eq!(VALID.matches(from).count(), 1, "{from:?} stands once in the valid text");
    VALID.replace(from, to)
}

#[track_caller]
fn refused(from: &str, to: &str, line: u64, message: &str) {
    let expected = format!("line {line}: IaaS provider configuration validation failed: {message}");
    assert_eq!(faults(&mutated(from, to)), [expected]);
}

#[test]
fn the_whole_section() {
    let conf = conf(VALID);
    let server = conf.provider.expect("a provider");
    assert_eq!(server.id, "https://provider.example/base");
    assert_eq!(server.url.as_str(), "https://user:S3cret@provider.example/base/");
    assert_eq!(server.credentials, Some("/etc/spiderpool/provider/current".into()));
    assert!(server.insecure_skip_verify);
    assert_eq!(conf.call_timeout, Duration::from_secs(45));
    let [old, older] = &conf.former_servers[..] else { panic!("{:?}", conf.former_servers) };
    assert_eq!((old.id.as_str(), old.server.id.as_str()), ("http://old.example", "https://new.example"));
    assert_eq!(old.server.credentials, Some("/etc/spiderpool/provider/former-0".into()));
    assert!(!old.server.insecure_skip_verify, "nothing of the present provider goes to a former one");
    assert_eq!((older.id.as_str(), older.server.url.as_str()), ("http://older.example", "http://older.example/"));
    assert_eq!((&older.server.credentials, older.server.insecure_skip_verify), (&None, true));
}

#[test]
fn what_is_not_said() {
    for text in [
        "{}",
        "iaasNetworkProvider:\n",
        "iaasNetworkProvider: {serverUrl: '', httpRequestTimeout: '', credentials: '', formerServers: []}",
        // Where nobody is called the limit is no matter.
        "iaasNetworkProvider: {httpRequestTimeout: 5 apples}",
    ] {
        assert_eq!(conf(text), Conf::default(), "{text}");
    }
    let plain = conf("iaasNetworkProvider: {serverUrl: 'http://p', httpRequestTimeout: ''}");
    assert_eq!(plain.call_timeout, Duration::from_secs(50));
    let server = plain.provider.expect("a provider");
    assert!(server.credentials.is_none() && !server.insecure_skip_verify);
    let former =
        conf("iaasNetworkProvider: {serverUrl: '', httpRequestTimeout: 20s, formerServers: [{url: 'http://p'}]}");
    assert_eq!((former.provider, former.former_servers.len()), (None, 1));
    assert_eq!(former.call_timeout, Duration::from_secs(20));
}

#[test]
fn urls() {
    const URL: &str = "https://user:S3cret@Provider.Example:443/base/";
    for (url, message) in [
        (
            "ftp://user:S3cret@x",
            "invalid iaasNetworkProvider.serverUrl \"ftp://x\": must start with http:// or https://",
        ),
        ("' '", "invalid iaasNetworkProvider.serverUrl: must start with http:// or https://"),
        ("user:S3cret@x", "invalid iaasNetworkProvider.serverUrl: must start with http:// or https://"),
        ("'http://'", "invalid iaasNetworkProvider.serverUrl \"http://\": host is empty"),
        ("http://user:S3cret@/x", "invalid iaasNetworkProvider.serverUrl \"http:///x\": host is empty"),
        ("http://user:S3cret@x:port", "invalid iaasNetworkProvider.serverUrl: invalid port number"),
        (
            "'http:// x'",
            "invalid iaasNetworkProvider.serverUrl: must not contain blanks, control characters or backslashes",
        ),
        ("5", "iaasNetworkProvider.serverUrl must be a text, not a number; put the value in quotes"),
    ] {
        refused(URL, url, 2, message);
    }
}

#[test]
fn time_outs() {
    for (written, message) in [
        ("50", "time: missing unit in duration \"50\""),
        ("5 apples", "time: unknown unit \" apples\" in duration \"5 apples\""),
        ("x", "time: invalid duration \"x\""),
        ("0s", "timeout must be positive"),
        ("-50s", "timeout must be positive"),
        ("2m", "timeout 2m0s must be less than static limit 2m0s"),
        ("1h0.5s", "timeout 1h0m0.5s must be less than static limit 2m0s"),
        ("100s", "timeout 1m40s must be less than CNI client timeout 1m40s"),
        ("1m59.5s", "timeout 1m59.5s must be less than CNI client timeout 1m40s"),
    ] {
        let message = format!("invalid iaasNetworkProvider.httpRequestTimeout {written:?}: {message}");
        refused("45s", &format!("{written:?}"), 3, &message);
    }
    for (written, read) in [("99.999s", 99_999), ("1m", 60_000), ("20s", 20_000), ("1ms", 1)] {
        assert_eq!(conf(&mutated("45s", written)).call_timeout, Duration::from_millis(read), "{written}");
    }
    assert_eq!(
        faults("iaasNetworkProvider: {httpRequestTimeout: 2m, formerServers: [{url: 'http://p'}]}"),
        [
            "line 1: IaaS provider configuration validation failed: invalid iaasNetworkProvider.httpRequestTimeout \"2m\": timeout 2m0s must be less than static limit 2m0s"
        ]
    );
}

#[test]
fn everything_else_of_the_section() {
    const FORMER: &str = "iaasNetworkProvider.formerServers";
    refused(
        "credentials: /etc/spiderpool/provider/current",
        "credentials: current",
        4,
        "iaasNetworkProvider.credentials \"current\" must be the absolute path of a folder",
    );
    refused(
        "/etc/spiderpool/provider/former-0",
        "former",
        9,
        &format!("{FORMER}[0].credentials \"former\" must be the absolute path of a folder"),
    );
    refused(
        "http://older.example",
        "http://OLD.example",
        10,
        &format!("{FORMER}[1].url \"http://old.example\" is there already; remove the entry"),
    );
    refused(
        "http://older.example",
        "https://Provider.example/base",
        10,
        &format!(
            "{FORMER}[1].url \"https://provider.example/base\" is iaasNetworkProvider.serverUrl; remove the entry"
        ),
    );
    refused(
        "- url: http://older.example",
        "- useUrl: http://older.example",
        10,
        &format!("{FORMER}[1].url is missing: the serverUrl that bound the addresses"),
    );
    refused(
        "https://new.example",
        "new.example",
        8,
        &format!("invalid {FORMER}[0].useUrl: must start with http:// or https://"),
    );
    refused("useUrl", "useURL", 8, &format!("{FORMER}[0].useURL is not a known key; did you mean useUrl?"));
    refused(
        "httpRequestTimeout",
        "httpRequestTimeOt",
        3,
        "iaasNetworkProvider.httpRequestTimeOt is not a known key; did you mean httpRequestTimeout?",
    );
    assert_eq!(
        faults("iaasNetworkProvider: http://user:S3cret@h"),
        ["line 1: IaaS provider configuration validation failed: iaasNetworkProvider must be a map, not a text"]
    );
}

#[test]
fn faults_of_other_sections_are_no_faults_of_the_provider() {
    let text = format!("enableIPv4: 1\n{}gc: 1\n", mutated("45s", "0s"));
    let found = faults(&text);
    let of_provider: Vec<bool> = found.iter().map(|fault| fault.contains("IaaS provider configuration")).collect();
    assert_eq!(of_provider, [false, true, false], "{found:?}");
}

#[test]
fn the_vlan_plugin_is_needed_with_a_provider() {
    let off = "plugins: {installVlanCNI: false}\n";
    assert_eq!(
        faults(&format!("{off}{VALID}")),
        [
            "line 1: plugins.installVlanCNI must be true with iaasNetworkProvider.serverUrl: no other plugin gives a pod's interface the VLAN and the MAC that a provider answers"
        ]
    );
    for text in [off, "plugins: {installVlanCNI: true}\n", "plugins: {}\n"] {
        assert_eq!(conf(text), Conf::default(), "{text}");
    }
    assert_eq!(conf(&format!("plugins: {{installVlanCNI: true}}\n{VALID}")), conf(VALID));
}

#[test]
fn secrets_are_never_printed() {
    assert!(!format!("{:?}", conf(VALID)).contains("S3cret"));
    for text in [
        "iaasNetworkProvider: http://user:S3cret@h",
        "iaasNetworkProvider: {serverUrl: 'ftp://user:S3cret@h'}",
        "iaasNetworkProvider: {serverUrl: ['http://user:S3cret@h']}",
        "iaasNetworkProvider: {serverUrl: 'http://user:S3cret@h:x'}",
        "iaasNetworkProvider: {serverUrl: 'http://user:S3/cret@h'}",
        "iaasNetworkProvider: {formerServers: ['http://user:S3cret@h']}",
        "iaasNetworkProvider: {formerServers: [{url: 'http://user:S3cret@h'}, {url: 'http://user:S3cret@h'}]}",
    ] {
        let found = faults(text).join(" ");
        assert!(!found.contains("S3cret") && !found.contains("cret@"), "{found}");
    }
}
