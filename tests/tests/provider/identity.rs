//! Another provider is configured while addresses are bound at the first one.

use crate::stage::{OVER, POOL, Stage, all_started};
use anyhow::ensure;
use serde_json::json;
use std::collections::BTreeMap;
use tests::cable::Cable;
use tests::plugin::{Plugin, address};
use tests::provider::Provider;
use tests::wait;

fn conf(current: &str, more: &str) -> String {
    format!("iaasNetworkProvider: {{serverUrl: '{current}', httpRequestTimeout: 2s{more}}}\n")
}

fn port(url: &str) -> u16 {
    url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
}

#[tokio::test(flavor = "multi_thread")]
async fn bindings_of_another_provider_wait_until_it_is_named_or_given_up() {
    let (mut stage, second) = (Stage::set(Provider::start().await).await, Provider::start().await);
    let (here, mut agent) = stage.node("here", "2s").await;
    let (lost, mut agent_lost) = stage.node("lost", "2s").await;
    let provided = async |name: &str, node: &str| stage.nodes.provided(name, node, POOL, json!({})).await;
    let mut of_here = [provided("stays", "here").await, provided("goes", "here").await];
    let mut of_lost = [provided("left", "lost").await, provided("abandoned", "lost").await];
    let mut given = all_started(&here, &mut of_here).await;
    given.extend(all_started(&lost, &mut of_lost).await);
    stage.agree(&given).await;
    let of = |pod: &str| given.iter().find(|(_, name)| *name == pod).expect("given").0.clone();
    let asked = stage.provider.cloud.records(0).len();

    for process in [&mut agent.process, &mut agent_lost.process] {
        process.signal("KILL");
        wait::until("its end", OVER, async || process.ended().ok_or("it runs")).await;
    }
    let other = conf(&second.url, "");
    let agent = here.providing_agent(&other).await;
    let controller = stage.nodes.controller(&other).await;
    stage.nodes.out_of_service("lost").await;
    let [stays, goes] = &of_here;
    let plugin = Plugin::dial(&here.socket()).await.expect("it listens");
    for pod in ["goes", "left", "abandoned"] {
        stage.nodes.end(pod).await;
    }
    plugin.del(goes).await.expect("a DEL does not fail for a provider");
    let again = plugin.add(stays, crate::stage::BUDGET).await.expect("it has what it needs");
    assert_eq!(address(&again), of("stays"), "pods that run keep running");

    wait::until("people to be told", OVER, async || {
        let told = stage.nodes.told(POOL, "ProviderNotConfigured").await;
        let named = |note: &String| note.contains(&of("left")) && note.contains(&stage.provider.url);
        ensure!(told.iter().any(named), "{told:?}");
        let (_, page) = controller.page("/metrics").await?;
        let counted = page.lines().find(|line| line.contains("garbage_looks") && line.contains("outcome=\"unserved\""));
        ensure!(counted.is_some_and(|line| !line.ends_with(" 0")), "{page}");
        Ok(())
    })
    .await;
    stage.nodes.abandon(&of("abandoned")).await;
    let mut kept = given.clone();
    kept.remove(&of("abandoned"));
    wait::until("what is given up to be free", OVER, async || {
        let held = stage.nodes.held().await;
        ensure!(held == kept, "{held:?}");
        Ok(())
    })
    .await;
    assert_eq!(stage.provider.cloud.records(0).len(), asked, "nobody called it");
    assert!(second.cloud.records(0).is_empty(), "and nobody asked the other about what it never bound");

    // It moved, too.
    let cable = Cable::to(port(&stage.provider.url)).await;
    let former =
        format!(", formerServers: [{{url: '{}', useUrl: 'http://127.0.0.1:{}'}}]", stage.provider.url, cable.port());
    let both = conf(&second.url, &former);
    here.reconfigure(&both);
    stage.nodes.reconfigure_controller(&both);
    kept.retain(|_, pod| pod == "stays");
    wait::until("the others to be released", OVER, async || {
        let held = stage.nodes.held().await;
        ensure!(held == kept, "{held:?}\n{}", agent.logged());
        Ok(())
    })
    .await;
    let left: BTreeMap<_, _> = given.iter().filter(|(_, pod)| ["stays", "abandoned"].contains(&pod.as_str())).collect();
    assert!(stage.provider.bound().iter().eq(left), "{:?}", stage.provider.bound());
    stage.provider.end();
    stage.provider = second;
    assert!(stage.provider.bound().is_empty());
}
