//! The same calls of the community's plugin and of ours.

use crate::host::{Master, Sandbox};
use crate::run::{OWN, THEIRS, call, manual, ours};
use serde_json::{Value, json};

/// Configurations that both take.
fn corpus(version: &str, master: &str) -> Vec<Value> {
    let plain = manual(version, master, 7);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut conf = plain.clone();
        change(&mut conf);
        conf
    };
    vec![
        plain.clone(),
        manual(version, master, 0),
        manual(version, master, 4094),
        with(&|conf| conf["mtu"] = 1400.into()),
        with(&|conf| conf["mtu"] = 1500.into()),
        with(&|conf| conf["dns"] = json!({"nameservers": ["10.0.0.53"], "search": ["a.b"]})),
        with(&|conf| conf["ipam"]["routes"] = json!([])),
        with(&|conf| {
            conf["ipam"]["routes"] =
                json!([{"dst": "10.9.0.0/16", "gw": "10.6.0.5"}, {"dst": "10.9.0.0/16", "gw": "10.6.0.7"}]);
        }),
        with(&|conf| {
            conf["ipam"]["addresses"] = json!([
                {"address": "10.6.0.9/24", "gateway": "10.6.0.1"}, {"address": "10.7.0.9/32"},
                {"address": "fd00::9/64", "gateway": "fd00::1"},
            ]);
            conf["ipam"]["routes"] =
                json!([{"dst": "0.0.0.0/0"}, {"dst": "::/0"}, {"dst": "fd01::/64", "gw": "fd00::5"}]);
        }),
        with(&|conf| {
            conf["ipam"] = json!({"type": "host-local", "dataDir": "/run/host-local", "ranges": [[{"subnet": "10.8.0.0/24"}]],
                "routes": [{"dst": "0.0.0.0/0"}]});
        }),
    ]
}

#[test]
#[ignore = "in the guest"]
fn both_give_the_same_links_and_results() {
    let master = Master::new();
    for version in ["0.3.0", "0.3.1", "0.4.0", "1.0.0"] {
        for conf in corpus(version, &master.0) {
            let sandbox = Sandbox::new();
            let [ours, theirs] = [ours().as_str(), THEIRS].map(|program| {
                let _ = std::fs::remove_dir_all("/run/host-local");
                let call = call(&conf, &sandbox).by(program);
                let result = call.add();
                let state = sandbox.state("net1");
                // Theirs finds no address without a gateway.
                if version >= "0.4.0" && program != THEIRS {
                    call.after(&result).done("CHECK");
                }
                call.after(&result).done("DEL");
                assert!(sandbox.links().is_empty(), "{:?}", sandbox.links());
                call.done("DEL");
                (result, state)
            });
            assert_eq!(ours, theirs, "{conf}");
        }
    }
}

#[test]
#[ignore = "in the guest"]
fn each_takes_what_the_other_made() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    let conf = manual("1.0.0", &master.0, 7);
    let (ours, theirs) = (call(&conf, &sandbox), call(&conf, &sandbox).by(THEIRS));
    for (first, then) in [(&ours, &theirs), (&theirs, &ours)] {
        let result = first.add();
        then.after(&result).done("CHECK");
        then.after(&result).done("DEL");
        assert!(sandbox.links().is_empty());
    }
}

#[test]
#[ignore = "in the guest"]
fn both_refuse_the_same() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    let good = manual("1.0.0", &master.0, 7);
    for (key, value) in [
        ("master", json!("")),
        ("master", json!("none")),
        ("master", json!(7)),
        ("vlanId", json!(-1)),
        ("vlanId", json!(4095)),
        ("vlanId", json!("7")),
        ("mtu", json!(1501)),
        ("mtu", json!(-1)),
        ("ipam", json!({})),
        ("ipam", json!({"type": "none"})),
        ("ipam", json!({"type": "static", "addresses": []})),
        ("ipam", json!({"type": "static", "addresses": [{"address": "10.6.0.9"}]})),
    ] {
        let mut conf = good.clone();
        conf[key] = value;
        for program in [ours().as_str(), THEIRS] {
            let ended = call(&conf, &sandbox).by(program).run("ADD");
            assert!(!ended.success && ended.output["code"].as_u64() > Some(0), "{program} {conf}: {ended:?}");
            // Theirs leaves the link to the end of the namespace.
            if program == THEIRS {
                call(&good, &sandbox).by(program).done("DEL");
            }
            assert!(sandbox.links().is_empty(), "{program}: {conf}");
        }
    }
}

