//! One call at a time over HTTP: no redirect followed, no more read than is allowed, never longer than said.

use crate::wire::{BUDGET, MAX_BODY, Operation};
use http::{HeaderValue, header};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Identity, Response};
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::time::timeout;

const CONNECT: Duration = Duration::from_secs(5);
/// Of an answer so much is shown.
const SHOWN: usize = 300;

/// What a provider wants to see, and whom we trust. Files in PEM.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// File with the token.
    pub token: Option<PathBuf>,
    /// Authority of the provider; the system's if it is not said.
    pub ca: Option<PathBuf>,
    /// Our certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// No call can be made.
#[derive(Debug, thiserror::Error)]
pub enum CannotCall {
    /// A file is not there.
    #[error("cannot read {0}")]
    Unreadable(PathBuf, #[source] std::io::Error),
    /// A file is not what it should be.
    #[error("{0} is no certificate or key in PEM")]
    NoPem(PathBuf, #[source] reqwest::Error),
    /// The token cannot be sent.
    #[error("the token in {0} is empty or has characters that no header can have")]
    Token(PathBuf),
    /// The address of the provider is no URL.
    #[error("{0:?} is no URL of a provider; write it such as http://127.0.0.1:8080")]
    Url(String),
    /// The client cannot be made.
    #[error("cannot set up HTTP")]
    Client(#[source] reqwest::Error),
}

pub(super) struct Caller {
    client: Client,
    base: String,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) came: Came,
    pub(super) took: Duration,
}

#[derive(Clone, Debug)]
pub(super) enum Came {
    /// A complete answer.
    Whole(u16, String),
    /// None, and why.
    Nothing(String),
    /// No connection, so that nothing was asked, and why.
    NeverLeft(String),
}

impl Caller {
    pub(super) fn new(url: &str, credentials: &Credentials) -> Result<Self, CannotCall> {
        let Credentials { token, ca, identity } = credentials;
        let read = |path: &PathBuf| std::fs::read(path).map_err(|why| CannotCall::Unreadable(path.clone(), why));
        let parsed = reqwest::Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let parsed = parsed.filter(|url| url.query().is_none() && url.fragment().is_none());
        let Some(parsed) = parsed else { return Err(CannotCall::Url(url.to_owned())) };
        let mut builder = Client::builder().redirect(Policy::none()).connect_timeout(CONNECT).no_proxy();
        if let Some(path) = ca {
            let roots = Certificate::from_pem_bundle(&read(path)?);
            builder = builder.tls_certs_only(roots.map_err(|why| CannotCall::NoPem(path.clone(), why))?);
        }
        if parsed.scheme() == "http" {
            // Whom the system trusts does not matter, and an image may have nobody.
            builder = builder.tls_certs_only([]);
        }
        if let Some((certificate, key)) = identity {
            let mut pem = read(certificate)?;
            pem.push(b'\n');
            pem.extend(read(key)?);
            let identity = Identity::from_pem(&pem).map_err(|why| CannotCall::NoPem(certificate.clone(), why))?;
            builder = builder.identity(identity);
        }
        if let Some(path) = token {
            let token = read(path)?;
            let bearer = [b"Bearer ", token.trim_ascii()].concat();
            let mut value = HeaderValue::from_bytes(&bearer).map_err(|_| CannotCall::Token(path.clone()))?;
            value.set_sensitive(true);
            builder = builder.default_headers([(header::AUTHORIZATION, value)].into_iter().collect());
        }
        let client = builder.build().map_err(CannotCall::Client)?;
        Ok(Self { client, base: url.trim_end_matches('/').to_owned() })
    }

    /// Calls, and waits `patience` for the whole answer.
    pub(super) async fn call(&self, operation: Operation, body: &Value, budget: Duration, patience: Duration) -> Reply {
        let url = format!("{}{}", self.base, operation.path());
        let announced = budget.as_millis().max(1).to_string();
        let request = self.client.post(url).header(BUDGET, announced).json(body);
        let started = Instant::now();
        let answered = timeout(patience, async {
            let response = request.send().await.map_err(|why| {
                let text = runtime::Chain(&why).to_string();
                if why.is_connect() { Came::NeverLeft(text) } else { Came::Nothing(text) }
            })?;
            let status = response.status().as_u16();
            Ok(Came::Whole(status, whole(response).await.map_err(Came::Nothing)?))
        });
        let came = match answered.await {
            Ok(Ok(came) | Err(came)) => came,
            Err(_) => Came::Nothing(format!("nothing within {patience:?}")),
        };
        Reply { came, took: started.elapsed() }
    }
}

async fn whole(mut response: Response) -> Result<String, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|why| runtime::Chain(&why).to_string())? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_BODY {
            return Err(format!("an answer of more than {MAX_BODY} bytes"));
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Reply {
    /// Nobody works on the call any more.
    pub(super) const fn is_settled(&self) -> bool {
        matches!(self.came, Came::Whole(..) | Came::NeverLeft(_))
    }

    /// Somebody else has the address.
    pub(super) const fn is_conflict(&self) -> bool {
        matches!(self.came, Came::Whole(409, _))
    }

    pub(super) const fn left(&self) -> bool {
        !matches!(self.came, Came::NeverLeft(_))
    }

    /// The text of a 2xx.
    pub(super) fn good(&self) -> Option<&str> {
        match &self.came {
            Came::Whole(status, text) if (200..300).contains(status) => Some(text),
            Came::Whole(..) | Came::Nothing(_) | Came::NeverLeft(_) => None,
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.came {
            Came::Nothing(why) | Came::NeverLeft(why) => write!(f, "no complete answer: {why}"),
            Came::Whole(status, text) => {
                let shown: String = text.chars().take(SHOWN).collect();
                let more = if shown.len() < text.len() { "…" } else { "" };
                write!(f, "{status} {shown}{more}")
            }
        }
    }
}
