//! Pods get addresses from pools, on a real cluster, with the CNI plugin `spiderpool`. Modules run in the order of their names.

#[path = "addresses/alone.rs"]
mod alone;
#[path = "addresses/churn.rs"]
mod churn;
#[path = "addresses/ends.rs"]
mod ends;
#[path = "addresses/frozen.rs"]
mod frozen;
#[path = "addresses/full.rs"]
mod full;
#[path = "addresses/kinds.rs"]
mod kinds;
#[path = "addresses/provided.rs"]
mod provided;
