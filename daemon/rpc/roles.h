// What each method of the service takes at least. The one place where this is decided; a method
// that is not in the table can be called on the unix socket only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/status.h"
#include "daemon/session/peer.h"

namespace profd::rpc {

enum class Role : uint8_t {
  kViewer = 0,  // looks
  kUser = 1,    // orders for itself
  kAdmin = 2,   // may act for all users
};

struct MethodRole {
  std::string_view method;  // as in profd.proto
  Role least;
};

std::span<const MethodRole> MethodRoles();
std::optional<Role> LeastRole(std::string_view method);

Role RoleOf(const Peer& peer);
// "viewer"
std::string_view RoleName(Role role);

// PermissionDenied that names the role it takes, if the peer's is less.
Status MayCall(const Peer& peer, std::string_view method);

}  // namespace profd::rpc
