//! What the chart renders for Multus, and what it refuses.

use super::{documents, render, rendered, reviewed};
use serde_json::{Value, json};

const CNI: &str = "multus.multusCNI";
const INSTALL: &str = "multus.multusCNI.install=true";

#[test]
fn renders_multus_as_reviewed() {
    let isolated = format!("{INSTALL},{CNI}.namespaceIsolation=true,{CNI}.globalNamespaces={{a,b}}");
    let shown = ["daemonset", "rbac"].map(|name| format!("--show-only=templates/multus/{name}.yaml"));
    insta::assert_snapshot!("multus", reviewed(&[&shown[0], &shown[1], "--set", &isolated]));
    let definition = rendered(&["--show-only=templates/multus/crd.yaml", "--set", INSTALL]);
    insta::assert_snapshot!("multus-definition", definition);
    assert!(definition.contains("helm.sh/resource-policy: keep"));
}

#[test]
fn nothing_of_multus_comes_unasked() {
    let text = rendered(&["-f", "docs/examples/quick-start.yaml"]);
    assert!(!text.contains("templates/multus/") && !text.contains("k8s.cni.cncf.io\n"));
}

fn daemon_set(set: &str) -> Value {
    let set = format!("{INSTALL},{set}");
    documents("multus/daemonset.yaml", &["--set", &set]).swap_remove(0)["spec"]["template"]["spec"].take()
}

#[test]
fn multus_has_no_more_than_it_needs() {
    let pod = daemon_set("crds.install=true");
    let (copies, keeps) = (&pod["initContainers"][0], &pod["containers"][0]);
    for container in [copies, keeps] {
        let context = &container["securityContext"];
        assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
        assert_eq!(
            (&context["privileged"], &context["allowPrivilegeEscalation"], &context["readOnlyRootFilesystem"]),
            (&false.into(), &false.into(), &true.into())
        );
    }
    assert_eq!(copies["securityContext"]["runAsNonRoot"], true);
    assert_eq!(copies["volumeMounts"], json!([{"name": "multus", "mountPath": "/multus"}]), "nothing of the host");
    let folders = |pod: &Value| -> Vec<Value> {
        pod["volumes"].as_array().expect("a list")[1..]
            .iter()
            .map(|volume| volume["hostPath"]["path"].clone())
            .collect()
    };
    assert_eq!(folders(&pod), ["/etc/cni/net.d", "/opt/cni/bin"]);
    let moved = daemon_set("global.cniConfHostPath=/data/cni/,global.cniBinHostPath=/usr/libexec/cni");
    assert_eq!(folders(&moved), ["/data/cni", "/usr/libexec/cni"]);
    assert_eq!(moved["containers"][0]["volumeMounts"][1]["mountPath"], "/host/data/cni");
    assert_eq!(moved["containers"][0]["args"][1], "--cni-conf-folder=/data/cni");

    let verbs: Vec<String> = documents("multus/rbac.yaml", &["--set", INSTALL])
        .iter()
        .flat_map(|document| document["rules"].as_array().cloned().unwrap_or_default())
        .map(|rule| format!("{} {} {}", rule["resources"][0], rule["verbs"], rule["resourceNames"]))
        .collect();
    assert_eq!(
        verbs,
        [
            r#""pods" ["get"] null"#,
            r#""network-attachment-definitions" ["get"] null"#,
            r#""pods/status" ["update"] null"#,
            r#""events" ["create","patch"] null"#,
            r#""daemonsets" ["get"] ["spiderpool-multus"]"#,
        ]
    );
}

/// Injection and Multus are told the same, from the same values.
#[test]
fn multus_is_told_what_injection_believes() {
    let told = |set: &str| {
        let container = daemon_set(set)["containers"][0].take();
        let arguments = container["args"].as_array().expect("a list")[1..].to_vec();
        assert_eq!(container["readinessProbe"]["exec"]["command"].as_array().expect("a list")[3..], arguments);
        arguments.into_iter().map(|argument| argument.as_str().expect("a text").to_owned()).collect::<Vec<_>>()
    };
    assert!(told("crds.install=true").contains(&"--multus-namespace=kube-system".to_owned()));
    for (set, said) in [
        ("namespace=networks", "--multus-namespace=networks"),
        ("defaultCniCRName=net", "--cluster-network=net"),
        ("defaultCniCRName=kube-system/net", "--cluster-network=net"),
        ("namespaceIsolation=true", "--namespace-isolation"),
    ] {
        assert!(told(&format!("{CNI}.{set}")).contains(&said.to_owned()), "{set}");
    }
    let foreign = format!("{INSTALL},{CNI}.defaultCniCRName=other/net");
    let error = render(&["--set", &foreign]).expect_err("Multus would look for a file of that name");
    assert!(
        error.contains("must name an attachment of multus.multusCNI.namespace (kube-system), not other/net"),
        "{error}"
    );
}

