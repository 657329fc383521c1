//! Networks added to those that a user wrote.

use super::{BYTES_MAX, InvalidNetworks, NETWORKS_MAX, Reference, networks};
use crate::syntax;
use serde_json::json;
use std::collections::HashSet;

/// The value of [`super::NETWORKS`] with `more` behind what it names; `None` if it names them all. What the user wrote
/// stays, byte for byte, and its grammar is kept: a list with commas goes on with commas, JSON gets elements before its
/// final bracket.
pub fn with(text: &str, pod_namespace: &str, more: &[Reference]) -> Result<Option<String>, InvalidNetworks> {
    let named = networks(text, pod_namespace)?;
    let mut seen: HashSet<(&str, &str)> = named.iter().map(key).collect();
    let missing: Vec<&Reference> = more.iter().filter(|one| seen.insert(key(one))).collect();
    if missing.is_empty() {
        return Ok(None);
    }
    if named.len() + missing.len() > NETWORKS_MAX {
        return Err(InvalidNetworks::TooMany);
    }
    let dotted = missing.iter().find(|one| !syntax::is_label(&one.name));
    let merged = match (text.contains(['[', '{', '"']), dotted) {
        (true, _) => in_json(text, named.is_empty(), &missing),
        (false, None) => in_list(text, &missing),
        (false, Some(_)) if text.is_empty() => in_json("[]", true, &missing),
        (false, Some(one)) => return Err(InvalidNetworks::Dot(format!("{}/{}", one.namespace, one.name))),
    };
    if merged.len() > BYTES_MAX {
        return Err(InvalidNetworks::TooLong(merged.len()));
    }
    Ok(Some(merged))
}

fn key(Reference { namespace, name, .. }: &Reference) -> (&str, &str) {
    (namespace, name)
}

fn in_list(text: &str, missing: &[&Reference]) -> String {
    let mut merged = text.to_owned();
    for Reference { namespace, name, .. } in missing {
        if !merged.is_empty() {
            merged.push(',');
        }
        merged.extend([namespace.as_str(), "/", name]);
    }
    merged
}

