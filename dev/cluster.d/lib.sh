# shellcheck shell=bash disable=SC2034
# Shared by dev/cluster and the scripts of this folder. Everything about one
# cluster lies in $dir (set by use_cluster); its lock files lie beside, because
# they must outlive that folder.

state=$(realpath -m -- "${SPIDERPOOL_DEV_STATE:-/var/lib/spiderpool-dev}")
lan_prefix=172.30.0
service_net=10.96.0.0/16
service_ip=10.96.0.1
services_chain=SPIDERPOOL-DEV-SERVICES

die() {
  printf 'cluster: %s\n' "$1" >&2
  exit "${2:-1}"
}

usage_error() { die "$1" 2; }

use_cluster() { # name
  name=$1
  dir=$state/clusters/$name
  locks=$state/locks
  cgroup=spiderpool-dev-$name
}

# Guests are machines of their own with a kernel of their own, see `machine`; the kernel of ordinary nodes is the host's.
is_guest() { [[ $1 == vlan* ]]; }
guest_address() { echo "$lan_prefix.$((100 + ${1#vlan}))"; } # node

# Handed down by `up`, so that all count from its beginning.
started=${SPIDERPOOL_DEV_STARTED:-$EPOCHSECONDS}
progress() { printf '[%2d s] %s\n' $((EPOCHSECONDS - started)) "$*"; }

# A failed wait must name what was waited for and show why it may not have come.
# With $watched, the pid of what should bring it about, it fails with that.
wait_until() { # seconds what log command…
  local deadline=$((EPOCHSECONDS + $1)) limit=$1 what=$2 log=$3
  shift 3
  until "$@" >/dev/null 2>&1; do
    if ((EPOCHSECONDS >= deadline)) || { [[ -n ${watched-} ]] && ! kill -0 "$watched" 2>/dev/null; }; then
      if ((EPOCHSECONDS >= deadline)); then
        printf 'waited %d s in vain for: %s\n' "$limit" "$what"
      else
        printf 'ended by itself: %s\n' "$what"
      fi
      if [[ -f $log ]]; then
        printf 'the end of %s:\n' "$log"
        tail -n 15 "$log" | cut -c1-400 | sed 's/^/  /'
      fi
      return 1
    fi
    sleep 0.1
  done
}

# Runs a command again and again; its pid is in the folder, its output in the folder "log" there.
supervise() { # folder name command…
  local folder=$1 what=$2
  shift 2
  while :; do
    "$@" >>"$folder/log/$what.log" 2>&1 </dev/null &
    echo $! >"$folder/$what.pid.new"
    mv "$folder/$what.pid.new" "$folder/$what.pid"
    wait $! || true
    sleep 0.3
  done
}

# A pid alone may meanwhile belong to another process; pid and start time do not.
process_stamp() { # pid
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  # The second field may contain blanks.
  stat=${stat##*) }
  # shellcheck disable=SC2086
  set -- $stat
  echo "${20}"
}

is_process() { # pid stamp
  [[ -n ${1-} && -n ${2-} && $(process_stamp "$1") == "$2" ]]
}

cgroup_mounts() {
  local mount seen=' ' real
  if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
    echo /sys/fs/cgroup
    return
  fi
  for mount in /sys/fs/cgroup/*/; do
    real=$(realpath "$mount")
    [[ -e $real/cgroup.procs && $seen != *" $real "* ]] || continue
    seen+="$real "
    echo "$real"
  done
}

# In cgroup v1 a new cpuset has no CPUs, and nothing can join it until it has;
# in v2 the controllers have to be handed down.
cgroup_make() { # path
  local mount level part
  while read -r mount; do
    level=$mount
    for part in ${1//\// }; do
      if [[ -e $level/cgroup.controllers && -n $(<"$level/cgroup.controllers") ]]; then
        sed 's/\(^\| \)/ +/g' "$level/cgroup.controllers" >"$level/cgroup.subtree_control"
      fi
      mkdir -p "$level/$part"
      if [[ -e $level/cpuset.cpus && ! -e $level/cgroup.controllers ]]; then
        cat "$level/cpuset.cpus" >"$level/$part/cpuset.cpus"
        cat "$level/cpuset.mems" >"$level/$part/cpuset.mems"
      fi
      level=$level/$part
    done
  done < <(cgroup_mounts)
}

cgroup_join() { # path
  local mount
  while read -r mount; do
    # 0 stands for the writer, whatever pid namespace it is in.
    echo 0 >"$mount/$1/cgroup.procs"
  done < <(cgroup_mounts)
}

cgroup_folders() {
  local mount
  while read -r mount; do
    [[ ! -d $mount/$cgroup ]] || find "$mount/$cgroup" -depth -type d 2>/dev/null || true
  done < <(cgroup_mounts)
}

cgroup_processes() {
  local folder
  cgroup_folders | while read -r folder; do cat "$folder/cgroup.procs" 2>/dev/null || true; done | sort -un
}

# Removes the cgroups and the state folder. The processes must be gone or dying:
# the kernel ends them with PID 1 of the cluster. As long as there are any nothing
# is touched, they may be those of another state folder's cluster.
remove_leftovers() {
  local deadline=$((EPOCHSECONDS + 10)) folders folder
  while folders=$(cgroup_folders) && [[ -n $folders ]]; do
    if [[ -z $(cgroup_processes) ]]; then
      while read -r folder; do rmdir "$folder" 2>/dev/null || true; done <<<"$folders"
      [[ -n $(cgroup_folders) ]] || break
    fi
    if ((EPOCHSECONDS >= deadline)); then
      printf 'cgroup %s is still in use, by the processes: %s\n' "$cgroup" "$(cgroup_processes | tr '\n' ' ')"
      return 1
    fi
    sleep 0.2
  done
  # Nothing of ours is mounted on the host; this makes sure that nothing that a
  # user mounted there gets emptied.
  rm -rf --one-file-system "$dir"
}

# sysfs shows the network namespace of the process that mounts it; a fresh one
# hides the cgroup trees, which have to be brought along.
fresh_sys() { # folder to keep the cgroup trees in for a moment
  mkdir -p "$1"
  mount --rbind /sys/fs/cgroup "$1"
  mount -t sysfs sysfs /sys
  mount --rbind "$1" /sys/fs/cgroup
  umount -R -l "$1"
  rmdir "$1"
}
