//! `enableIPConflictDetection`, `enableGatewayDetection`: what is asked of a pod's network before its addresses are used.

use super::section::Section;

/// Which questions are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detection {
    /// `enableIPConflictDetection`: whether another device has one of the addresses.
    pub ip_conflict: bool,
    /// `enableGatewayDetection`: whether the gateways answer.
    pub gateway: bool,
}

impl Detection {
    /// Keys of the whole document. With a provider the pod's interface is made after the address is known, so there is nothing
    /// to ask through.
    pub(super) fn read(root: &mut Section<'_, '_>, provider: bool) -> Self {
        let mut on = |key| {
            let Some(found) = root.flag_found(key).filter(|found| found.value) else { return false };
            if provider {
                let why = "addresses of a provider are known before the pod's interface exists";
                let text = format!("ipam.{key} must be off with iaasNetworkProvider.serverUrl: {why}");
                root.fault(found.line, text);
            }
            true
        };
        Self { ip_conflict: on("enableIPConflictDetection"), gateway: on("enableGatewayDetection") }
    }
}
