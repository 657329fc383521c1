//! Method `self`: two controllers that make authority and certificates themselves, rotating within seconds.

use super::{JSON, SUB_ENI, vlan};
use anyhow::ensure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tests::answer::{Answer, pod_with, send};
use tests::api_server::ADMIN;
use tests::controller::{Controller, SOON, Stage, rendered};
use tests::process::Running;
use tests::wait;
use tokio::time::{interval, sleep};

const SECRET: &str = "/api/v1/namespaces/kube-system/secrets/spiderpool-controller-self-certs";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/spiderpool-controller";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/spiderpool-controller";
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
        stage.grant_more("controller/certificate.yaml", &[SELF]).await;
        for namespace in ["spiderpool", "team-a", "kube-system"] {
            stage.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
        }
        stage.attachment("spiderpool", "vlan", vlan("eth1")).await;
        let arguments = [
            "--tls-self-secret=spiderpool-controller-self-certs".to_owned(),
            "--tls-self-webhooks=spiderpool-controller".to_owned(),
            "--tls-self-names=localhost,spiderpool-controller.kube-system.svc".to_owned(),
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

    /// The chart's, by URL: the first entry asks one controller, the second the other, and so on.
    async fn webhooks(&self) {
        for mut configuration in rendered("controller/webhook.yaml", &[SELF]) {
            let entries = configuration["webhooks"].as_array_mut().expect("a list");
            for (entry, controller) in entries.iter_mut().zip(self.controllers.iter().cycle()) {
                assert_eq!(entry["clientConfig"]["caBundle"], Value::Null, "left to the controllers");
                let path = entry["clientConfig"]["service"]["path"].as_str().expect("a path");
                entry["clientConfig"] = json!({"url": format!("{}{path}", controller.url)});
            }
            let path = if configuration["kind"] == "MutatingWebhookConfiguration" { WEBHOOKS } else { VALIDATING };
            let (path, _) = path.rsplit_once('/').expect("a path");
            self.stage.create(path, &configuration).await.accepted();
        }
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

    /// Of every entry of both configurations; the first two are those for pods.
    async fn bundles(&self) -> Vec<String> {
        let mut bundles = Vec::new();
        for path in [WEBHOOKS, VALIDATING] {
            let configuration = self.get(path).await;
            let entries = configuration["webhooks"].as_array().expect("a list");
            bundles.extend(entries.iter().map(|entry| decoded(&entry["clientConfig"]["caBundle"])));
        }
        bundles
    }

    fn logged(&self, text: &str) -> usize {
        self.controllers.iter().map(|controller| controller.logged().matches(text).count()).sum()
    }

    fn logs(&self) -> String {
        self.controllers.iter().map(Controller::logged).collect::<Vec<_>>().join("\n=====\n")
    }
}

/// A pod that one or the other controller is asked about.
fn pod(which: usize) -> Value {
    let mut annotations = json!({"k8s.v1.cni.cncf.io/networks": "spiderpool/vlan"});
    if which.is_multiple_of(2) {
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
                let body = pod(which).to_string().into_bytes();
                let failed = match send(&pair.stage.admin, "POST", DRY_RUN, JSON, body).await {
                    Ok(answer) if answer.status == 201 && requested(&answer) => None,
                    other => Some(format!("{other:?}")),
                };
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
    let pair = Pair::ready(30).await;
    let before = pair.failed_calls().await;
    let stop = AtomicBool::new(false);
    let watching = async {
        let (mut certificates, mut authorities) = (BTreeSet::new(), BTreeSet::new());
        while !stop.load(Ordering::Relaxed) {
            certificates.insert(pair.file("tls.crt").await);
            let bundle = pair.file("ca.crt").await;
            // The first one signs.
            let end = "-----END CERTIFICATE-----";
            authorities.insert(bundle.split_inclusive(end).next().expect("one").to_owned());
            sleep(Duration::from_millis(200)).await;
        }
        (certificates.len(), authorities.len())
    };
    let loading = async {
        let answers = pair.under_load(200).await;
        stop.store(true, Ordering::Relaxed);
        answers
    };
    let (answers, handshakes, (certificates, authorities)) = tokio::join!(loading, pair.handshakes(&stop), watching);
    let failed = answers.iter().filter(|answer| answer.status != 201).count();
    let first = answers.iter().map(|answer| answer.begun).min().expect("answers");
    let last = answers.iter().map(|answer| answer.begun).max().expect("answers");
    let span = last.saturating_sub(first);
    let rate = Duration::from_secs(u64::try_from(answers.len()).expect("few")).div_duration_f64(span);
    let mut times: Vec<Duration> = answers.iter().map(|answer| answer.took).collect();
    times.sort_unstable();
    println!(
        "{certificates} certificates of {authorities} authorities in {:.0?} under {rate:.0} pods/s: {} pods created, {failed} failed; median {:.1?}, p99 {:.1?}, slowest {:.0?}; {handshakes} handshakes of our own, none failed",
        span,
        answers.len() - failed,
        times[times.len() / 2],
        times[times.len() * 99 / 100],
        times[times.len() - 1],
    );
    assert_eq!(failed, 0, "{}", pair.logs());
    assert!(authorities >= 2 && certificates >= 5, "{certificates}, {authorities}\n{}", pair.logs());
    assert!(pair.logged("authority retired") >= 1, "{}", pair.logs());
    if std::env::var_os("CONTROLLER_BINARY").is_some() {
        assert!(rate > 190.0, "promised: under 200 pods a second");
    }
    assert_eq!(pair.failed_calls().await, before, "by the API server's own count");
    for controller in &pair.controllers {
        let own = controller.page("/metrics").await.expect("answers").1;
        assert!(own.contains("certificate_reloads_total{outcome=\"refused\"} 0"), "{own}");
        assert!(own.contains("spiderpool_controller_authority_not_after_timestamp_seconds"), "{own}");
        assert!(own.contains("certificate_rotations_total{outcome=\"failed\"} 0"), "{own}\n{}", pair.logs());
        assert!(!controller.logged().contains("PRIVATE"));
    }
}

/// One answer of the API server.
struct Measured {
    begun: Duration,
    status: u16,
    took: Duration,
}

impl Pair {
    /// Calls of webhooks that failed, as the API server counts them: for whatever reason, a handshake among them.
    async fn failed_calls(&self) -> Vec<String> {
        let metrics = self.get("/metrics").await;
        let metrics = metrics.as_str().expect("text");
        assert!(metrics.contains("apiserver_admission_webhook_request_total{"), "it counts what it asks");
        metrics
            .lines()
            .filter(|line| line.contains("error_type=\"calling_webhook_error\""))
            .map(str::to_owned)
            .collect()
    }

    /// Dry runs by `h2load`, half of them for each controller: a change of authority passes meanwhile.
    async fn under_load(&self, per_second: u32) -> Vec<Measured> {
        let folder = self.stage.folder.path();
        let log = |which: usize| folder.join(format!("load-{which}.tsv"));
        let mut running: Vec<Running> = (0..2)
            .map(|which| {
                let body = folder.join(format!("pod-{which}.json"));
                std::fs::write(&body, pod(which).to_string()).expect("writable");
                let arguments = [
                    "--header=content-type: application/json".to_owned(),
                    format!("--header=authorization: Bearer {ADMIN}-token"),
                    format!("--data={}", body.display()),
                    format!("--log-file={}", log(which).display()),
                    format!("--rps={}", per_second / 2),
                    "--clients=1".to_owned(),
                    "--max-concurrent-streams=100".to_owned(),
                    "--duration=112".to_owned(),
                    format!("{}{DRY_RUN}", self.stage.server.url()),
                ];
                Running::start(Path::new("/usr/bin/h2load"), &arguments, &[], &folder.join(format!("load-{which}.log")))
            })
            .collect();
        wait::until("the load to end", Duration::from_secs(200), async || {
            ensure!(running.iter_mut().all(|load| load.ended() == Some(0)), "it runs");
            Ok(())
        })
        .await;
        let text = [log(0), log(1)].map(|log| std::fs::read_to_string(log).expect("a log")).concat();
        let measured = |line: &str| {
            // Start in µs since the epoch, status, time to the answer in µs.
            let mut fields = line.split('\t');
            let mut next = || fields.next().expect("three fields");
            let micros = |text: &str| Duration::from_micros(text.parse().expect("a number"));
            let (begun, status) = (micros(next()), next().parse().expect("a status"));
            Measured { begun, status, took: micros(next()) }
        };
        text.lines().map(measured).collect()
    }

    /// New connections to each controller, of a client that trusts what its webhook trusts then.
    async fn handshakes(&self, stop: &AtomicBool) -> usize {
        let mut made = 0;
        while !stop.load(Ordering::Relaxed) {
            for which in 0..2 {
                let bundle = self.bundles().await.swap_remove(which);
                let client = self.controllers[which].client(&bundle);
                match send(&client, "POST", "/mutate--v1-pod", JSON, b"{}".to_vec()).await {
                    Ok(answer) => assert_eq!(answer.status, 400),
                    // On a slow machine the bundle may have been replaced, long since, when the handshake begins.
                    Err(_) if self.bundles().await.swap_remove(which) != bundle => continue,
                    Err(error) => panic!("{error:#}\n{}", self.logs()),
                }
                made += 1;
            }
            sleep(Duration::from_millis(50)).await;
        }
        made
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
        ensure!(bundles.len() > 4 && bundles.iter().all(|trusted| trusted == bundle), "{bundles:?}\n{}", pair.logs());
        Ok(())
    })
    .await;
}
