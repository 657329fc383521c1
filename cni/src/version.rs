//! Versions of the CNI specification.

use crate::args::Verb;
use std::fmt;

/// One that this plugin speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    V0_3_0,
    V0_3_1,
    V0_4_0,
    V1_0_0,
    V1_1_0,
}

impl Version {
    pub(crate) const ALL: [Self; 5] = [Self::V0_3_0, Self::V0_3_1, Self::V0_4_0, Self::V1_0_0, Self::V1_1_0];
    pub(crate) const LATEST: Self = Self::V1_1_0;

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.text() == text)
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::V0_3_0 => "0.3.0",
            Self::V0_3_1 => "0.3.1",
            Self::V0_4_0 => "0.4.0",
            Self::V1_0_0 => "1.0.0",
            Self::V1_1_0 => "1.1.0",
        }
    }

    pub(crate) fn has(self, verb: Verb) -> bool {
        match verb {
            Verb::Add | Verb::Del | Verb::Version => true,
            Verb::Check => self >= Self::V0_4_0,
            Verb::Status | Verb::Gc => self >= Self::V1_1_0,
        }
    }

    /// Whether an interface says how large its packets may be.
    pub(crate) fn tells_mtu(self) -> bool {
        self >= Self::V1_1_0
    }

    /// Whether an address says its family, as it did before 1.0.
    pub(crate) fn names_families(self) -> bool {
        self < Self::V1_0_0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_came_one_by_one() {
        let having = |verb| Version::ALL.into_iter().filter(|version| version.has(verb)).map(Version::text).collect();
        let check: Vec<&str> = having(Verb::Check);
        assert_eq!(check, ["0.4.0", "1.0.0", "1.1.0"]);
        for verb in [Verb::Gc, Verb::Status] {
            let new: Vec<&str> = having(verb);
            assert_eq!(new, ["1.1.0"]);
        }
        for old in ["", "0.1.0", "0.2.0", "1.0", "v1.0.0", "1.2.0", "2.0.0"] {
            assert_eq!(Version::parse(old), None, "{old}");
        }
    }
}
