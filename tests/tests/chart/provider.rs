//! What the chart makes of `iaasNetworkProvider`, and the provider for trials.

use super::{ABSENT, conf, documents, render, rendered, reviewed};
use k8s_api::conf::Conf;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const PROVIDER: [&str; 2] = ["-f", "docs/examples/provider.yaml"];

/// The workload of a template.
fn workload(template: &str, arguments: &[&str]) -> Value {
    let has_pods = |one: &Value| one["spec"]["template"]["spec"] != ABSENT;
    documents(template, arguments).into_iter().find(has_pods).expect("a workload")
}

fn pod(template: &str, arguments: &[&str]) -> Value {
    workload(template, arguments)["spec"]["template"]["spec"].clone()
}

fn timeout(text: &str) -> Vec<String> {
    vec!["--set-string".to_owned(), format!("iaasNetworkProvider.httpRequestTimeout={text}")]
}

#[test]
fn renders_as_reviewed() {
    let show = ["--show-only=templates/provider-sim.yaml", "--set=providerSim.enabled=true"];
    insta::assert_snapshot!("provider-sim", reviewed(&show));
    insta::assert_snapshot!(
        "provider-conf",
        rendered(&[&PROVIDER[..], &["--show-only=templates/configmap.yaml"]].concat())
    );
}

#[test]
fn agent_and_controller_read_what_is_rendered() {
    let text = conf(&rendered(&PROVIDER));
    let conf = Conf::parse(&text).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    let server = conf.provider.expect("a provider");
    assert_eq!(server.id, "https://provider.example:8443");
    assert_eq!(server.credentials.as_deref(), Some(Path::new("/etc/spiderpool/provider/provider-credentials")));
    assert_eq!(conf.call_timeout, Duration::from_secs(55));
    let [old, older] = &conf.former_servers[..] else { panic!("{:?}", conf.former_servers) };
    assert_eq!(
        (old.id.as_str(), old.server.id.as_str()),
        ("http://iaas-network-provider.example.svc", "https://old-provider.example")
    );
    assert_eq!(old.server.credentials.as_deref(), Some(Path::new("/etc/spiderpool/provider/old-provider-credentials")));
    assert_eq!(older.server.credentials, None);
}

#[test]
fn the_configmap_shows_the_provider() {
    let text = rendered(&[&PROVIDER[..], &["--show-only=templates/configmap.yaml"]].concat());
    assert!(text.contains("    iaasNetworkProvider:\n      serverUrl: \"https://provider.example:8443\"\n"), "{text}");
    let empty = rendered(&["--show-only=templates/configmap.yaml", "--set=iaasNetworkProvider.httpRequestTimeout="]);
    assert!(empty.contains("      serverUrl: \"\"\n      httpRequestTimeout: \"50s\"\n"), "{empty}");
}

#[test]
fn secrets_are_mounted_where_the_configuration_says() {
    for template in ["agent/daemonset.yaml", "controller/deployment.yaml"] {
        let of_providers = |pod: &Value| -> (Vec<Value>, Vec<Value>) {
            let of = |list: &Value| {
                let named = |one: &&Value| one["name"].as_str().is_some_and(|name| name.starts_with("provider-"));
                list.as_array().expect("a list").iter().filter(named).cloned().collect()
            };
            (of(&pod["volumes"]), of(&pod["containers"][0]["volumeMounts"]))
        };
        assert_eq!(of_providers(&pod(template, &[])), (vec![], vec![]), "{template}");
        let (volumes, mounts) = of_providers(&pod(template, &PROVIDER));
        let secrets = ["provider-credentials", "old-provider-credentials"];
        assert_eq!((volumes.len(), mounts.len()), (secrets.len(), secrets.len()), "{template}");
        assert_ne!(volumes[0]["name"], volumes[1]["name"], "{template}");
        for ((volume, mount), secret) in volumes.iter().zip(&mounts).zip(secrets) {
            // 0400 in the file: Helm and API servers read YAML 1.1, where that is octal; this test reads 1.2.
            let of = json!({"secretName": secret, "defaultMode": 400.0, "optional": false});
            assert_eq!((&volume["secret"], &volume["name"]), (&of, &mount["name"]), "{template}");
            // By its name: a pod that has the mounts of before shows a new provider nothing of the old one's.
            assert_eq!(mount["mountPath"], format!("/etc/spiderpool/provider/{secret}"), "{template}");
            assert_eq!(mount["readOnly"], true, "{template}");
        }
    }
}

#[test]
fn an_agent_has_the_time_of_a_call_to_end() {
    let grace = |arguments: &[String]| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        pod("agent/daemonset.yaml", &arguments)["terminationGracePeriodSeconds"].clone()
    };
    for (text, seconds) in [
        ("", 75),
        ("50s", 75),
        ("1m30s", 115),
        ("99.5s", 125),
        ("1500ms", 27),
        (".5s", 26),
        ("300us", 26),
        ("+20s", 45),
    ] {
        assert_eq!(grace(&timeout(text)), seconds, "{text:?}");
    }
    let without = "--set=iaasNetworkProvider.serverUrl=".to_owned();
    assert_eq!(grace(&[&[without.clone()][..], &timeout("5 apples")].concat()), 15, "nobody is called");
    let former = "--set=iaasNetworkProvider.formerServers[0].url=http://old".to_owned();
    assert_eq!(grace(&[without, former]), 75, "former providers are");
}

