//! Whether addresses are free and gateways answer, on wires between real namespaces.

use crate::fake::{Asked, FakeAgent, Script};
use crate::lan::{Lan, Net, OTHER, OWN};
use crate::run::{Ended, Run, conf, ended, run};
use proto::agent::Detect;
use serde_json::{Value, json};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

type Addresses = &'static [(&'static str, &'static str)];

const CONFLICT: Detect = Detect { ip_conflict: true, gateway: false };
const GATEWAY: Detect = Detect { ip_conflict: false, gateway: true };
const BOTH: Detect = Detect { ip_conflict: true, gateway: true };

const V4: (&str, &str) = ("10.6.0.9/24", "10.6.0.1");
const V6: (&str, &str) = ("fd00::9/64", "fd00::1");

/// A run may take ten times as long on a busy machine.
const SOON: Duration = Duration::from_secs(15);

struct Stage {
    agent: FakeAgent,
    conf: Value,
}

impl Stage {
    fn new(detect: Detect, addresses: Addresses) -> Self {
        let agent = FakeAgent::start(Script::Detect(detect, addresses.to_vec()));
        let mut conf = conf("1.0.0", &agent.socket());
        conf["type"] = "macvlan".into();
        Self { agent, conf }
    }

    fn add(&self, net: &Net, link: &str) -> Run {
        run("ADD", &self.conf).env("CNI_NETNS", net.path()).env("CNI_IFNAME", link)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.agent.socket().with_file_name("log")).expect("a log")
    }

    /// Ends well, and this is in the log.
    fn passes(&self, net: &Net, link: &str, says: &str) {
        let began = Instant::now();
        let Ended { success, output } = self.add(net, link).end();
        assert!(success && output["ips"].is_array(), "{output}");
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        assert!(self.log().contains(says), "{says}: {}", self.log());
        assert!(!self.asks().contains("Del"), "{}", self.asks());
    }

    fn fails(&self, lan: &Lan, code: u32) -> String {
        let began = Instant::now();
        let text = self.add(&lan.pod, "net1").fails(code);
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        text
    }

    fn asks(&self) -> String {
        let verbs = self.agent.asked().into_iter().map(|asked| match asked {
            Asked::Add(..) => "Add ",
            Asked::Del(del) if del.attachment.as_ref().is_some_and(|it| it.container_id == "c-1") => "Del ",
            other => panic!("{other:?}"),
        });
        verbs.collect()
    }
}

/// Most of each is waiting.
fn at_once<T: Send>(cases: impl IntoIterator<Item = T>, test: impl Fn(T) + Sync) {
    let test = &test;
    std::thread::scope(|threads| {
        for case in cases {
            threads.spawn(move || test(case));
        }
    });
}

fn is_up(net: &Net, link: &str) -> bool {
    net.ip(&format!("link show {link}")).contains(",UP")
}

#[test]
fn an_address_that_another_device_has_is_named_with_its_mac() {
    for (has, given) in [("10.6.0.9/24", &[V4][..]), ("fd00::9/64", &[V6]), ("fd00::9/64", &[V4, V6])] {
        for up in [false, true] {
            let (lan, stage) = (Lan::new(&[has]), Stage::new(CONFLICT, given));
            if up {
                lan.pod.ip("link set net1 up");
            }
            let text = stage.fails(&lan, 107);
            let address = has.split('/').next().expect("a part");
            let starts = format!("IP conflict: {address} is in use by {OTHER}, seen through net1.");
            assert!(text.starts_with(&starts), "{text}");
            assert_eq!(stage.asks(), "Add Del ", "it is given back");
            assert_eq!(is_up(&lan.pod, "net1"), up, "as it was found");
        }
    }
}

#[test]
fn addresses_that_are_free_are_given_and_gateways_that_answer_are_found() {
    let lan = Lan::new(&["10.6.0.1/24", "fd00::1/64"]);
    for (detect, given, says) in [
        (CONFLICT, &[V4, V6][..], "net1: 10.6.0.9 is free, fd00::9 is free\n"),
        (GATEWAY, &[V4, V6], "net1: gateway 10.6.0.1 answers, gateway fd00::1 answers\n"),
        (BOTH, &[V6], "net1: fd00::9 is free, gateway fd00::1 answers\n"),
        (BOTH, &[V4, ("10.6.0.8/24", "10.6.0.1"), ("10.7.0.8/24", "")], "10.7.0.8 is free, gateway 10.6.0.1 answers\n"),
    ] {
        Stage::new(detect, given).passes(&lan.pod, "net1", says);
        assert!(!is_up(&lan.pod, "net1"), "as it was found");
    }
}

