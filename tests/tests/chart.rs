//! The chart, rendered by helm: goldens, refusals, and the agent's own reader on what it renders.
//!
//! `INSTA_UPDATE=always cargo test -p tests --features helm --test chart` writes the goldens anew.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_api::conf::Conf;
use std::process::Command;
use tests::process::attempt;

fn render(arguments: &[&str]) -> Result<String, String> {
    let mut helm = Command::new("helm");
    helm.args(["template", "spiderpool", "charts/spiderpool", "--namespace=kube-system", "--kube-version=1.36.3"]);
    let output = attempt(helm.args(arguments));
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).expect("YAML is UTF-8"))
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// As rendered, less what Helm makes anew each time, and with the definitions as one line each (they have goldens of their
/// own).
fn reviewed(arguments: &[&str]) -> String {
    let ends = ["spiderpool.spidernet.io/not-after: ", "spiderpool.spidernet.io/ca-not-after: "];
    let made = [&["tls.crt: ", "tls.key: ", "ca.crt: ", "ca.key: ", "caBundle: "][..], &ends].concat();
    let hide = |line: &str| match made.iter().find(|key| line.trim_start().starts_with(**key)) {
        Some(key) => format!("{}{key}(made)\n", &line[..line.len() - line.trim_start().len()]),
        None => format!("{line}\n"),
    };
    let text: String = rendered(arguments).lines().map(hide).collect();
    let documents = text.split("---\n").filter(|document| !document.contains("kind: CustomResourceDefinition"));
    documents.collect::<Vec<_>>().join("---\n")
}

