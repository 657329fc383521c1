//! Network namespaces with a wire between them. Root makes them, and they go with the process that holds them.

use nix::ifaddrs::getifaddrs;
use nix::libc::{AF_PACKET, SOCK_RAW};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::bind;
use socket2::{Domain, Socket, Type};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// A network namespace.
pub(crate) struct Net(Child);

/// A pod whose link `net1` has been made and nothing else, as main plugins leave it, and another host.
pub(crate) struct Lan {
    pub(crate) pod: Net,
    pub(crate) other: Net,
}

pub(crate) const OWN: &str = "02:00:00:00:00:01";
pub(crate) const OTHER: &str = "02:00:00:00:00:02";

impl Net {
    pub(crate) fn new() -> Self {
        let mut command = Command::new("unshare");
        let holder = command.args(["--net", "--", "sleep", "infinity"]).stdin(Stdio::null()).spawn().expect("starts");
        let net = Self(holder);
        let own = fs::read_link("/proc/self/ns/net").expect("there");
        let until = Instant::now() + Duration::from_mins(1);
        while fs::read_link(net.path()).expect("there; namespaces are made as root") == own {
            assert!(Instant::now() < until, "no namespace: they are made as root");
            sleep(Duration::from_millis(2));
        }
        net
    }

    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// What `ip` says in it.
    pub(crate) fn ip(&self, arguments: &str) -> String {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path())).arg("ip").args(arguments.split_whitespace());
        let output = command.output().expect("runs");
        assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Joined by a wire.
    pub(crate) fn join(&self, name: &str, other: &Net, others: &str) {
        self.ip(&format!("link add {name} type veth peer name {others} netns {}", other.pid()));
    }

    /// With no look whether they are free.
    pub(crate) fn give(&self, link: &str, addresses: &[&str]) {
        for address in addresses {
            let nodad = if address.contains(':') { "nodad" } else { "" };
            self.ip(&format!("address add {address} dev {link} {nodad}"));
        }
    }
}

/// Sends a frame again and again as long as it lives.
pub(crate) struct Flood(#[expect(dead_code, reason = "its end is what is seen of it")] Arc<()>);

impl Net {
    pub(crate) fn flood(&self, link: &'static str, frame: Vec<u8>) -> Flood {
        let (alive, namespace) = (Arc::new(()), File::open(self.path()).expect("there"));
        let seen = Arc::downgrade(&alive);
        spawn(move || {
            setns(namespace, CloneFlags::CLONE_NEWNET).expect("root");
            let mut links = getifaddrs().expect("lists").filter(|found| found.interface_name == link);
            let address = links.find_map(|found| found.address?.as_link_addr().copied()).expect("there");
            let socket = Socket::new(Domain::from(AF_PACKET), Type::from(SOCK_RAW), None).expect("root");
            bind(socket.as_raw_fd(), &address).expect("binds");
            while seen.upgrade().is_some() {
                // Nobody may be there yet.
                let _ = socket.send(&frame);
                sleep(Duration::from_millis(1));
            }
        });
        Flood(alive)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Lan {
    /// The other host has these addresses on `lan0`.
    pub(crate) fn new(addresses: &[&str]) -> Self {
        let (pod, other) = (Net::new(), Net::new());
        pod.join("net1", &other, "lan0");
        pod.ip(&format!("link set net1 address {OWN}"));
        other.ip(&format!("link set lan0 address {OTHER} up"));
        other.give("lan0", addresses);
        Self { pod, other }
    }

    /// The pod's link is one of the plugin macvlan, on a host between both.
    pub(crate) fn macvlan(addresses: &[&str]) -> (Self, Net) {
        let (pod, host, other) = (Net::new(), Net::new(), Net::new());
        host.join("eth1", &other, "lan0");
        host.ip("link set eth1 up");
        host.ip("link add link eth1 name mac0 type macvlan mode bridge");
        host.ip(&format!("link set mac0 address {OWN} name net1 netns {}", pod.pid()));
        other.ip(&format!("link set lan0 address {OTHER} up"));
        other.give("lan0", addresses);
        (Self { pod, other }, host)
    }
}
