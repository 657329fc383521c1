//! One valid configuration, one mutation each, the message checked.

use super::*;
use crate::selector::Labels;

const VALID: &str = "\
iaasNetworkProvider:
  serverUrl: http://iaas-network-provider.example.svc:80
  httpRequestTimeout: 50s
agent:
  networkResourcePlugin:
    enabled: true
    kubeletRootDir: /var/lib/kubelet
    devicePluginAffinity:
      nodeSelector: {}
    resourceAdvertisement:
      subENI:
        rules:
          - resourceName: spidernet.io/sub-eni
            defaultMaxCount: 256
            nodeSelector:
              matchLabels: {key: value}
      masterNIC:
        rules:
          - defaultMaxCount: 10000
            nodeSelector: {kubernetes.io/os: linux}
            includeInterfaces: [eth1]
            excludeInterfaces: [eth0]
";

const PLUGIN: &str = "spiderpoolAgent.networkResourcePlugin";

/// The valid text with `from` replaced; it must be there exactly once.
fn mutated(from: &str, to: &str) -> String {
    assert_eq!(VALID.matches(from).count(), 1, "{from:?} stands once in the valid text");
    VALID.replace(from, to)
}

fn faults(text: &str) -> Vec<String> {
    match Conf::parse(text) {
        Ok(conf) => panic!("accepted as {conf:?}:\n{text}"),
        Err(faults) => faults.all().iter().map(ToString::to_string).collect(),
    }
}

#[track_caller]
fn refused(from: &str, to: &str, message: &str) {
    assert_eq!(faults(&mutated(from, to)), [message.replace("{P}", PLUGIN)]);
}

#[track_caller]
fn accepted(from: &str, to: &str) -> Conf {
    let text = mutated(from, to);
    Conf::parse(&text).unwrap_or_else(|faults| panic!("{faults}\n{text}"))
}

#[test]
fn the_valid_text_is_valid() {
    let conf = accepted("256", "256");
    assert!(conf.provider.is_some() && conf.plugin.enabled);
    assert_eq!((conf.plugin.sub_eni.len(), conf.plugin.master_nic.len()), (1, 1));
    assert_eq!(conf.plugin.sub_eni[0].devices.count(), 256);
}

#[test]
fn an_empty_map_means_the_defaults() {
    for text in ["{}", "agent:\n", "agent: {networkResourcePlugin: }"] {
        let conf = Conf::parse(text).unwrap_or_else(|faults| panic!("{text:?}: {faults}"));
        assert_eq!(conf, Conf::default());
    }
}

