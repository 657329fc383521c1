//! Each entry of the webhook configuration in each rendering: who is asked about, and what happens while nobody answers.

use super::{SUB_ENI, vlan};
use serde_json::{Value, json};
use tests::answer::{annotated, pod_with};
use tests::controller::Stage;

const NETWORK: &str = "multus.multusCNI.defaultCniCRName=spiderpool/vlan";

#[tokio::test]
async fn what_happens_while_no_controller_answers() {
    let stage = Stage::set().await;
    for (name, labels) in [("team-a", json!({})), ("team-b", json!({"cni.spidernet.io/inject": "red"}))] {
        stage.create("/api/v1/namespaces", &json!({"metadata": {"name": name, "labels": labels}})).await.accepted();
    }
    let bare = json!({"metadata": {"generateName": "bare-"}, "spec": {"containers": [{"name": "a", "image": "x"}]}});
    let other = pod_with(&json!({"example.com/a": "b"}));
    let (multus, ours) = (annotated("a"), pod_with(&json!({"ipam.spidernet.io/ippool": "{}"})));
    let default = pod_with(&json!({"v1.multus-cni.io/default-network": "a"}));
    let both = pod_with(&json!({"cni.spidernet.io/x": "", "k8s.v1.cni.cncf.io/networks": "a"}));
    let ignore = "spiderpoolController.podResourceInject.failurePolicy.";
    for (sets, entries, refused) in [
        (vec![], 3, "multus ours default both"),
        (vec![format!("{ignore}multus=Ignore")], 3, "ours both"),
        (vec![format!("{ignore}spiderpool=Ignore,{ignore}multus=Ignore")], 3, ""),
        (vec![format!("{ignore}namespace=Ignore")], 3, "multus ours default both"),
        (vec![NETWORK.to_owned()], 4, "multus ours default both"),
        (vec![NETWORK.to_owned(), format!("{ignore}clusterNetwork=Fail")], 4, "bare other multus ours default both"),
        (vec!["spiderpoolController.podResourceInject.namespacesInclude={team-b}".to_owned()], 3, ""),
    ] {
        let more: Vec<String> = sets.iter().map(|set| format!("--set={set}")).collect();
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        // Nobody listens there.
        let url = format!("https://localhost:{}", tests::agent::free_port());
        assert_eq!(stage.webhooks(&url, &stage.authority(), &more).await.len(), entries, "{sets:?}");
        let pods: [(&str, &Value); 6] = [
            ("bare", &bare),
            ("other", &other),
            ("multus", &multus),
            ("ours", &ours),
            ("default", &default),
            ("both", &both),
        ];
        // Configurations take a moment to be in force; the first that is refused, or not, tells.
        tests::wait::until(format!("{sets:?}"), tests::controller::SOON, async || {
            let mut found = Vec::new();
            for (name, pod) in pods {
                let answer = stage.create("/api/v1/namespaces/team-a/pods?dryRun=All", pod).await;
                if answer.status >= 400 {
                    anyhow::ensure!(answer.refused().contains("failed calling webhook"), "{answer:?}");
                    found.push(name);
                }
            }
            anyhow::ensure!(found.join(" ") == refused, "refused: {found:?}");
            Ok(())
        })
        .await;
        let labelled = stage.create("/api/v1/namespaces/team-b/pods?dryRun=All", &bare).await;
        let wanted = !sets.iter().any(|set| set.contains("namespace=Ignore"));
        assert_eq!(labelled.status >= 400, wanted, "{sets:?}: {labelled:?}");
    }
}

/// A cluster default network counts for pods that name nothing.
#[tokio::test]
async fn a_cluster_network_counts() {
    let stage = Stage::set().await;
    stage.grant().await;
    for namespace in ["spiderpool", "team-a"] {
        stage.namespace(namespace).await;
    }
    stage.attachment("spiderpool", "vlan", vlan("eth1")).await;
    let conf = format!("{}multus: {{clusterNetwork: spiderpool/vlan}}\n", Stage::conf());
    let controller = stage.ready_controller(&conf).await;
    stage.webhooks(&controller.url, &stage.authority(), &[&format!("--set={NETWORK}")]).await;
    stage.until_asked("team-a").await;
    let bare = json!({"metadata": {"generateName": "bare-"}, "spec": {"containers": [{"name": "a", "image": "x"}]}});
    assert_eq!(stage.pod("team-a", &bare).await.requested(0, SUB_ENI), Some("1"));
    assert_eq!(stage.pod("team-a", &annotated("spiderpool/vlan")).await.requested(0, SUB_ENI), Some("2"));
    let mut host = bare.clone();
    host["spec"]["hostNetwork"] = true.into();
    assert_eq!(stage.pod("team-a", &host).await.requested(0, SUB_ENI), None);
}
