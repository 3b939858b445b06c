#include "client/connection.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/fd.h"
#include "client/tls_diagnosis.h"
#include "client/user_names.h"

namespace profd::client {
namespace {

constexpr std::string_view kIsItRunning =
    "Is it running?  systemctl status profd\n"
    "A socket elsewhere is named with --socket PATH or PROFD_SOCKET.";

std::string ParentOf(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string GroupName(gid_t gid) {
  struct group entry = {};
  struct group* found = nullptr;
  std::array<char, 4096> buffer = {};
  getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr ? found->gr_name : std::to_string(gid);
}

std::string NoSocket(const std::string& path) {
  std::string parent = ParentOf(path);
  struct stat info = {};
  bool has_parent = stat(parent.c_str(), &info) == 0;
  return fmt::format("There is no socket {}{}: profd is not running, or uses another socket.\n{}",
                     path, has_parent ? "" : fmt::format(" (nor a directory {})", parent),
                     kIsItRunning);
}

// Joining group 0 is never advised.
std::string JoinHint(gid_t gid, bool group_suffices) {
  if (gid == 0 || !group_suffices) {
    return "The group that may use it is set in profd's configuration (HwHiAiUser by default).";
  }
  return fmt::format("Members of the group {} may:  usermod -aG {} {}, then log in again.",
                     GroupName(gid), GroupName(gid), UserText(geteuid()));
}

std::string NotAllowed(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0) {
    return fmt::format(
        "The socket {} exists, but user {} may not use it: it is {}:{} with mode {:04o}.\n{}", path,
        UserText(geteuid()), UserText(info.st_uid), GroupName(info.st_gid), info.st_mode & 07777u,
        JoinHint(info.st_gid, (info.st_mode & S_IWGRP) != 0));
  }
  std::string parent = ParentOf(path);
  std::string text =
      fmt::format("Whether there is a socket {} cannot be seen: user {} may not enter {}.", path,
                  UserText(geteuid()), parent);
  if (stat(parent.c_str(), &info) != 0) return text;
  return text + "\n" + JoinHint(info.st_gid, (info.st_mode & S_IXGRP) != 0);
}

// It accepts connections, and the call ended all the same: it may be another process than the one that was called, or it closes
// connections beyond its limit, which it cannot explain to a client.
std::string CallEnded(const Status& status, const std::string& where) {
  return fmt::format(
      "the call to profd at {} ended: {}\nIf profd was restarted, try again; systemctl status profd; journalctl -u profd\nIt also "
      "closes connections beyond daemon.max_connections, half of which are for one user: end clients that are not needed",
      where, status.message());
}

std::string ExplainRemote(const Status& status, const Endpoint& endpoint) {
  std::string diagnosis = DiagnoseTls(endpoint);
  if (!diagnosis.empty()) {
    return fmt::format("profd cannot be reached at {}\n{}", endpoint.address, diagnosis);
  }
  if (status.code() == StatusCode::kDeadlineExceeded) {
    return fmt::format(
        "profd on {} can be reached but did not answer in time ({})\n--timeout waits longer.",
        endpoint.address, status.message());
  }
  return CallEnded(status, endpoint.address);
}

}  // namespace

int ExitCodeFor(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return kExitOk;
    case StatusCode::kInvalidArgument:
    case StatusCode::kPermissionDenied:
    case StatusCode::kUnauthenticated:
    case StatusCode::kResourceExhausted:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kAlreadyExists:
    case StatusCode::kUnimplemented:  // this node cannot: a refusal like the others
      return kExitRefused;
    case StatusCode::kNotFound:
      return kExitNotFound;
    case StatusCode::kDataLoss:
      return kExitPartial;
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
      return kExitUnreachable;
    case StatusCode::kCancelled:
    case StatusCode::kUnknown:
    case StatusCode::kAborted:
    case StatusCode::kOutOfRange:
    case StatusCode::kInternal:
      return kExitInternal;
  }
  return kExitInternal;
}

std::string CodeWord(StatusCode code) {
  // gRPC's own names, which scripts compare with: not the words for people that ToString has.
  static constexpr std::array<std::string_view, 17> kWords = {
      "ok",                  "cancelled",         "unknown",           "invalid_argument",
      "deadline_exceeded",   "not_found",         "already_exists",    "permission_denied",
      "resource_exhausted",  "failed_precondition", "aborted",         "out_of_range",
      "unimplemented",       "internal",          "unavailable",       "data_loss",
      "unauthenticated"};
  auto index = static_cast<size_t>(code);
  return std::string(index < kWords.size() ? kWords[index] : kWords[2]);
}

std::string DiagnoseSocket(const std::string& path) {
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return fmt::format("A socket's path has 1 to {} bytes; this one has {}.",
                       sizeof address.sun_path - 1, path.size());
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Status::FromErrno(errno, "socket").message();
  if (connect(fd.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof address) == 0)
    return "";
  switch (int error = errno) {
    case ENOENT:
    case ENOTDIR:
      return NoSocket(path);
    case EACCES:
    case EPERM:
      return NotAllowed(path);
    case ECONNREFUSED: {
      struct stat info = {};
      if (stat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
        return fmt::format("{} exists but is not a socket.\n{}", path, kIsItRunning);
      }
      return fmt::format(
          "The socket {} exists, but nothing listens on it: profd has exited.\n"
          "systemctl status profd; journalctl -u profd",
          path);
    }
    case EAGAIN:
      return fmt::format(
          "The socket {} exists, but profd takes no more connections: it is overloaded or stuck.\n"
          "systemctl status profd; journalctl -u profd",
          path);
    default:
      return Status::FromErrno(error, "connecting to " + path).message();
  }
}

std::string Diagnose(const Endpoint& endpoint) {
  return endpoint.remote() ? DiagnoseTls(endpoint) : DiagnoseSocket(endpoint.socket);
}

std::string Explain(const Status& status, const Endpoint& endpoint) {
  if (ExitCodeFor(status.code()) != kExitUnreachable) return status.ToString();
  if (endpoint.remote()) return ExplainRemote(status, endpoint);
  const std::string& socket = endpoint.socket;
  std::string diagnosis = DiagnoseSocket(socket);
  if (!diagnosis.empty()) return "profd cannot be reached\n" + diagnosis;
  if (status.code() == StatusCode::kDeadlineExceeded) {
    return fmt::format(
        "profd took the request at {} but did not answer in time ({})\n"
        "use a longer --timeout; check systemctl status profd.",
        socket, status.message());
  }
  return CallEnded(status, socket);
}

}  // namespace profd::client