#[test]
fn configurations_of_running_installations_load() {
    let old = "\
ipamUnixSocketPath: /var/run/spidernet/spiderpool.sock
enableIPv4: true
enableIPv6: true
tuneSysctlConfig: false
enableStatefulSet: true
enableKubevirtStaticIP: true
enableCleanOutdatedEndpoint: false
enableSpiderSubnet: true
enableAutoPoolForApplication: true
enableIPConflictDetection: false
enableGatewayDetection: false
enableValidatingResourcesDeletedWebhook: false
clusterSubnetDefaultFlexibleIPNumber: 1
podResourceInject:
  enabled: false
  namespacesExclude: [kube-system, spiderpool, metallb-system, istio-system]
  namespacesInclude: []
iaasNetworkProvider: {serverUrl: \"\", httpRequestTimeout: 50s}
";
    let conf = Conf::parse(old).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(conf.provider, None, "an empty URL is no provider");
}

#[test]
fn kubelet_root_dir() {
    refused(
        "/var/lib/kubelet",
        "var/lib",
        "line 7: {P}.kubeletRootDir must be an absolute path, such as /var/lib/kubelet: got \"var/lib\"",
    );
    for (written, read) in [("\"\"", "/var/lib/kubelet"), ("/data//kubelet/./x/../", "/data/kubelet"), ("/..", "/")] {
        assert_eq!(
            accepted("kubeletRootDir: /var/lib/kubelet", &format!("kubeletRootDir: {written}")).plugin.kubelet_root_dir,
            PathBuf::from(read)
        );
    }
}

#[test]
fn unknown_keys_name_the_nearest() {
    refused("enabled: true", "enable: true", "line 6: {P}.enable is not a known key; did you mean enabled?");
    refused(
        "    resourceAdvertisement:",
        "    resourceAdvertisment:",
        "line 10: {P}.resourceAdvertisment is not a known key; did you mean resourceAdvertisement?",
    );
    refused(
        "defaultMaxCount: 256",
        "maxCount: 256",
        "line 14: {P}.resourceAdvertisement.subENI.rules[0].maxCount is not a known key; known here: resourceName, defaultMaxCount, nodeSelector",
    );
    refused("subENI", "subEni", "line 11: {P}.resourceAdvertisement.subEni is not a known key; did you mean subENI?");
    refused(
        "iaasNetworkProvider:",
        "iaasNetworkProvidr:",
        "line 1: iaasNetworkProvidr is not a known key; did you mean iaasNetworkProvider?",
    );
    refused("agent:", "spiderpoolAgent:", "line 4: spiderpoolAgent is not a known key; here it is agent");
}

#[test]
fn counts() {
    const SUB: &str = "{P}.resourceAdvertisement.subENI.rules[0].defaultMaxCount";
    const NIC: &str = "{P}.resourceAdvertisement.masterNIC.rules[0].defaultMaxCount";
    refused("256", "-1", &format!("line 14: {SUB} must be greater than or equal to 0: got -1"));
    refused("10000", "-5", &format!("line 19: {NIC} must be greater than or equal to 0: got -5"));
    refused("256", "2.5", &format!("line 14: {SUB} must be a whole number, not 2.5"));
    refused("256", "\"5\"", &format!("line 14: {SUB} must be a whole number, not the text \"5\""));
    refused("256", "[1]", &format!("line 14: {SUB} must be a whole number, not a list"));
    refused(
        "256",
        "1e+06",
        &format!(
            "line 14: {SUB} is too large: spidernet.io/sub-eni with 1000000 devices makes a list of 28888890 bytes, and a kubelet takes less than 4194304; at most 148462 fit"
        ),
    );
    refused("10000", "99999999999", &format!("line 19: {NIC} is too large: 99999999999"));
    assert_eq!(accepted("256", "1e+03").plugin.sub_eni[0].devices.count(), 1000, "as Helm writes large numbers");
    assert_eq!(accepted("256", "0").plugin.sub_eni[0].devices.count(), 0);
    assert_eq!(accepted("            defaultMaxCount: 256\n", "").plugin.sub_eni[0].devices.count(), 0);
    assert_eq!(accepted("10000", "0").plugin.master_nic[0].count, 10_000, "0 cannot say that a NIC is there");
    assert_eq!(accepted("defaultMaxCount: 10000", "defaultMaxCount:").plugin.master_nic[0].count, 10_000);
}

#[test]
fn resource_names() {
    const NAME: &str = "line 13: {P}.resourceAdvertisement.subENI.rules[0].resourceName";
    refused(
        "spidernet.io/sub-eni",
        "cpu",
        &format!("{NAME} \"cpu\" is invalid: an extended resource needs a domain, such as spidernet.io/sub-eni"),
    );
    refused(
        "spidernet.io/sub-eni",
        "node.kubernetes.io/x",
        &format!(
            "{NAME} \"node.kubernetes.io/x\" is invalid: the domain kubernetes.io is reserved; use one of your own"
        ),
    );
    refused("spidernet.io/sub-eni", "5", &format!("{NAME} must be a text, not a number; put the value in quotes"));
    assert_eq!(
        accepted("resourceName: spidernet.io/sub-eni", "resourceName: ''").plugin.sub_eni[0].devices.name().as_str(),
        "spidernet.io/sub-eni"
    );
}

#[test]
fn globs() {
    const RULE: &str = "{P}.resourceAdvertisement.masterNIC.rules[0]";
    refused("[eth1]", "['eth[']", &format!("line 21: {RULE} pattern \"eth[\" is invalid: syntax error in pattern"));
    refused("[eth0]", "['zzz[a-']", &format!("line 22: {RULE} pattern \"zzz[a-\" is invalid: syntax error in pattern"));
    refused(
        "[eth1]",
        "['']",
        &format!("line 21: {RULE}.includeInterfaces[0] is empty and would match no interface; remove it"),
    );
    refused("[eth1]", "eth1", &format!("line 21: {RULE}.includeInterfaces must be a list, not a text"));
    refused(
        "[eth1]",
        "[eth1, 7]",
        &format!("line 21: {RULE}.includeInterfaces[1] must be a text, not a number; put the value in quotes"),
    );
}

#[test]
fn selectors_in_three_forms() {
    let labels: Labels = [("key".to_owned(), "value".to_owned())].into();
    for form in
        ["matchLabels: {key: value}", "key: value", "matchExpressions: [{key: key, operator: In, values: [value]}]"]
    {
        let conf = accepted("matchLabels: {key: value}", form);
        let selector = &conf.plugin.sub_eni[0].selector;
        assert!(selector.matches(Some(&labels)) && !selector.matches(Some(&Labels::new())), "{form}");
    }
    let both = accepted(
        "matchLabels: {key: value}",
        "matchLabels: {key: value}\n              matchExpressions: [{key: a, operator: DoesNotExist}]",
    );
    assert!(both.plugin.sub_eni[0].selector.matches(Some(&labels)));
    for empty in ["matchLabels: {}", "matchExpressions: []", "matchLabels: "] {
        assert!(accepted("matchLabels: {key: value}", empty).plugin.sub_eni[0].selector.is_everything(), "{empty}");
    }
}

#[test]
fn selector_faults() {
    const SELECTOR: &str = "{P}.resourceAdvertisement.subENI.rules[0].nodeSelector";
    let refused = |to: &str, message: &str| refused("matchLabels: {key: value}", to, &message.replace("{S}", SELECTOR));
    refused(
        "matchLabels: {key: value}\n              other: label",
        "line 17: {S} is invalid: other stands beside matchLabels or matchExpressions; move it into matchLabels",
    );
    refused("matchlabels: {key: value}", "line 16: {S}.matchlabels is not a known key; did you mean matchLabels?");
    refused("matchexpressions: []", "line 16: {S}.matchexpressions is not a known key; did you mean matchExpressions?");
    refused("key: true", "line 16: {S}: label key must be a text, not true or false; put the value in quotes");
    refused("key: 1", "line 16: {S}: label key must be a text, not a number; put the value in quotes");
    refused("key:", "line 16: {S}: label key has no value; write key: \"\" for an empty one");
    refused(
        "key: a b",
        "line 16: {S} is invalid: \"a b\" is not a label value: at most 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit",
    );
    refused(
        "a/b/c: x",
        "line 16: {S} is invalid: \"a/b/c\" is not a label key: write name or domain/name, with letters, digits, '-', '_' or '.'",
    );
    refused(
        "matchExpressions: [{key: k, operator: in, values: [a]}]",
        "line 16: {S}.matchExpressions[0] is invalid: \"in\" is not an operator: use In, NotIn, Exists or DoesNotExist",
    );
    refused(
        "matchExpressions: [{key: k, operator: In}]",
        "line 16: {S}.matchExpressions[0] is invalid: operator In needs at least one value",
    );
    refused(
        "matchExpressions: [{key: k, operator: Exists, values: [a]}]",
        "line 16: {S}.matchExpressions[0] is invalid: operator Exists takes no values",
    );
    refused(
        "matchExpressions: [{operator: Exists}]",
        "line 16: {S}.matchExpressions[0] is invalid: an expression needs a key and an operator (In, NotIn, Exists, DoesNotExist)",
    );
    refused(
        "matchExpressions: [{key: k, operator: Exists, value: a}]",
        "line 16: {S}.matchExpressions[0].value is not a known key; did you mean values?",
    );
    refused("[]", "line 16: {S} must be a map, not a list");
}

#[test]
fn types_of_everything_else() {
    refused("enabled: true", "enabled: 'true'", "line 6: {P}.enabled must be true or false, not the text \"true\"");
    refused("enabled: true", "enabled: 1", "line 6: {P}.enabled must be true or false, not 1");
    assert_eq!(
        faults("enableIPv4: sure\nipamUnixSocketPath: 3\n"),
        [
            "line 1: enableIPv4 must be true or false, not the text \"sure\"",
            "line 2: ipamUnixSocketPath must be a text, not a number; put the value in quotes",
        ]
    );
    assert_eq!(faults("- a\n"), ["line 1: the file must be a map, not a list"]);
    assert_eq!(faults("agent: 7\n"), ["line 1: spiderpoolAgent must be a map, not a number"]);
}

#[test]
fn text_that_is_not_yaml() {
    for (text, line) in [
        ("a: [\n", "line "),
        ("enableIPv4: true\nenableIPv4: true\n", "line 2"),
        ("a:\n\t- b\n", "line "),
        ("a: *x\n", "line 1"),
        ("a: .inf\n", "line 1"),
    ] {
        let faults = faults(text);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with(line) && faults[0].contains("not valid YAML: "), "{text:?}: {faults:?}");
    }
}

