# shellcheck shell=bash disable=SC2154,SC2016
# Sourced by selftest: guests of a cluster.

begin "up with guests"
run "$cluster" up --name "$a" --nodes 1 --vlan 2
run "${inside[@]}" kubectl wait --for=condition=Ready node/vlan1 node/vlan2 --timeout=1s
run "$cluster" list
grep -q "node1 vlan1 vlan2" "$output" || fail "list does not name them"
[[ $(our_processes) == *linux.uml* ]] || fail "the search for processes misses them"
ok

guest=("$cluster" node-exec --name "$a")

begin "node-exec in a guest passes folder, input, outputs and exit code"
exits 7 "${guest[@]}" vlan1 -- sh -c 'exit 7'
exits 127 "${guest[@]}" vlan1 -- no-such-program
exits 143 "${guest[@]}" vlan1 -- sh -c 'kill -TERM $$'
exits 124 "${guest[@]}" --timeout 1 vlan1 -- sleep 100
[[ $(cd "$here" && echo text | "${guest[@]}" vlan1 -- sh -c 'cat; pwd; hostname; echo error >&2' 2>"$output") == "text"$'\n'"$here"$'\n'vlan1 ]] || fail
[[ $(<"$output") == error ]] || fail "standard error is not apart"
[[ $(head -c 3000000 "$(command -v kubectl)" | "${guest[@]}" vlan1 -- cat | sha256sum) == $(head -c 3000000 "$(command -v kubectl)" | sha256sum) ]] \
  || fail "bytes were lost"
setsid "${guest[@]}" vlan1 -- sleep 4321 >/dev/null 2>&1 &
caller=$!
eventually 20 "${guest[@]}" vlan1 -- pgrep -f '^sleep 4321'
kill -KILL -- "-$caller"
wait "$caller" 2>/dev/null || true
gone() { ! "${guest[@]}" vlan1 -- pgrep -f '^sleep 4321'; }
eventually 20 gone
ok

begin "a guest has its NICs and cannot write to the host"
run "${guest[@]}" vlan1 -- test -e /sys/class/net/eth0 -a -e /sys/class/net/eth1
exits 2 "$cluster" add-nic --name "$a" vlan1 eth2
exits 2 "$cluster" del-nic --name "$a" vlan1 eth1
exits 1 "${guest[@]}" vlan1 -- touch /usr/written "$here/written"
ok

begin "VLANs on the fabric: the same one is reached, another is not"
plug() { # guest namespace vlan address
  run "${guest[@]}" --timeout 30 "$1" -- bash -ec '
    ip netns add "$0"
    CNI_COMMAND=ADD CNI_CONTAINERID=$0 CNI_NETNS=/run/netns/$0 CNI_IFNAME=net1 CNI_PATH=/opt/cni/bin /opt/cni/bin/vlan <<<"$1"
  ' "$2" '{"cniVersion": "1.0.0", "name": "x", "type": "vlan", "master": "eth1", "vlanId": '"$3"',
    "ipam": {"type": "static", "addresses": [{"address": "'"$4"'/24"}]}}'
}
plug vlan1 one 100 192.168.7.1
plug vlan2 same 100 192.168.7.2
plug vlan2 other 200 192.168.7.3
run "${guest[@]}" vlan1 -- ip netns exec one busybox ping -c 2 -W 5 192.168.7.2
exits 1 "${guest[@]}" vlan1 -- ip netns exec one busybox ping -c 2 -W 1 192.168.7.3
ok

begin "pods in a guest, and after a power cut"
run "$cluster" load-image --name "$a" "$images/busybox.tar"
"${inside[@]}" kubectl apply -f - >"$output" 2>&1 <<'POD' || fail "apply"
apiVersion: v1
kind: Pod
metadata: {name: in-guest}
spec:
  nodeName: vlan1
  terminationGracePeriodSeconds: 0
  containers:
  - name: sleep
    image: localhost/spiderpool/busybox:1
    imagePullPolicy: Never
    command: [sh, -c, 'nc -w 5 10.96.0.1 443 </dev/null && exec sleep 100000']
POD
run "${inside[@]}" kubectl wait --for=condition=Ready pod/in-guest --timeout=120s
eventually 60 "${inside[@]}" kubectl exec in-guest -- true
run "${guest[@]}" vlan1 -- sh -c 'echo kept >/var/lib/cni/kept'
run "$cluster" node-kill --name "$a" vlan1
exits 1 "${guest[@]}" vlan1 -- true
grep -q "no power" "$output" || fail "does not say why"
run "$cluster" status --name "$a"
grep -q "without power: vlan1$" "$output" || fail "status does not say so"
run "$cluster" node-start --name "$a" vlan1
run "${guest[@]}" vlan1 -- grep kept /var/lib/cni/kept
ran_again() { [[ $("${inside[@]}" kubectl get pod in-guest -o 'jsonpath={.status.containerStatuses[0].restartCount}') -ge 1 ]]; }
eventually 120 ran_again
eventually 60 "${inside[@]}" kubectl exec in-guest -- true
ok

begin "restart-kubelet of a guest"
run "$cluster" restart-kubelet --name "$a" --kill vlan2
[[ $(<"$output") =~ pid\ ([0-9]+)\ ended,\ pid\ ([0-9]+)\ runs ]] || fail "no new process"
eventually 120 "${inside[@]}" kubectl get --raw=/api/v1/nodes/vlan2/proxy/healthz
ok
