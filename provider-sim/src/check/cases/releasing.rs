//! What a release takes, and what it leaves.

use super::{Seen, Short};
use crate::check::session::{Pod, Session, set};
use ipam_core::Address;
use serde_json::{Value, json};

impl Session {
    /// An address that is bound, and its pod.
    async fn bound(&self) -> Result<(Pod, Address), Short> {
        let (pod, address) = (self.pod(), self.address()?);
        self.bind(&pod, &[address]).await?;
        Ok((pod, address))
    }

    pub(super) async fn release_is_accepted(&self) -> Seen {
        let (pod, address) = self.bound().await?;
        self.release(&self.release_body(&pod, address), address).await
    }

    pub(super) async fn release_again(&self) -> Seen {
        let (pod, address) = self.bound().await?;
        let body = self.release_body(&pod, address);
        self.release(&body, address).await?;
        self.release(&body, address).await
    }

    pub(super) async fn allocate_after_release(&self) -> Seen {
        let (pod, address) = self.bound().await?;
        self.free(&pod, &[address]).await?;
        let other = self.pod();
        self.bind(&other, &[address]).await?;
        let _ = self.free(&other, &[address]).await;
        Ok(format!("{address} went to another pod"))
    }

    pub(super) async fn release_without_nic(&self) -> Seen {
        for empty in [false, true] {
            let (pod, address) = self.bound().await?;
            let mut body = self.release_body(&pod, address);
            if empty {
                set(&mut body, "parentNicMac", json!(""));
            } else {
                without(&mut body, &["parentNicMac"]);
            }
            self.release(&body, address).await?;
            self.is_free(address).await?;
        }
        Ok("missing or empty, the address was released".to_owned())
    }

    pub(super) async fn release_without_pod(&self) -> Seen {
        let (pod, address) = self.bound().await?;
        let mut body = self.release_body(&pod, address);
        without(&mut body, &["podName", "podNamespace", "podUID"]);
        self.release(&body, address).await?;
        self.is_free(address).await?;
        Ok("the address was released".to_owned())
    }

    pub(super) async fn release_never_bound(&self) -> Seen {
        if self.is_crowded() {
            return Err(Short::skip(
                "somebody has addresses of these, and this check would release one that may be his",
            ));
        }
        let (pod, address) = (self.pod(), self.address()?);
        self.release(&self.release_body(&pod, address), address).await
    }

    /// Another pod can have it.
    async fn is_free(&self, address: Address) -> Result<(), Short> {
        let other = self.pod();
        self.bind(&other, &[address]).await.map_err(|short| Short {
            asked: format!("that release, which was answered 2xx, then {}", short.asked),
            ..short
        })?;
        let _ = self.free(&other, &[address]).await;
        Ok(())
    }
}

fn without(body: &mut Value, fields: &[&str]) {
    if let Some(body) = body.as_object_mut() {
        body.retain(|field, _| !fields.contains(&field.as_str()));
    }
}
