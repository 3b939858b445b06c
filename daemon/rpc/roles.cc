#include "daemon/rpc/roles.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include "proto/enum_word/enum_word.h"

namespace profd::rpc {

MethodRoles::MethodRoles(const google::protobuf::ServiceDescriptor& service) {
  for (int i = 0; i < service.method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *service.method(i);
    if (method.options().GetExtension(v1::for_archive)) for_archive_.insert(method.name());
    const Role least = method.options().GetExtension(v1::least_role);
    if (least != v1::ROLE_UNSPECIFIED) roles_[method.name()] = least;
  }
}

std::optional<Role> MethodRoles::LeastRole(std::string_view method) const {
  const auto found = roles_.find(method);
  return found == roles_.end() ? std::nullopt : std::optional(found->second);
}

Role RoleOf(const Peer& peer) {
  if (peer.viewer) return v1::ROLE_VIEWER;
  return peer.admin ? v1::ROLE_ADMIN : v1::ROLE_USER;
}

Status MethodRoles::MayCall(const Peer& peer, std::string_view method) const {
  std::optional<Role> least = LeastRole(method);
  if (!least) return PermissionDenied(fmt::format("{} has no role in profd.proto", method));
  if (peer.archiver) {
    if (for_archive_.contains(method)) return Status::Ok();
    return PermissionDenied(fmt::format("uid {} is archive.user, which only archives: it may not call {}", peer.uid, method));
  }
  if (RoleOf(peer) >= *least) return Status::Ok();
  if (!peer.remote) return PermissionDenied(fmt::format("{} is for administrators (daemon.admin_group)", method));
  return PermissionDenied(fmt::format(
      "the certificate {} has the role profd-{}, which may {}not call {}: that takes one "
      "with OU=profd-{}{}",
      peer.certificate, EnumWord(RoleOf(peer)), peer.viewer ? "look but " : "", method, EnumWord(*least),
      *least == v1::ROLE_USER ? " or OU=profd-admin" : ""));
}

}  // namespace profd::rpc
