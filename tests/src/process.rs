//! Programs that end with the test that started them, also when that is killed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// `_SC_CLK_TCK` of every Linux that we run on.
const TICKS: f64 = 100.0;

/// The checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the checkout").to_owned()
}

/// A program that runs until it is dropped.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts `program` with its output in `log`.
    pub fn start(program: &Path, arguments: &[String], env: &[(&str, &str)], log: &Path) -> Self {
        let log = std::fs::File::create(log).expect("a log file");
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(arguments)
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn();
        Self(child.unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display())))
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// How many sockets it has open, listening or connected.
    pub fn sockets(&self) -> usize {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.id())).expect("it runs").flatten();
        let links = open.filter_map(|file| std::fs::read_link(file.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
    }

    /// What it does: `R`uns, `S`leeps, is s`T`opped, as in `man proc_pid_stat`.
    pub fn state(&self) -> char {
        self.stat()[0].chars().next().expect("a state")
    }

    /// CPU time that it has used so far, in seconds.
    pub fn cpu(&self) -> f64 {
        let ticks = |at: usize| self.stat()[at].parse::<f64>().expect("a number");
        (ticks(11) + ticks(12)) / TICKS
    }

    /// Of `/proc/PID/stat` what comes after the name.
    fn stat(&self) -> Vec<String> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("it runs");
        let (_, after) = stat.rsplit_once(") ").expect("a name in brackets");
        after.split_whitespace().map(str::to_owned).collect()
    }

    /// The most memory that it ever had, in KiB.
    pub fn most_memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
        most.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Exit code once it ended.
    pub fn ended(&mut self) -> Option<i32> {
        self.0.try_wait().expect("a child can be waited for").map(|status| status.code().unwrap_or(-1))
    }

    /// Sends a signal, by its name without SIG.
    pub fn signal(&self, name: &str) {
        run("kill", [format!("-{name}"), self.id().to_string()]);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program to its end; its standard output, without the final line break.
pub fn run<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: impl IntoIterator<Item = S>) -> String {
    let mut command = Command::new(&program);
    command.args(arguments);
    let output = attempt(&mut command);
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Runs a program to its end, whatever that is.
pub fn attempt(command: &mut Command) -> Output {
    let output = command.current_dir(root()).stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}
