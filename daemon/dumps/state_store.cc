#include "daemon/dumps/state_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/dir_stream.h"
#include "base/text.h"
#include "dump/dump_io.h"
#include "dump/dump_root.h"

namespace profd {
namespace {

constexpr mode_t kMode = 0700;
constexpr size_t kMaxStateBytes = 4u << 20;
constexpr size_t kMaxSessions = 4096;
constexpr std::string_view kSessions = "sessions";
constexpr std::string_view kLock = "lock";
constexpr std::string_view kSuffix = ".json";

std::string ParentOf(const std::string& path) { return path.substr(0, std::max<size_t>(path.rfind('/'), 1)); }

DumpOwner Myself() { return {::geteuid(), ::getegid()}; }

bool IsSame(int dir, std::string_view name, int fd) {
  struct stat there {};
  struct stat ours {};
  return ::fstatat(dir, std::string(name).c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && ::fstat(fd, &ours) == 0 &&
         there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}

Status CheckOwn(int fd, const std::string& path) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return Status::FromErrno(errno, path);
  if (st.st_uid != ::geteuid() || (st.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return PermissionDenied(fmt::format("{} must belong to profd alone (mode 0700)", path));
  }
  return {};
}

// An id is a file's name.
bool IsSessionId(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::ranges::all_of(id, [](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || c == '-';
  });
}

}  // namespace

Result<UniqueFd> StateStore::Open(std::string_view sub) {
  if (volume_ != 0) RETURN_IF_ERROR(CheckVolume(ParentOf(path_), volume_));
  if (::mkdir(path_.c_str(), kMode) != 0 && errno != EEXIST) {
    return Status::FromErrno(errno, fmt::format("make {}", path_));
  }
  UniqueFd top(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!top.valid()) return Status::FromErrno(errno, fmt::format("open {}", path_));
  RETURN_IF_ERROR(CheckOwn(top.get(), path_));
  if (lock_.valid() && !IsSame(top.get(), kLock, lock_.get())) RETURN_IF_ERROR(LockIn(top.get()));
  if (sub.empty()) return top;
  const std::string name(sub);
  if (::mkdirat(top.get(), name.c_str(), kMode) != 0 && errno != EEXIST) {
    return Status::FromErrno(errno, fmt::format("make {}/{}", path_, name));
  }
  return OpenDirAt(top.get(), name);
}

Status StateStore::Lock() {
  Result<UniqueFd> dir = Open("");
  if (!dir.ok()) return dir.status();
  RETURN_IF_ERROR(LockIn(dir->get()));
  volume_ = VolumeOf(ParentOf(path_));
  return {};
}

Status StateStore::LockIn(int dir) {
  // Not for writing: that would keep the volume from being made read-only.
  UniqueFd fd(::openat(dir, std::string(kLock).c_str(),
                       O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return Status::FromErrno(errno, fmt::format("{}/{}", path_, kLock));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return Unavailable(fmt::format("another profd is at work here ({}/{} is locked)", path_,
                                     kLock));
    }
    return Status::FromErrno(errno, fmt::format("lock {}/{}", path_, kLock));
  }
  lock_ = std::move(fd);
  return {};
}

Status StateStore::SaveSession(const std::string& id, std::string_view text) {
  if (!IsSessionId(id)) return InvalidArgument("not a session's id");
  Result<UniqueFd> dir = Open(kSessions);
  if (!dir.ok()) return dir.status();
  return ReplaceFile(SystemDumpIo(), dir->get(), id + std::string(kSuffix), text, Myself(), false);
}

Status StateStore::DropSession(const std::string& id) {
  if (!IsSessionId(id)) return InvalidArgument("not a session's id");
  Result<UniqueFd> dir = Open(kSessions);
  if (!dir.ok()) return dir.status();
  const std::string name = id + std::string(kSuffix);
  if (::unlinkat(dir->get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return Status::FromErrno(errno, fmt::format("remove {}", name));
  }
  return {};
}

Result<std::map<std::string, std::string>> StateStore::LoadSessions() {
  Result<UniqueFd> dir = Open(kSessions);
  if (!dir.ok()) return dir.status();
  Result<UniqueFd> copy = OpenDirAt(dir->get(), ".");
  if (!copy.ok()) return copy.status();
  DirStream stream(std::move(*copy));
  if (!stream.valid()) return Status::FromErrno(errno, path_);
  std::map<std::string, std::string> sessions;
  while (const dirent* entry = stream.Next()) {
    std::string name = entry->d_name;
    if (name.starts_with('.') && name.ends_with(".tmp")) {
      ::unlinkat(dir->get(), name.c_str(), 0);  // a save that was cut short
      continue;
    }
    if (!name.ends_with(kSuffix) || sessions.size() >= kMaxSessions) continue;
    std::string id = name.substr(0, name.size() - kSuffix.size());
    if (!IsSessionId(id)) continue;
    Result<UniqueFd> file = OpenFileAt(dir->get(), name);
    if (!file.ok()) continue;
    Result<std::string> text = ReadWhole(file->get(), kMaxStateBytes);
    if (text.ok()) sessions[std::move(id)] = std::move(text).value();
  }
  return sessions;
}

Status StateStore::Save(const StateFile& file, std::string_view text) {
  Result<UniqueFd> dir = Open("");
  if (!dir.ok()) return dir.status();
  return ReplaceFile(SystemDumpIo(), dir->get(), file.name, text, Myself(), true);
}

Result<std::string> StateStore::Load(const StateFile& which) {
  Result<UniqueFd> dir = Open("");
  if (!dir.ok()) return dir.status();
  Result<UniqueFd> file = OpenFileAt(dir->get(), which.name);
  if (!file.ok()) {
    if (file.status().code() == StatusCode::kNotFound) return std::string();
    return file.status();
  }
  return ReadWhole(file->get(), kMaxStateBytes);
}

}  // namespace profd
