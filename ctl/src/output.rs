//! The answer, on standard output.

use crate::args::Output;
use crate::fault::Fault;
use crate::plain::plain_json;
use serde::Serialize;
use std::io::{self, Write};

/// Writes `answer`, for people as `table` has it. A reader that went away, as `head` does, is no fault.
pub(crate) fn write(output: Output, answer: &impl Serialize, table: impl FnOnce() -> String) -> Result<(), Fault> {
    let text = match output {
        Output::Table => table(),
        Output::Json => {
            let json = serde_json::to_string_pretty(answer).map_err(|error| Fault::Output(io::Error::other(error)))?;
            format!("{}\n", plain_json(&json))
        }
    };
    print(&text)
}

/// Writes text that is safe already.
pub(crate) fn print(text: &str) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Fault::Output(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
