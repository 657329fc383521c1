//! The plugin `vlan`.
use crate::error::Fault;
use crate::run::Request;
pub(crate) fn serve(_: Request<'_>) -> Result<Option<String>, Fault> {
    Ok(None)
}