/// The plugin's own questions come back to it on such links, and filters for groups are those of a real NIC.
#[test]
fn a_link_of_macvlan_is_asked_through() {
    let (lan, _host) = Lan::macvlan(&["10.6.0.9/24", "fd00::9/64", "10.6.0.1/24", "fd00::1/64"]);
    for given in [&[V4][..], &[V6]] {
        let text = Stage::new(CONFLICT, given).fails(&lan, 107);
        assert!(text.contains(OTHER), "{text}");
    }
    let given = &[("10.6.0.8/24", "10.6.0.1"), ("fd00::8/64", "fd00::1")];
    Stage::new(BOTH, given).passes(&lan.pod, "net1", "gateway fd00::1 answers");
    assert!(!is_up(&lan.pod, "net1"));
}

/// A sandbox that is made again, or a switch that sends back what it got.
#[test]
fn the_links_own_mac_is_no_other_device() {
    let lan = Lan::new(&["10.6.0.9/24", "fd00::9/64"]);
    lan.other.ip(&format!("link set lan0 address {OWN}"));
    Stage::new(CONFLICT, &[V4, V6]).passes(&lan.pod, "net1", "10.6.0.9 is free, fd00::9 is free");
}

/// To the pod's link: `mac` has 10.6.0.9.
fn claim(mac: [u8; 6], tag: &[u8]) -> Vec<u8> {
    let own = [2, 0, 0, 0, 0, 1];
    let header = [&own[..], &[2, 0, 0, 0, 0, 2], tag, &[8, 6]].concat();
    [&header[..], &[0, 1, 8, 0, 6, 4, 0, 2], &mac, &[10, 6, 0, 9], &own, &[0; 4]].concat()
}

/// A flood of what is nobody's claim neither fails a pod nor keeps it waiting.
#[test]
fn claims_of_another_vlan_or_of_the_link_itself_are_none() {
    let (own, other) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let lan = Lan::new(&[]);
    for (frame, code) in [(claim(other, &[0x81, 0, 0, 7]), 0), (claim(own, &[]), 0), (claim(other, &[]), 107)] {
        let stage = Stage::new(CONFLICT, &[V4]);
        let _flood = lan.other.flood("lan0", frame);
        if code == 0 {
            stage.passes(&lan.pod, "net1", "10.6.0.9 is free");
        } else {
            assert!(stage.fails(&lan, code).contains(OTHER));
        }
    }
}

/// Who began first sees the other; both do if they began at the same moment.
#[test]
fn of_two_that_want_one_address_at_once_one_sees_the_other() {
    for given in [&[V4][..], &[V6]] {
        let (lan, one, other) = (Lan::new(&[]), Stage::new(CONFLICT, given), Stage::new(CONFLICT, given));
        lan.pod.ip("link set net1 up");
        let (until, mut met) = (Instant::now() + SOON, false);
        // Where they do not meet on a busy machine there is nothing to see.
        while !met && Instant::now() < until {
            let both = [one.add(&lan.pod, "net1").start(), other.add(&lan.other, "lan0").start()].map(ended);
            let failed = both.into_iter().zip([OTHER, OWN]).filter(|(ended, _)| !ended.success);
            let seen = failed.map(|(ended, mac)| assert!(ended.fault(107).contains(mac))).count();
            met = seen > 0;
        }
        assert!(met, "neither saw the other");
    }
}

#[test]
fn a_gateway_that_does_not_answer_is_named_with_the_time() {
    at_once([(&[("10.6.0.9/24", "10.6.0.2")][..], "10.6.0.2"), (&[V4, V6], "fd00::1")], |(given, silent)| {
        let (lan, stage) = (Lan::new(&["10.6.0.1/24"]), Stage::new(BOTH, given));
        let began = Instant::now();
        let text = stage.fails(&lan, 108);
        assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
        let rest = text.strip_prefix(&format!("gateway {silent} is not reachable through net1: no answer in "));
        let seconds =
            rest.and_then(|rest| rest.split_once("s; ").or_else(|| rest.split_once('s'))?.0.parse::<f64>().ok());
        assert!(seconds.is_some_and(|seconds| (2.0..60.0).contains(&seconds)), "{text}");
        assert_eq!(stage.asks(), "Add Del ");
    });
}

