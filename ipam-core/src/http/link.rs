//! Connections to one server.

use super::credentials::{Credentials, unusable};
use super::error::{CallError, chain};
use super::servers::Target;
use crate::BUDGET_HEADER;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Certificate, Client, Identity, Response, redirect, retry};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use url::Url;

/// A server in the same cloud is there in milliseconds. What has not left by then can be tried again. The time that a request
/// announces was counted before, and may not be much older when it leaves.
const CONNECT: Duration = Duration::from_secs(2);
/// What a server's kernel has not acknowledged by then is given up, and does not arrive when nobody counts on it any more.
const ARRIVE: Duration = Duration::from_secs(2);
/// Connections that are kept for the next calls, and how long: less than the 5 s after which many a server closes them. A
/// request that meets the end of its connection may have been done, and costs a pod a minute.
const IDLE: (usize, Duration) = (32, Duration::from_secs(4));

pub(super) struct Link {
    client: Client,
    url: Url,
    credentials: Credentials,
}

impl Link {
    pub(super) fn new(target: &Target, credentials: Credentials) -> Result<Self, CallError> {
        let folder = target.credentials.as_deref().unwrap_or(Path::new(""));
        let wrong = |name: &'static str| move |error: reqwest::Error| unusable(&folder.join(name), chain(error));
        let mut builder = Client::builder()
            .user_agent(concat!("spiderpool/", env!("CARGO_PKG_VERSION")))
            // Over HTTP/2 a request may wait behind others for its turn, with the time that it announces running out.
            .http1_only()
            // As the contract writes them: not everybody compares names of headers as HTTP says.
            .http1_title_case_headers()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy()
            .connect_timeout(CONNECT)
            .tcp_user_timeout(ARRIVE)
            .pool_max_idle_per_host(IDLE.0)
            .pool_idle_timeout(IDLE.1)
            .tls_danger_accept_invalid_certs(target.insecure_skip_verify);
        if let Some(pem) = &credentials.authorities {
            let authorities = Certificate::from_pem_bundle(pem).map_err(wrong("ca.crt"))?;
            if authorities.is_empty() {
                return Err(unusable(&folder.join("ca.crt"), "it holds no certificate"));
            }
            builder = builder.tls_certs_only(authorities);
        }
        if let Some((certificate, key)) = &credentials.identity {
            let pem = [key.as_slice(), b"\n", certificate.as_slice()].concat();
            builder = builder.identity(Identity::from_pem(&pem).map_err(wrong("tls.crt"))?);
        }
        if let Some(token) = &credentials.token {
            let mut value = HeaderValue::from_bytes(&[b"Bearer ", token.as_slice()].concat())
                .map_err(|_| unusable(&folder.join("token"), "it has more than one line"))?;
            value.set_sensitive(true);
            builder = builder.default_headers(HeaderMap::from_iter([(AUTHORIZATION, value)]));
        }
        let client = builder.build().map_err(|error| CallError::Connect(chain(error)))?;
        Ok(Self { client, url: target.url.clone(), credentials })
    }

    pub(super) fn is_of(&self, credentials: &Credentials) -> bool {
        self.credentials == *credentials
    }

    /// Sends it if any time is left, and says so to the server.
    pub(super) async fn post(&self, path: &str, left: Duration, body: &impl Serialize) -> Result<Response, CallError> {
        let millis = left.as_millis();
        if millis == 0 {
            return Err(CallError::Late);
        }
        let request = self.client.post(behind(&self.url, path)).header(BUDGET_HEADER, millis.to_string()).json(body);
        request.send().await.map_err(|error| {
            let connect = error.is_connect();
            let why = chain(error);
            if connect { CallError::Connect(why) } else { CallError::Transport(why) }
        })
    }
}

/// `path` behind the path of `url`.
fn behind(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    let base = url.path().trim_end_matches('/').to_owned();
    url.set_path(&format!("{base}/{path}"));
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_put_behind_that_of_the_url() {
        for (base, whole) in [
            ("http://x", "http://x/v1/a"),
            ("http://x/", "http://x/v1/a"),
            ("https://x:8443/base", "https://x:8443/base/v1/a"),
            ("http://x/base//?q=1#f", "http://x/base/v1/a?q=1"),
        ] {
            assert_eq!(behind(&base.parse().expect("a URL"), "v1/a").as_str(), whole);
        }
    }
}
