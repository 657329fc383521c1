//! Certificates that change while pods are created.

use super::{SUB_ENI, staged};
use anyhow::ensure;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tests::answer::{annotated, send};
use tests::controller::{SOON, Stage};
use tests::wait;

/// WH-15, WH-17: a stream of admissions runs through changes of the certificate without one failure. The old authority
/// stays trusted while it may still be shown.
#[tokio::test]
async fn a_certificate_changes_under_a_stream_of_pods() {
    let (stage, controller) = staged(&[]).await;
    let (stop, created) = (AtomicBool::new(false), AtomicUsize::new(0));
    let creating = async {
        while !stop.load(Ordering::Relaxed) {
            let pod = stage.create("/api/v1/namespaces/team-a/pods?dryRun=All", &annotated("spiderpool/vlan")).await;
            assert_eq!(pod.requested(0, SUB_ENI), Some("1"));
            created.fetch_add(1, Ordering::Relaxed);
        }
    };
    let changing = async {
        let mut spans = Vec::new();
        for _ in 0..5 {
            let old = stage.authority();
            let new = {
                // What Helm does: the bundle has both, then the Secret changes.
                let next = stage.certificate_beside();
                trust(&stage, &format!("{old}{}", next.authority)).await;
                until_created(&created, 2, "what was asked by the old bundle to be over").await;
                let started = Instant::now();
                next.swap();
                let client = controller.client(&next.authority);
                wait::until("the new certificate to be shown", SOON, async || {
                    let answer = send(&client, "POST", "/mutate--v1-pod", super::JSON, b"{}".to_vec()).await?;
                    ensure!(answer.status == 400, "{answer:?}");
                    Ok(())
                })
                .await;
                spans.push(started.elapsed());
                next.authority
            };
            assert_ne!(old, new);
        }
        until_created(&created, 20, "pods after the last change").await;
        stop.store(true, Ordering::Relaxed);
        spans.sort();
        spans
    };
    let ((), spans) = tokio::join!(creating, changing);
    let pods = created.load(Ordering::Relaxed);
    println!("certificate swapped -> shown, 5 rounds: {spans:?}; {pods} pods created meanwhile, none failed");
    // The slowest may have waited for what else runs on the machine.
    assert!(spans[spans.len() / 2] < Duration::from_secs(2), "{spans:?}");

    // A pair that does not belong together, and half a one: the old one stays.
    let before = stage.authority();
    for (name, text) in [("tls.crt", before.get(..200).expect("long enough")), ("tls.key", "")] {
        let next = stage.certificate_beside();
        std::fs::write(next.folder().join(name), text).expect("writable");
        next.swap();
    }
    wait::until("a word on the fault", SOON, async || {
        ensure!(controller.logged().contains("the changed certificate is not used"), "{}", controller.logged());
        Ok(())
    })
    .await;
    assert_eq!(stage.pod("team-a", &annotated("spiderpool/vlan")).await.requested(0, SUB_ENI), Some("1"));
    let metrics = controller.page("/metrics").await.expect("answers").1;
    assert!(metrics.contains("certificate_reloads_total{outcome=\"applied\"} 5"), "{metrics}");
    assert!(!metrics.contains("certificate_reloads_total{outcome=\"refused\"} 0"), "{metrics}");
}

async fn until_created(created: &AtomicUsize, more: usize, what: &str) {
    let wanted = created.load(Ordering::Relaxed) + more;
    wait::until(what, SOON, async || {
        let found = created.load(Ordering::Relaxed);
        ensure!(found >= wanted, "{found} of {wanted}");
        Ok(())
    })
    .await;
}

/// What cert-manager does, or an authority of one's own: the mounted Secret is exchanged for a chain of another intermediate,
/// and for one of another authority, both trusted for a while. All under a stream of pods.
#[tokio::test]
async fn a_chain_of_another_authority_is_exchanged_under_the_mount() {
    let (stage, controller) = staged(&[]).await;
    let (stop, created) = (AtomicBool::new(false), AtomicUsize::new(0));
    let creating = async {
        while !stop.load(Ordering::Relaxed) {
            let pod = stage.create("/api/v1/namespaces/team-a/pods?dryRun=All", &annotated("spiderpool/vlan")).await;
            assert_eq!(pod.requested(0, SUB_ENI), Some("1"));
            created.fetch_add(1, Ordering::Relaxed);
        }
    };
    let changing = async {
        let mut trusted = stage.authority();
        let (one, other) = (Root::new("one"), Root::new("other"));
        for root in [&one, &one, &other] {
            let authority = root.pem();
            trust(&stage, &format!("{trusted}{authority}")).await;
            let next = stage.certificate_beside();
            let (chain, key) = root.chain();
            std::fs::write(next.folder().join("tls.crt"), chain).expect("writable");
            std::fs::write(next.folder().join("tls.key"), key).expect("writable");
            next.swap();
            // A client that knows the root alone: the intermediate comes with the handshake.
            let client = controller.client(&authority);
            wait::until("the chain to be shown", SOON, async || {
                let answer = send(&client, "POST", "/mutate--v1-pod", super::JSON, b"{}".to_vec()).await?;
                ensure!(answer.status == 400, "{answer:?}");
                Ok(())
            })
            .await;
            trust(&stage, &authority).await;
            trusted = authority;
        }
        stop.store(true, Ordering::Relaxed);
    };
    tokio::join!(creating, changing);
    let pods = created.load(Ordering::Relaxed);
    println!("3 chains of 2 authorities exchanged: {pods} pods created meanwhile, none failed");
    assert!(pods > 3, "{pods}");
}

/// An authority that signs intermediates.
struct Root(CertifiedIssuer<'static, KeyPair>);

impl Root {
    fn new(name: &str) -> Self {
        Self(CertifiedIssuer::self_signed(authority(name), KeyPair::generate().expect("a key")).expect("an authority"))
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for localhost with a new intermediate, and its key.
    fn chain(&self) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let between = CertifiedIssuer::signed_by(authority("between"), key, &self.0).expect("an intermediate");
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        let leaf = params.signed_by(&key, &between).expect("a certificate");
        (format!("{}{}", leaf.pem(), between.pem()), key.serialize_pem())
    }
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

/// Changes what the API server trusts, without a moment of no webhook.
async fn trust(stage: &Stage, authority: &str) {
    use base64::Engine;
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/spiderpool-controller";
    let found = send(&stage.admin, "GET", path, super::JSON, Vec::new()).await.expect("answers");
    let mut configuration = found.accepted().clone();
    for entry in configuration["webhooks"].as_array_mut().expect("a list") {
        entry["clientConfig"]["caBundle"] = base64::engine::general_purpose::STANDARD.encode(authority).into();
    }
    stage.put_in_force("PUT", path, configuration).await;
}
