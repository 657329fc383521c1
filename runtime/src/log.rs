//! Log lines on standard error.

use std::str::FromStr;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

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

/// Installs the process's log. A second call changes nothing.
pub fn init(Level(level): Level, format: Format) {
    // Libraries below us log each frame and poll; at `debug` they would drown our own lines.
    let quiet = ["h2", "hyper", "hyper_util", "tower", "rustls", "netlink_proto", "kube_client"];
    let filter = quiet.iter().filter_map(|library| format!("{library}=warn").parse().ok());
    let filter = filter.fold(EnvFilter::default().add_directive(level.into()), EnvFilter::add_directive);
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let _ = match format {
        Format::Text => lines.with_ansi(false).try_init(),
        Format::Json => lines.json().flatten_event(true).try_init(),
    };
}
