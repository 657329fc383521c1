//! Injection by annotation: a pod that names no network gets those that a value on it, or on its namespace, selects.
//!
//! ```text
//! pod, else its namespace ──> wish: which annotation, which value
//!                              │ index by value x who shares x what Multus lets through
//!                              v
//!                             select: attachments in order, or why the pod is refused ──> merged with the pod's own
//! ```

mod choose;
mod select;
mod wish;

pub(crate) use choose::{ByAnnotation, Fault};

#[cfg(test)]
mod tests;
