#include "daemon/jobs/cgroup_container.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace profd {
namespace {

constexpr size_t kMaxName = 64;  // of an LXC container
constexpr size_t kMinHex = 12;   // Docker's short form
constexpr size_t kMaxHex = 64;

struct Spelling {
  std::string_view prefix;
  std::string_view runtime;
};
// Before the id, in names of scopes and of folders. conmon's scopes ("crio-conmon-<id>") hold the
// runtime's watcher, not the container: what follows the prefix is then no hexadecimal number.
constexpr std::array kPrefixes = {
    Spelling{"cri-containerd-", "containerd"}, Spelling{"containerd-", "containerd"},
    Spelling{"nerdctl-", "containerd"},        Spelling{"crio-", "cri-o"},
    Spelling{"docker-", "docker"},             Spelling{"isulad-", "isulad"},
    Spelling{"libpod-", "podman"}};
// Folders whose children are named by the bare id.
constexpr std::array kParents = {Spelling{"docker", "docker"},
                                 Spelling{"isulad", "isulad"},
                                 Spelling{"libpod_parent", "podman"},
                                 Spelling{"nerdctl", "containerd"}};

bool IsHex(std::string_view text, size_t least) {
  return text.size() >= least && text.size() <= kMaxHex &&
         std::ranges::all_of(text, [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); });
}

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && text.front() != '.' &&
         std::ranges::all_of(text, [](char c) {
           return IsLetterOrDigit(c) ||
                  c == '.' || c == '_' || c == '-';
         });
}

CgroupContainer Lxc(std::string_view parent, std::string_view component) {
  constexpr std::string_view kPayload = "lxc.payload.";
  std::string_view name;
  if (component.starts_with(kPayload)) {
    name = component.substr(kPayload.size());
  } else if (parent == "lxc" || parent == "lxc.payload") {
    name = component;
  }
  return IsName(name) ? CgroupContainer{std::string(name), "lxc"} : CgroupContainer{};
}

CgroupContainer OfComponent(std::string_view parent, std::string_view component) {
  if (component.ends_with(".scope")) component.remove_suffix(6);
  // runc under systemd where the runtime speaks cgroupfs: "<slice>:cri-containerd:<id>".
  if (size_t colon = component.rfind(':'); colon != std::string_view::npos) {
    std::string_view id = component.substr(colon + 1);
    std::string_view before = component.substr(0, colon);
    if (!IsHex(id, kMinHex)) return {};
    return {std::string(id), before.ends_with("cri-containerd") ? "containerd"
                             : before.ends_with("crio")         ? "cri-o"
                                                                : ""};
  }
  for (const Spelling& spelling : kPrefixes) {
    if (!component.starts_with(spelling.prefix)) continue;
    std::string_view id = component.substr(spelling.prefix.size());
    if (IsHex(id, kMinHex)) return {std::string(id), std::string(spelling.runtime)};
  }
  if (IsHex(component, kMaxHex)) {
    for (const Spelling& spelling : kParents) {
      if (parent == spelling.prefix) return {std::string(component), std::string(spelling.runtime)};
    }
    return {std::string(component), ""};
  }
  return Lxc(parent, component);
}

bool IsPodUid(std::string_view text) {
  if (text.size() < 32 || text.size() > 36) return false;
  return std::ranges::all_of(text, [](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'f') || c == '-';
  });
}

}  // namespace

bool IsAbovePods(std::string_view component) {
  // A pod's own component may be the one named kubepods. ".." leaves the cgroup namespace of profd's
  // own container: folders above that one have no name.
  return component == ".." || component.find("kubepods") != std::string_view::npos;
}

std::string PodUidOf(std::string_view component) {
  component = component.substr(0, component.find(':'));
  if (component.ends_with(".slice")) component.remove_suffix(6);
  size_t at = component.rfind("pod");
  if (at == std::string_view::npos || (at > 0 && component[at - 1] != '-')) return {};
  std::string uid(component.substr(at + 3));
  std::ranges::replace(uid, '_', '-');
  return IsPodUid(uid) ? uid : std::string();
}

CgroupContainer ContainerOfPath(std::string_view path_untrusted) {
  std::string_view path = path_untrusted;
  CgroupContainer found;
  bool kubernetes = false;
  bool in_pod = false;
  std::string_view parent;
  for (std::string_view component; NextPart(&path, '/', &component);) {
    if (component.empty()) continue;
    kubernetes = kubernetes || IsAbovePods(component);
    // A pod inside a container of something else: its own container is still to come.
    bool pod = kubernetes && !PodUidOf(component).empty();
    if (pod) found = {};
    // Within a pod the first container is the one Kubernetes knows.
    if (CgroupContainer here = OfComponent(parent, component);
        !here.id.empty() && (!in_pod || pod || found.id.empty())) {
      found = std::move(here);
    }
    in_pod = in_pod || pod;
    parent = component;
  }
  return found;
}

}  // namespace profd
