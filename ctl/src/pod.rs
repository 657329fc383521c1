//! `pod`: the way from a pod to its addresses, step by step.
//!
//! ```text
//! gather: reads ──> Facts ──> explain: one module a step, in the order of the way ──> findings ──> verdict
//! ```

mod answer;
mod explain;
mod facts;
mod gather;
mod mentions;
mod network;
mod wanted;

use crate::api::Server;
use crate::args::{Global, Which};
use crate::fault::Fault;
use crate::output;
use answer::Answer;
use k8s_api::{Quoted, syntax};
use std::process::ExitCode;

/// Runs the command.
pub(crate) async fn run(server: &Server, global: &Global, which: &Which) -> Result<ExitCode, Fault> {
    let (namespace, name) = named(which, server.namespace())?;
    let facts = Box::pin(gather::gather(server, &global.system, &namespace, &name)).await?;
    let answer = Answer::new(&facts, explain::explain(&facts));
    output::write(global.output, &answer, || answer.table())?;
    Ok(if answer.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Namespace and name, such as an API server takes.
fn named(which: &Which, default: &str) -> Result<(String, String), Fault> {
    let (namespace, name) = match (which.pod.split_once('/'), &which.namespace) {
        (None, Some(namespace)) => (namespace.as_str(), which.pod.as_str()),
        (None, None) => (default, which.pod.as_str()),
        (Some((one, name)), None) => (one, name),
        (Some((one, name)), Some(other)) if one == other => (one, name),
        (Some(_), Some(_)) => {
            return Err(Fault::Usage(
                "the namespace stands before the name and after -n: leave one of them".to_owned(),
            ));
        }
    };
    if !syntax::is_namespace(namespace) {
        return Err(Fault::Usage(format!("{} is not the name of a namespace", Quoted(namespace))));
    }
    if !syntax::is_subdomain(name) {
        return Err(Fault::Usage(format!("{} is not the name of a pod", Quoted(name))));
    }
    Ok((namespace.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_named_in_three_ways() {
        let named = |pod: &str, namespace: Option<&str>| {
            let which = Which { pod: pod.to_owned(), namespace: namespace.map(str::to_owned) };
            named(&which, "default").map(|(namespace, name)| format!("{namespace} {name}")).ok()
        };
        assert_eq!(named("web-0", None).as_deref(), Some("default web-0"));
        assert_eq!(named("a/web-0", None).as_deref(), Some("a web-0"));
        assert_eq!(named("web-0", Some("a")).as_deref(), Some("a web-0"));
        assert_eq!(named("a/web-0", Some("a")).as_deref(), Some("a web-0"));
        for (pod, namespace) in
            [("a/b", Some("c")), ("a/b/c", None), ("A", None), ("", None), ("../x", None), ("x", Some(""))]
        {
            assert_eq!(named(pod, namespace), None, "{pod:?} {namespace:?}");
        }
    }
}
