#include "daemon/rpc/roles.h"

#include <fmt/format.h>

#include <google/protobuf/descriptor.h>

#include <array>
#include <map>

#include "profd/v1/profd.pb.h"

namespace profd::rpc {
namespace {

std::map<std::string_view, Role> ReadRoles() {
  std::map<std::string_view, Role> roles;
  const google::protobuf::ServiceDescriptor& service = *v1::Node::descriptor()->file()->FindServiceByName("Profd");
  for (int i = 0; i < service.method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *service.method(i);
    switch (method.options().GetExtension(v1::least_role)) {
      case v1::ROLE_VIEWER:
        roles[method.name()] = Role::kViewer;
        break;
      case v1::ROLE_USER:
        roles[method.name()] = Role::kUser;
        break;
      case v1::ROLE_ADMIN:
        roles[method.name()] = Role::kAdmin;
        break;
      default:
        break;
    }
  }
  return roles;
}

}  // namespace

std::optional<Role> LeastRole(std::string_view method) {
  static const std::map<std::string_view, Role> roles = ReadRoles();
  const auto found = roles.find(method);
  return found == roles.end() ? std::nullopt : std::optional(found->second);
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
  if (!least) return PermissionDenied(fmt::format("{} has no role in profd.proto", method));
  if (RoleOf(peer) >= *least) return Status::Ok();
  return PermissionDenied(fmt::format(
      "the certificate {} has the role profd-{}, which may look but not call {}: that takes one "
      "with OU=profd-{}{}",
      peer.certificate, RoleName(RoleOf(peer)), method, RoleName(*least),
      *least == Role::kUser ? " or OU=profd-admin" : ""));
}

}  // namespace profd::rpc
