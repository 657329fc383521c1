//! What a fault comes to: when the work is done, and what the answer looks like.

use super::alter::Alteration;
use super::kind::Kind;
use http::{HeaderName, HeaderValue, StatusCode};
use std::time::Duration;

/// A fault that can be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Its name.
    pub kind: Kind,
    /// What it comes to.
    pub plan: Plan,
}

/// When the work is done, and what is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// When the work is done.
    pub work: Work,
    /// What is answered.
    pub shape: Shape,
}

/// When the work is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Not at all.
    Never,
    /// Before anything is answered.
    First,
    /// While the caller knows nothing of it.
    Later {
        /// So much later than the answer.
        pause: Duration,
        /// Even when the budget is over by then.
        beyond_budget: bool,
    },
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// What there is to say.
    Honest,
    /// As [`Shape::Honest`], but so much later.
    After(Duration),
    /// Something else.
    Status {
        /// The status.
        status: StatusCode,
        /// The body.
        body: Option<String>,
        /// Headers.
        headers: Vec<(HeaderName, HeaderValue)>,
    },
    /// Nothing; the connection ends.
    Cut {
        /// With a reset.
        reset: bool,
    },
    /// Half of the body, then the connection ends.
    Half {
        /// With a reset.
        reset: bool,
    },
    /// A few bytes, then the connection ends.
    PartialStatusLine {
        /// With a reset.
        reset: bool,
    },
    /// Nothing, for ever.
    Silence,
    /// Byte by byte.
    Drip(Duration),
    /// A body without an end.
    Endless,
    /// The answer, filled up with blanks to so many bytes.
    Huge(u64),
    /// 200 and no JSON.
    Garbage,
    /// 204 and no body.
    Empty,
    /// Look elsewhere.
    Redirect {
        /// The status.
        status: StatusCode,
        /// Where.
        location: HeaderValue,
    },
    /// The answer, with something wrong in it.
    Altered(Alteration),
}

impl Plan {
    /// Without any fault.
    #[must_use]
    pub(crate) const fn honest() -> Self {
        Self { work: Work::First, shape: Shape::Honest }
    }
}