/// Helm says what the agent would say.
#[test]
fn a_time_out_that_cannot_be_is_refused_in_the_words_of_the_agent() {
    for text in ["50", "ten", "0s", "0", "-5s", "2m", "1.5h", "100s", "1m59s"] {
        let conf = format!("iaasNetworkProvider: {{serverUrl: 'http://p', httpRequestTimeout: {text:?}}}");
        let faults = Conf::parse(&conf).expect_err(text).to_string();
        let (_, said) = faults.split_once("validation failed: ").expect("of the provider");
        for called in ["serverUrl=http://p", "formerServers[0].url=http://p"] {
            let set = format!("--set=iaasNetworkProvider.{called}");
            let timeout = timeout(text);
            let error = render(&[&set, &timeout[0], &timeout[1]]).expect_err(text);
            assert!(error.contains(said), "{said}\nis not in\n{error}");
        }
    }
    for text in ["5 s", "1h-5m", "1x", "s", "-"] {
        let timeout = timeout(text);
        let error =
            render(&["--set=iaasNetworkProvider.serverUrl=http://p", &timeout[0], &timeout[1]]).expect_err(text);
        let said = format!("invalid iaasNetworkProvider.httpRequestTimeout {text:?}: time: invalid duration {text:?}");
        assert!(error.contains(&said), "{said}\nis not in\n{error}");
    }
}

#[test]
fn the_vlan_plugin_is_needed_with_a_provider() {
    let off = "--set=plugins.installVlanCNI=false";
    let faults = Conf::parse("{plugins: {installVlanCNI: false}, iaasNetworkProvider: {serverUrl: 'http://p'}}");
    let faults = faults.expect_err("refused").to_string();
    let said = faults.trim_start_matches("line 1: ");
    let error = render(&["--set=iaasNetworkProvider.serverUrl=http://p", off]).expect_err("refused");
    assert!(error.contains(said), "{said}\nis not in\n{error}");
    assert!(rendered(&[off]).contains("      installVlanCNI: false\n"), "without a provider it reaches the agent");
}

/// The agent follows them while it runs; what its pod gets of them is another matter.
#[test]
fn a_changed_provider_restarts_nobody() {
    let pods =
        |set: &str| ["agent/daemonset.yaml", "controller/deployment.yaml"].map(|one| workload(one, &["--set", set]));
    let unchanged = pods("spiderpoolAgent.httpPort=5710");
    for set in [
        "iaasNetworkProvider.serverUrl=http://other",
        "iaasNetworkProvider.insecureSkipVerify=true",
        "iaasNetworkProvider.formerServers[0].url=http://old",
        "providerSim.enabled=true",
    ] {
        assert_eq!(pods(set), unchanged, "{set}");
    }
    let [agent, controller] = pods("iaasNetworkProvider.httpRequestTimeout=55s");
    assert!(agent != unchanged[0] && controller == unchanged[1], "only the agent's grace period follows it");
    let [agent, controller] = pods("iaasNetworkProvider.credentials=secret");
    assert!(agent != unchanged[0] && controller != unchanged[1], "both mount the Secret");
}

#[test]
fn misspelt_and_mistyped_values_are_refused() {
    for (set, named) in [
        ("credentials=A_Secret", "credentials"),
        ("insecureSkipVerify=perhaps", "insecureSkipVerify"),
        ("formerServers[0].useUrl=http://x", "missing property 'url'"),
        ("formerServers[0].url=ftp://x", "url"),
        ("formerServers[0].useURL=http://x", "useURL"),
        ("formerServers=http://x", "formerServers"),
    ] {
        let set = format!("--set=iaasNetworkProvider.{set}");
        let error = render(&[&set]).expect_err(&set);
        assert!(
            error.contains("don't meet the specifications of the schema") && error.contains(named),
            "{set}: {error}"
        );
    }
    // Helm drops an entry that `--set` gives an empty text at the end.
    let error = render(&["--set-json=iaasNetworkProvider.formerServers=[{\"url\":\"\"}]"]).expect_err("empty");
    assert!(error.contains("/formerServers/0/url"), "{error}");
}

#[test]
fn the_provider_for_trials_may_do_nothing() {
    assert!(!rendered(&[]).contains("provider-sim"), "only where it is asked for");
    let [deployment, service, policy] = &documents("provider-sim.yaml", &["--set=providerSim.enabled=true"])[..] else {
        panic!("three documents")
    };
    let find = |kind: &str| {
        let found = [deployment, service, policy].into_iter().find(|one| one["kind"] == kind);
        found.unwrap_or_else(|| panic!("no {kind}"))
    };
    let (deployment, service, policy) = (find("Deployment"), find("Service"), find("NetworkPolicy"));
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(deployment["spec"]["replicas"], 1);
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let container = &pod["containers"][0];
    assert_eq!(container["args"], json!(["serve", "--listen=0.0.0.0:8080"]));
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["capabilities"], json!({"drop": ["ALL"]}));
    assert_eq!(pod["volumes"], ABSENT);
    assert_eq!(service["metadata"]["name"], "spiderpool-provider-sim");
    assert_eq!(service["spec"]["ports"], json!([{"name": "http", "port": 80, "targetPort": "http"}]));
    assert_eq!(service["spec"]["clusterIP"], ABSENT);
    let labels = &deployment["spec"]["selector"]["matchLabels"];
    assert_eq!(service["spec"]["selector"], *labels);
    assert_eq!(policy["spec"]["podSelector"]["matchLabels"], *labels);
    assert_eq!((&policy["spec"]["egress"], &policy["spec"]["policyTypes"]), (&ABSENT, &json!(["Ingress", "Egress"])));
    let fixed = ["--set=providerSim.enabled=true", "--set=providerSim.clusterIP=10.96.0.80"];
    let all = documents("provider-sim.yaml", &fixed);
    let ip = all.iter().find(|one| one["kind"] == "Service").map(|one| &one["spec"]["clusterIP"]);
    assert_eq!(ip, Some(&json!("10.96.0.80")));
    render(&["--set=providerSim.clusterIP=spiderpool"]).expect_err("a name is none");
}
