//! The controller against a real API server, with the chart's own webhooks and rights. `WH-…` and `MA-…` are public bug
//! reports:
//!
//! | case | where |
//! |---|---|
//! | WH-01 to WH-04, WH-07, WH-22, MA-01 to MA-04 | tests of `webhook::injection` and `k8s_api::multus`; WH-04 also here |
//! | WH-05 | `admission_figures.rs`: no API request for what is known, and figures; the alert is in the chart |
//! | WH-06 | `own_authority.rs`: two controllers that make certificates at once |
//! | WH-08, WH-09, WH-11, WH-15, WH-23 | here |
//! | WH-12, WH-14, WH-17, WH-20 | `chart.rs`; WH-12 and WH-17 also `../pods.rs`, on a whole cluster |
//! | WH-19 | `own_authority.rs`: a `caBundle` that was changed by hand or by Helm; with the other methods Helm owns all of it |
//! | WH-21 | `../uninstall.rs`, on a whole cluster; `docs/pod-injection.md` has the one line for a namespace that was deleted first |

mod adoption;
mod attachments;
mod by_annotation;
mod definitions;
mod entries;
mod garbage;
mod machines;
mod objects;
mod odd;
mod others;
mod own_authority;
mod pods;
mod tls;
mod usage;
mod validation;

const SUB_ENI: &str = "spidernet.io/sub-eni";
const ETH1: &str = "spidernet.io/eth1-nic";
const JSON: &str = "application/json";

use serde_json::{Value, json};
use tests::controller::{Controller, Stage};

/// The quick start's attachment.
fn vlan(master: &str) -> Value {
    json!({"cniType": "vlan", "vlan": {"master": [master], "ippools": {"ipv4": ["pool-eth1"]}}})
}

/// A controller that is asked, namespaces `spiderpool` and `team-a`, and the attachment `spiderpool/vlan`.
async fn staged(more: &[&str]) -> (Stage, Controller) {
    let stage = Stage::set().await;
    stage.grant().await;
    for namespace in ["spiderpool", "team-a", "kube-system"] {
        stage.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
    }
    stage.attachment("spiderpool", "vlan", vlan("eth1")).await;
    let controller = stage.ready_controller(&Stage::conf()).await;
    stage.webhooks(&controller.url, &stage.authority(), more).await;
    stage.until_asked("team-a").await;
    (stage, controller)
}
