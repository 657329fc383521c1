//! Method `self`: two controllers that make authority and certificates themselves, rotating within seconds.

use super::{JSON, SUB_ENI, vlan};
use anyhow::ensure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tests::api_server::CONTROLLER;
use tests::controller::{Answer, Controller, SOON, Stage, pod_with, rendered, send};
use tests::wait;
use tokio::time::{interval, sleep};

const SECRET: &str = "/api/v1/namespaces/kube-system/secrets/spiderpool-controller-self-certs";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/spiderpool-controller";
const DRY_RUN: &str = "/api/v1/namespaces/team-a/pods?dryRun=All";
const SELF: &str = "--set=spiderpoolController.tls.method=self";

/// Two controllers, each asked about other pods.
struct Pair {
    stage: Stage,
    controllers: [Controller; 2],
}

impl Pair {
    /// Certificates live for `seconds`.
    async fn ready(seconds: u32) -> Self {
        let stage = Stage::set().await;
        stage.grant().await;
        grant(&stage).await;
        for namespace in ["spiderpool", "team-a", "kube-system"] {
            stage.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
        }
        stage.attachment("spiderpool", "vlan", vlan("eth1")).await;
        let arguments = [
            "--tls-self-secret=spiderpool-controller-self-certs".to_owned(),
            "--tls-self-webhooks=spiderpool-controller".to_owned(),
            "--tls-self-names=localhost,spiderpool-controller.kube-system.svc".to_owned(),
            "--pod-namespace=kube-system".to_owned(),
            format!("--tls-self-valid={seconds}s"),
        ];
        let start = || stage.controller_with(&Stage::conf(), &arguments);
        let controllers = [start(), start()];
        let started = Instant::now();
        for controller in &controllers {
            controller.until_ready().await;
        }
        println!("no Secret -> two controllers ready: {:.1?}", started.elapsed());
        let pair = Self { stage, controllers };
        pair.webhooks().await;
        pair.until_asked().await;
        pair
    }

    /// The chart's, by URL: the first entry asks one controller, the second the other.
    async fn webhooks(&self) {
        let mut documents = rendered("controller/webhook.yaml", &[SELF]);
        let mut configuration = documents.pop().expect("webhooks alone");
        let entries = configuration["webhooks"].as_array_mut().expect("a list");
        for (entry, controller) in entries.iter_mut().zip(&self.controllers) {
            assert_eq!(entry["clientConfig"]["caBundle"], Value::Null, "left to the controllers");
            entry["clientConfig"] = json!({"url": format!("{}/mutate--v1-pod", controller.url)});
        }
        let (path, _) = WEBHOOKS.rsplit_once('/').expect("a path");
        self.stage.create(path, &configuration).await.accepted();
    }

    async fn until_asked(&self) {
        for which in 0..2 {
            wait::until("the API server to ask", SOON, async || {
                let answer = self.stage.create(DRY_RUN, &pod(which)).await;
                ensure!(answer.status == 201 && answer.requested(0, SUB_ENI) == Some("1"), "{answer:?}");
                Ok(())
            })
            .await;
        }
    }

    async fn get(&self, path: &str) -> Value {
        send(&self.stage.admin, "GET", path, JSON, Vec::new()).await.expect("answers").body
    }

    /// One file of the Secret.
    async fn file(&self, name: &str) -> String {
        decoded(&self.get(SECRET).await["data"][name])
    }

    async fn bundles(&self) -> Vec<String> {
        let configuration = self.get(WEBHOOKS).await;
        let entries = configuration["webhooks"].as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| decoded(&entry["clientConfig"]["caBundle"])).collect()
    }

    fn logged(&self, text: &str) -> usize {
        self.controllers.iter().map(|controller| controller.logged().matches(text).count()).sum()
    }

    fn logs(&self) -> String {
        self.controllers.iter().map(Controller::logged).collect::<Vec<_>>().join("\n=====\n")
    }
}

/// What the chart grants with this method.
async fn grant(stage: &Stage) {
    let subjects = json!([{"kind": "User", "name": CONTROLLER, "apiGroup": "rbac.authorization.k8s.io"}]);
    let group = "/apis/rbac.authorization.k8s.io/v1";
    for mut document in rendered("controller/certificate.yaml", &[SELF]) {
        if document["subjects"].is_array() {
            document["subjects"] = subjects.clone();
        }
        let path = match document["kind"].as_str().expect("a kind") {
            "Role" => format!("{group}/namespaces/kube-system/roles"),
            "RoleBinding" => format!("{group}/namespaces/kube-system/rolebindings"),
            "ClusterRole" => format!("{group}/clusterroles"),
            "ClusterRoleBinding" => format!("{group}/clusterrolebindings"),
            // Made by the controllers where Helm has not.
            "Secret" => continue,
            other => panic!("{other}"),
        };
        stage.create(&path, &document).await.accepted();
    }
    // Until the chart grants what the lease needs.
    let role = json!({"metadata": {"name": "lease"}, "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}]});
    stage.create(&format!("{group}/namespaces/kube-system/roles"), &role).await.accepted();
    let binding = json!({"metadata": {"name": "lease"}, "subjects": subjects, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "lease"}});
    stage.create(&format!("{group}/namespaces/kube-system/rolebindings"), &binding).await.accepted();
}

/// A pod that one or the other controller is asked about.
fn pod(which: usize) -> Value {
    let mut annotations = json!({"k8s.v1.cni.cncf.io/networks": "spiderpool/vlan"});
    if which % 2 == 0 {
        annotations["cni.spidernet.io/for"] = "the first entry".into();
    }
    pod_with(&annotations)
}

fn decoded(data: &Value) -> String {
    let bytes = STANDARD.decode(data.as_str().unwrap_or_default()).expect("base64");
    String::from_utf8(bytes).expect("PEM")
}

/// Pods as dry runs, and what came of them.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    created: AtomicUsize,
    slowest: Mutex<Duration>,
    failures: Mutex<Vec<String>>,
}

