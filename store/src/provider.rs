//! Providers as `conf.yml` names them, for the client that asks them.

use ipam_core::http::{HttpProvider, Servers, Target};
use k8s_api::conf::{Conf, PROVIDER_WORST, Server};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::watch;

/// Whom `conf` lets this process ask.
#[must_use]
pub fn servers(conf: &Conf) -> Servers {
    let former = conf.former_servers.iter().map(|former| (former.id.clone(), target(&former.server)));
    // The present one last: what is said of it is newer.
    let present = conf.provider.iter().map(|server| (server.id.clone(), target(server)));
    Servers { limit: conf.call_timeout, named: former.chain(present).collect() }
}

fn target(server: &Server) -> Target {
    Target {
        url: server.url.clone(),
        credentials: server.credentials.clone(),
        insecure_skip_verify: server.insecure_skip_verify,
    }
}

/// A client that follows `conf`, and what keeps it doing so; that never ends.
pub fn client(
    mut conf: watch::Receiver<Conf>,
    watcher: ipam_core::http::Watcher,
    now: fn() -> std::time::Duration,
) -> (Arc<HttpProvider>, impl Future<Output = Infallible>) {
    let client = Arc::new(HttpProvider::new(now, watcher));
    let mut last = servers(&conf.borrow_and_update());
    client.set(last.clone());
    tell(&conf.borrow());
    let following = Arc::clone(&client);
    let follow = async move {
        while conf.changed().await.is_ok() {
            let now = servers(&conf.borrow_and_update());
            if now != last {
                tell(&conf.borrow());
                following.set(now.clone());
                last = now;
            }
        }
        std::future::pending().await
    };
    (client, follow)
}

/// The first line is one that operators look for.
fn tell(conf: &Conf) {
    let former = conf.former_servers.len();
    let Some(server) = &conf.provider else {
        if former > 0 {
            tracing::info!(former, "no IaaS provider is configured; former ones are asked to release what they bound");
        }
        return;
    };
    let timeout = conf.call_timeout;
    tracing::info!(provider = server.id, ?timeout, former, "IaaS client created successfully");
    if timeout < PROVIDER_WORST {
        tracing::warn!(
            "iaasNetworkProvider.httpRequestTimeout is {timeout:?}: a provider may work on one request for {PROVIDER_WORST:?}, \
             and what it does after that time-out is taken back"
        );
    }
    if server.insecure_skip_verify {
        tracing::warn!(
            provider = server.id,
            "iaasNetworkProvider.insecureSkipVerify: whoever answers is taken for the provider"
        );
    }
}
