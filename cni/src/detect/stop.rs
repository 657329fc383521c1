//! Why a detection ends before its end.

use super::ethernet::Mac;
use crate::error::{Code, Fault};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// What keeps a pod from its addresses, and what does not.
#[derive(Debug)]
pub(super) enum Stop {
    /// There is nothing to ask through, or it failed. No pod is kept from starting by that.
    Undone(String),
    Found(Fault),
}

impl Stop {
    pub(super) fn undone(what: &str, error: &io::Error) -> Self {
        Self::Undone(format!("{what}: {error}"))
    }

    pub(super) fn conflict(interface: &str, address: IpAddr, mac: Mac) -> Self {
        let text = format!(
            "IP conflict: {address} is in use by {mac}, seen through {interface}. The pod keeps it as long as it lives: take \
             it from that device, or keep it from pods with a SpiderReservedIP and delete the pod"
        );
        Self::Found(Fault::new(Code::Conflict, text))
    }

    /// `why` there was no answer.
    pub(super) fn no_gateway(interface: &str, gateways: &[IpAddr], why: &str) -> Self {
        let gateways: Vec<_> = gateways.iter().map(ToString::to_string).collect();
        let gateways = gateways.join(", ");
        let text = format!(
            "gateway {gateways} is not reachable through {interface}: {why}. Check the gateway of the pool, and master and \
             VLAN of the network"
        );
        Self::Found(Fault::new(Code::NoGateway, text))
    }

    /// `left` of the time that the runtime gives.
    pub(super) fn late(left: Duration) -> Self {
        let text = format!(
            "{left:.1?} of agentTimeout are left, too little to find out whether the addresses are free and the gateways answer"
        );
        Self::Found(Fault::new(Code::TryAgain, text))
    }
}