#[test]
fn every_fault_is_listed_in_order() {
    let text = VALID.replace("256", "-1").replace("enabled", "enabld").replace("[eth1]", "['[']").replace("50s", "50");
    let found = faults(&text);
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(found.windows(2).all(|pair| line(&pair[0]) < line(&pair[1])), "{found:#?}");
    let shown = Conf::parse(&text).map_err(|faults| faults.to_string());
    assert_eq!(shown, Err(found.join("; ")));
}

fn line(fault: &str) -> u64 {
    fault.split([' ', ':']).nth(1).and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{fault}"))
}

#[test]
fn hostile_text_ends_soon_and_without_panic() {
    let deep = "[".repeat(100_000);
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for pair in ["ab", "bc", "cd", "de", "ef", "fg", "gh", "hi", "ij"] {
        let (from, to) = pair.split_at(1);
        let aliases = vec![format!("*{from}"); 9].join(",");
        bomb = format!("{bomb}{to}: &{to} [{aliases}]\n");
    }
    for text in [
        deep.as_str(),
        bomb.as_str(),
        "\u{0}",
        "\u{feff}agent: {}",
        "%YAML 9.9\n---\n",
        "? [a]\n: b\n",
        "!!binary x",
        "<<: {agent: {}}",
    ] {
        let started = std::time::Instant::now();
        let _ = Conf::parse(text);
        assert!(started.elapsed().as_secs() < 2, "{text:.20}");
    }
}

