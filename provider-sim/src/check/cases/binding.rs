//! What an allocate does and answers.

use super::{Seen, Short};
use crate::check::answer::Got;
use crate::check::session::{Session, set};
use ipam_core::Address;
use serde_json::{Value, json};

impl Session {
    pub(super) async fn allocate_binds(&self) -> Seen {
        let (pod, address) = (self.pod(), self.address()?);
        self.bind(&pod, &[address]).await?;
        // Whether it can be released is another check; what cannot stays in the list of what may be bound.
        let _ = self.free(&pod, &[address]).await;
        Ok(format!("{address} was bound and answered"))
    }

    pub(super) async fn mac_and_vlan(&self) -> Seen {
        let (pod, address) = (self.pod(), self.address()?);
        let got = self.bind(&pod, &[address]).await?;
        let asked = || format!("allocate-ips {}", self.allocate_body(&pod, &[address]));
        let seen = got.iter().map(Got::attributes).collect::<Result<Vec<_>, _>>();
        let seen = seen.map_err(|why| Short::fail(asked(), why))?;
        let _ = self.free(&pod, &[address]).await;
        let shown: Vec<String> = seen.iter().map(|(mac, vlan)| format!("MAC {mac}, VLAN {vlan}")).collect();
        Ok(shown.join("; "))
    }

    pub(super) async fn repeats_request(&self) -> Seen {
        let (pod, address) = (self.pod(), self.address()?);
        let body = self.allocate_body(&pod, &[address]);
        for got in self.bind(&pod, &[address]).await? {
            let wrong =
                |field: &str, given: &Value| Short::fail(format!("allocate-ips {body}"), format!("{field} is {given}"));
            let same_nic = got.parent.as_str().is_some_and(|given| given.eq_ignore_ascii_case(&self.place.parent));
            if !same_nic {
                return Err(wrong("parentNicMac", &got.parent));
            }
            if got.subnet != json!(self.place.subnet.to_string()) {
                return Err(wrong("subnet", &got.subnet));
            }
        }
        let _ = self.free(&pod, &[address]).await;
        Ok("NIC and subnet were as asked".to_owned())
    }

    pub(super) async fn several_at_once(&self) -> Seen {
        let pod = self.pod();
        let addresses = [self.address()?, self.address()?, self.address()?];
        let got = self.bind(&pod, &addresses).await?;
        self.differ(&got, || self.allocate_body(&pod, &addresses).to_string())?;
        // Each of them is bound: nobody else can have one, or a release must be needed before.
        let _ = self.free(&pod, &addresses).await;
        Ok("three addresses in one call, all answered".to_owned())
    }

    pub(super) async fn distinct_vlans(&self) -> Seen {
        let mut got = Vec::new();
        let mut bound = Vec::new();
        for _ in 0..4 {
            let (pod, address) = (self.pod(), self.address()?);
            got.extend(self.bind(&pod, &[address]).await?);
            bound.push((pod, address));
        }
        let addresses: Vec<String> = bound.iter().map(|(_, address)| address.to_string()).collect();
        self.differ(&got, || format!("for {} one after the other, none released", addresses.join(", ")))?;
        for (pod, address) in bound {
            let _ = self.free(&pod, &[address]).await;
        }
        Ok("four addresses on one NIC, four ids".to_owned())
    }

    /// No two have a VLAN id in common. What is no id is found by another check.
    fn differ(&self, got: &[Got], asked: impl Fn() -> String) -> Result<(), Short> {
        let ids: Vec<(Address, u64)> = got.iter().filter_map(|got| Some((got.address, got.vlan.as_u64()?))).collect();
        for (at, (address, id)) in ids.iter().enumerate() {
            if let Some((other, _)) = ids.iter().take(at).find(|(_, other)| other == id) {
                let nic = &self.place.parent;
                let came = format!("{other} and {address} both have VLAN {id} on {nic}");
                return Err(Short::fail(format!("allocate-ips {}", asked()), came));
            }
        }
        Ok(())
    }

    pub(super) async fn allocate_again(&self) -> Seen {
        let (pod, address) = (self.pod(), self.address()?);
        let first = self.bind(&pod, &[address]).await?;
        let again = self.bind(&pod, &[address]).await?;
        let _ = self.free(&pod, &[address]).await;
        let attributes = |got: &[Got]| got.iter().map(|got| (got.mac.clone(), got.vlan.clone())).collect::<Vec<_>>();
        if attributes(&first) == attributes(&again) {
            return Ok("the same answer".to_owned());
        }
        let asked = format!("allocate-ips twice, {}", self.allocate_body(&pod, &[address]));
        Err(Short::fail(asked, format!("another answer: {:?}, then {:?}", attributes(&first), attributes(&again))))
    }

    pub(super) async fn binds_once(&self) -> Seen {
        let (pod, other, address) = (self.pod(), self.pod(), self.address()?);
        self.bind(&pod, &[address]).await?;
        let body = self.allocate_body(&pod, &[address]);
        let again = self.allocate(&body, &[address], self.bounds.budget).await;
        self.free(&pod, &[address]).await?;
        self.bind(&other, &[address]).await.map_err(|short| Short {
            asked: format!("allocate-ips twice for one pod ({again}), one release, then {}", short.asked),
            ..short
        })?;
        let _ = self.free(&other, &[address]).await;
        Ok("asked for twice, released once, free for another pod".to_owned())
    }

    pub(super) async fn unknown_fields(&self) -> Seen {
        let (pod, address) = (self.pod(), self.address()?);
        let mut body = self.allocate_body(&pod, &[address]);
        set(&mut body, "providerCheck", json!({"field": ["that", "nobody", "knows"]}));
        let reply = self.allocate(&body, &[address], self.bounds.budget).await;
        reply.good().ok_or_else(|| Short::fail(format!("allocate-ips {body}"), &reply))?;
        let mut body = self.release_body(&pod, address);
        set(&mut body, "providerCheck", json!(true));
        self.release(&body, address).await?;
        Ok("ignored in both calls".to_owned())
    }
}
