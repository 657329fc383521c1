//! A cable to a server that can be pulled: nothing passes then, and nobody is told.

use std::net::Ipv4Addr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// One end of it. It ends with this value.
#[derive(Debug)]
pub struct Cable {
    port: u16,
    plugged: watch::Sender<bool>,
    relaying: JoinHandle<()>,
}

impl Cable {
    /// From a port of its own to one of this machine.
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let own = listener.local_addr().expect("bound").port();
        let (plugged, is_plugged) = watch::channel(true);
        let relaying = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let is_plugged = is_plugged.clone();
                connections.spawn(async move {
                    let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
                    let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
                    let there = relay(from_near, to_far, is_plugged.clone());
                    let back = relay(from_far, to_near, is_plugged);
                    tokio::select! {
                        () = there => {}
                        () = back => {}
                    }
                });
            }
        });
        Self { port: own, plugged, relaying }
    }

    /// Where it begins.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What is on its way stays there.
    pub fn pull(&self) {
        self.plugged.send_replace(false);
    }

    /// What stayed goes on.
    pub fn plug(&self) {
        self.plugged.send_replace(true);
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.relaying.abort();
    }
}

async fn relay(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut plugged: watch::Receiver<bool>) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if plugged.wait_for(|plugged| *plugged).await.is_err() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
