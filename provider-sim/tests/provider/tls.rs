use crate::stage::{LONG, Stage, release};
use provider_sim::wire::RELEASE;
use provider_sim::{Identity, Options, Settings, Token};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::Path;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    /// Certificate and key, in PEM.
    fn issue(&self) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("names");
        (params.signed_by(&key, &self.0).expect("a certificate").pem(), key.serialize_pem())
    }
}

fn client(authority: &Authority, identity: Option<&Authority>) -> reqwest::Client {
    runtime::install_crypto();
    let root = reqwest::Certificate::from_pem(authority.0.pem().as_bytes()).expect("a certificate");
    let mut builder = reqwest::Client::builder().tls_certs_only([root]).timeout(LONG);
    if let Some(identity) = identity {
        let (certificate, key) = identity.issue();
        let pem = format!("{certificate}{key}");
        builder = builder.identity(reqwest::Identity::from_pem(pem.as_bytes()).expect("an identity"));
    }
    builder.build().expect("a client")
}

async fn stage(folder: &Path, authority: &Authority, clients: Option<&Authority>, token: Option<&str>) -> Stage {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("it can be written");
        path
    };
    let (certificate, key) = authority.issue();
    let identity = Identity {
        certificate: write("tls.crt", &certificate),
        key: write("tls.key", &key),
        client_ca: clients.map(|clients| write("client-ca.crt", &clients.0.pem())),
    };
    let token = token.map(|token| Token(write("token", token)));
    let listen = ([127, 0, 0, 1], 0).into();
    Stage::with(Options { listen, settings: Settings::default(), tls: Some(identity), token }).await
}

async fn status(client: &reqwest::Client, stage: &Stage, token: Option<&str>) -> Result<u16, reqwest::Error> {
    let mut request = client.post(format!("{}{RELEASE}", stage.url)).header("x-request-timeout-ms", 50_000);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let response = request.json(&release("u", "10.0.0.10")).send().await?;
    Ok(response.status().as_u16())
}

#[tokio::test]
async fn a_client_that_trusts_another_authority_goes_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    let stage = stage(folder.path(), &authority, None, None).await;
    assert_eq!(status(&client(&authority, None), &stage, None).await.expect("trusted"), 200);
    assert!(status(&client(&Authority::new(), None), &stage, None).await.is_err());
    stage.end().await;
}

#[tokio::test]
async fn clients_need_a_certificate_of_their_authority() {
    let folder = tempfile::tempdir().expect("a folder");
    let (authority, clients) = (Authority::new(), Authority::new());
    let stage = stage(folder.path(), &authority, Some(&clients), None).await;
    assert_eq!(status(&client(&authority, Some(&clients)), &stage, None).await.expect("known"), 200);
    assert!(status(&client(&authority, None), &stage, None).await.is_err(), "without one");
    assert!(status(&client(&authority, Some(&Authority::new())), &stage, None).await.is_err(), "of another");
    assert_eq!(stage.cloud.records(0).len(), 1, "the others were never read");
}

/// The check shows the same credentials as a client; without them it fails at its first call.
#[tokio::test]
async fn the_check_shows_its_credentials() {
    let folder = tempfile::tempdir().expect("a folder");
    let (authority, clients) = (Authority::new(), Authority::new());
    let stage = stage(folder.path(), &authority, Some(&clients), Some("secret")).await;
    let (certificate, key) = clients.issue();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("it can be written");
        path.into_os_string()
    };
    let ca = write("ca.crt", &authority.0.pem());
    let (certificate, key) = (write("client.crt", &certificate), write("client.key", &key));
    let token = write("client.token", "secret\n");
    let check = async |credentials: &[&std::ffi::OsString]| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_provider-sim"));
        command.args(["check", &stage.url, "--budget", "2s", "--small-budget", "300ms", "--watch", "0s"]);
        command.args(
            ["--ca", "--cert", "--key", "--token"]
                .iter()
                .zip(credentials)
                .flat_map(|(option, file)| [std::ffi::OsString::from(option), (*file).clone()]),
        );
        let ended = command.kill_on_drop(true).output();
        let ended = tokio::time::timeout(2 * LONG, ended).await.expect("in time").expect("it runs");
        (ended.status.code(), String::from_utf8_lossy(&ended.stdout).into_owned())
    };
    let (code, said) = check(&[&ca, &certificate, &key, &token]).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = check(&[&ca, &certificate, &key]).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("came:     401 ") && said.contains("Authorization: Bearer"), "{said}");
    let (code, said) = check(&[&ca]).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("came:     no complete answer: "), "{said}");
}

#[tokio::test]
async fn clients_need_the_token_that_is_in_the_file_now() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    let stage = stage(folder.path(), &authority, None, Some("secret\n")).await;
    let client = client(&authority, None);
    let ask = async |token| status(&client, &stage, token).await.expect("an answer");
    assert_eq!((ask(Some("secret")).await, ask(Some("secre")).await, ask(None).await), (200, 401, 401));
    let health = client.get(format!("{}/healthz", stage.url)).send().await.expect("an answer");
    assert_eq!(health.status(), 200, "whoever asks whether it lives has no token");
    let bindings = client.get(format!("{}/bindings", stage.url)).send().await.expect("an answer");
    assert_eq!(bindings.status(), 401);
    std::fs::write(folder.path().join("token"), "another").expect("it can be written");
    assert_eq!((ask(Some("secret")).await, ask(Some("another")).await), (401, 200));
    std::fs::write(folder.path().join("token"), "").expect("it can be written");
    assert_eq!(ask(Some("")).await, 500, "no token is none that anybody could know");
}