fn rendered(arguments: &[&str]) -> String {
    render(arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
}

const PLUGIN: &str = "spiderpoolAgent.networkResourcePlugin";

const ABSENT: serde_json::Value = serde_json::Value::Null;

/// The documents of one template, as values.
fn documents(template: &str, arguments: &[&str]) -> Vec<serde_json::Value> {
    let show = format!("--show-only=templates/{template}");
    let text = rendered(&[&[show.as_str(), "-f", "docs/examples/quick-start.yaml"], arguments].concat());
    let documents = text.split("\n---").filter(|document| document.contains("kind:"));
    documents.map(|document| serde_saphyr::from_str(document).expect("YAML")).collect()
}

/// conf.yml as it lies in the rendered `ConfigMap`.
fn conf(manifests: &str) -> String {
    let (_, block) = manifests.split_once("  conf.yml: |\n").expect("the ConfigMap");
    let (block, _) = block.split_once("\n---").expect("another manifest follows");
    let (block, _) = block.split_once("\n  clusterNetwork:").unwrap_or((block, ""));
    block.replace("\n    ", "\n").trim_start().to_owned()
}

#[test]
fn renders_as_reviewed() {
    insta::assert_snapshot!("defaults", reviewed(&[]));
    insta::assert_snapshot!("overview", reviewed(&["-f", "docs/examples/overview.yaml"]));
    let monitoring = ["podMonitor", "prometheusRule", "grafanaDashboard"]
        .map(|part| format!("spiderpoolAgent.prometheus.{part}.install=true"));
    insta::assert_snapshot!(
        "monitoring",
        rendered(&["--show-only=templates/agent/monitoring.yaml", "--set", &monitoring.join(",")])
    );
    let monitoring =
        ["podMonitor", "prometheusRule"].map(|part| format!("spiderpoolController.prometheus.{part}.install=true"));
    insta::assert_snapshot!(
        "controller-monitoring",
        rendered(&["--show-only=templates/controller/monitoring.yaml", "--set", &monitoring.join(",")])
    );
    let webhooks = "multus.multusCNI.defaultCniCRName=net,spiderpoolController.podResourceInject.namespaceLabel=true";
    insta::assert_snapshot!(
        "webhooks",
        reviewed(&[
            "--show-only=templates/controller/webhook.yaml",
            "-f",
            "docs/examples/quick-start.yaml",
            "--set",
            webhooks
        ])
    );
    insta::assert_snapshot!("quick-start", reviewed(&["-f", "docs/examples/quick-start.yaml"]));
}

#[test]
fn the_agent_reads_what_the_chart_renders() {
    let conf = |arguments: &[&str]| {
        let text = conf(&rendered(arguments));
        Conf::parse(&text).unwrap_or_else(|faults| panic!("{faults}\n{text}"))
    };
    let defaults = conf(&[]);
    assert!(!defaults.provider && !defaults.plugin.enabled);
    let overview = conf(&["-f", "docs/examples/overview.yaml"]);
    assert!(overview.provider && overview.plugin.enabled);
    let quick_start = conf(&["-f", "docs/examples/quick-start.yaml"]);
    assert_eq!((quick_start.plugin.sub_eni.len(), quick_start.plugin.master_nic.len()), (1, 1));
    let large = format!("{PLUGIN}.resourceAdvertisement.subENI.rules[0].defaultMaxCount=100000");
    assert_eq!(
        conf(&["--set", &large]).plugin.sub_eni[0].devices.count(),
        100_000,
        "Helm writes 100000 as it is or as 1e+05"
    );
}

#[test]
fn a_misspelt_or_mistyped_value_is_refused_by_name() {
    let rule = |rule: &str| format!("{PLUGIN}.resourceAdvertisement.{rule}");
    for (set, named) in [
        ("spiderpoolAgnt.name=x".to_owned(), "spiderpoolAgnt"),
        ("spiderpoolAgent.htpPort=1".to_owned(), "htpPort"),
        ("iaasNetworkProvider.url=http://x".to_owned(), "url"),
        ("iaasNetworkProvider.serverUrl=ftp://x".to_owned(), "serverUrl"),
        (format!("{PLUGIN}.enable=true"), "enable"),
        (format!("{PLUGIN}.enabled=yes-please"), "enabled"),
        (format!("{PLUGIN}.kubeletRootDir=var/lib"), "kubeletRootDir"),
        (format!("{PLUGIN}.resourceAdvertisement.subEni.rules=null"), "subEni"),
        (rule("subENI.rules[0].maxCount=1"), "maxCount"),
        (rule("subENI.rules[0].defaultMaxCount=-1"), "defaultMaxCount"),
        (rule("subENI.rules[0].defaultMaxCount=many"), "defaultMaxCount"),
        (rule("subENI.rules[0].defaultMaxCount=148463"), "defaultMaxCount"),
        (rule("subENI.rules[0].resourceName=cpu"), "resourceName"),
        (rule("subENI.rules[0].resourceName=node.kubernetes.io/x"), "resourceName"),
        (rule("masterNIC.rules[0].defaultMaxCount=159460"), "defaultMaxCount"),
        (rule("masterNIC.rules[0].includeInterfaces=eth1"), "includeInterfaces"),
        ("ipam=null".to_owned(), "ipam"),
        ("spiderpoolAgent.image.repository=null".to_owned(), "repository"),
        ("spiderpoolAgent.image.repository=a/b:1".to_owned(), "repository"),
        ("spiderpoolAgent.name=a.b".to_owned(), "name"),
        ("spiderpoolAgent.updateStrategy.rollingUpdate.maxSurge=1".to_owned(), "maxSurge"),
        (rule("masterNIC.rules[0].nodeSelector.matchExpressions[0].operator=in"), "operator"),
        ("spiderpoolAgent.debug.logLevel=loud".to_owned(), "logLevel"),
        ("spiderpoolController.podResourceInject.failurePolicy.multus=Maybe".to_owned(), "multus"),
        ("spiderpoolController.podResourceInject.enable=true".to_owned(), "enable"),
        ("spiderpoolController.tls.method=magic".to_owned(), "method"),
        ("multus.multusCNI.defaultCniCRName=a/b/c".to_owned(), "defaultCniCRName"),
        ("spiderpoolController.podDisruptionBudget.maxUnavailable=-1".to_owned(), "maxUnavailable"),
        ("spiderpoolController.podDisruptionBudget.maxUnavailable=one".to_owned(), "maxUnavailable"),
        ("spiderpoolController.networkPolicy.from[0].cidr=10.0.0.0/8".to_owned(), "cidr"),
    ] {
        let error = render(&["--set", &set]).expect_err(&set);
        assert!(
            error.contains("don't meet the specifications of the schema") && error.contains(named),
            "{set}: {error}"
        );
    }
}

#[test]
fn every_form_of_node_selector_is_taken() {
    let selector = format!("{PLUGIN}.resourceAdvertisement.subENI.rules[0].nodeSelector");
    for set in [
        format!("{selector}.key=value"),
        format!("{selector}.matchLabels.key=value"),
        format!("{selector}.matchExpressions[0].key=a,{selector}.matchExpressions[0].operator=Exists"),
    ] {
        let text = conf(&rendered(&["--set", &set]));
        assert!(Conf::parse(&text).is_ok_and(|conf| !conf.plugin.sub_eni[0].selector.is_everything()), "{text}");
    }
}

/// What the chart renders for the agent.
fn of_agent(arguments: &[&str]) -> String {
    let show = ["daemonset", "rbac", "serviceaccount"].map(|name| format!("--show-only=templates/agent/{name}.yaml"));
    rendered(&[&show.each_ref().map(String::as_str)[..], arguments].concat())
}

#[test]
fn the_agent_has_no_more_than_it_needs() {
    let manifests = of_agent(&["-f", "docs/examples/quick-start.yaml"]);
    for line in [
        "privileged: false",
        "allowPrivilegeEscalation: false",
        "readOnlyRootFilesystem: true",
        "drop: [ALL]",
        "type: RuntimeDefault",
        "verbs: [list, watch]",
        "verbs: [create, patch]",
    ] {
        assert!(manifests.contains(line), "{line}");
    }
    assert!(!manifests.contains("add:"), "no capability is added");
    let folders: Vec<&str> = manifests.lines().filter_map(|line| line.strip_prefix("            path: ")).collect();
    let below = |name: &str| format!("\"/var/lib/kubelet/{name}\"");
    assert_eq!(
        folders,
        ["device-plugins", "pod-resources", "plugins_registry"].map(below),
        "of the host, nothing else"
    );
    assert_eq!(manifests.matches("verbs:").count(), 2);
}

#[test]
fn a_moved_kubelet_root_is_mounted_beside_the_constant_folder() {
    let manifests = rendered(&["--set", &format!("{PLUGIN}.kubeletRootDir=/data/kubelet/")]);
    for folder in ["/data/kubelet/device-plugins", "/data/kubelet/plugins_registry", "/var/lib/kubelet/device-plugins"]
    {
        assert_eq!(manifests.matches(&format!("path: \"{folder}\"\n")).count(), 1, "{folder}");
        assert_eq!(manifests.matches(&format!("mountPath: \"{folder}\"\n")).count(), 1, "{folder}");
    }
}

#[test]
fn the_port_leaves_the_node_only_when_asked_to() {
    assert!(rendered(&[]).contains("--admin-address=127.0.0.1:5710"));
    let open = rendered(&["--set", "spiderpoolAgent.prometheus.enabled=true,spiderpoolAgent.httpPort=6000"]);
    assert!(open.contains("--admin-address=0.0.0.0:6000") && open.contains("port: 6000"));
}

/// The agent follows its rules while it runs, so a changed rule must not restart it; what it reads once must.
#[test]
fn only_what_is_read_once_changes_the_pod_template() {
    let template = |set: &str| {
        let show =
            ["agent/daemonset", "controller/deployment"].map(|name| format!("--show-only=templates/{name}.yaml"));
        let show = show.each_ref().map(String::as_str);
        rendered(&[&show[..], &["-f", "docs/examples/quick-start.yaml", "--set", set]].concat())
    };
    let unchanged = template("spiderpoolAgent.httpPort=5710");
    for set in [
        format!("{PLUGIN}.resourceAdvertisement.subENI.rules[0].defaultMaxCount=7"),
        format!("{PLUGIN}.devicePluginAffinity.nodeSelector.a=b"),
        "iaasNetworkProvider.serverUrl=http://other".to_owned(),
    ] {
        assert_eq!(template(&set), unchanged, "{set}");
    }
    for set in ["global.ipamUNIXSocketHostPath=/run/other.sock".to_owned(), format!("{PLUGIN}.kubeletRootDir=/data")] {
        assert_ne!(template(&set), unchanged, "{set}");
    }
}

#[test]
fn names_that_look_like_numbers_stay_texts() {
    let manifests =
        rendered(&["--namespace=123", "--set-string=global.configName=1e3,spiderpoolAgent.serviceAccount.name=007"]);
    assert!(
        manifests.contains("namespace: \"123\"")
            && manifests.contains("name: \"1e3\"")
            && manifests.contains("\"007\"")
    );
    assert!(!manifests.contains("namespace: 123"));
}

#[test]
fn alerts_and_dashboard_ask_for_metrics_that_exist() {
    let agent = include_str!("../../device-plugin/src/metrics.rs");
    let controller = include_str!("../../webhook/src/metrics.rs");
    let mut asked = 0;
    for text in [
        include_str!("../../charts/spiderpool/templates/agent/monitoring.yaml"),
        include_str!("../../charts/spiderpool/templates/controller/monitoring.yaml"),
        include_str!("../../charts/spiderpool/files/agent-dashboard.json"),
    ] {
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            let of = |prefix, registered| word.strip_prefix(prefix).map(|name: &str| (name, registered));
            let found = of("spiderpool_agent_", agent).or_else(|| of("spiderpool_controller_", controller));
            let Some((name, registered)) = found else { continue };
            let plain =
                ["_total", "_bucket", "_seconds"].iter().fold(name, |name, suffix| name.trim_end_matches(suffix));
            assert!(registered.contains(&format!("\"{plain}\"")), "{word} is not a metric of ours");
            asked += 1;
        }
    }
    assert!(asked > 16, "{asked}");
}

