//! Log lines on standard error.

use prometheus_client::metrics::counter::Counter;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Shape of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// Least severity that is written.
#[derive(Clone, Copy, Debug)]
pub struct Level(LevelFilter);

/// The text names no level or format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not one of {known}")]
pub struct Unknown {
    given: String,
    known: &'static str,
}

impl FromStr for Level {
    type Err = Unknown;

    /// The levels that existing installations set.
    fn from_str(text: &str) -> Result<Self, Unknown> {
        Ok(Self(match text {
            "debug" => LevelFilter::DEBUG,
            "info" => LevelFilter::INFO,
            "warn" => LevelFilter::WARN,
            "error" | "fatal" | "panic" => LevelFilter::ERROR,
            _ => return Err(Unknown { given: text.to_owned(), known: "debug, info, warn, error" }),
        }))
    }
}

impl FromStr for Format {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(Unknown { given: text.to_owned(), known: "text, json" }),
        }
    }
}

/// Libraries below us log each frame and poll; at `debug` they would drown our own lines.
const QUIET: [&str; 6] = ["h2", "hyper", "hyper_util", "tower", "rustls", "netlink_proto"];
/// They say each failed request at `warn` or `error`; their callers say it better, and once.
const SILENT: [&str; 2] = ["kube_client", "kube_runtime"];

/// Installs the process's log. A second call changes nothing.
pub fn init(Level(level): Level, format: Format) {
    let filter = QUIET.iter().fold(Targets::new().with_default(level), |filter, library| {
        filter.with_target(*library, level.min(LevelFilter::WARN))
    });
    let filter = SILENT.iter().fold(filter, |filter, library| filter.with_target(*library, LevelFilter::OFF));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false).with_ansi(false);
    let lines = match format {
        Format::Text => lines.boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
    };
    let malformed = Malformed.with_filter(Targets::new().with_target(Malformed::TARGET, LevelFilter::DEBUG));
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).with(malformed).try_init();
}

static MALFORMED: OnceLock<Counter> = OnceLock::new();

/// Counts the HTTP/2 requests that were refused before any handler saw them.
pub fn count_malformed(counter: Counter) {
    let _ = MALFORMED.set(counter);
}

/// The HTTP/2 library answers such a request with a reset and mentions it at `debug` only. A client that sends them, an
/// old kubelet for one, would otherwise fail without a trace on our side.
struct Malformed;

impl Malformed {
    const TARGET: &str = "h2::server";
}

impl<S: Subscriber> Layer<S> for Malformed {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        if !text.0.starts_with("malformed ") {
            return;
        }
        if let Some(counter) = MALFORMED.get() {
            counter.inc();
        }
        tracing::warn!(reason = text.0, "refused an HTTP/2 request; kubelets before v1.26 send such");
    }
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
