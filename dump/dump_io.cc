#include "dump/dump_io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/bytes.h"
#include "base/dir_stream.h"
#include "base/text.h"
#include "dump/data_name.h"

namespace profd {
namespace {

constexpr int kOpenDir = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Gives a thing we have just made to its owner. Nothing to do for an unprivileged daemon that makes
// its own user's dumps.
Status GiveTo(int fd, DumpOwner owner, mode_t mode, std::string_view name) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return Status::FromErrno(errno, name);
  // In a directory of the owner's, what we open may not be what we made.
  if (st.st_uid != ::geteuid()) {
    return PermissionDenied(fmt::format("{} was replaced while it was made", name));
  }
  // The mode first: once the owner has it, chmod would need a capability of its own.
  if (::fchmod(fd, mode) != 0) return Status::FromErrno(errno, name);
  if ((st.st_uid != owner.uid || st.st_gid != owner.gid) &&
      ::fchown(fd, owner.uid, owner.gid) != 0) {
    return Status::FromErrno(errno, fmt::format("give {} to uid {}", name, owner.uid));
  }
  return {};
}

struct Walk {
  const TreeLimits& limits;
  const std::function<Status(const TreeEntry&)>& visit;
  size_t seen = 0;
};

Status WalkInto(Walk& walk, int dir, const std::string& prefix, int depth) {
  if (depth > walk.limits.depth) return OutOfRange(fmt::format("{} is nested too deep", prefix));
  Result<std::vector<std::string>> names = ListNames(dir, walk.limits.entries - walk.seen);
  if (!names.ok()) return names.status().Annotate(prefix.empty() ? "." : prefix);
  walk.seen += names->size();
  for (const std::string& name : *names) {
    struct stat st {};
    if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;  // removed meanwhile
      return Status::FromErrno(errno, prefix + name);
    }
    TreeEntry entry{.path = prefix + name, .uid = st.st_uid, .links = st.st_nlink, .is_dir = S_ISDIR(st.st_mode)};
    entry.other = !entry.is_dir && !S_ISREG(st.st_mode);
    entry.bytes = S_ISREG(st.st_mode) ? static_cast<uint64_t>(st.st_size) : 0;
    RETURN_IF_ERROR(walk.visit(entry));
    if (!entry.is_dir) continue;
    Result<UniqueFd> sub = OpenDirAt(dir, name);
    if (!sub.ok()) {
      if (sub.status().code() == StatusCode::kNotFound) continue;
      return sub.status();
    }
    RETURN_IF_ERROR(WalkInto(walk, sub->get(), entry.path + "/", depth + 1));
  }
  return {};
}

Status RemoveInto(int dir, dev_t device, int depth) {
  if (depth <= 0) return OutOfRange("directories nested too deep to remove");
  Result<std::vector<std::string>> names = ListNames(dir);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (::unlinkat(dir, name.c_str(), 0) == 0 || errno == ENOENT) continue;
    if (errno != EISDIR && errno != EPERM) return Status::FromErrno(errno, name);
    Result<UniqueFd> sub = OpenDirAt(dir, name);
    if (!sub.ok()) return sub.status();
    struct stat st {};
    if (::fstat(sub->get(), &st) != 0) return Status::FromErrno(errno, name);
    if (st.st_dev != device) {
      return FailedPrecondition(fmt::format("{} is another file system", name));
    }
    RETURN_IF_ERROR(RemoveInto(sub->get(), device, depth - 1));
    if (::unlinkat(dir, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
      return Status::FromErrno(errno, name);
    }
  }
  return {};
}

}  // namespace

Result<UniqueFd> DumpIo::Create(int dir, const std::string& name, DumpOwner owner) {
  UniqueFd fd(::openat(dir, name.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
                       kDumpFileMode));
  if (!fd.valid()) return Status::FromErrno(errno, fmt::format("create {}", name));
  if (Status given = GiveTo(fd.get(), owner, kDumpFileMode, name); !given.ok()) {
    ::unlinkat(dir, name.c_str(), 0);
    return given;
  }
  return fd;
}

ssize_t DumpIo::Write(int fd, const void* data, size_t size) { return ::write(fd, data, size); }

ssize_t DumpIo::WriteV(int fd, const struct iovec* parts, int count) {
  return ::writev(fd, parts, count);
}

int DumpIo::Truncate(int fd, uint64_t size) { return ::ftruncate(fd, static_cast<off_t>(size)); }

int DumpIo::Unlink(int dir, const std::string& name) { return ::unlinkat(dir, name.c_str(), 0); }