#[test]
#[ignore = "in the guest"]
fn a_check_tells_what_somebody_changed() {
    let master = Master::new();
    let conf = manual("1.0.0", &master.0, 7);
    for (change, text) in [
        ("addr del 10.6.0.9/24 dev net1", "no address 10.6.0.9/24"),
        ("route del 10.9.0.0/16", "no route to 10.9.0.0/16"),
        ("link set net1 address 02:00:00:00:00:99", "has MAC 02:00:00:00:00:99"),
        ("link set net1 down", "is down"),
        ("link del net1", "net1 is not there"),
    ] {
        let sandbox = Sandbox::new();
        let call = call(&conf, &sandbox);
        let result = call.add();
        sandbox.ip(change);
        let said = call.after(&result).fails("CHECK", 100);
        // A link that is down has lost its routes, too.
        assert!(said.contains(text) || change.ends_with("down"), "{change}: {said}");
        call.done("DEL");
    }
}

#[test]
#[ignore = "in the guest"]
fn a_master_in_the_pod() {
    let sandbox = Sandbox::new();
    sandbox.ip("link add inner type dummy");
    sandbox.ip("link set inner up");
    let mut conf = manual("1.0.0", "inner", 9);
    conf["linkInContainer"] = true.into();
    let call = call(&conf, &sandbox);
    let result = call.add();
    assert_eq!(sandbox.link("net1")["mtu"], 1500);
    assert_eq!(sandbox.link("net1")["link"], "inner");
    assert_eq!(call.add(), result);
    call.done("DEL");
    assert_eq!(sandbox.links(), ["inner"]);
}

/// As `dhcp` does, and whoever asks the network for conflicts.
#[test]
#[ignore = "in the guest"]
fn an_ipam_plugin_finds_the_link_at_an_add_and_at_a_del() {
    let script = "#!/bin/sh\ncat >/dev/null\n\
        nsenter --net=$CNI_NETNS ip link show $CNI_IFNAME >/dev/null 2>&1 || { echo '{\"code\": 99, \"msg\": \"no link\"}'; exit 1; }\n\
        [ $CNI_COMMAND != ADD ] || echo '{\"cniVersion\": \"1.0.0\", \"ips\": [{\"address\": \"10.6.0.9/24\"}]}'\n";
    std::fs::create_dir_all(OWN).expect("made");
    let path = format!("{OWN}/looks");
    std::fs::write(&path, script).expect("written");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    let (master, sandbox) = (Master::new(), Sandbox::new());
    let mut conf = manual("1.0.0", &master.0, 7);
    conf["ipam"] = json!({"type": "looks"});
    for program in [THEIRS.to_owned(), ours()] {
        let call = call(&conf, &sandbox).by(&program);
        assert_eq!(call.add()["ips"][0]["address"], "10.6.0.9/24");
        call.done("DEL");
        assert!(sandbox.links().is_empty());
    }
}

#[test]
#[ignore = "in the guest"]
fn what_would_run_itself_or_nobody_is_refused_and_a_del_of_it_is_done() {
    let (master, sandbox) = (Master::new(), Sandbox::new());
    for ipam in [json!({"type": "vlan"}), json!({"type": "../sh"}), json!({})] {
        let mut conf = manual("1.0.0", &master.0, 7);
        conf["ipam"] = ipam;
        call(&conf, &sandbox).fails("ADD", 7);
        call(&conf, &sandbox).done("DEL");
    }
    let good = manual("1.0.0", &master.0, 7);
    let mut odd = call(&good, &sandbox);
    odd.interface = "net%d".to_owned();
    odd.fails("ADD", 4);
    odd.done("DEL");
    let mut own = call(&good, &sandbox);
    own.netns = "/proc/self/ns/net".to_owned();
    own.fails("ADD", 8);
    own.done("DEL");
    assert!(sandbox.links().is_empty());
}
