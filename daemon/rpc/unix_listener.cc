#include "daemon/rpc/unix_listener.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"

namespace profd {
namespace {

constexpr int kBacklog = 128;
constexpr size_t kMaxGroups = 256;

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return InvalidArgument(fmt::format("socket path {} is longer than {} characters", path,
                                       sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// A socket file is replaced only if no process answers on it.
Status RemoveStale(const std::string& path, int type, const sockaddr_un& address) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? Status::Ok() : Status::FromErrno(errno, path);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return FailedPrecondition(path + " exists and is not a socket; remove it or use another path");
  }
  UniqueFd probe(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno == EPROTOTYPE) {  // a process with another protocol
    return AlreadyExists("another profd answers on " + path);
  }
  if (::unlink(path.c_str()) != 0) return Status::FromErrno(errno, "remove stale " + path);
  return Status::Ok();
}

std::vector<uint32_t> GroupsOf(int fd) {
  std::array<gid_t, kMaxGroups> groups{};
  socklen_t size = sizeof groups;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) != 0) return {};
  return {groups.begin(), groups.begin() + size / sizeof(gid_t)};
}

}  // namespace

std::optional<gid_t> GroupId(const std::string& name) {
  if (name.empty()) return std::nullopt;
  std::vector<char> buffer(1 << 16);
  group entry{};
  group* found = nullptr;
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return std::nullopt;
  }
  return found->gr_gid;
}

std::optional<uid_t> UserId(const std::string& name) {
  uid_t uid = 0;
  if (ParseNumber(name, &uid)) return uid;
  if (name.empty()) return std::nullopt;
  std::vector<char> buffer(1 << 16);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return std::nullopt;
  }
  return found->pw_uid;
}

Result<UniqueFd> ListenUnix(const UnixListenerOptions& options, std::string* warning) {
  Result<sockaddr_un> address = AddressOf(options.path);
  if (!address.ok()) return address.status();
  RETURN_IF_ERROR(RemoveStale(options.path, options.type, *address));
  UniqueFd fd(::socket(AF_UNIX, options.type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Status::FromErrno(errno, "socket");
  // No client may connect before owner and mode are right: the file gets the socket's mode. Not by the umask, which is
  // all threads'.
  if (::fchmod(fd.get(), 0600) != 0) return Status::FromErrno(errno, "fchmod of a socket");
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    return Status::FromErrno(errno, "bind " + options.path);
  }
  mode_t mode = 0600;
  // UnknownAccounts reports a group that the machine does not have.
  if (const std::optional<gid_t> group = GroupId(options.group)) {
    if (::chown(options.path.c_str(), static_cast<uid_t>(-1), *group) != 0) {
      *warning = fmt::format("cannot give {} to group {}: {}", options.path,
                             options.group, std::generic_category().message(errno));
    } else {
      mode = 0660;
    }
  }
  if (::chmod(options.path.c_str(), mode) != 0) {
    return Status::FromErrno(errno, "chmod " + options.path);
  }
  if (::listen(fd.get(), kBacklog) != 0) return Status::FromErrno(errno, "listen");
  return fd;
}

Result<std::unique_ptr<UnixListener>> UnixListener::Listen(std::string name, UnixListenerOptions options, std::string* warning) {
  Result<UniqueFd> fd = ListenUnix(options, warning);
  if (!fd.ok()) return fd.status();
  return std::unique_ptr<UnixListener>(new UnixListener(std::move(name), std::move(options), std::move(fd).value()));
}

std::optional<UnixListener::FileId> UnixListener::FileAt(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  return FileId{info.st_dev, info.st_ino};
}

void UnixListener::Start(Strand& strand, AcceptLoop::Take take) {
  strand_ = &strand;
  take_ = std::move(take);
  loop_.emplace(strand, fd_.get(), take_);
}

void UnixListener::CheckPath() {
  if (!loop_ || !lost()) return;
  loop_.reset();
  BindAgain();
  loop_.emplace(*strand_, fd_.get(), take_);
}

void UnixListener::BindAgain() {
  std::string warning;
  Result<UniqueFd> fd = ListenUnix(options_, &warning);
  if (!fd.ok()) {
    if (std::exchange(failure_, fd.status().message()) == fd.status().message()) return;
    log::Error("a socket was removed or replaced, and cannot be bound again: no process can connect",
               {{"socket", name_}, {"path", options_.path}, {"why", failure_}});
    return;
  }
  failure_.clear();
  fd_ = std::move(fd).value();
  bound_ = FileAt(options_.path);
  log::Warning("a socket was removed or replaced; bound again", {{"socket", name_}, {"path", options_.path}, {"problem", warning}});
}

void UnixListener::Close() {
  loop_.reset();
  fd_.Reset();
  if (!lost()) ::unlink(options_.path.c_str());
}

Result<Peer> PeerOfSocket(int fd, std::optional<gid_t> admin_group) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return Status::FromErrno(errno, "SO_PEERCRED");
  }
  Peer peer{.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid, .groups = GroupsOf(fd)};
  // The daemon's own user counts as root's deputy: without root it serves no other user.
  peer.admin =
      peer.uid == 0 || peer.uid == ::geteuid() || (admin_group && peer.InGroup(*admin_group));
  return peer;
}

}  // namespace profd
