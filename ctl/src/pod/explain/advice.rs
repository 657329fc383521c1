//! What to do about the texts that the agent and the plugin give.

const UNSERVED: &str = "name the provider in iaasNetworkProvider.formerServers; or, if nothing is bound there: spiderpoolctl release --abandon";

/// By a part of the text; the first that is there counts. As docs/addresses.md has them.
const KNOWN: [(&str, &str); 24] = [
    ("are used out in", "give the pool more addresses, or see who has them: spiderpoolctl pools NAME"),
    (
        "no pool selection rules of any type",
        "name a pool: in the pod, the namespace, the network, or set spec.default of one",
    ),
    ("failed to get original IPPool", "correct the name where the text says, or create the pool"),
    (
        "records of an earlier system",
        "nothing while the controller works; the pool's condition Adopted says what it waits for: kubectl describe spiderippool",
    ),
    (
        "IP conflict:",
        "take the address from the device with that MAC; or reserve it (SpiderReservedIP) and delete the pod",
    ),
    (
        "is not reachable through",
        "correct spec.gateway of the pool, or master and VLAN of the network; see whether the gateway answers",
    ),
    ("of agentTimeout are left", "nothing: the runtime tries again; if it stays, raise agentTimeout"),
    ("filtered out:", "the pool is not for this pod, is off or being deleted: the text says which"),
    ("wrong input,", "an annotation or a list is wrong: the text says where"),
    ("is gone: put it back", "create the pool again: somebody deleted it while pods have addresses of it"),
    (
        "too many requests wait for pool",
        "nothing: the runtime tries again; if it stays, the pool is used out or the API server slow",
    ),
    ("is neither iaasNetworkProvider.serverUrl nor one of its formerServers", UNSERVED),
    ("which is not configured any more", UNSERVED),
    (
        "the provider cannot be asked for",
        "the text says what is in the way of a call: DNS, a NetworkPolicy, certificates, files of credentials",
    ),
    (
        "provider-interaction timeout:",
        "nothing: the runtime tries again; if it stays, see how the provider is, or raise iaasNetworkProvider.httpRequestTimeout",
    ),
    (
        "the provider refuses to bind",
        "the text has the provider's words; docs/provider-operations.md says what each kind means",
    ),
    (
        "the provider gave no answer for",
        "nothing: the runtime tries again once it is known what became of it; if it stays, see how the provider is",
    ),
    (
        "failed to get parent NIC MAC",
        "correct the network's master, or give the node that NIC, with a MAC of its own: the text says which",
    ),
    (
        "agentTimeout leaves",
        "raise ipam.agentTimeout of the network's configuration above iaasNetworkProvider.httpRequestTimeout",
    ),
    ("which binds IPv4 alone", "name pools of IPv4 alone on that network, or set ipam.enableIPv6 to false"),
    (
        "is being released",
        "nothing, while the provider answers: it is asked to let go first; spiderpoolctl leaks says who asks and when",
    ),
    ("not yet:", "nothing: the runtime tries again; if it stays, the text names whom it waits for"),
    (
        "the node agent does not answer at",
        "see the agent of the node: kubectl get pods -A -o wide -l app.kubernetes.io/name=spiderpool",
    ),
    ("parent budget", "nothing, if it comes once; else something is slow, and the text says what took the time"),
];

pub(super) fn advice(message: &str) -> &'static str {
    let found = KNOWN.iter().find(|(part, _)| message.contains(part));
    found.map_or("the text says what failed; kubectl logs of the node's agent has more", |(_, advice)| advice)
}