impl Load {
    async fn run(&self, pair: &Pair, per_second: u32) {
        let ticks = futures::stream::unfold(interval(Duration::from_secs(1) / per_second), async |mut ticks| {
            ticks.tick().await;
            Some(((), ticks))
        });
        let going = ticks.take_while(|()| std::future::ready(!self.stop.load(Ordering::Relaxed))).enumerate();
        going
            .for_each_concurrent(64, async |(which, ())| {
                let started = Instant::now();
                let body = pod(which).to_string().into_bytes();
                let failed = match send(&pair.stage.admin, "POST", DRY_RUN, JSON, body).await {
                    Ok(answer) if answer.status == 201 && requested(&answer) => None,
                    other => Some(format!("{other:?}")),
                };
                let mut slowest = self.slowest.lock().expect("no panic");
                *slowest = slowest.max(started.elapsed());
                match failed {
                    None => drop(self.created.fetch_add(1, Ordering::Relaxed)),
                    Some(failed) => self.failures.lock().expect("no panic").push(failed),
                }
            })
            .await;
    }

    fn none_failed(&self, pair: &Pair) {
        let failures = self.failures.lock().expect("no panic");
        assert!(failures.is_empty(), "{} pods failed: {:?}\n{}", failures.len(), failures.first(), pair.logs());
    }
}

fn requested(answer: &Answer) -> bool {
    answer.body["spec"]["containers"][0]["resources"]["requests"][SUB_ENI] == "1"
}

