//! Another plugin, run as a runtime runs it: the same environment and configuration, another verb if need be.

use crate::args::Verb;
use crate::error::{Code, Fault};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// In the environment of what this program runs, so that it does not run itself.
pub(super) const WITHIN: &str = "SPIDERPOOL_VLAN_RUNS";

/// A plugin that was found.
pub(super) struct Delegate {
    name: String,
    path: PathBuf,
}

/// Far more than any result.
const MOST: u64 = 16 << 20;
const MOST_WORDS: usize = 1024;
const LOOK: Duration = Duration::from_millis(1);

impl Delegate {
    /// In the folders of `CNI_PATH`, as this program was.
    pub(super) fn find(name: &str, folders: Option<OsString>) -> Result<Self, Fault> {
        let folders = folders.filter(|folders| !folders.is_empty()).ok_or_else(|| {
            Fault::new(Code::Environment, "CNI_PATH is not set: this program is started by a container runtime")
        })?;
        let path = std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file());
        let path = path.ok_or_else(|| {
            let folders = folders.display();
            Fault::new(Code::Config, format!("the IPAM plugin {name} is in no folder of CNI_PATH, {folders}"))
        })?;
        Ok(Self { name: name.to_owned(), path })
    }

    /// What it printed.
    pub(super) fn run(&self, verb: Verb, stdin: &[u8], time: Duration) -> Result<Value, Fault> {
        let (status, output, words) =
            finish(&self.path, OsStr::new(&verb.to_string()), stdin, time).map_err(|error| {
                Fault::new(Code::TryAgain, format!("the IPAM plugin {} did not do {verb}: {error}", self.name))
            })?;
        let printed = serde_json::from_slice::<Value>(&output).ok();
        if status.success() {
            let empty = output.iter().all(u8::is_ascii_whitespace);
            return printed
                .or(empty.then_some(Value::Null))
                .ok_or_else(|| self.odd(verb, "it printed no JSON", &words));
        }
        match printed.as_ref().and_then(reason) {
            Some((code, msg, details)) => {
                Err(Fault { details, ..Fault::of(code, format!("IPAM plugin {}: {msg}", self.name)) })
            }
            None => Err(self.odd(verb, &format!("{status}, without a reason that could be read"), &words)),
        }
    }

    fn odd(&self, verb: Verb, what: &str, words: &[u8]) -> Fault {
        let text = format!("the IPAM plugin {} at {} failed at {verb}: {what}", self.name, self.path.display());
        Fault { details: String::from_utf8_lossy(words).trim().to_owned(), ..Fault::new(Code::Plugin, text) }
    }
}

/// Code, message and details of an error, as CNI prints it. 0 is none.
fn reason(printed: &Value) -> Option<(u32, &str, String)> {
    let code =
        printed.get("code").and_then(Value::as_u64).and_then(|code| u32::try_from(code).ok()).filter(|code| *code > 0);
    let msg = printed.get("msg").and_then(Value::as_str)?;
    let details = printed.get("details").and_then(Value::as_str).unwrap_or_default().to_owned();
    Some((code?, msg, details))
}

/// Runs to the end or to that of the time, when it is killed.
fn finish(path: &Path, verb: &OsStr, stdin: &[u8], time: Duration) -> std::io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
    let until = Instant::now() + time;
    let mut command = Command::new(path);
    command
        .env("CNI_COMMAND", verb)
        .env(WITHIN, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (output, words) = (reader(child.stdout.take())?, reader(child.stderr.take())?);
    if let Some(mut pipe) = child.stdin.take() {
        let bytes = stdin.to_vec();
        // One that ends without reading is right or wrong by what it prints.
        thread::Builder::new().spawn(move || pipe.write_all(&bytes))?;
    }
    // Its output ends when it does, but for children of its own.
    let printed = output.recv_timeout(until.saturating_duration_since(Instant::now()));
    let Some(status) = wait(&mut child, until)? else {
        child.kill()?;
        child.wait()?;
        return Err(std::io::Error::new(ErrorKind::TimedOut, format!("it took longer than {time:.0?} and was ended")));
    };
    let mut words = words.try_recv().unwrap_or_default();
    words.truncate(MOST_WORDS);
    Ok((status, printed.unwrap_or_default(), words))
}

fn wait(child: &mut Child, until: Instant) -> std::io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        #[allow(clippy::disallowed_methods, reason = "polls the child until a deadline")]
        thread::sleep(LOOK);
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> std::io::Result<Receiver<Vec<u8>>> {
    let (tell, told) = channel();
    if let Some(pipe) = pipe {
        thread::Builder::new().spawn(move || {
            let mut bytes = Vec::new();
            let read = pipe.take(MOST).read_to_end(&mut bytes);
            // Who does not wait any more need not hear it.
            let _ = read.is_ok_and(|_| tell.send(bytes).is_ok());
        })?;
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    const SOON: Duration = Duration::from_secs(20);

    fn run(script: &str, stdin: &[u8], time: Duration) -> Result<Value, Fault> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("fake");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("writes");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("sets");
        let folders = OsString::from(format!("/nowhere:{}", folder.path().display()));
        Delegate::find("fake", Some(folders)).expect("there").run(Verb::Del, stdin, time)
    }

    #[test]
    fn it_gets_what_we_got_and_the_verb() {
        let echoed =
            run("printf '{\"verb\":\"%s\",\"conf\":' $CNI_COMMAND; cat; echo }", br#"{"a":1}"#, SOON).expect("runs");
        assert_eq!(echoed, serde_json::json!({"verb": "DEL", "conf": {"a": 1}}));
        assert_eq!(run("exit 0", &vec![b' '; 1 << 20], SOON), Ok(Value::Null), "nothing printed, nothing read");
    }

    #[test]
    fn its_errors_are_ours() {
        let fault = run(r#"echo '{"code": 11, "msg": "no", "details": "d"}'; exit 1"#, b"", SOON).expect_err("fails");
        assert_eq!((fault.code, fault.msg.as_str(), fault.details.as_str()), (11, "IPAM plugin fake: no", "d"));
        for script in ["echo oops >&2; exit 3", "echo '{\"code\": 0, \"msg\": \"\"}'; exit 1", "kill -9 $$", "echo x"] {
            let fault = run(script, b"", SOON).expect_err("fails");
            assert!(fault.code == 100 && fault.msg.contains("fake"), "{fault:?}");
        }
        let fault = run("exec sleep 60", b"", Duration::from_millis(300)).expect_err("hangs");
        assert!(fault.code == 11 && fault.msg.contains("was ended"), "{fault:?}");
    }

    #[test]
    fn one_that_is_not_there_is_named() {
        let fault = Delegate::find("fake", Some("/nowhere:/tmp".into())).map(drop).expect_err("none");
        assert!(fault.code == 7 && fault.msg.contains("fake") && fault.msg.contains("/nowhere:/tmp"), "{fault:?}");
        assert_eq!(Delegate::find("fake", None).map(drop).expect_err("none").code, 4);
    }
}
