//! `spiderpool-agent install-cni`, cut off and beside runs of what it replaces.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use tests::agent::binary;
use tests::process::{Running, attempt};
use tests::wait;

const SOON: Duration = Duration::from_mins(1);
const SIZE: usize = 3 << 20;
/// No handler of ours, so as deadly as a `kill -9`; the kernel sends it at the byte that is one too many.
const SIGXFSZ: i32 = 25;

struct Host {
    folder: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("spiderpool")
    }

    fn installed(&self) -> PathBuf {
        self.folder.path().join("bin/spiderpool")
    }

    fn files(&self) -> usize {
        fs::read_dir(self.folder.path().join("bin")).expect("there").count()
    }

    /// The same with the plugin `vlan`.
    fn install_vlan(&self, limit: Option<usize>) -> Output {
        let program = self.folder.path().join("vlan");
        fs::write(&program, [content(2), proto::VLAN_MARK.as_bytes().to_vec()].concat()).expect("writes");
        self.put(&program, limit)
    }

    fn install(&self, limit: Option<usize>) -> Output {
        self.put(&self.program(), limit)
    }

    /// Installs; `limit` is the size in blocks of 512 bytes at which the installer dies.
    fn put(&self, program: &Path, limit: Option<usize>) -> Output {
        let limit = limit.map_or_else(|| "unlimited".to_owned(), |blocks| blocks.to_string());
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -c 0; ulimit -f $0; exec \"$@\"", &limit]).arg(binary());
        command.arg("install-cni").arg("--program").arg(program);
        attempt(command.arg("--into").arg(self.folder.path().join("bin")))
    }
}

/// Bytes that differ everywhere, so that a part of one is no part of another.
fn content(of: u8) -> Vec<u8> {
    (0..SIZE).map(|n| of ^ u8::try_from(n % 251).expect("small")).collect()
}

fn is(path: &Path, wanted: &[u8]) -> bool {
    fs::read(path).is_ok_and(|found| found == wanted)
}

/// cilium/cilium#29461: a copy that was cut off stayed, and was never replaced.
#[test]
fn an_installer_killed_in_the_copy_leaves_the_old_plugin_or_none() {
    let host = Host::new();
    let blocks = SIZE / 512;
    let (old, new) = (content(1), content(2));
    for before in [None, Some(&old)] {
        for limit in [1, 2, 7, blocks / 2, blocks - 1] {
            if let Some(before) = before {
                fs::write(host.program(), before).expect("writes");
                assert!(host.install(None).status.success());
            }
            fs::write(host.program(), &new).expect("writes");
            for _ in 0..2 {
                let killed = host.install(Some(limit));
                assert_eq!(killed.status.signal(), Some(SIGXFSZ), "{limit}: {killed:?}");
                match before {
                    Some(before) => assert!(is(&host.installed(), before), "the old one, killed at {limit}"),
                    None => assert!(!host.installed().exists(), "none, killed at {limit}"),
                }
            }
            let ended = host.install(None);
            assert!(ended.status.success(), "{ended:?}");
            assert!(is(&host.installed(), &new), "{limit}");
            assert_eq!(host.files(), 1, "nothing of the killed ones is left");
            assert_eq!(fs::metadata(host.installed()).expect("there").permissions().mode() & 0o777, 0o755);
            fs::remove_dir_all(host.folder.path().join("bin")).expect("removes");
        }
    }
}

/// The same report: runtimes start the plugin at any time, and a program that runs cannot be written to.
#[tokio::test]
async fn a_plugin_that_runs_is_replaced_and_runs_on() {
    let host = Host::new();
    fs::copy("/bin/sh", host.program()).expect("copies");
    assert!(host.install(None).status.success());
    let before = fs::metadata(host.installed()).expect("there").ino();
    // A shell that stands still until it is told to go on.
    let arguments = ["-c", "kill -STOP $$; exit 7"].map(str::to_owned);
    let mut running = Running::start(&host.installed(), &arguments, &[], &host.folder.path().join("log"));
    wait::until(
        "the old one to run",
        SOON,
        async || {
            if running.state() == 'T' { Ok(()) } else { Err(running.state()) }
        },
    )
    .await;
    fs::write(host.program(), content(3)).expect("writes");
    let ended = host.install(None);
    assert!(ended.status.success(), "{ended:?}");
    assert!(is(&host.installed(), &content(3)));
    assert_ne!(fs::metadata(host.installed()).expect("there").ino(), before);
    running.signal("CONT");
    wait::until("the old one to end as it would have", SOON, async || match running.ended() {
        Some(7) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}

/// The name `vlan` is another's, too: at no time is there none, and his is kept whole.
#[test]
fn an_installer_killed_in_the_copy_leaves_a_foreign_vlan() {
    let host = Host::new();
    let bin = host.folder.path().join("bin");
    let (to, before) = (bin.join("vlan"), bin.join("vlan.before-spiderpool"));
    fs::create_dir(&bin).expect("makes");
    fs::write(&to, content(1)).expect("writes");
    for limit in [1, 7, SIZE / 512 - 1] {
        let killed = host.install_vlan(Some(limit));
        assert_eq!(killed.status.signal(), Some(SIGXFSZ), "{limit}: {killed:?}");
        assert!(is(&to, &content(1)), "killed at {limit}");
    }
    assert!(host.install_vlan(None).status.success());
    assert!(!is(&to, &content(1)) && is(&before, &content(1)));
    fs::write(&before, content(3)).expect("writes");
    assert!(host.install_vlan(None).status.success());
    assert!(is(&before, &content(3)), "once it is there it is not touched again");
}
