//! Facts in, findings out.

use super::facts::Facts;
use crate::finding::Finding;
use crate::machines::Machine;
use crate::providers::{self, Providers};
use k8s_api::names::DOMAIN;

/// What is right and wrong with a node, as far as addresses go.
pub(super) fn explain(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![node(facts)];
    if matches!(facts.machine, Ok(Some(_)) | Err(_)) {
        findings.push(agent(facts));
    }
    findings.extend(facts.pods.as_ref().err().map(|why| Finding::not_seen("pods", why)));
    findings.push(allocations(facts));
    findings.extend(bound(facts));
    findings
}

fn node(facts: &Facts) -> Finding {
    const STEP: &str = "node";
    let name = &facts.name;
    let machine = match &facts.machine {
        Err(why) => return Finding::not_seen(STEP, why),
        Ok(None) => {
            let held = facts.allocations.as_ref().map_or(0, Vec::len);
            let todo = if held == 0 {
                "look for its name: kubectl get nodes"
            } else {
                "if the machine is off for good, nothing: the controller frees what it can after ipam.gc.nodeGoneAfter; \
                 spiderpoolctl leaks says what is left"
            };
            return Finding::wrong(STEP, format!("there is no Node {name}"), todo);
        }
        Ok(Some(machine)) => machine,
    };
    if machine.out_of_service {
        let todo = "take the taint off when the machine is back: what its pods had is given to others until then";
        return Finding::wrong(STEP, format!("{name} is tainted out-of-service: somebody says that it is off"), todo);
    }
    if !machine.ready {
        return Finding::wrong(STEP, format!("{name} is not ready"), format!("see why: kubectl describe node {name}"));
    }
    let cordoned = if machine.cordoned { ", cordoned" } else { "" };
    Finding::ok(STEP, format!("{name} is ready{cordoned}; {}", offers(machine)))
}

fn offers(machine: &Machine) -> String {
    let ours: Vec<_> = machine.allocatable.iter().filter(|(name, _)| name.starts_with(DOMAIN)).collect();
    if ours.is_empty() {
        return "it offers no network resources: no rule selects it, or its agent never ran".to_owned();
    }
    let all: Vec<_> = ours.iter().map(|(name, count)| format!("{name}: {count}")).collect();
    format!("it offers {}", all.join(", "))
}

fn agent(facts: &Facts) -> Finding {
    const STEP: &str = "agent";
    match &facts.agent {
        Err(why) => Finding::not_seen(STEP, why),
        Ok(None) => {
            let todo =
                "see whether the DaemonSet of the agent may run there: its nodeSelector, affinity and tolerations";
            Finding::wrong(STEP, "no agent runs here: pods get no address, and nothing is freed", todo)
        }
        Ok(Some(agent)) if agent.ready => Finding::ok(STEP, format!("{} is ready", agent.pod)),
        Ok(Some(agent)) => {
            let todo = format!("see why: kubectl logs -n {}", agent.pod.replacen('/', " ", 1));
            Finding::wrong(STEP, format!("{} is not ready: pods get no address, and nothing is freed", agent.pod), todo)
        }
    }
}

fn allocations(facts: &Facts) -> Finding {
    const STEP: &str = "addresses";
    let all = match &facts.allocations {
        Err(why) => return Finding::not_seen(STEP, why),
        Ok(all) => all,
    };
    if let Some((name, why)) = all.iter().find_map(|held| Some((&held.name, held.what.as_ref().err()?))) {
        let todo = format!("see what is in it: kubectl get sia {name} -o yaml");
        return Finding::wrong(STEP, format!("SpiderIPAllocation {name} cannot be read: {why}"), todo);
    }
    let read = || all.iter().filter_map(|held| held.what.as_ref().ok());
    let (releasing, detached) = (read().filter(|one| !one.held()).count(), read().filter(|one| one.detached).count());
    let bound = match read().filter(|one| one.provider.is_some()).count() {
        0 => String::new(),
        count => format!(", {count} bound by a provider"),
    };
    Finding::ok(
        STEP,
        format!("{} held here, {releasing} of them being released, {detached} without a sandbox{bound}", all.len()),
    )
}

