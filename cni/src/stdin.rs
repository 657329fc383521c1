//! The bytes of the configuration.

use crate::error::{Code, Fault};
use std::io::Read;

/// Far more than any configuration: that of a GC lists every attachment of a node.
const MAX: u64 = 16 << 20;

pub(crate) fn read(from: impl Read) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let read = from.take(MAX).read_to_end(&mut bytes);
    read.map_err(|error| Fault::new(Code::Io, format!("cannot read the configuration from stdin: {error}")))?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len < MAX) {
        return Ok(bytes);
    }
    Err(Fault::new(Code::Decode, format!("the configuration on stdin has {MAX} bytes or more")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_an_end() {
        assert_eq!(read(std::io::repeat(b' ')).expect_err("endless").code, 6);
        assert_eq!(read(&b"{}"[..]).expect("short"), b"{}");
    }
}