const INJECT: &str = "spiderpoolController.podResourceInject";
const BUDGET: &str = "spiderpoolController.podDisruptionBudget.maxUnavailable";

/// WH-14: `Fail` never stands without what makes it safe, in any combination of values.
#[test]
fn a_policy_of_fail_needs_what_makes_it_safe() {
    let quick_start = ["-f", "docs/examples/quick-start.yaml", "--set"];
    for (set, word) in [
        (format!("{INJECT}.timeoutSeconds=10"), "timeoutSeconds must be at most 5"),
        ("spiderpoolController.replicas=1".to_owned(), "replicas must be at least 2"),
        (
            "spiderpoolController.podDisruptionBudget.enabled=false".to_owned(),
            "podDisruptionBudget.enabled must be true",
        ),
        (format!("{BUDGET}=2"), "maxUnavailable must be a number below spiderpoolController.replicas"),
        (format!("{BUDGET}=50%"), "is Fail, not 50%: a drain could take all controllers at once. Set it to 1"),
    ] {
        let error = render(&[&quick_start[..], &[&set]].concat()).expect_err(&set);
        assert!(error.contains(word), "{set}: {error}");
        let ignore = format!("{set},{INJECT}.failurePolicy.spiderpool=Ignore,{INJECT}.failurePolicy.multus=Ignore");
        assert!(render(&[&quick_start[..], &[&ignore]].concat()).is_ok(), "{ignore}");
        let off = format!("{set},{INJECT}.enabled=false");
        assert!(render(&[&quick_start[..], &[&off]].concat()).is_ok(), "{off}");
    }
    for set in [format!("{BUDGET}=0"), format!("{BUDGET}=2,spiderpoolController.replicas=3")] {
        assert!(render(&[&quick_start[..], &[&set]].concat()).is_ok(), "{set}");
    }
    let cluster = format!("{INJECT}.namespacesExclude={{a}},{INJECT}.failurePolicy.clusterNetwork=Fail");
    let network = format!("{cluster},multus.multusCNI.defaultCniCRName=net");
    let error = render(&[&quick_start[..], &[&network]].concat()).expect_err("kube-system is not excluded");
    assert!(error.contains("namespacesExclude must contain kube-system"), "{error}");
    for set in [&cluster, &network.replace("{a}", "{a,kube-system}"), &network.replace("=Fail", "=Ignore")] {
        assert!(render(&[&quick_start[..], &[set]].concat()).is_ok(), "{set}");
    }
    for sets in
        ["x=y", "multus.multusCNI.defaultCniCRName=a", "spiderpoolController.podResourceInject.namespaceLabel=true"]
    {
        let sets = sets.replace("x=y", "spiderpoolController.replicas=3");
        for document in documents("controller/webhook.yaml", &["--set", &sets]) {
            let Some(entries) = document["webhooks"].as_array() else { continue };
            for entry in entries {
                let name = &entry["name"];
                assert!(entry["timeoutSeconds"].as_u64() <= Some(5), "{name}");
                assert_eq!(entry["sideEffects"], "None");
                assert_eq!(entry["reinvocationPolicy"], "IfNeeded");
                assert_eq!(entry["rules"][0]["operations"], serde_json::json!(["CREATE"]), "WH-09");
                assert_eq!(entry["rules"][0]["resources"], serde_json::json!(["pods"]));
                let excluded = &entry["namespaceSelector"]["matchExpressions"][0];
                for namespace in ["kube-system", "spiderpool", "metallb-system", "istio-system"] {
                    let values = excluded["values"].as_array().expect("a list");
                    assert!(excluded["operator"] == "NotIn" && values.contains(&namespace.into()), "WH-12: {entry}");
                }
                let conditions = entry["matchConditions"].as_array().expect("a list");
                assert!(conditions.len() == 3, "{name}");
            }
        }
    }
    let multus = "multus.multusCNI.namespace=multus";
    let elsewhere = documents("controller/webhook.yaml", &["--namespace=networking", "--set", multus]);
    let text = serde_json::to_string(&elsewhere).expect("JSON");
    assert!(
        text.contains(r#""istio-system","networking","multus"]"#),
        "the release's own namespace is excluded, and that of Multus"
    );
}

#[test]
fn two_ports_of_one_number_are_refused() {
    let error = render(&["--set", "spiderpoolController.webhookPort=5720"]).expect_err("one number");
    assert!(error.contains("webhookPort and spiderpoolController.httpPort must differ"), "{error}");
}

/// `helm test` asks in a namespace that a controller is asked about, and on a node that the controllers may use.
#[test]
fn helm_test_asks_where_somebody_answers() {
    let asked = |set: &str| {
        let all = rendered(&["-f", "docs/examples/quick-start.yaml", "--set", set]);
        if !all.contains("helm.sh/hook: test") {
            return Vec::new();
        }
        let documents = documents("controller/test.yaml", &["--set", set]);
        let namespaces = documents.iter().filter_map(|document| match document["kind"].as_str() {
            Some("Role" | "RoleBinding") => document["metadata"]["namespace"].as_str().map(str::to_owned),
            Some("Pod") => {
                assert_eq!(document["spec"]["tolerations"][0]["key"], "node-role.kubernetes.io/control-plane");
                let argument = document["spec"]["containers"][0]["args"][1].as_str();
                argument.and_then(|argument| argument.strip_prefix("--namespace=")).map(str::to_owned)
            }
            _ => None,
        });
        namespaces.collect()
    };
    assert_eq!(asked("crds.install=false"), ["default"; 3]);
    assert_eq!(asked(&format!("{INJECT}.namespacesInclude={{b,a}}")), ["b"; 3]);
    for set in [
        format!("{INJECT}.namespacesExclude={{default}}"),
        format!("{INJECT}.namespacesInclude={{istio-system}}"),
        "multus.multusCNI.namespace=default".to_owned(),
        format!("{INJECT}.enabled=false"),
    ] {
        assert!(asked(&set).is_empty(), "{set}");
    }
}

/// An upgrade that changes the numbers must not cut off pods that still have the old ones.
#[test]
fn the_network_policy_names_the_ports_of_each_pod() {
    let ingress = |set: &str| {
        let documents = documents("controller/deployment.yaml", &["--set", set]);
        let policy = documents.into_iter().find(|document| document["kind"] == "NetworkPolicy");
        policy.expect("a NetworkPolicy")["spec"]["ingress"].take()
    };
    let ports = serde_json::json!([{"port": "webhook"}, {"port": "admin"}]);
    assert_eq!(ingress("spiderpoolController.webhookPort=6000"), serde_json::json!([{"ports": ports}]));
    assert_eq!(
        ingress("spiderpoolController.networkPolicy.from[0].ipBlock.cidr=10.0.0.0/8"),
        serde_json::json!([{"ports": ports, "from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}])
    );
}

/// The text of one entry of a Secret.
fn decoded(data: &serde_json::Value) -> String {
    let bytes = BASE64_STANDARD.decode(data.as_str().expect("data")).expect("base64");
    String::from_utf8(bytes).expect("PEM")
}

/// Whether a client that trusts `bundle` takes `certificate` as that of `host`.
fn verifies(certificate: &str, bundle: &str, host: &str) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("writable");
        path.display().to_string()
    };
    let (certificate, bundle) = (file("certificate", certificate), file("bundle", bundle));
    let alone = ["verify", "-no-CApath", "-no-CAstore", "-verify_hostname", host, "-CAfile", &bundle, &certificate];
    attempt(Command::new("openssl").args(alone)).status.success()
}

/// WH-20: the certificate is for the name that the webhook configuration calls, whatever things are called.
#[test]
fn the_certificate_is_for_the_name_that_is_called() {
    for (name, namespace) in
        [("spiderpool-controller", "kube-system"), ("x", "n"), (&*format!("a{}", "b".repeat(57)), &*"n".repeat(63))]
    {
        let set = format!("spiderpoolController.name={name}");
        let documents = documents("controller/webhook.yaml", &[&format!("--namespace={namespace}"), "--set", &set]);
        let secret = documents.iter().find(|document| document["kind"] == "Secret").expect("a Secret");
        let hooks =
            documents.iter().find(|document| document["kind"] == "MutatingWebhookConfiguration").expect("webhooks");
        let called = &hooks["webhooks"][0]["clientConfig"]["service"];
        let host = format!(
            "{}.{}.svc",
            called["name"].as_str().expect("a name"),
            called["namespace"].as_str().expect("a namespace")
        );
        let data = |file: &str| decoded(&secret["data"][file]);
        assert!(verifies(&data("tls.crt"), &data("ca.crt"), &host), "{host}");
        assert_eq!(hooks["webhooks"][0]["clientConfig"]["caBundle"], secret["data"]["ca.crt"]);
    }
}

#[test]
fn a_certificate_of_ones_own_is_taken_whole_or_not_at_all() {
    let provided = "spiderpoolController.tls.method=provided,spiderpoolController.tls.provided";
    let error = render(&["--set", &format!("{provided}.tlsCert=YQ==")]).expect_err("half");
    assert!(error.contains("missing spiderpoolController.tls.provided.tlsKey"), "{error}");
    let whole = format!(
        "{provided}.tlsCert=YQ==,spiderpoolController.tls.provided.tlsKey=Yg==,spiderpoolController.tls.provided.tlsCa=Yw=="
    );
    let documents = documents("controller/webhook.yaml", &["--set", &whole]);
    let text = serde_json::to_string(&documents).expect("JSON");
    assert!(
        text.contains(r#""ca.crt":"Yw==""#)
            && text.contains(r#""caBundle":"Yw==""#)
            && text.contains(r#""tls.key":"Yg==""#)
    );
}

#[test]
fn the_controller_has_no_more_than_it_needs() {
    let deployment = |arguments: &[&str]| {
        let mut documents = documents("controller/deployment.yaml", arguments).into_iter();
        documents.find(|document| document["kind"] == "Deployment").expect("a Deployment")["spec"].take()
    };
    let own = deployment(&[]);
    let pod = &own["template"]["spec"];
    assert_eq!(own["replicas"], 2);
    assert_eq!(pod["topologySpreadConstraints"][0]["matchLabelKeys"], serde_json::json!(["pod-template-hash"]));
    let tls = &pod["volumes"][1]["secret"]["items"];
    assert_eq!((&tls[0]["key"], &tls[1]["key"], &tls[2]), (&"tls.crt".into(), &"tls.key".into(), &ABSENT));
    assert_eq!(
        (&pod["securityContext"]["runAsNonRoot"], &pod["hostNetwork"]),
        (&true.into(), &serde_json::Value::Null)
    );
    let container = &pod["containers"][0]["securityContext"];
    assert_eq!(
        (&container["readOnlyRootFilesystem"], &container["allowPrivilegeEscalation"]),
        (&true.into(), &false.into())
    );
    let verbs: Vec<String> = documents("controller/rbac.yaml", &[])
        .iter()
        .flat_map(|document| document["rules"].as_array().cloned().unwrap_or_default())
        .map(|rule| format!("{} {}", rule["resources"][0], rule["verbs"]))
        .collect();
    assert_eq!(
        verbs,
        [
            r#""spidermultusconfigs" ["get","list","watch"]"#,
            r#""network-attachment-definitions" ["list","watch"]"#,
            r#""nodes" ["list","watch"]"#
        ]
    );
    let host = deployment(&["--set", "spiderpoolController.hostnetwork=true"]);
    assert_eq!(host["template"]["spec"]["hostNetwork"], true);
    assert_eq!(host["strategy"]["rollingUpdate"]["maxSurge"], 0, "two cannot have a port of one host");
}

/// Definitions are updated by an upgrade and stay when the chart goes; nothing else of the chart does.
#[test]
fn definitions_stay() {
    let manifests = rendered(&[]);
    assert_eq!(manifests.matches("kind: CustomResourceDefinition\n").count(), 5);
    assert_eq!(manifests.matches("helm.sh/resource-policy: keep").count(), 5);
    assert!(!rendered(&["--set", "crds.install=false"]).contains("CustomResourceDefinition"));
}

/// What each upgrade does with authority and certificate, by `lookup` in a real API server.
#[cfg(feature = "api-server")]
mod upgrades {
    use super::{decoded, rendered, verifies};
    use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
    use k8s_openapi::api::core::v1::Secret;
    use kube::Api;
    use kube::api::{Patch, PatchParams};
    use serde_json::{Value, json};
    use std::path::PathBuf;
    use std::time::{SystemTime, UNIX_EPOCH};
    use tests::api_server::{ADMIN, ApiServer};
    use tests::process::run;

    const HOST: &str = "spiderpool-controller.kube-system.svc";
    const SECRET: &str = "spiderpool-controller-server-certs";
    const END: &str = "spiderpool.spidernet.io/not-after";
    const AUTHORITY_END: &str = "spiderpool.spidernet.io/ca-not-after";
    const DAY: u64 = 86_400;

    /// The Secret as it stands.
    #[derive(Clone, Debug, PartialEq)]
    struct State {
        certificate: String,
        authorities: Vec<String>,
        has_authority_key: bool,
        annotations: Value,
    }

    impl State {
        fn is_signed_by_first(&self) -> bool {
            verifies(&self.certificate, &self.authorities[0], HOST)
        }

        fn trusts(&self, other: &Self) -> bool {
            verifies(&other.certificate, &self.authorities.concat(), HOST)
        }

        fn ends(&self, annotation: &str) -> u64 {
            self.annotations[annotation].as_str().expect("an annotation").parse().expect("seconds")
        }
    }

    struct Release {
        kubeconfig: PathBuf,
        secrets: Api<Secret>,
        webhooks: Api<MutatingWebhookConfiguration>,
        _api_server: ApiServer,
    }

    impl Release {
        fn helm(&self, arguments: &[&str]) {
            let kubeconfig = format!("--kubeconfig={}", self.kubeconfig.display());
            run("helm", [&[kubeconfig.as_str(), "--namespace=kube-system"], arguments].concat());
        }

        async fn upgraded(&self, values: &str) -> State {
            let quick_start = ["upgrade", "--install", "spiderpool", "charts/spiderpool", "--set=crds.install=false"];
            self.helm(&[&quick_start[..], &["-f", "docs/examples/quick-start.yaml", "--set", values]].concat());
            self.state().await
        }

        async fn state(&self) -> State {
            let secret = serde_json::to_value(self.secrets.get(SECRET).await.expect("a Secret")).expect("JSON");
            let webhooks = self.webhooks.get("spiderpool-controller").await.expect("webhooks");
            for webhook in serde_json::to_value(webhooks).expect("JSON")["webhooks"].as_array().expect("a list") {
                assert_eq!(webhook["clientConfig"]["caBundle"], secret["data"]["ca.crt"]);
            }
            let bundle = decoded(&secret["data"]["ca.crt"]);
            let end = "-----END CERTIFICATE-----";
            let authorities = bundle.split_inclusive(end).filter(|text| text.ends_with(end));
            let annotations = secret["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
            State {
                certificate: decoded(&secret["data"]["tls.crt"]),
                authorities: authorities.map(|text| text.trim().to_owned() + "\n").collect(),
                has_authority_key: secret["data"]["ca.key"].is_string(),
                annotations: annotations.into_iter().filter(|(key, _)| key.starts_with("spiderpool.")).collect(),
            }
        }

        async fn patch(&self, patch: Value) {
            self.secrets.patch(SECRET, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
        }

        /// As if that many days were left.
        async fn days_left(&self, annotation: &str, days: u64) {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
            self.patch(json!({"metadata": {"annotations": {annotation: (now + days * DAY).to_string()}}})).await;
        }
    }

    async fn release() -> Release {
        let api_server = ApiServer::start().await;
        let client = api_server.client(ADMIN).await;
        Release {
            kubeconfig: api_server.kubeconfig(ADMIN),
            secrets: Api::namespaced(client.clone(), "kube-system"),
            webhooks: Api::all(client),
            _api_server: api_server,
        }
    }

    const SAME: &str = "crds.install=false";

    fn named(name: &str) -> String {
        format!("spiderpoolController.tls.auto.extraDnsNames={{{name}}}")
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_authority_outlives_certificates_and_rollbacks() {
        let release = release().await;
        let first = release.upgraded(SAME).await;
        assert!(first.is_signed_by_first() && first.has_authority_key && first.authorities.len() == 1, "{first:?}");
        assert_eq!(first.ends(AUTHORITY_END) - first.ends(END), 3650 * DAY);
        assert_eq!(release.upgraded(SAME).await, first, "nothing changed");

        let mut before = first.clone();
        for name in ["one.example", "two.example"] {
            let after = release.upgraded(&named(name)).await;
            assert!(after.certificate != before.certificate && after.is_signed_by_first(), "{after:?}");
            assert!(verifies(&after.certificate, &after.authorities[0], name));
            assert_eq!(after.authorities, first.authorities, "only the names changed");
            before = after;
        }
        release.helm(&["rollback", "spiderpool", "1"]);
        assert_eq!(release.state().await, first);

        release.days_left(END, 364).await;
        let renewed = release.upgraded(SAME).await;
        assert!(renewed.certificate != first.certificate && renewed.is_signed_by_first());
        assert_eq!(renewed.authorities, first.authorities, "only the certificate was old");
        release.days_left(END, 366).await;
        assert_eq!(release.upgraded(SAME).await.certificate, renewed.certificate, "nine tenths are not over");

        release.days_left(AUTHORITY_END, 731).await;
        let short = release.upgraded(&named("short.example")).await;
        assert_eq!(short.authorities, first.authorities, "nine tenths are not over");
        assert!(short.ends(END) <= short.ends(AUTHORITY_END), "it ends with its authority: {short:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_new_authority_leaves_the_former_ones_trusted() {
        let release = release().await;
        let mut states = vec![release.upgraded(SAME).await];
        for round in 1..=5 {
            // Once as an older chart left it: the authority's key was not kept.
            if round == 2 {
                let gone = json!({AUTHORITY_END: null});
                release.patch(json!({"data": {"ca.key": null}, "metadata": {"annotations": gone}})).await;
            } else {
                release.days_left(AUTHORITY_END, 729).await;
            }
            let state = release.upgraded(SAME).await;
            let former = states.last().expect("one");
            assert!(state.is_signed_by_first() && state.has_authority_key && state.trusts(former), "{round}");
            assert_ne!(state.authorities[0], former.authorities[0], "{round}");
            assert_eq!(state.authorities[1..], former.authorities[..former.authorities.len().min(3)], "{round}");
            assert_eq!(release.upgraded(SAME).await, state, "{round}: nothing changed");
            states.push(state);
        }
        assert!(states[5].trusts(&states[2]) && !states[5].trusts(&states[1]), "three former ones");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_change_of_method_keeps_trust() {
        let release = release().await;
        let auto = release.upgraded(SAME).await;
        let provided = || {
            let made = rendered(&["--show-only=templates/controller/webhook.yaml"]);
            let secret: Value = serde_saphyr::from_str(&made).expect("a Secret alone");
            let of = |value: &str, key: &str| {
                format!(",spiderpoolController.tls.provided.{value}={}", secret["data"][key].as_str().expect("data"))
            };
            let values = [of("tlsCert", "tls.crt"), of("tlsKey", "tls.key"), of("tlsCa", "ca.crt")].concat();
            format!("spiderpoolController.tls.method=provided{values}")
        };
        let (one, other) = (provided(), provided());
        let own = release.upgraded(&one).await;
        assert!(own.is_signed_by_first() && own.trusts(&auto) && own.authorities.len() == 2);
        assert!(!own.has_authority_key && own.annotations == json!({}), "{own:?}");
        assert_eq!(release.upgraded(&one).await, own, "nothing changed");
        let changed = release.upgraded(&other).await;
        assert!(changed.is_signed_by_first() && changed.trusts(&own) && changed.trusts(&auto));
        assert_eq!(release.upgraded(&other).await, changed, "nothing changed");
        let back = release.upgraded(SAME).await;
        assert!(back.is_signed_by_first() && back.has_authority_key && back.trusts(&changed) && back.trusts(&own));
    }
}
