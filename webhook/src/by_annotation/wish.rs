//! Which annotation counts.

use k8s_api::attachment::by_annotation::Kind;
use std::fmt;

/// What a pod or a namespace wants, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) kind: Kind,
    pub(super) value: String,
    on: On,
}

/// Whose annotation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum On {
    Pod,
    Namespace,
}

impl Wish {
    /// The first of the two annotations that is there, also with an empty value; and what to say of a second one.
    pub(super) fn of<T: AsRef<str>>(on: On, values: &[Option<T>; 2]) -> (Option<Self>, Option<String>) {
        let there =
            Kind::ALL.into_iter().zip(values).filter_map(|(kind, value)| Some((kind, value.as_ref()?.as_ref())));
        let mut wishes = there.map(|(kind, value)| Self { kind, value: value.to_owned(), on });
        let (first, second) = (wishes.next(), wishes.next());
        let warning = first.as_ref().zip(second).map(|(first, second)| {
            let (used, unused) = (first.kind.annotation(), second.kind.annotation());
            format!("annotation {unused} of the {on} is not used, since it has {used}, too")
        });
        (first, warning)
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pod => "pod",
            Self::Namespace => "namespace",
        })
    }
}

/// For the audit log.
impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={:.100} of the {}", self.kind.annotation(), self.value, self.on)
    }
}
