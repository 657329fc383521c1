//! What the chart renders for the controller: webhooks, certificate, rights.

use super::{ABSENT, decoded, documents, render, rendered, verifies};

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
        let ignore = ["spiderpool", "multus", "namespace"].map(|name| format!("{INJECT}.failurePolicy.{name}=Ignore"));
        let ignore = format!("{set},{}", ignore.join(","));
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
    for set in ["spiderpoolController.replicas=3", "multus.multusCNI.defaultCniCRName=a"] {
        for document in documents("controller/webhook.yaml", &["--set", set]) {
            let Some(entries) = document["webhooks"].as_array() else { continue };
            for entry in entries {
                let name = &entry["name"];
                assert!(entry["timeoutSeconds"].as_u64() <= Some(5), "{name}");
                assert_eq!(entry["sideEffects"], "None");
                if entry["rules"][0]["apiGroups"] == serde_json::json!(["spiderpool.spidernet.io"]) {
                    continue;
                }
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

/// Only objects of our own group wait for us, whether pods are looked at or not, and never their deletion or their status.
#[test]
fn objects_are_asked_about_in_any_case() {
    for enabled in ["true", "false"] {
        let set = format!("{INJECT}.enabled={enabled}");
        let documents = documents("controller/webhook.yaml", &["--set", &set]);
        let mut seen = Vec::new();
        for entry in documents.iter().filter_map(|document| document["webhooks"].as_array()).flatten() {
            let rule = &entry["rules"][0];
            if rule["resources"] == serde_json::json!(["pods"]) {
                assert_eq!(enabled, "true");
                continue;
            }
            assert_eq!(rule["apiGroups"], serde_json::json!(["spiderpool.spidernet.io"]));
            assert_eq!(rule["operations"], serde_json::json!(["CREATE", "UPDATE"]));
            assert_eq!((&entry["failurePolicy"], &entry["matchPolicy"]), (&"Fail".into(), &"Equivalent".into()));
            seen.push(entry["clientConfig"]["service"]["path"].as_str().expect("a path").to_owned());
        }
        let paths = ["mutate", "validate"].map(|step| {
            ["spiderippool", "spidermultusconfig", "spiderreservedip"]
                .map(|kind| format!("/{step}-spiderpool-spidernet-io-v2beta1-{kind}"))
        });
        assert_eq!(seen, paths.concat(), "enabled={enabled}");
    }
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
            r#""spiderippools" ["get","list","watch","patch"]"#,
            r#""spideripallocations" ["list","watch"]"#,
            r#""spideripallocations" ["get","update","delete"]"#,
            r#""spiderendpoints" ["get","patch","delete"]"#,
            r#""spideripallocations" ["create"]"#,
            r#""pods" ["get","list"]"#,
            r#""replicasets" ["get"]"#,
            r#""jobs" ["get"]"#,
            r#""virtualmachines" ["get"]"#,
            r#""spidermultusconfigs/status" ["patch"]"#,
            r#""network-attachment-definitions" ["list","watch","create","patch","delete"]"#,
            r#""events" ["create","patch"]"#,
            r#""nodes" ["list","watch"]"#,
            r#""namespaces" ["get","list","watch","patch"]"#,
            r#""endpointslices" ["list"]"#,
            r#""leases" ["create"]"#,
            r#""leases" ["get","update"]"#,
        ]
    );
    let off = documents("controller/rbac.yaml", &["--set", &format!("{INJECT}.enabled=false")]);
    let rules = off.iter().flat_map(|document| document["rules"].as_array().into_iter().flatten());
    let of_namespaces: Vec<_> = rules.filter(|rule| rule["resources"][0] == "namespaces").collect();
    assert_eq!(of_namespaces.len(), 1);
    assert!(!of_namespaces[0]["verbs"].to_string().contains("patch"), "no label is written while injection is off");
    let host = deployment(&["--set", "spiderpoolController.hostnetwork=true"]);
    assert_eq!(host["template"]["spec"]["hostNetwork"], true);
    assert_eq!(host["strategy"]["rollingUpdate"]["maxSurge"], 0, "two cannot have a port of one host");
}