#[test]
fn a_null_in_a_list_is_a_fault_and_never_widens_a_rule() {
    const RULE: &str = "{P}.resourceAdvertisement.masterNIC.rules[0]";
    refused("[eth1]", "[~]", &format!("line 21: {RULE}.includeInterfaces[0] is empty; remove it"));
    refused(
        "[eth0]",
        "[eth0, ]\n            includeInterfacesX: []",
        &format!("line 23: {RULE}.includeInterfacesX is not a known key; did you mean includeInterfaces?"),
    );
    let rules = faults("agent: {networkResourcePlugin: {resourceAdvertisement: {masterNIC: {rules: [~]}}}}");
    assert_eq!(
        rules,
        ["line 1: spiderpoolAgent.networkResourcePlugin.resourceAdvertisement.masterNIC.rules[0] is empty; remove it"]
    );
}

#[test]
fn patterns_that_can_match_nothing_are_faults() {
    for pattern in ["eth0,eth1", "{eth0,eth1}", " eth0", "eth/0"] {
        let found = faults(&mutated("[eth1]", &format!("['{pattern}']")));
        assert!(found.len() == 1 && found[0].contains("matches no interface; write one pattern an entry"), "{found:?}");
    }
}

#[test]
fn secrets_are_never_repeated() {
    for text in ["http://user:S3cret@h", "agent: [http://user:S3cret@h]"] {
        let found = faults(text);
        assert!(!found.join(" ").contains("S3cret"), "{found:?}");
    }
}

#[test]
fn messages_stay_short_and_on_one_line() {
    let forged = faults("\"en\\nabled\": true\n\"\\e[31mred\": 1\n");
    assert!(forged.iter().all(|fault| fault.chars().all(|c| !c.is_control())), "{forged:?}");
    let many = (0..2_000).fold(String::new(), |text, n| text + &format!("wrong{n}: {}\n", "x".repeat(50)));
    let shown = Conf::parse(&many).expect_err("wrong").to_string();
    assert!(shown.len() < 2_000 && shown.ends_with("; and 1992 more"), "{}: {shown}", shown.len());
    let long = faults(&format!("{}: 1\n", "k".repeat(1_000)));
    assert!(long[0].len() < 200, "{long:?}");
}