/// Whether whoever bound them can be asked to let go.
fn bound(facts: &Facts) -> Option<Finding> {
    const STEP: &str = "provider";
    let mut bound = facts.allocations.iter().flatten().filter_map(|held| held.what.as_ref().ok());
    bound.clone().find(|one| one.provider.is_some())?;
    let conf = match &facts.conf {
        Err(why) => return Some(Finding::not_seen(STEP, why)),
        Ok(conf) => conf,
    };
    let providers = Providers::of(Some(conf));
    let (first, server) = bound.find_map(|one| Some((one, providers.unserved(one)?)))?;
    let more = bound.filter(|one| providers.unserved(one).is_some()).count();
    let more = if more == 0 { String::new() } else { format!(" (and {more} more of this node)") };
    let text = format!("{}{more} stays when its pod goes: {}", first.address, providers::nobody_asks(server));
    Some(Finding::wrong(STEP, text, providers::remedy(server, first)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::Agent;
    use crate::fault::NotSeen;
    use crate::held::Held;
    use k8s_api::conf::Conf;
    use serde_json::json;

    fn facts() -> Facts {
        let machine = Machine { name: "n".to_owned(), ready: true, ..Machine::default() };
        let agent = Agent { pod: "kube-system/a".to_owned(), ready: true };
        Facts {
            name: "n".to_owned(),
            machine: Ok(Some(machine)),
            pods: Ok(Vec::new()),
            allocations: Ok(Vec::new()),
            agent: Ok(Some(agent)),
            conf: Ok(Conf::default()),
        }
    }

    fn wrong(facts: &Facts) -> Vec<String> {
        explain(facts).into_iter().filter(Finding::is_wrong).map(|finding| finding.text).collect()
    }

    #[test]
    fn each_fault_is_found() {
        let good = facts();
        assert_eq!(wrong(&good), Vec::<String>::new());
        let with = |change: &dyn Fn(&mut Machine)| {
            let mut machine = Machine { name: "n".to_owned(), ready: true, ..Machine::default() };
            change(&mut machine);
            wrong(&Facts { machine: Ok(Some(machine)), ..good.clone() })
        };
        assert_eq!(with(&|machine| machine.ready = false), ["n is not ready"]);
        assert!(with(&|machine| machine.out_of_service = true)[0].contains("out-of-service"));
        assert_eq!(wrong(&Facts { machine: Ok(None), agent: Ok(None), ..good.clone() }), ["there is no Node n"]);
        assert!(wrong(&Facts { agent: Ok(None), ..good.clone() })[0].starts_with("no agent runs here"));
        let agent = Agent { pod: "kube-system/a".to_owned(), ready: false };
        assert!(wrong(&Facts { agent: Ok(Some(agent)), ..good.clone() })[0].starts_with("kube-system/a is not ready"));
        let blind = Facts { machine: Err(NotSeen("no right".to_owned())), ..good };
        assert_eq!(explain(&blind)[0].text, "not looked at: no right");
    }

    #[test]
    fn what_nobody_may_ask_for_is_said() {
        let held = |address: &str| {
            let spec = json!({
                "pool": "a", "address": address, "node": {"name": "n"}, "state": "Held", "interface": "net1",
                "pod": {"namespace": "default", "name": "web-0", "uid": "u"},
                "provider": {"server": "http://old", "subnet": "10.0.0.0/24", "bindId": "b"},
            });
            let metadata = json!({"name": address, "uid": "x", "resourceVersion": "1"});
            Held::read(&serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("an object"))
        };
        let with = |conf: &str| Facts {
            allocations: Ok(vec![held("10.0.0.1"), held("10.0.0.2")]),
            conf: Ok(Conf::parse(conf).expect("legal")),
            ..facts()
        };
        let former = with("iaasNetworkProvider: {serverUrl: 'http://new', formerServers: [{url: 'http://old'}]}");
        assert_eq!(wrong(&former), Vec::<String>::new());
        let said = explain(&former).into_iter().find(|finding| finding.step == "addresses").expect("one").text;
        assert!(said.ends_with("0 without a sandbox, 2 bound by a provider"), "{said}");
        let changed = wrong(&with("iaasNetworkProvider: {serverUrl: 'http://new'}"));
        assert!(changed[0].starts_with("10.0.0.1 (and 1 more of this node) stays when its pod goes"), "{changed:?}");
        assert!(changed[0].contains("provider http://old, which is neither"), "{changed:?}");
        let blind = Facts { conf: Err(NotSeen("no right".to_owned())), ..former };
        assert_eq!(wrong(&blind), Vec::<String>::new());
        assert_eq!(explain(&blind).last().expect("one").text, "not looked at: no right");
    }
}
