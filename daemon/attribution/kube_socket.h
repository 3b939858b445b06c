// The edge to Kubernetes's sockets on the node: who may be at the other end, and a gRPC channel over
// it. gRPC's headers stay in kube_*.cc.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace profd {

// Answers longer than this are refused.
inline constexpr int kMaxKubeAnswer = 8 << 20;

// Connects without waiting. kNotFound: there is no such socket. Both the socket's file and the process that
// listens on it must be root's or `own_uid`'s.
Result<UniqueFd> ConnectTrusted(const std::string& path, uid_t own_uid);

std::shared_ptr<grpc::Channel> ChannelOver(UniqueFd connection);

// One call over `socket`, within 2 s.
Status CallOver(const std::string& socket, const std::function<grpc::Status(grpc::ClientContext*)>& call);

}  // namespace profd
