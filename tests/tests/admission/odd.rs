//! Bodies that no API server sends (WH-08), and clients that hang.

use super::{JSON, staged};
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tests::answer::send;
use tests::controller::SOON;
use tests::wait;
use tokio::io::AsyncReadExt;

fn review(request: &Value) -> Vec<u8> {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string().into_bytes()
}

fn create(object: &Value) -> Vec<u8> {
    review(
        &json!({"uid": "u", "operation": "CREATE", "namespace": "team-a", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "object": object}),
    )
}

#[tokio::test]
async fn odd_requests_get_an_answer_and_harm_nobody() {
    let (stage, mut controller) = staged(&[]).await;
    let client = controller.client(&stage.authority());
    // On a busy machine a body may come too slowly, which is answered as well.
    let ask = async |body: Vec<u8>| {
        wait::until("an answer", SOON, async || {
            let answer = send(&client, "POST", "/mutate--v1-pod", JSON, body.clone()).await?;
            ensure!(answer.status != 408, "{answer:?}");
            Ok(answer)
        })
        .await
    };

    for body in [
        Vec::new(),
        b"{}".to_vec(),
        b"null".to_vec(),
        b"[".to_vec(),
        vec![b'['; 2_000_000],
        br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#.to_vec(),
        br#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u"}}"#.to_vec(),
        br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}"#.to_vec(),
        vec![0xff, 0xfe, 0x00],
    ] {
        let answer = ask(body.clone()).await;
        assert_eq!(answer.status, 400, "{:?}: {answer:?}", String::from_utf8_lossy(body.get(..60).unwrap_or(&body)));
        assert!(answer.body.to_string().len() < 400, "{answer:?}");
    }
    let large = ask(vec![b' '; 9 * 1024 * 1024]).await;
    assert_eq!(large.status, 413, "{large:?}");

    for (object, allowed) in [
        (json!(null), false),
        (json!(5), false),
        (json!({"spec": {"containers": [null]}}), false),
        (json!({"spec": {"containers": vec![json!({}); 1001]}}), false),
        (
            json!({"spec": {"containers": [{"resources": {"limits": (0..1001).map(|n| (format!("a/{n}"), "1")).collect::<std::collections::BTreeMap<_, _>>()}}]}}),
            false,
        ),
        (json!({"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": 5}}}), false),
        (json!({"spec": {"containers": null}}), true),
        (json!({}), true),
        (
            json!({"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "\u{0}💥,,,"}}, "spec": {"containers": [{}]}}),
            true,
        ),
        (
            json!({"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": ",".repeat(200_000)}}, "spec": {"containers": [{}]}}),
            true,
        ),
        (json!({"metadata": {"annotations": {"a": "x".repeat(3 * 1024 * 1024)}}, "spec": {"containers": [{}]}}), true),
    ] {
        let answer = ask(create(&object)).await;
        let response = &answer.accepted()["response"];
        let shown = object.to_string().chars().take(100).collect::<String>();
        assert_eq!((&response["uid"], &response["allowed"]), (&json!("u"), &json!(allowed)), "{shown}: {response}");
        assert_eq!(response["patch"], Value::Null, "{shown}");
        assert!(response.to_string().len() < 4096, "{shown}");
    }

    // Megabytes of networks: more than annotations may be, and the API server refuses the pod after us.
    let many = vec!["a"; 1_500_000].join(",");
    let many =
        json!({"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": many}}, "spec": {"containers": [{}]}});
    for _ in 0..4 {
        let answer = ask(create(&many)).await;
        assert_eq!(answer.accepted()["response"]["allowed"], true);
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", controller.process.id())).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    let kib: u32 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kib < 128 * 1024, "{kib} KiB at the most");

    // All that is not the creation of a pod passes (WH-09).
    let pod = json!({"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "spiderpool/vlan"}}, "spec": {"containers": [{}]}});
    let patched = ask(create(&pod)).await;
    assert_ne!(patched.accepted()["response"]["patch"], Value::Null);
    for (key, value) in [
        ("operation", json!("UPDATE")),
        ("operation", json!("DELETE")),
        ("operation", json!("CONNECT")),
        ("subResource", json!("ephemeralcontainers")),
        ("kind", json!({"group": "apps", "version": "v1", "kind": "Deployment"})),
    ] {
        let mut request: Value = serde_json::from_slice(&create(&pod)).expect("JSON");
        request["request"][key] = value.clone();
        let answer = ask(request.to_string().into_bytes()).await;
        let response = &answer.accepted()["response"];
        assert_eq!((&response["allowed"], &response["patch"]), (&json!(true), &Value::Null), "{key} {value}");
    }
    for (method, path) in [("GET", "/mutate--v1-pod"), ("POST", "/"), ("POST", "/mutate--v1-pod/../x")] {
        let answer = send(&client, method, path, JSON, Vec::new()).await.expect("an answer");
        assert!((400..500).contains(&answer.status), "{method} {path}: {answer:?}");
    }
    assert!(controller.process.ended().is_none(), "{}", controller.logged());
    assert!(!controller.logged().contains("panicked"), "{}", controller.logged());
}

/// A client that connects and says nothing is let go, and so many of them hold up nobody.
#[tokio::test]
async fn silent_clients_are_let_go() {
    let (stage, controller) = staged(&[]).await;
    let address = controller.url.replace("https://localhost", "127.0.0.1");
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(tokio::net::TcpStream::connect(&address).await.expect("connects"));
    }
    let client = controller.client(&stage.authority());
    let answer = send(&client, "POST", "/mutate--v1-pod", JSON, create(&json!({}))).await.expect("an answer");
    assert_eq!(answer.accepted()["response"]["allowed"], true);
    let mut first = silent.swap_remove(0);
    let ended = tokio::time::timeout(SOON, first.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "a handshake has a deadline");
    wait::until("the rest to be let go", SOON, async || {
        let mut open = 0;
        for stream in &silent {
            open += usize::from(stream.try_read(&mut [0]).is_err());
        }
        ensure!(open == 0, "{open} are open");
        Ok(())
    })
    .await;
}

/// Whoever opens more connections than there are places and holds them keeps nobody out.
#[tokio::test]
async fn a_crowd_of_connections_keeps_nobody_out() {
    let (stage, controller) = staged(&[]).await;
    let log = stage.folder.path().join("h2load.log");
    // More than it gets to do. They come at a pace at which each gets as far as a request: what does not cannot be closed.
    let crowd = ["--h1", "-c", "1200", "-n", "12000000", "-r", "200", "--rps", "0.2"].map(ToOwned::to_owned);
    let path = std::path::Path::new("h2load");
    let url = [format!("{}/", controller.url)];
    let mut crowd = tests::process::Running::start(path, &[&crowd[..], &url].concat(), &[], &log);
    let pod = async || {
        let pod = tests::answer::annotated("spiderpool/vlan");
        stage.create("/api/v1/namespaces/team-a/pods?dryRun=All", &pod).await
    };
    // All of them, since a connection that is closed for another one may have a request on its way by then. The API server
    // uses its own meanwhile, so that it is not the one that has been idle for longest.
    wait::until("all that have no place", SOON, async || {
        pod().await;
        let metrics = controller.page("/metrics").await?.1;
        let count =
            metrics.lines().find_map(|line| line.strip_prefix("spiderpool_controller_connections_refused_total "));
        let count: u32 = count.context("no such counter")?.parse()?;
        ensure!(count >= 1200 - 1024, "{count} were closed for others");
        Ok(())
    })
    .await;
    for _ in 0..20 {
        let pod = pod().await;
        assert_eq!(pod.requested(0, super::SUB_ENI), Some("1"));
        // A new connection each time.
        let client = controller.client(&stage.authority());
        let answer = send(&client, "POST", "/mutate--v1-pod", JSON, create(&json!({}))).await.expect("an answer");
        assert_eq!(answer.accepted()["response"]["allowed"], true);
    }
    assert!(crowd.ended().is_none(), "the crowd was there all the time");
}
