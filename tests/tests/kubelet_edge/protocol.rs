//! Below gRPC: clients that the library would not let us be.

use super::{A, B, Node, SOON, for_a_while};
use std::path::Path;
use std::time::Duration;
use tests::agent::Agent;
use tests::kubelet::FakeKubelet;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A client that says it goes away, in the middle of everything, disturbs nobody.
#[tokio::test]
async fn a_client_that_goes_away_disturbs_nobody() {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const GOAWAY: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let _agent = node.registered(&kubelet).await;
    let mut connection = tokio::net::UnixStream::connect(kubelet.endpoint(A)).await.expect("connects");
    for bytes in [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &SETTINGS, &GOAWAY] {
        connection.write_all(bytes).await.expect("sends");
    }
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(SOON, connection.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the agent lets the connection go");
    for_a_while(Duration::from_millis(500), || assert_eq!(kubelet.allocatable(A), Some(4))).await;
    assert_eq!((kubelet.registrations(A), kubelet.registrations(B)), (1, 1));
}

/// DP-31: which `:authority` gets through, and what shows when one does not.
#[tokio::test]
async fn an_authority_that_is_no_host_is_refused_and_counted() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let agent = node.registered(&kubelet).await;
    let socket = kubelet.endpoint(A);
    assert!(answered(&socket, Some("localhost")).await);
    assert!(answered(&socket, None).await, "no authority at all");
    for refused in ["/var/lib/kubelet/device-plugins/x.sock", "%2Fvar%2Flib%2Fkubelet%2Fdevice-plugins%2Fx.sock"] {
        let before = malformed(&agent).await;
        let answered = answered(&socket, Some(refused)).await;
        let counted = malformed(&agent).await > before;
        assert!(answered || counted, "{refused}: a refusal is counted");
    }
    assert!(malformed(&agent).await > 0);
    assert!(agent.logged().contains("refused an HTTP/2 request"), "{}", agent.logged());
    assert_eq!(kubelet.allocatable(A), Some(4), "the kubelet's own stream goes on");
}

async fn malformed(agent: &Agent) -> u64 {
    let (_, metrics) = agent.page("/metrics").await.expect("the page");
    let line = metrics.lines().find_map(|line| line.strip_prefix("spiderpool_agent_malformed_requests_total "));
    line.and_then(|count| count.parse().ok()).expect("the counter")
}

/// Sends `GetDevicePluginOptions` by hand, since clients refuse odd authorities themselves; whether a response came.
async fn answered(socket: &Path, authority: Option<&str>) -> bool {
    const HEADERS: u8 = 1;
    const RST_STREAM: u8 = 3;
    let mut block = Vec::new();
    let mut field = |name: &str, value: &str| {
        // HPACK literal without indexing, new name; lengths stay below 127.
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).expect("short"));
            block.extend_from_slice(text.as_bytes());
        }
    };
    field(":method", "POST");
    field(":scheme", "http");
    field(":path", "/v1beta1.DevicePlugin/GetDevicePluginOptions");
    if let Some(authority) = authority {
        field(":authority", authority);
    }
    field("content-type", "application/grpc");
    field("te", "trailers");
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags, 0, 0, 0, stream];
        frame.extend_from_slice(payload);
        frame
    };
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    bytes.extend(frame(HEADERS, 4, 1, &block));
    bytes.extend(frame(0, 1, 1, &[0, 0, 0, 0, 0]));
    let mut connection = tokio::net::UnixStream::connect(socket).await.expect("connects");
    connection.write_all(&bytes).await.expect("sends");
    let answer = async {
        loop {
            let mut head = [0_u8; 9];
            connection.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(length).expect("small")];
            connection.read_exact(&mut payload).await.ok()?;
            match (head[3], head[8]) {
                (HEADERS, 1) => return Some(true),
                (RST_STREAM, 1) => return Some(false),
                _ => {}
            }
        }
    };
    tokio::time::timeout(SOON, answer).await.expect("an answer").unwrap_or(false)
}