void DumpIo::StartWriteback(int fd) {
  // Only a hint: a file system that cannot do it loses nothing.
  [[maybe_unused]] int ignored = ::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

void DumpIo::DropCache(int fd) {
  [[maybe_unused]] int ignored = ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

int DumpIo::Sync(int fd) { return ::fdatasync(fd); }

int DumpIo::SyncFileSystem(int fd) { return ::syncfs(fd); }

DumpIo& SystemDumpIo() {
  static DumpIo io;
  return io;
}

bool IsSafeName(std::string_view name) {
  if (name.empty() || name.size() > 96 || name == "." || name == "..") return false;
  return std::ranges::all_of(name, [](char c) { return IsLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; });
}

bool IsSafePath(std::string_view path) {
  while (true) {
    size_t slash = path.find('/');
    if (!IsSafeName(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

Result<UniqueFd> MakeDirAt(int dir, const std::string& name, DumpOwner owner) {
  if (::mkdirat(dir, name.c_str(), 0700) != 0) {
    return Status::FromErrno(errno, fmt::format("make directory {}", name));
  }
  Result<UniqueFd> made = OpenDirAt(dir, name);
  if (!made.ok()) return made;
  if (Status given = GiveTo(made->get(), owner, kDumpDirMode, name); !given.ok()) {
    ::unlinkat(dir, name.c_str(), AT_REMOVEDIR);
    return given;
  }
  return made;
}

Result<UniqueFd> MakeTopFolderAt(int dump, const std::string& name, DumpOwner owner) {
  if (!IsTopFolder(name)) {
    return InvalidArgument(fmt::format("the vendor's analyser exports nothing from a dump with a folder {}", name));
  }
  return MakeDirAt(dump, name, owner);
}

Result<UniqueFd> OpenDirAt(int dir, const std::string& name) {
  UniqueFd fd(::openat(dir, name.c_str(), kOpenDir));
  if (!fd.valid()) return Status::FromErrno(errno, fmt::format("open directory {}", name));
  return fd;
}

UniqueFd CopyOf(int fd) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

Result<UniqueFd> OpenFileAt(int dir, const std::string& name) {
  UniqueFd fd(
      ::openat(dir, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) return Status::FromErrno(errno, fmt::format("open {}", name));
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return Status::FromErrno(errno, name);
  if (!S_ISREG(st.st_mode)) return InvalidArgument(fmt::format("{} is not a regular file", name));
  return fd;
}

Result<std::string> ReadWhole(int fd, size_t limit) {
  std::string text;
  struct stat st {};
  if (::fstat(fd, &st) == 0) text.reserve(std::min(limit, static_cast<size_t>(st.st_size)));  // of /proc: 0
  char chunk[16 << 10];
  for (;;) {
    ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got < 0) {
      if (errno == EINTR) continue;
      return Status::FromErrno(errno, "read");
    }
    if (got == 0) return text;
    if (text.size() + static_cast<size_t>(got) > limit) {
      return OutOfRange(fmt::format("longer than {} bytes", limit));
    }
    text.append(chunk, static_cast<size_t>(got));
  }
}

Status WriteAll(DumpIo& io, int fd, std::span<const std::byte> data, std::string_view what,
                size_t* written) {
  size_t done = 0;
  Status result;
  while (done < data.size()) {
    ssize_t put = io.Write(fd, data.data() + done, data.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      result = Status::FromErrno(put < 0 ? errno : ENOSPC, fmt::format("write {}", what));
      break;
    }
    done += static_cast<size_t>(put);
  }
  if (written) *written = done;
  return result;
}

Status WriteBoth(DumpIo& io, int fd, std::span<const std::byte> first,
                 std::span<const std::byte> second, std::string_view what, size_t* written) {
  *written = 0;
  while (!first.empty() && !second.empty()) {
    // writev does not change what it is given.
    struct iovec parts[] = {{const_cast<std::byte*>(first.data()), first.size()},
                            {const_cast<std::byte*>(second.data()), second.size()}};
    ssize_t put = io.WriteV(fd, parts, 2);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return Status::FromErrno(put < 0 ? errno : ENOSPC, fmt::format("write {}", what));
    auto done = static_cast<size_t>(put);
    *written += done;
    const size_t of_first = std::min(done, first.size());
    first = first.subspan(of_first);
    second = second.subspan(done - of_first);
  }
  size_t more = 0;
  Status result = WriteAll(io, fd, first.empty() ? second : first, what, &more);
  *written += more;
  return result;
}

Status WriteNewFile(DumpIo& io, int dir, const std::string& name, std::string_view text,
                    DumpOwner owner) {
  Result<UniqueFd> fd = io.Create(dir, name, owner);
  if (!fd.ok()) return fd.status();
  Status written = WriteAll(io, fd->get(), AsBytes(text), name);
  // Half a control file is worse than none.
  if (!written.ok()) ::unlinkat(dir, name.c_str(), 0);
  return written;
}

Status ReplaceFile(DumpIo& io, int dir, const std::string& name, std::string_view text,
                   DumpOwner owner, bool sync) {
  std::string temporary = fmt::format(".{}.tmp", name);
  ::unlinkat(dir, temporary.c_str(), 0);
  RETURN_IF_ERROR(WriteNewFile(io, dir, temporary, text, owner));
  if (sync) {
    UniqueFd fd(::openat(dir, temporary.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (fd.valid() && io.Sync(fd.get()) != 0) {
      Status error = Status::FromErrno(errno, fmt::format("sync {}", name));
      ::unlinkat(dir, temporary.c_str(), 0);
      return error;
    }
  }
  if (::renameat(dir, temporary.c_str(), dir, name.c_str()) != 0) {
    Status error = Status::FromErrno(errno, fmt::format("replace {}", name));
    ::unlinkat(dir, temporary.c_str(), 0);
    return error;
  }
  return {};
}

Result<std::vector<std::string>> ListNames(int dir, size_t limit) {
  DirStream stream{UniqueFd(::openat(dir, ".", kOpenDir))};
  if (!stream.valid()) return Status::FromErrno(errno, "open directory");
  std::vector<std::string> names;
  while (const dirent* entry = stream.Next()) {
    if (names.size() >= limit) return OutOfRange("too many entries in the dump");
    names.emplace_back(entry->d_name);
  }
  if (errno != 0) return Status::FromErrno(errno, "read directory");
  std::ranges::sort(names);
  return names;
}

Status WalkTree(int dir, const TreeLimits& limits,
                const std::function<Status(const TreeEntry&)>& visit) {
  Walk walk{limits, visit};
  return WalkInto(walk, dir, "", 0);
}

Status RemoveTree(int dir) {
  constexpr int kMaxDepth = 64;
  struct stat st {};
  if (::fstat(dir, &st) != 0) return Status::FromErrno(errno, "stat");
  return RemoveInto(dir, st.st_dev, kMaxDepth);
}

}  // namespace profd