/// WH-06: certificates and authorities pass under 200 pods a second. No pod is denied and no handshake fails: neither one of
/// the API server, nor one of a client that trusts what the webhooks trust at that moment.
#[tokio::test(flavor = "multi_thread")]
async fn authorities_change_under_a_stream_of_pods() {
    let pair = Pair::ready(18).await;
    let (load, handshakes) = (Load::default(), AtomicUsize::new(0));
    let started = Instant::now();
    let probing = async {
        while !load.stop.load(Ordering::Relaxed) {
            let bundles = pair.bundles().await;
            for (bundle, controller) in bundles.iter().zip(&pair.controllers) {
                let client = controller.client(bundle);
                let answer = send(&client, "POST", "/mutate--v1-pod", JSON, b"{}".to_vec()).await;
                let answer = answer.unwrap_or_else(|error| panic!("{error:#}\n{}", pair.logs()));
                assert_eq!(answer.status, 400);
                handshakes.fetch_add(1, Ordering::Relaxed);
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    let watching = async {
        let (mut certificates, mut authorities) = (BTreeSet::new(), BTreeSet::new());
        // Made by the first authority, the second, and the third.
        while authorities.len() < 3 && started.elapsed() < Duration::from_secs(180) {
            certificates.insert(pair.file("tls.crt").await);
            let bundle = pair.file("ca.crt").await;
            let end = "-----END CERTIFICATE-----";
            authorities.insert(bundle.split_inclusive(end).next().expect("one").to_owned());
            sleep(Duration::from_millis(200)).await;
        }
        // The former one is retired meanwhile.
        sleep(Duration::from_secs(6)).await;
        load.stop.store(true, Ordering::Relaxed);
        (certificates.len(), authorities.len())
    };
    let ((), (), (certificates, authorities)) = tokio::join!(load.run(&pair, 200), probing, watching);
    let (created, took) = (load.created.load(Ordering::Relaxed), started.elapsed());
    let rate = created as f64 / took.as_secs_f64();
    println!(
        "{certificates} certificates of {authorities} authorities in {took:.0?} under {rate:.0} pods/s: {created} pods created, {} failed, slowest {:.0?}; {} handshakes of our own, none failed",
        load.failures.lock().expect("no panic").len(),
        load.slowest.lock().expect("no panic"),
        handshakes.load(Ordering::Relaxed),
    );
    load.none_failed(&pair);
    assert!(authorities >= 3 && certificates >= 7, "{certificates}, {authorities}\n{}", pair.logs());
    assert!(rate > 100.0, "{rate}");
    assert!(pair.logged("authority retired") >= 2, "{}", pair.logs());
    let metrics = send(&pair.stage.admin, "GET", "/metrics", JSON, Vec::new()).await.expect("answers").body;
    let metrics = metrics.as_str().expect("text");
    let asked = metrics.lines().filter(|line| line.starts_with("apiserver_admission_webhook_request_total{")).count();
    assert!(asked > 0, "the API server counts what it asks");
    assert!(!metrics.contains("error_type=\"calling_webhook_error\""), "{metrics}");
    for controller in &pair.controllers {
        let own = controller.page("/metrics").await.expect("answers").1;
        assert!(own.contains("certificate_reloads_total{outcome=\"refused\"} 0"), "{own}");
        assert!(own.contains("spiderpool_controller_authority_not_after_timestamp_seconds"), "{own}");
        assert!(own.contains("certificate_rotations_total{outcome=\"failed\"} 0"), "{own}\n{}", pair.logs());
        assert!(!controller.logged().contains("PRIVATE"));
    }
}

/// WH-19, and what people do: a bundle changed by hand, a Secret deleted, a key lost, a leader killed.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_broken_by_hand_is_mended() {
    let mut pair = Pair::ready(36).await;

    // The bundle of one entry, as an old `helm rollback` leaves it.
    let started = Instant::now();
    let patch = json!([{"op": "replace", "path": "/webhooks/1/clientConfig/caBundle", "value": STANDARD.encode(pair.stage.authority())}]);
    let body = patch.to_string().into_bytes();
    send(&pair.stage.admin, "PATCH", WEBHOOKS, "application/json-patch+json", body).await.expect("answers").accepted();
    let trusted = pair.file("ca.crt").await;
    until_trusted(&pair, &trusted).await;
    println!("bundle changed by hand -> repaired: {:.0?}", started.elapsed());
    pair.until_asked().await;

    // Nobody is denied while another authority comes.
    let load = Load::default();
    let deleting = async {
        for what in ["Secret", "key"] {
            let (before, started) = (pair.file("tls.crt").await, Instant::now());
            if what == "Secret" {
                send(&pair.stage.admin, "DELETE", SECRET, JSON, Vec::new()).await.expect("answers").accepted();
            } else {
                pair.stage.merge(SECRET, &json!({"data": {"ca.key": null}})).await.accepted();
            }
            wait::until("a certificate of another authority", SOON, async || {
                let found = pair.file("tls.crt").await;
                ensure!(!found.is_empty() && found != before, "{found}\n{}", pair.logs());
                Ok(())
            })
            .await;
            println!("{what} deleted -> certificate of another authority: {:.1?}", started.elapsed());
            until_trusted(&pair, &pair.file("ca.crt").await).await;
        }
        sleep(Duration::from_secs(1)).await;
        load.stop.store(true, Ordering::Relaxed);
    };
    tokio::join!(load.run(&pair, 50), deleting);
    load.none_failed(&pair);
    println!("{} pods created meanwhile, none failed", load.created.load(Ordering::Relaxed));

    // The leader dies between the steps.
    let published = pair.logged("authority published");
    let before = pair.file("tls.crt").await;
    pair.stage.merge(SECRET, &json!({"data": {"ca.key": null}})).await.accepted();
    wait::until("the next authority", SOON, async || {
        ensure!(pair.logged("authority published") > published, "{}", pair.logs());
        Ok(())
    })
    .await;
    let led = |controller: &Controller| controller.logged().matches("authority published").count();
    let leader = usize::from(led(&pair.controllers[1]) > led(&pair.controllers[0]));
    pair.controllers[leader].process.signal("KILL");
    let started = Instant::now();
    assert_eq!(pair.file("tls.crt").await, before, "killed before the last step");
    wait::until("the other one to finish", SOON, async || {
        let found = pair.file("tls.crt").await;
        ensure!(found != before && pair.file("next.key").await.is_empty(), "{}", pair.logs());
        Ok(())
    })
    .await;
    println!("leader killed in the middle of a change -> the other has finished: {:.1?}", started.elapsed());
    until_trusted(&pair, &pair.file("ca.crt").await).await;
    let survivor = &mut pair.controllers[1 - leader];
    assert_eq!(survivor.process.ended(), None);
    wait::until("the survivor to answer", SOON, async || {
        let answer = pair.stage.create(DRY_RUN, &pod(1 - leader)).await;
        ensure!(answer.status == 201 && requested(&answer), "{answer:?}");
        Ok(())
    })
    .await;
}

async fn until_trusted(pair: &Pair, bundle: &str) {
    wait::until("all entries to trust it", SOON, async || {
        let bundles = pair.bundles().await;
        ensure!(bundles.len() == 2 && bundles.iter().all(|trusted| trusted == bundle), "{bundles:?}\n{}", pair.logs());
        Ok(())
    })
    .await;
}
