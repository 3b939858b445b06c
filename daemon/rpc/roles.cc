#include "daemon/rpc/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace profd::rpc {
namespace {

constexpr auto kMethods = std::to_array<MethodRole>({
    {"GetNode", Role::kViewer},
    {"StartSession", Role::kUser},
    {"StopSession", Role::kUser},
    {"GetSession", Role::kViewer},
    {"ListSessions", Role::kViewer},
    {"WatchSession", Role::kViewer},
    {"StreamSamples", Role::kViewer},
    {"FetchDump", Role::kUser},
    {"DeleteDump", Role::kUser},
    {"ListDumps", Role::kViewer},
    {"PinDump", Role::kUser},
    {"ListOptions", Role::kViewer},
    {"CheckOptions", Role::kViewer},
    {"ListJobs", Role::kViewer},
    {"RenewLease", Role::kUser},
    {"DumpRecorder", Role::kUser},
    {"GetTime", Role::kViewer},
    {"GetTopology", Role::kViewer},
});

}  // namespace

std::span<const MethodRole> MethodRoles() { return kMethods; }

std::optional<Role> LeastRole(std::string_view method) {
  auto found = std::find_if(kMethods.begin(), kMethods.end(),
                            [method](const MethodRole& m) { return m.method == method; });
  if (found == kMethods.end()) return std::nullopt;
  return found->least;
}

Role RoleOf(const Peer& peer) {
  if (peer.viewer) return Role::kViewer;
  return peer.admin ? Role::kAdmin : Role::kUser;
}

std::string_view RoleName(Role role) {
  constexpr std::array<std::string_view, 3> kNames = {"viewer", "user", "admin"};
  return kNames[static_cast<size_t>(role)];
}

Status MayCall(const Peer& peer, std::string_view method) {
  std::optional<Role> least = LeastRole(method);
  if (!least) {
    if (!peer.remote) return Status::Ok();
    return PermissionDenied(fmt::format("{} cannot be called from another machine", method));
  }
  if (RoleOf(peer) >= *least) return Status::Ok();
  return PermissionDenied(fmt::format(
      "the certificate {} has the role profd-{}, which may look but not call {}: that takes one "
      "with OU=profd-{}{}",
      peer.certificate, RoleName(RoleOf(peer)), method, RoleName(*least),
      *least == Role::kUser ? " or OU=profd-admin" : ""));
}

}  // namespace profd::rpc
