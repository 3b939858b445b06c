#include "daemon/attribution/kube_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "daemon/attribution/label_text.h"

namespace profd {
namespace {

bool IsTrusted(uid_t uid, uid_t own_uid) { return uid == 0 || uid == own_uid; }

Status NotTrusted(const std::string& path, const char* what, uid_t uid) {
  return PermissionDenied(
      fmt::format("{}: {} uid {}, which is neither root nor profd's user", path, what, uid));
}

}  // namespace

Result<UniqueFd> ConnectTrusted(const std::string& path, uid_t own_uid) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return InvalidArgument("a socket's path has 1 to 107 characters");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return Status::FromErrno(errno, path);
  if (!S_ISSOCK(info.st_mode)) return InvalidArgument(path + " is not a socket");
  if (!IsTrusted(info.st_uid, own_uid)) return NotTrusted(path, "belongs to", info.st_uid);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Status::FromErrno(errno, "socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == EAGAIN) return Unavailable(path + ": the connection queue is full");
    if (errno == ECONNREFUSED) return Unavailable(path + ": nothing listens");
    return Status::FromErrno(errno, path);
  }
  // The file may have been another's when it was looked at.
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Status::FromErrno(errno, path);
  }
  if (!IsTrusted(peer.uid, own_uid)) return NotTrusted(path, "is served by", peer.uid);
  return fd;
}

std::shared_ptr<grpc::Channel> ChannelOver(UniqueFd connection) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxKubeAnswer);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  return grpc::CreateCustomInsecureChannelFromFd("localhost", connection.Release(), arguments);
}

Status CallOver(const std::string& socket, const std::function<grpc::Status(grpc::ClientContext*)>& call) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
  const grpc::Status status = call(&context);
  return status.ok() ? Status() : Unavailable(fmt::format("{}: {}", socket, LabelText(status.error_message())));
}

}  // namespace profd
