//! The end of a run.

use crate::error::{Code, Fault};
use crate::run::Ended;
use crate::version::Version;
use std::io::Write;
use std::panic::UnwindSafe;
use std::process::ExitCode;

/// Prints what came of `run` of the plugin `name`.
pub(crate) fn with(name: &str, run: impl FnOnce() -> Ended + UnwindSafe) -> ExitCode {
    // It is said once, on stdout.
    std::panic::set_hook(Box::new(|_| {}));
    let (text, code) = match std::panic::catch_unwind(run) {
        Ok(Ok(output)) => (output.unwrap_or_default(), ExitCode::SUCCESS),
        Ok(Err((version, fault))) => (fault.text(version), ExitCode::FAILURE),
        Err(panic) => {
            let fault = Fault::new(Code::Plugin, panicked(name, panic.as_ref()));
            (fault.text(Version::LATEST), ExitCode::FAILURE)
        }
    };
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

fn panicked(name: &str, panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a fault of the plugin {name}: {}", text.unwrap_or("it panicked"))
}
