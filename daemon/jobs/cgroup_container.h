// Which container a cgroup belongs to, from its path alone: the spellings of containerd, CRI-O,
// Docker, iSulad, Podman, nerdctl and LXC, under systemd's cgroup driver and cgroupfs, version 1 and 2.
// Pure; paths are untrusted.
#pragma once

#include <string>
#include <string_view>

namespace profd {

struct CgroupContainer {
  std::string id;       // hexadecimal digits, or LXC's name; empty = none
  std::string runtime;  // "containerd", "cri-o", "docker", "isulad", "podman", "lxc"; may be empty
};

// Of one path ("/kubepods/burstable/pod<uid>/<id>"). In a pod the pod's own container counts, elsewhere
// the innermost one.
CgroupContainer ContainerOfPath(std::string_view path_untrusted);

// Whether pods may follow the component of a path.
bool IsAbovePods(std::string_view component);

// "pod<uid>" of cgroupfs, "kubepods-burstable-pod<uid with underscores>.slice" of systemd, also before
// ":cri-containerd:<id>": the uid with dashes; empty if it is none of them.
std::string PodUidOf(std::string_view component);

}  // namespace profd