#[test]
fn a_pod_starts_where_there_is_nothing_to_ask_through() {
    let lan = Lan::new(&["10.6.0.9/24"]);
    let stage = Stage::new(BOTH, &[V4]);
    stage.passes(&lan.pod, "net7", "net7 does not exist yet: the plugin that makes it asks for addresses first");
    stage.passes(&lan.pod, "lo", "lo has no neighbours");
    lan.pod.ip("link add dummy7 type veth peer name peer7");
    lan.pod.ip("link set dummy7 arp off");
    stage.passes(&lan.pod, "dummy7", "dummy7 has no neighbours");
    let mut ipvlan = Stage::new(BOTH, &[V4]);
    ipvlan.conf["type"] = "ipvlan".into();
    ipvlan.passes(&lan.pod, "net1", "WARN");
    let warnings = stage.log().lines().filter(|line| line.contains(" WARN ")).count();
    assert_eq!(warnings, 3, "{}", stage.log());
}

#[test]
fn a_link_without_a_carrier_leads_to_no_gateway() {
    at_once([CONFLICT, BOTH], |detect| {
        let (lan, stage) = (Lan::new(&[]), Stage::new(detect, &[V4]));
        lan.other.ip("link set lan0 down");
        if detect == CONFLICT {
            return stage.passes(&lan.pod, "net1", "net1 has no carrier");
        }
        let text = stage.fails(&lan, 108);
        assert!(text.starts_with("gateway 10.6.0.1 is not reachable through net1: net1 has no carrier."), "{text}");
    });
}

/// The plugin bridge asks for addresses before it gives its bridge that of the gateway.
#[test]
fn a_bridge_that_becomes_the_gateway_is_not_asked() {
    at_once(["isGateway", "isDefaultGateway"], |key| {
        let (lan, mut stage) = (Lan::new(&[]), Stage::new(BOTH, &[V4]));
        stage.conf["type"] = "bridge".into();
        stage.conf[key] = json!(true);
        stage.passes(&lan.pod, "net1", "net1: 10.6.0.9 is free\n");
        stage.conf[key] = json!(false);
        stage.fails(&lan, 108);
    });
}

#[test]
fn without_an_order_nothing_is_looked_at() {
    let lan = Lan::new(&["10.6.0.9/24"]);
    let stage = Stage::new(Detect::default(), &[V4]);
    stage.passes(&lan.pod, "net1", "10.6.0.9/24");
    assert!(!stage.log().contains(" is free") && !stage.log().contains(" WARN "), "{}", stage.log());
}

#[test]
fn it_takes_no_more_than_the_time_that_there_is() {
    let lan = Lan::new(&[]);
    lan.pod.ip("link set net1 up");
    let mut stage = Stage::new(BOTH, &[V4]);
    stage.conf["ipam"]["agentTimeout"] = "480ms".into();
    let text = stage.fails(&lan, 11);
    assert!(text.contains(" of agentTimeout are left, too little"), "{text}");
    assert_eq!(stage.asks(), "Add Del ");
    // Enough to begin with the gateway, not to wait for it.
    let mut stage = Stage::new(GATEWAY, &[V4]);
    stage.conf["ipam"]["agentTimeout"] = "1500ms".into();
    let ended = stage.add(&lan.pod, "net1").end();
    let text = ended.output["msg"].as_str().expect("an error").to_owned();
    let cut = text.contains("no answer in ") && !text.contains("no answer in 2.");
    assert!(cut || text.contains("too little"), "{text}");
}

/// Stopped and woken again and again: what waits is interrupted each time.
fn storm(child: &Child) {
    let (pid, until) = (child.id().to_string(), Instant::now() + Duration::from_millis(1500));
    let signal = |name: &str| Command::new("kill").args([name, pid.as_str()]).output().expect("runs");
    while Instant::now() < until {
        signal("-STOP");
        sleep(Duration::from_millis(2));
        signal("-CONT");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn signals_change_nothing() {
    let cases: [(Addresses, u32); 3] =
        [(&[V4], 107), (&[("10.6.0.8/24", "10.6.0.1")], 0), (&[("10.6.0.8/24", "10.6.0.2")], 108)];
    at_once(cases, |(given, code)| {
        let (lan, stage) = (Lan::new(&["10.6.0.9/24", "10.6.0.1/24"]), Stage::new(BOTH, given));
        let began = Instant::now();
        let child = stage.add(&lan.pod, "net1").start();
        storm(&child);
        let ended = ended(child);
        if code == 0 {
            assert!(ended.success, "{ended:?}");
        } else {
            ended.fault(code);
        }
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    });
}