#[test]
fn an_emptied_file_is_a_fault() {
    for text in ["", "\n", "# nothing\n", "---\n"] {
        let found = faults(text);
        assert!(found.len() == 1 && found[0].contains("the file is empty; write {}"), "{text:?}: {found:?}");
    }
}

#[test]
fn yaml_faults_are_told_in_plain_words() {
    for (text, words) in [
        ("a: 1\na: 2\n", "line 2: not valid YAML: the key a stands twice in one map"),
        ("a: 1\n---\nb: 1\n", "more than one document; remove the lines with ---"),
        ("a: .inf", "a number that is too large or none"),
    ] {
        let found = faults(text);
        assert!(found.len() == 1 && found[0].contains(words), "{text:?}: {found:?}");
    }
}

#[test]
fn a_word_that_older_yaml_takes_for_true_is_a_text() {
    let labels: Labels = [("key".to_owned(), "yes".to_owned())].into();
    let conf = accepted("key: value", "key: yes");
    assert!(conf.plugin.sub_eni[0].selector.matches(Some(&labels)));
    refused("enabled: true", "enabled: yes", "line 6: {P}.enabled must be true or false, not the text \"yes\"");
}

#[test]
fn families_plugins_and_the_isolation_of_multus() {
    let plain = Conf::parse("{}").expect("valid");
    assert!(plain.ipv4 && plain.ipv6 && plain.plugins.is_empty());
    assert!(plain.multus.reaches("a", "b"), "Multus keeps nothing apart by itself");
    let conf = Conf::parse(
        "enableIPv6: false\nplugins: {present: [tuning, coordinator]}\nmultus: {namespaceIsolation: true}\n",
    );
    let conf = conf.expect("valid");
    assert!(conf.ipv4 && !conf.ipv6 && conf.plugins.contains("tuning"));
    let reaches = |conf: &Conf, other| conf.multus.reaches("a", other);
    assert!(reaches(&conf, "a") && reaches(&conf, "default") && !reaches(&conf, "b"));
    let conf = Conf::parse("multus: {namespaceIsolation: true, globalNamespaces: [b]}").expect("valid");
    assert!(reaches(&conf, "b") && !reaches(&conf, "default"));
    assert!(Conf::parse("multus: {globalNamespaces: [b]}").is_ok_and(|conf| reaches(&conf, "c")));
    assert_eq!(
        faults("plugins: {present: [a/b]}\nmultus: {globalNamespaces: [A]}\n"),
        [
            "line 1: plugins.present[0] \"a/b\" is not the name of a CNI plugin",
            "line 2: multus.globalNamespaces[0] \"A\" is not the name of a namespace",
        ]
    );
}

#[test]
fn detections_are_off_by_default_and_with_a_provider() {
    let detection = |text: &str| Conf::parse(text).unwrap_or_else(|faults| panic!("{faults}")).detection;
    assert_eq!(detection("{}"), Detection { ip_conflict: false, gateway: false });
    let both = "enableGatewayDetection: true\nenableIPConflictDetection: true\n";
    assert_eq!(detection(both), Detection { ip_conflict: true, gateway: true });
    assert!(!detection("enableGatewayDetection: true").ip_conflict, "each for itself");
    let why = "must be off with iaasNetworkProvider.serverUrl: addresses of a provider are known before the pod's interface exists";
    assert_eq!(
        faults(&format!("{both}{VALID}")),
        [format!("line 1: ipam.enableGatewayDetection {why}"), format!("line 2: ipam.enableIPConflictDetection {why}")]
    );
    assert_eq!(
        faults("enableGatewayDetection: 1"),
        ["line 1: enableGatewayDetection must be true or false, not 1".to_owned()]
    );
    assert!(Conf::parse(&format!("enableGatewayDetection: false\n{VALID}")).is_ok());
}
