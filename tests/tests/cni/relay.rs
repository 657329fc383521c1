//! A socket between plugin and agent that stops at a byte, so that a run can be killed exactly there.

use crate::stage::{SOON, Stage};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::spawn;

/// After so many bytes, in one direction.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    Never,
    Said(usize),
    Heard(usize),
}

pub struct Relay {
    path: PathBuf,
    _folder: tempfile::TempDir,
    stopped: Receiver<()>,
    counts: [Receiver<usize>; 2],
    agent: Receiver<UnixStream>,
}

impl Relay {
    pub fn open(stage: &Stage, stop: Stop) -> Self {
        let folder = tempfile::tempdir_in(stage.folder()).expect("a folder");
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).expect("binds");
        let agent = UnixStream::connect(stage.socket()).expect("connects");
        let (tell, stopped) = channel();
        let (keep, kept) = channel();
        let (said, said_count) = channel();
        let (heard, heard_count) = channel();
        spawn(move || {
            let Ok((plugin, _)) = listener.accept() else { return };
            let copy = |one: &UnixStream| one.try_clone().expect("a second handle");
            keep.send(copy(&agent)).expect("kept");
            let (limits, tell_too) = (limits(stop), tell.clone());
            let (from_agent, to_plugin) = (copy(&agent), copy(&plugin));
            spawn(move || relay(from_agent, to_plugin, limits[1], &tell_too, &heard));
            relay(plugin, agent, limits[0], &tell, &said);
        });
        Self { path, _folder: folder, stopped, counts: [said_count, heard_count], agent: kept }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn until_stopped(&self) {
        self.stopped.recv_timeout(SOON).expect("so many bytes");
    }

    /// How many bytes went through, there and back.
    pub fn ended(&self) -> (usize, usize) {
        let [said, heard] = &self.counts;
        let said = said.recv_timeout(SOON).expect("the plugin has ended");
        (said, heard.recv_timeout(SOON).expect("and the agent has hung up"))
    }
}

/// The agent sees what it would see of a process that died.
impl Drop for Relay {
    fn drop(&mut self) {
        if let Ok(agent) = self.agent.try_recv() {
            let _ = agent.shutdown(Shutdown::Both);
        }
    }
}

fn limits(stop: Stop) -> [usize; 2] {
    match stop {
        Stop::Never => [usize::MAX; 2],
        Stop::Said(bytes) => [bytes, usize::MAX],
        Stop::Heard(bytes) => [usize::MAX, bytes],
    }
}

/// Until the end, or until so many bytes have gone through and one more has come.
fn relay(mut from: UnixStream, mut to: UnixStream, limit: usize, stopped: &Sender<()>, count: &Sender<usize>) {
    let (mut buffer, mut through) = ([0; 4096], 0);
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let left = read.min(limit - through);
        if to.write_all(&buffer[..left]).is_err() {
            break;
        }
        through += left;
        if left < read {
            let _ = stopped.send(());
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = count.send(through);
}
