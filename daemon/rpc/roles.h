// Who may call a method of the service: the least role stands at the method in profd.proto. A method without one
// cannot be called.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/status.h"
#include "daemon/session/peer.h"
#include "profd/v1/profd.pb.h"

namespace google::protobuf {
class ServiceDescriptor;
}  // namespace google::protobuf

namespace profd::rpc {

// Each may do what those before it may.
using v1::Role;

Role RoleOf(const Peer& peer);

// Of the methods of one service.
class MethodRoles {
 public:
  explicit MethodRoles(const google::protobuf::ServiceDescriptor& service);

  // Nothing where the method has none, or there is no such method.
  std::optional<Role> LeastRole(std::string_view method) const;
  // PermissionDenied that names the role the method takes, if the peer's is less. Of the user that archives only the
  // methods that are marked for it.
  Status MayCall(const Peer& peer, std::string_view method) const;

 private:
  std::map<std::string_view, Role> roles_;
  std::set<std::string_view> for_archive_;
};

}  // namespace profd::rpc