#[test]
fn a_misspelt_value_of_multus_is_refused() {
    for (set, named) in [
        ("install=perhaps", "install"),
        ("image.tag=", "tag"),
        ("image.repository=a/b:1", "repository"),
        ("imag.tag=1", "imag"),
        ("name=a.b", "name"),
        ("nodeSelector.a=b", "nodeSelector"),
    ] {
        let error = render(&["--set", &format!("{CNI}.{set}")]).expect_err(set);
        assert!(
            error.contains("don't meet the specifications of the schema") && error.contains(named),
            "{set}: {error}"
        );
    }
    assert!(render(&["--set", "global.cniBinHostPath=opt/cni"]).is_err());
}

/// What Helm sees in a cluster: another Multus, another's definition, an attachment that is not there.
#[cfg(feature = "api-server")]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_cluster_has_already_is_respected() {
    use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
    use tests::api_server::{ADMIN, ApiServer};
    use tests::process::attempt;

    let api_server = ApiServer::start().await;
    let client = api_server.client(ADMIN).await;
    let kubeconfig = format!("--kubeconfig={}", api_server.kubeconfig(ADMIN).display());
    let helm = |arguments: &[&str]| {
        let mut helm = std::process::Command::new("helm");
        let output = attempt(helm.args([kubeconfig.as_str(), "--namespace=kube-system"]).args(arguments));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    };
    let install = |more: &[&str]| {
        helm(&[&["upgrade", "--install", "spiderpool", "charts/spiderpool", "--set", INSTALL], more].concat())
    };
    let put = async |version: &str, kind: &str, plural: &str, mut object: Value| {
        let (group, version_name) = version.split_once('/').expect("a group");
        let gvk = GroupVersionKind::gvk(group, version_name, kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        object["apiVersion"] = version.into();
        object["kind"] = kind.into();
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        let objects = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => kube::Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource),
            None => kube::Api::<DynamicObject>::all_with(client.clone(), &resource),
        };
        objects.patch(&name, &PatchParams::apply("other").force(), &Patch::Apply(object)).await.expect("created");
        objects
    };

    let pod = json!({
        "metadata": {"labels": {"app": "multus"}},
        "spec": {"containers": [{"name": "kube-multus", "image": "example.org/x/multus-cni:snapshot-thick"}]},
    });
    let spec = json!({"selector": {"matchLabels": {"app": "multus"}}, "template": pod});
    let object = json!({"metadata": {"name": "kube-multus-ds", "namespace": "kube-system"}, "spec": spec});
    let sets = put("apps/v1", "DaemonSet", "daemonsets", object).await;
    let error = install(&[]).expect_err("there is another one");
    assert!(error.contains("the DaemonSet kube-system/kube-multus-ds is a Multus already"), "{error}");
    sets.delete("kube-multus-ds", &kube::api::DeleteParams::default()).await.expect("deleted");

    // Another's definition, as that Multus left it.
    let definition = rendered(&["--show-only=templates/multus/crd.yaml", "--set", INSTALL]);
    let mut definition: Value = serde_saphyr::from_str(&definition).expect("YAML");
    definition["metadata"]["annotations"] = json!({"others": "yes"});
    let name = "network-attachment-definitions.k8s.cni.cncf.io";
    let definitions =
        put("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", definition).await;
    let cluster_network = format!("--set={CNI}.defaultCniCRName=net");
    let error = install(&[&cluster_network]).expect_err("there is no such attachment");
    assert!(error.contains("there is no NetworkAttachmentDefinition kube-system/net"), "{error}");
    install(&[]).expect("the other's definition is left out");
    let found = definitions.get(name).await.expect("there");
    let notes = found.metadata.annotations.clone().unwrap_or_default();
    assert!(notes.contains_key("others") && !notes.contains_key("meta.helm.sh/release-name"), "{notes:?}");

    let net = json!({"metadata": {"name": "net", "namespace": "kube-system"}, "spec": {"config": "{}"}});
    put("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", "network-attachment-definitions", net).await;
    install(&[&cluster_network]).expect("it is there now");
    // Multus of an earlier upgrade is not another one.
    install(&[]).expect("again");
    helm(&["uninstall", "spiderpool"]).expect("uninstalled");
    definitions.get(name).await.expect("it stays");

    // An own one comes, stays, and is known again.
    definitions.delete(name, &kube::api::DeleteParams::default()).await.expect("deleted");
    tests::wait::until("the definition to be gone", std::time::Duration::from_secs(30), async || {
        anyhow::ensure!(definitions.get_opt(name).await?.is_none(), "it is there");
        anyhow::Ok(())
    })
    .await;
    install(&[]).expect("with its own definition");
    helm(&["uninstall", "spiderpool"]).expect("uninstalled");
    let found = definitions.get(name).await.expect("it stays");
    assert_eq!(found.metadata.annotations.unwrap_or_default()["meta.helm.sh/release-name"], "spiderpool");
    install(&[]).expect("once more");
}
