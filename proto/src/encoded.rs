//! A `ListAndWatchResponse` that was encoded once and is sent as it is.

use crate::deviceplugin::{Device, ListAndWatchResponse};
use bytes::{Buf, BufMut, Bytes};
use prost::encoding::{DecodeContext, WireType, skip_field};
use prost::{DecodeError, Message};

/// The encoded list of devices. Cloning shares the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodedList(Bytes);

impl EncodedList {
    /// Encodes ids, each with whether it is healthy, without topology.
    pub fn new(devices: impl Iterator<Item = (String, bool)>) -> Self {
        let health = |healthy| if healthy { "Healthy" } else { "Unhealthy" };
        let device = |(id, healthy)| Device { id, health: health(healthy).to_owned(), topology: None };
        Self(ListAndWatchResponse { devices: devices.map(device).collect() }.encode_to_vec().into())
    }
}

impl Message for EncodedList {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.0);
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    /// A plugin only sends lists. Read back, one is empty.
    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        skip_field(wire_type, tag, buf, ctx)
    }

    fn clear(&mut self) {
        self.0 = Bytes::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_on_the_wire_what_the_kubelet_reads() {
        let list = EncodedList::new((0..300).map(|n| (format!("sub-eni-{n}"), n != 7)));
        let bytes = list.encode_to_vec();
        assert_eq!(bytes.len(), list.encoded_len());
        let decoded = ListAndWatchResponse::decode(bytes.as_slice()).expect("decodes");
        assert_eq!(decoded.devices.len(), 300);
        let device = |n: usize| (decoded.devices[n].id.as_str(), decoded.devices[n].health.as_str());
        assert_eq!((device(299), device(7)), (("sub-eni-299", "Healthy"), ("sub-eni-7", "Unhealthy")));
        assert!(decoded.devices.iter().all(|device| device.topology.is_none()));
    }
}
