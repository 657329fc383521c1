//! A release from its install to its uninstall, twice, while pods start all the time. What it leaves behind: the definitions
//! with their objects and an unused Lease, and nothing else, neither in the API nor on the nodes.

use anyhow::ensure;
use futures::StreamExt;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Service;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use std::pin::pin;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tests::cluster::{CHANGING, Cluster, MATCHING, OTHER, SOON, SUB_ENI, in_node, networked, sleeping};
use tests::multus;
use tests::process::{attempt, run};
use tests::wait;

/// Longer than a release lives here.
const FAR: Duration = Duration::from_mins(10);

/// Whatever the chart may write on a node, but for the CNI plugin: pods that have addresses need it to give them back.
fn on_nodes() -> Vec<String> {
    let list = "find /etc/cni /opt/cni /var/run/spidernet /var/lib/kubelet/device-plugins ! -path /opt/cni/bin/spiderpool \
                '(' -name '*spiderpool*' -o -type f -name '*.conf*' ')'";
    [MATCHING, CHANGING, OTHER].map(|node| in_node(node, &format!("{list} | sort"))).to_vec()
}

/// What the test sees of the release.
#[derive(Default)]
struct Seen {
    installed: AtomicBool,
    leaving: AtomicBool,
    gone: AtomicBool,
}

/// Says that it is gone when this is dropped, after a failure too.
struct Gone<'a>(&'a Seen);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.gone.store(true, Ordering::Relaxed);
    }
}

/// An API server learns of a Service that goes and of a webhook configuration that goes by two watches. For a moment it may
/// still ask the one through the other.
const OUT_OF_STEP: Duration = Duration::from_secs(1);