/// `text` was read as a list, so nothing but blanks follows its last bracket.
fn in_json(text: &str, is_empty: bool, missing: &[&Reference]) -> String {
    let (before, bracket) = text.split_at(text.rfind(']').unwrap_or(text.len()));
    let mut merged = before.to_owned();
    for (n, Reference { namespace, name, .. }) in missing.iter().enumerate() {
        if n > 0 || !is_empty {
            merged.push(',');
        }
        merged.push_str(&json!({"name": name, "namespace": namespace}).to_string());
    }
    merged.push_str(bracket);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reference(namespace: &str, name: &str) -> Reference {
        Reference { namespace: namespace.to_owned(), name: name.to_owned(), interface: String::new() }
    }

    fn merged(text: &str, more: &[(&str, &str)]) -> Result<Option<String>, InvalidNetworks> {
        let more: Vec<_> = more.iter().map(|(namespace, name)| reference(namespace, name)).collect();
        with(text, "team-a", &more)
    }

    #[test]
    fn the_grammar_of_the_user_is_kept() {
        let more = [("ns", "x"), ("ns", "y"), ("ns", "x")];
        for (text, wanted) in [
            ("", "ns/x,ns/y"),
            ("a", "a,ns/x,ns/y"),
            (" a@net1 ,\n b ", " a@net1 ,\n b ,ns/x,ns/y"),
            ("[]", r#"[{"name":"x","namespace":"ns"},{"name":"y","namespace":"ns"}]"#),
            (" [ \n] \n", " [ \n{\"name\":\"x\",\"namespace\":\"ns\"},{\"name\":\"y\",\"namespace\":\"ns\"}] \n"),
            (
                "[{\"name\":\"a\",\"cni-args\":{\"x\":[1,\"]\"]}}\n]\n",
                "[{\"name\":\"a\",\"cni-args\":{\"x\":[1,\"]\"]}}\n,{\"name\":\"x\",\"namespace\":\"ns\"},{\"name\":\"y\",\"namespace\":\"ns\"}]\n",
            ),
        ] {
            assert_eq!(merged(text, &more), Ok(Some(wanted.to_owned())), "{text:?}");
            assert_eq!(merged(wanted, &more), Ok(None), "{text:?}: twice equals once");
        }
    }

    #[test]
    fn what_is_named_already_is_not_added() {
        assert_eq!(merged("ns/x@net1", &[("ns", "x")]), Ok(None));
        assert_eq!(merged("x", &[("team-a", "x")]), Ok(None), "a bare name is one of the pod's namespace");
        assert_eq!(merged("x", &[("ns", "x")]), Ok(Some("x,ns/x".to_owned())));
        assert_eq!(merged(r#"[{"name":"x"}]"#, &[("team-a", "x")]), Ok(None));
        assert_eq!(merged("a", &[]), Ok(None));
    }

    #[test]
    fn what_cannot_be_read_or_written_is_refused() {
        for text in ["a/b/c", "[", r#"{"name":"a"}"#, "A"] {
            assert!(merged(text, &[("ns", "x")]).is_err(), "{text}");
        }
        assert_eq!(
            merged("", &[("ns", "x.y")]),
            Ok(Some(r#"[{"name":"x.y","namespace":"ns"}]"#.to_owned())),
            "only JSON can name it"
        );
        assert_eq!(merged("a", &[("ns", "x.y")]), Err(InvalidNetworks::Dot("ns/x.y".to_owned())));
        assert_eq!(merged(&vec!["a"; NETWORKS_MAX].join(","), &[("ns", "x")]), Err(InvalidNetworks::TooMany));
        let long = format!("[{{\"name\":\"a\",\"cni-args\":{{\"x\":\"{}\"}}}}]", "x".repeat(BYTES_MAX - 40));
        assert!(matches!(merged(&long, &[("ns", "x")]), Err(InvalidNetworks::TooLong(_))));
    }

    /// What a user may have written, in either grammar.
    fn written() -> impl Strategy<Value = String> {
        let blank = || prop::sample::select(vec!["", " ", "\n", "\t "]);
        let name = || prop::sample::select(vec!["a", "b", "ns/a", "other/x", "ns/a@net1"]);
        let list = prop::collection::vec((blank(), name(), blank()), 0..5).prop_map(|items| {
            items.iter().map(|(before, name, after)| format!("{before}{name}{after}")).collect::<Vec<_>>().join(",")
        });
        let element = prop::sample::select(vec![
            r#"{"name":"a"}"#,
            r#"{ "name" : "b", "namespace":"ns" }"#,
            r#"{"NAME":"x","cni-args":{"y":"]["},"ips":["10.0.0.1"]}"#,
            r#"{"name":"a","namespace":"team-a","interface":"net9"}"#,
        ]);
        let json = (prop::collection::vec((blank(), element, blank()), 0..5), blank(), blank());
        let json = json.prop_map(|(items, inner, outer)| {
            let items = items.iter().map(|(before, element, after)| format!("{before}{element}{after}"));
            format!("{outer}[{inner}{}{inner}]{outer}", items.collect::<Vec<_>>().join(","))
        });
        prop_oneof![list, json]
    }

    proptest! {
        #[test]
        fn merged_is_what_was_named_and_what_was_added(
            text in written(),
            more in prop::collection::vec((prop::sample::select(vec!["team-a", "ns"]), prop::sample::select(vec!["a", "b", "x"])), 0..5),
        ) {
            let before = networks(&text, "team-a").expect("readable");
            let Some(merged) = merged(&text, &more).expect("short") else {
                for (namespace, name) in more {
                    prop_assert!(before.iter().any(|one| one.namespace == namespace && one.name == name));
                }
                return Ok(());
            };
            let after = networks(&merged, "team-a").expect("Multus reads it");
            prop_assert_eq!(&after[..before.len()], &before[..]);
            let mut added: Vec<_> = after[before.len()..].iter().map(|one| (one.namespace.as_str(), one.name.as_str())).collect();
            let of_user: Vec<_> = before.iter().map(|one| (one.namespace.as_str(), one.name.as_str())).collect();
            let mut wanted: Vec<_> = more.iter().copied().filter(|one| !of_user.contains(one)).collect();
            for list in [&mut added, &mut wanted] { list.sort_unstable(); }
            wanted.dedup();
            prop_assert_eq!(added, wanted);
            // The user's bytes, in their order, with one insertion.
            let kept = text.trim_end().strip_suffix(']').unwrap_or(&text);
            prop_assert!(merged.starts_with(kept));
            prop_assert_eq!(with(&merged, "team-a", &more.iter().map(|(a, b)| reference(a, b)).collect::<Vec<_>>()), Ok(None));
        }
    }
}
