# shellcheck shell=bash disable=SC2154
# What ordinary nodes and guests have in common. Sourced behind lib.sh; these have to be set:
# $node its name, $own its state folder, $address on the LAN, $pods its network of pods, $scratch for upper layers of its
# folders, $kept for what containerd and kubelet keep.

log=$own/log

overlay() { # lower target
  local layer=$scratch/${1//\//-}
  mkdir -p "$layer/upper" "$layer/work"
  mount -t overlay -o "lowerdir=$1,upperdir=$layer/upper,workdir=$layer/work" overlay "$2"
}

private_copy() { # folder
  local merged=/run/merged
  mkdir -p "$merged"
  overlay "$1" "$merged"
  # The state folder must stay the real one.
  if [[ $dir/ == "$1"/* ]]; then
    mkdir -p "$merged${dir#"$1"}"
    mount --bind "$dir" "$merged${dir#"$1"}"
  fi
  mount --move "$merged" "$1"
}

# What a node writes outside of its own folders must not reach the host.
private_folders() {
  local folder
  for folder in /etc /opt /var/lib; do
    private_copy "$folder"
  done
  mkdir -p "$kept/var-log/pods" "$kept/kubelet" "$kept/containerd"
  mount --bind "$kept/var-log" /var/log
  mkdir -p /var/lib/{kubelet,containerd} /run/{lock,netns,spidernet} /var/log/spidernet /etc/cni/net.d /etc/kubernetes/manifests /opt/cni/bin
  mount --bind "$kept/kubelet" /var/lib/kubelet
  mount --bind "$kept/containerd" /var/lib/containerd
  overlay /usr/lib/cni /opt/cni/bin
}

# There is no kube-proxy. In-cluster configuration needs this service from the beginning; `services` fills the chains.
service_rules() {
  local chain table
  for chain in OUTPUT PREROUTING; do
    iptables -w 10 -t nat -A "$chain" -d "$service_ip" -p tcp --dport 443 -j DNAT --to-destination "$lan_prefix.1:6443"
  done
  for table in nat:PREROUTING nat:OUTPUT filter:FORWARD filter:OUTPUT; do
    iptables -w 10 -t "${table%:*}" -N "$services_chain" 2>/dev/null || true
    iptables -w 10 -t "${table%:*}" -A "${table#*:}" -d "$service_net" -j "$services_chain"
  done
  # Only what a service led back to this node's pods is routed between them: the answer has to come this way, too.
  iptables -w 10 -t nat -A POSTROUTING -s "$pods" -d "$pods" -j MASQUERADE
}

# restrict_oom_score_adj: without CAP_SYS_RESOURCE runc fails otherwise.
configure() { # cgroup memory status_period runtime
  cat >"$own/containerd.toml" <<CONFIG
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/spiderpool/pause:1"
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    BinaryName = "$4"
CONFIG
  cat >/etc/cni/net.d/10-bridge.conflist <<CONFIG
{"cniVersion": "1.0.0", "name": "default", "plugins": [{
  "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "$pods"}]], "routes": [{"dst": "0.0.0.0/0"}]}
}]}
CONFIG
  cat >"$own/kubelet.yaml" <<CONFIG
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: $1
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
enforceNodeAllocatable: []
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: $2}
maxPods: 250
staticPodPath: /etc/kubernetes/manifests
nodeStatusUpdateFrequency: $3
resolvConf: ""
clusterDNS: [10.96.0.10]
volumePluginDir: /var/lib/kubelet/volume-plugins
CONFIG
}

run_containerd() {
  local image
  supervise "$own" containerd containerd -c "$own/containerd.toml" &
  wait_until 60 "containerd of $node" "$log/containerd.log" ctr version
  # A guest has them still after a power cut, once they are on its disk.
  if [[ ! -e $kept/images || $(<"$kept/images") != "$SPIDERPOOL_DEV_IMAGES" ]]; then
    for image in "$SPIDERPOOL_DEV_IMAGES"/*.tar; do
      ctr -n k8s.io image import "$image"
    done
    echo "$SPIDERPOOL_DEV_IMAGES" >"$kept/images"
  fi
  touch "$own/containerd-ready"
}

run_kubelet() {
  wait_until 60 "API server" "$dir/log/apiserver.log" test -e "$dir/api-ready"
  supervise "$own" kubelet kubelet --config="$own/kubelet.yaml" --kubeconfig="$dir/pki/$node.kubeconfig" \
    --hostname-override="$node" --node-ip="$address" --v=2 &
}