/// WH-21: pods are created all the while, from the end of the install on with a network too. (Before, a policy of `Fail` holds
/// for the seconds until the first controllers are ready.) How many.
async fn create_until_gone(cluster: &Cluster, seen: &Seen) -> usize {
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let mut created = 0;
    let mut refused: Option<Instant> = None;
    while !seen.gone.load(Ordering::Relaxed) {
        let mut pods = vec![sleeping("without")];
        if seen.installed.load(Ordering::Relaxed) {
            pods.push(networked("with", "spiderpool/any"));
        }
        for pod in pods {
            let pod = serde_json::from_value(pod).expect("a pod");
            match cluster.pods().create(&dry, &pod).await {
                Ok(_) => created += 1,
                Err(error) => {
                    let first = *refused.get_or_insert_with(Instant::now);
                    let excused = seen.leaving.load(Ordering::Relaxed) && error.to_string().contains("not found");
                    assert!(excused && first.elapsed() < OUT_OF_STEP, "a pod is refused: {error}");
                    println!("refused while the release goes: {error}");
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    created
}

/// The version at which an object of this name is deleted first. (Versions of one API server are of one sequence.)
async fn deleted_at(api: Api<DynamicObject>, name: &str) -> u64 {
    let one = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let deleted = watcher(api, one).filter_map(async |event| match event {
        Ok(watcher::Event::Delete(object)) => object.resource_version(),
        _ => None,
    });
    let version = pin!(deleted).next().await.expect("a watch has no end");
    version.parse().expect("a number")
}

/// Whatever cuts an uninstall short, what refuses pods is gone before what answers for it. Done when both are gone.
async fn the_webhooks_go_first(cluster: &Cluster) {
    const NAME: &str = "spiderpool-controller";
    let (mutating, validating, service) = (
        ApiResource::erase::<MutatingWebhookConfiguration>(&()),
        ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
        ApiResource::erase::<Service>(&()),
    );
    let (mutating, validating, service) = tokio::join!(
        deleted_at(Api::all_with(cluster.client(), &mutating), NAME),
        deleted_at(Api::all_with(cluster.client(), &validating), NAME),
        deleted_at(Api::namespaced_with(cluster.client(), "kube-system", &service), NAME),
    );
    assert!(
        mutating < service && validating < service,
        "deleted at {mutating}, {validating}; the Service at {service}"
    );
}

/// Pods of somebody who knows nothing of us start on one node, one after the other. How many, and how long the slowest took.
async fn start_until_gone(cluster: &Cluster, seen: &Seen) -> (usize, Duration) {
    let (mut started, mut slowest) = (0, Duration::ZERO);
    while !seen.gone.load(Ordering::Relaxed) {
        let name = format!("bystander-{started}");
        let mut pod = sleeping(&name);
        pod["spec"]["nodeSelector"] = serde_json::json!({"kubernetes.io/hostname": MATCHING});
        let since = Instant::now();
        cluster.create(pod).await.expect("created");
        cluster.until_phase(&name, "Running").await;
        slowest = slowest.max(since.elapsed());
        cluster.delete_pods(&[&name]).await;
        started += 1;
    }
    (started, slowest)
}

fn helm(arguments: &[&str]) -> String {
    run("helm", [arguments, &["--namespace=kube-system", "--timeout=5m"]].concat())
}

/// Install, upgrade, rollback and uninstall, as an administrator does them.
fn life_of_a_release(seen: &Seen, said: impl Fn(&str)) {
    let _gone = Gone(seen);
    let passes = || assert!(helm(&["test", "spiderpool"]).contains("Phase:          Succeeded"));
    multus::install(&[]);
    seen.installed.store(true, Ordering::Relaxed);
    said("installed");
    passes();
    multus::install(&[
        "--set=multus.multusCNI.namespaceIsolation=true",
        "--set=spiderpoolAgent.networkResourcePlugin.resourceAdvertisement.subENI.rules[0].defaultMaxCount=255",
        "--set-string=spiderpoolAgent.podAnnotations.tests=upgraded,spiderpoolController.podAnnotations.tests=upgraded",
    ]);
    assert!(in_node(OTHER, &format!("cat {}", multus::CONF)).contains("namespaceIsolation"));
    said("upgraded");
    passes();
    helm(&["rollback", "spiderpool", "--wait"]);
    multus::rollout("status");
    assert!(!in_node(OTHER, &format!("cat {}", multus::CONF)).contains("namespaceIsolation"));
    said("rolled back");
    passes();
    seen.leaving.store(true, Ordering::Relaxed);
    helm(&["uninstall", "spiderpool", "--wait"]);
    said("uninstalled");
}

#[tokio::test]
async fn a_release_comes_changes_and_goes_twice() {
    let cluster = Cluster::installed().await;
    helm(&["uninstall", "spiderpool", "--wait"]);
    wait::until("the nodes to be as before any release", SOON, async || {
        let files = on_nodes();
        ensure!(files.iter().all(|files| !files.contains("spiderpool")), "{files:?}");
        Ok(())
    })
    .await;
    let before = on_nodes();
    // Runs all the while, with a network of before.
    cluster.delete_pods(&["witness"]).await;
    cluster.create(sleeping("witness")).await.expect("created");
    cluster.until_phase("witness", "Running").await;

    for round in ["first", "second"] {
        let (seen, began) = (Arc::new(Seen::default()), Instant::now());
        let shared = Arc::clone(&seen);
        let living = tokio::task::spawn_blocking(move || {
            life_of_a_release(&shared, |what| println!("{round} release: {what} after {:.0?}", began.elapsed()));
        });
        // One that is not over with the release has seen no deletion.
        let order = tokio::time::timeout(FAR, the_webhooks_go_first(&cluster));
        let (lived, created, (started, slowest), order) =
            tokio::join!(living, create_until_gone(&cluster, &seen), start_until_gone(&cluster, &seen), order);
        lived.expect("it succeeds");
        order.expect("the watches see the webhooks and the Service go");
        println!(
            "{round} release: {created} pods created meanwhile and {started} started, the slowest in {slowest:.1?}"
        );
        cluster.until_allocatable(MATCHING, SUB_ENI, Some("0")).await;
        wait::until("nothing of ours on the nodes", SOON, async || {
            let after = on_nodes();
            ensure!(after == before, "{after:?}, and before: {before:?}");
            Ok(())
        })
        .await;
        wait::until("every object of ours to be gone", SOON, async || {
            let kinds = "clusterroles,clusterrolebindings,roles,rolebindings,all,configmaps,serviceaccounts,secrets,\
                         poddisruptionbudgets,networkpolicies,mutatingwebhookconfigurations,validatingwebhookconfigurations,\
                         leases";
            let left = run("kubectl", ["get", kinds, "-A", "-o", "name"]);
            let ours: Vec<_> = left.lines().filter(|name| name.contains("spiderpool")).collect();
            // Made by the controllers, who have no rights any more when they go; the next release takes it over.
            ensure!(ours == ["lease.coordination.k8s.io/spiderpool-controller"], "{ours:?}");
            Ok(())
        })
        .await;
        let definitions = run("kubectl", ["get", "customresourcedefinitions", "-o", "name"]);
        assert_eq!(definitions.matches("spiderpool.spidernet.io").count(), 5, "{definitions}");
        assert_eq!(definitions.matches("k8s.cni.cncf.io").count(), 1, "kept, with the attachments: {definitions}");
        assert_eq!(cluster.phase("witness").await.expect("there"), "Running");
        let restarts = ["get", "pod", "witness", "-o", "jsonpath={.status.containerStatuses[0].restartCount}"];
        assert_eq!(run("kubectl", restarts), "0", "not disturbed");
    }
    cluster.delete_pods(&["witness"]).await;
    // The node's own network again, made by nobody but itself.
    cluster.create(sleeping("after")).await.expect("created");
    cluster.until_phase("after", "Running").await;
    let status = run("kubectl", ["get", "pod", "after", "-o", "jsonpath={.metadata.annotations}"]);
    assert!(!status.contains("network-status"), "{status}");
    cluster.delete_pods(&["after"]).await;
    assert!(!attempt(Command::new("helm").args(["status", "spiderpool", "-n", "kube-system"])).status.success());
}
