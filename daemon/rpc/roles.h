// Who may call a method of the service: the least role stands at the method in profd.proto. A method without one
// cannot be called.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "daemon/session/peer.h"

namespace profd::rpc {

enum class Role : uint8_t {
  kViewer = 0,  // looks
  kUser = 1,    // orders for itself
  kAdmin = 2,   // may act for all users
};

// Of the method of this name; nothing where profd.proto has none.
std::optional<Role> LeastRole(std::string_view method);

Role RoleOf(const Peer& peer);
// "viewer"
std::string_view RoleName(Role role);

// PermissionDenied that names the role the method takes, if the peer's is less.
Status MayCall(const Peer& peer, std::string_view method);

}  // namespace profd::rpc
