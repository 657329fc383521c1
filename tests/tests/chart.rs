//! The chart, rendered by helm: goldens, refusals, and the agent's own reader on what it renders; and upgraded by helm
//! against an API server.
//!
//! `make golden` writes the goldens anew.

#[path = "chart/certificates.rs"]
mod certificates;
#[path = "chart/controller.rs"]
mod controller;
#[path = "chart/multus.rs"]
mod multus;
#[path = "chart/provider.rs"]
mod provider;
#[cfg(feature = "api-server")]
#[path = "chart/upgrades.rs"]
mod upgrades;

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

/// As rendered, less what Helm makes anew each time, and less the definitions, which have goldens of their own.
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
    let webhooks = "multus.multusCNI.defaultCniCRName=net";
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
    for method in ["self", "certmanager"] {
        let method = format!("spiderpoolController.tls.method={method}");
        let show = ["certificate", "webhook"].map(|name| format!("--show-only=templates/controller/{name}.yaml"));
        let show = show.each_ref().map(String::as_str);
        let name = method.rsplit_once('=').expect("a method").1;
        insta::assert_snapshot!(
            format!("certificates-{name}"),
            reviewed(&[&show[..], &["-f", "docs/examples/quick-start.yaml", "--set", &method]].concat())
        );
    }
    insta::assert_snapshot!("quick-start", reviewed(&["-f", "docs/examples/quick-start.yaml"]));
}

#[test]
fn the_agent_reads_what_the_chart_renders() {
    let conf = |arguments: &[&str]| {
        let text = conf(&rendered(arguments));
        Conf::parse(&text).unwrap_or_else(|faults| panic!("{faults}\n{text}"))
    };
    let defaults = conf(&[]);
    assert!(defaults.provider.is_none() && !defaults.plugin.enabled);
    let overview = conf(&["-f", "docs/examples/overview.yaml"]);
    assert!(overview.provider.is_some() && overview.plugin.enabled);
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
        ("spiderpoolController.tls.self.validDays=0".to_owned(), "validDays"),
        ("spiderpoolController.tls.certmanager.issuer=x".to_owned(), "issuer"),
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
    let without = "plugins.installIPAMCNI=false,plugins.installVlanCNI=false,iaasNetworkProvider.serverUrl=";
    let manifests = of_agent(&["-f", "docs/examples/quick-start.yaml", "--set", without]);
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
    let paths = manifests.lines().filter_map(|line| line.strip_prefix("            path: "));
    let folders: Vec<&str> = paths.map(|path| path.trim_matches('"')).collect();
    let kubelet =
        ["device-plugins", "pod-resources", "plugins_registry"].map(|name| format!("/var/lib/kubelet/{name}"));
    let addresses = ["run/spidernet", "lib/spidernet", "run/netns"].map(|name| format!("/var/{name}"));
    assert_eq!(folders, [kubelet, addresses].concat(), "of the host, nothing else");
    let verbs: Vec<&str> = manifests.lines().filter_map(|line| line.strip_prefix("    verbs: ")).collect();
    let whole = "[get, list, watch, create, update, delete]";
    let addresses = [whole, "[get, create, patch]", "[list, watch]", "[get, list, watch]"];
    let expected = [&["[list, watch]"], &addresses[..], &["[get]"; 4], &["[create, patch]"]].concat();
    assert_eq!(
        verbs, expected,
        "Node; allocations, endpoints, pools, pods and who has them; allocations, endpoints; pods and who has them; events"
    );
}

#[test]
fn the_plugins_are_installed_before_the_agent_starts() {
    let (ipam, vlan) = ("--set=plugins.installIPAMCNI=false", "--set=plugins.installVlanCNI=false");
    let [both, first, second] = [&[][..], &[vlan], &[ipam]].map(of_agent);
    for (manifests, spiderpool, of_vlan) in [(both, 1, 1), (first, 1, 0), (second, 0, 1)] {
        assert_eq!(manifests.matches("- --program=/usr/libexec/cni/spiderpool\n").count(), spiderpool);
        assert_eq!(manifests.matches("- --program=/usr/libexec/cni/vlan\n").count(), of_vlan);
        assert_eq!(manifests.matches("- restore-cni\n").count(), of_vlan);
        assert_eq!(manifests.matches("resources: [daemonsets]").count(), of_vlan, "whether it goes for good");
    }
    assert!(!of_agent(&[ipam, vlan]).contains("initContainers"), "not where it is unwanted");
    let values = "global.cniBinHostPath=/data/cni/";
    let manifests = of_agent(&["--set", values]);
    for line in ["args:\n            - install-cni\n            - \"--into=/host/data/cni\"", "add: [DAC_OVERRIDE]"] {
        let both = 1 + usize::from(line.starts_with("add"));
        assert_eq!(manifests.matches(line).count(), both, "{line}");
    }
    assert_eq!(manifests.matches("mountPath: \"/host/data/cni\"\n").count(), 2);
    assert_eq!(manifests.matches("path: \"/data/cni\"\n").count(), 1, "the agent itself does not see it");
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
        "ipam.enableIPv6=false".to_owned(),
    ] {
        assert_eq!(template(&set), unchanged, "{set}");
    }
    for set in ["global.ipamUNIXSocketHostPath=/run/other.sock".to_owned(), format!("{PLUGIN}.kubeletRootDir=/data")] {
        assert_ne!(template(&set), unchanged, "{set}");
    }
}

#[test]
fn detections_are_refused_with_a_provider_and_reach_the_agent_without() {
    for key in ["enableGatewayDetection", "enableIPConflictDetection"] {
        let set = format!("ipam.{key}=true");
        let error = render(&["-f", "docs/examples/quick-start.yaml", "--set", &set]).expect_err("with a provider");
        assert!(error.contains(&format!("ipam.{key} must be off with iaasNetworkProvider.serverUrl")), "{error}");
        let text = conf(&rendered(&["--set", &set]));
        let detection = Conf::parse(&text).unwrap_or_else(|faults| panic!("{faults}\n{text}")).detection;
        let on = [detection.gateway, detection.ip_conflict];
        assert_eq!(on, ["enableGatewayDetection", "enableIPConflictDetection"].map(|one| one == key));
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
    let controller =
        concat!(include_str!("../../webhook/src/metrics.rs"), include_str!("../../webhook/src/authority/metrics.rs"));
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

/// Definitions are updated by an upgrade and stay when the chart goes; nothing else of the chart does.
#[test]
fn definitions_stay() {
    let manifests = rendered(&[]);
    assert_eq!(manifests.matches("kind: CustomResourceDefinition\n").count(), 5);
    assert_eq!(manifests.matches("helm.sh/resource-policy: keep").count(), 5);
    assert!(!rendered(&["--set", "crds.install=false"]).contains("CustomResourceDefinition"));
}
