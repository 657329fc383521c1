//! What a pod is given when it is created. Values in, values out: nothing here waits or asks.
//!
//! ```text
//! pod ──> pod::Pod ──> pod::Mentions (annotations) ──attachments──> decide ──> patch
//! ```

mod annotate;
mod decide;
mod patch;
mod pod;
mod quantity;

pub(crate) use annotate::annotate;
pub(crate) use decide::{Attachment, Decision, Mention, Offers, Selected, decide};
pub(crate) use patch::patch;
pub(crate) use pod::Pod;

#[cfg(test)]
mod tests;
