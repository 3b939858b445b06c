#include "dump/dump_root.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/clock.h"
#include "base/text.h"
#include "dump/dump_io.h"

namespace profd {
namespace {

constexpr std::string_view kRemoving = ".removing_";
constexpr std::string_view kMakingRun = ".run_";
constexpr uint32_t kMaxNumber = 999'999;
constexpr mode_t kRootMode = 0711;

Status SumBytes(int dir, uint64_t* bytes) {
  return WalkTree(dir, {}, [bytes](const TreeEntry& file) {
    *bytes += file.bytes;
    return Status();
  });
}

bool IsNumber(std::string_view text, size_t most) { return text.size() <= most && IsDigits(text); }

// 16 letters A-R: the digits of a random 64-bit number in base 18.
std::string RandomLetters() {
  uint64_t value = 0;
  if (::getrandom(&value, sizeof value, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof value)) {
    // Uniqueness does not hang on it: O_EXCL semantics of mkdirat do.
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    value = static_cast<uint64_t>(now.tv_nsec) * 0x9E3779B97F4A7C15u ^
            static_cast<uint64_t>(::getpid());
  }
  std::string letters(16, 'A');
  for (char& letter : letters) {
    letter = static_cast<char>('A' + value % 18);
    value /= 18;
  }
  return letters;
}

// YYYYMMDDhhmmssmmm in local time.
std::string LocalTimestamp(int64_t wall_ns) {
  const tm local = fmt::localtime(static_cast<time_t>(wall_ns / kNsPerSecond));
  return fmt::format("{:%Y%m%d%H%M%S}{:03}", local, wall_ns / kNsPerMs % 1000);
}

Status MakeParents(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    std::string parent = path.substr(0, slash);
    if (::mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST) {
      return Status::FromErrno(errno, fmt::format("make directory {}", parent));
    }
  }
  return {};
}

Status CheckRoot(int fd, const std::string& path) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return Status::FromErrno(errno, path);
  if (st.st_uid != ::geteuid() && st.st_uid != 0) {
    return PermissionDenied(fmt::format("dump root {} belongs to uid {}; give it to profd (uid {})", path, st.st_uid, ::geteuid()));
  }
  if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return PermissionDenied(fmt::format("dump root {} may be written by others (mode {:04o}); chmod go-w", path,
                                        static_cast<unsigned>(st.st_mode & 07777)));
  }
  return {};
}

// `path`, or the nearest directory above it that there is.
bool StatNearest(std::string path, struct stat* st) {
  for (;;) {
    if (::stat(path.c_str(), st) == 0) return true;
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || path == "/") return false;
    path.resize(std::max<size_t>(slash, 1));
  }
}

}  // namespace

uint64_t VolumeOf(const std::string& path) {
  struct stat st {};
  return StatNearest(path, &st) ? st.st_dev : 0;
}

Status CheckVolume(const std::string& path, uint64_t volume) {
  struct stat here {};
  struct stat above {};
  if (volume == 0 || !StatNearest(path, &here) || here.st_dev == volume) return {};
  const bool mounted = ::stat(path.c_str(), &here) == 0 && ::stat((path + "/..").c_str(), &above) == 0 &&
                       here.st_dev != above.st_dev;
  if (mounted) return {};
  return FailedPrecondition(
      fmt::format("{} is not on the volume it was on when profd started: that has been unmounted. Mount it again, or "
                  "restart profd to use what is there now",
                  path));
}

Result<DumpRoot> DumpRoot::Open(const std::string& path_in) {
  // A trailing slash would follow a link in spite of O_NOFOLLOW.
  const std::string path(WithoutLastSlashes(path_in));
  if (!EndsWithName(path)) {
    return InvalidArgument(fmt::format("'{}' cannot be a dump root", path_in));
  }
  RETURN_IF_ERROR(MakeParents(path));
  bool made = ::mkdir(path.c_str(), kRootMode) == 0;
  if (!made && errno != EEXIST) {
    return Status::FromErrno(errno, fmt::format("make dump root {}", path));
  }
  Result<DumpRoot> root = Attach(path);
  if (!root.ok()) return root;
  if (made && ::fchmod(root->fd(), kRootMode) != 0) return Status::FromErrno(errno, path);
  RETURN_IF_ERROR(root->Prepare());
  return root;
}

Result<DumpRoot> DumpRoot::Attach(const std::string& path_in) {
  const std::string path(WithoutLastSlashes(path_in));
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    // A link shows as ELOOP, or as ENOTDIR because of O_DIRECTORY.
    if (errno == ELOOP || errno == ENOTDIR) {
      return PermissionDenied(fmt::format("dump root {} is a symbolic link or no directory; name the directory itself", path));
    }
    return Status::FromErrno(errno, fmt::format("open dump root {}", path));
  }
  RETURN_IF_ERROR(CheckRoot(fd.get(), path));
  return DumpRoot(path, std::move(fd));
}

Status DumpRoot::Prepare() {
  Result<std::vector<std::string>> names = ListNames(fd_.get());
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (name.starts_with(kMakingRun)) EndMakeRun(name);
    if (!IsDumpName(name)) continue;
    std::string_view rest = std::string_view(name).substr(5);
    uint32_t number = 0;
    if (ParseNumber(rest.substr(0, rest.find('_')), &number) && number <= kMaxNumber) {
      last_number_ = std::max(last_number_, number);
    }
  }
  return {};
}

void DumpRoot::RemoveLeftovers() {
  Result<std::vector<std::string>> names = ListNames(fd_.get());
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(kRemoving)) continue;
    Result<UniqueFd> dir = OpenDirAt(fd_.get(), name);
    // What cannot be removed now stays out of sight and is tried again next time.
    if (dir.ok() && RemoveTree(dir->get()).ok()) {
      ::unlinkat(fd_.get(), name.c_str(), AT_REMOVEDIR);
    }
  }
}

Result<std::vector<std::string>> DumpRoot::Names() const {
  Result<std::vector<std::string>> names = ListNames(fd_.get());
  if (names.ok()) std::erase_if(*names, [](const std::string& name) { return !IsDumpName(name); });
  return names;
}

Result<std::pair<uint32_t, int64_t>> DumpRoot::FactsOf(std::string_view name) const {
  Result<UniqueFd> dir = OpenFolder(name);
  if (!dir.ok()) return dir.status();
  struct stat st {};
  if (::fstat(dir->get(), &st) != 0) return Status::FromErrno(errno, name);
  return std::pair<uint32_t, int64_t>(st.st_uid,
                                      st.st_mtim.tv_sec * kNsPerSecond + st.st_mtim.tv_nsec);
}

Result<uint64_t> DumpRoot::FreeBytes() const {
  struct statvfs st {};
  if (::fstatvfs(fd_.get(), &st) != 0) return Status::FromErrno(errno, path_);
  return static_cast<uint64_t>(st.f_bavail) * st.f_frsize;
}

Result<uint64_t> DumpRoot::SizeBytes() const {
  struct statvfs st {};
  if (::fstatvfs(fd_.get(), &st) != 0) return Status::FromErrno(errno, path_);
  return static_cast<uint64_t>(st.f_blocks - (st.f_bfree - st.f_bavail)) * st.f_frsize;
}

Status DumpRoot::CheckWritable() const {
  struct statvfs st {};
  if (::fstatvfs(fd_.get(), &st) != 0) return Status::FromErrno(errno, path_);
  if ((st.f_flag & ST_RDONLY) == 0) return {};
  return ResourceExhausted(fmt::format("dump volume read-only: {} (dump.root); see dmesg, and mount it anew", path_));
}

bool DumpRoot::InPlace() const {
  struct stat opened {};
  struct stat named {};
  return ::fstat(fd_.get(), &opened) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

Status DumpRoot::CheckMounted() const {
  struct stat opened {};
  if (::fstat(fd_.get(), &opened) != 0) return Status::FromErrno(errno, path_);
  return CheckVolume(path_, opened.st_dev);
}

Result<DumpRoot::NewDump> DumpRoot::CreateDump(DumpOwner owner, int64_t wall_ns) {
  for (int attempt = 0; attempt < 16; ++attempt) {
    last_number_ = last_number_ % kMaxNumber + 1;
    std::string name =
        fmt::format("PROF_{:06}_{}_{}", last_number_, LocalTimestamp(wall_ns), RandomLetters());
    Result<UniqueFd> dir = MakeDirAt(fd_.get(), name, owner);
    if (dir.ok()) return NewDump{std::move(name), std::move(*dir)};
    if (dir.status().code() != StatusCode::kAlreadyExists) return dir.status();
  }
  return AlreadyExists("no free name for a dump");
}

Result<UniqueFd> DumpRoot::OpenFolder(std::string_view name) const {
  if (!IsDumpName(name)) return InvalidArgument("not the name of a dump");
  return OpenDirAt(fd_.get(), std::string(name));
}

Result<UniqueFd> DumpRoot::OpenDump(std::string_view name) const {
  Result<UniqueFd> folder = OpenFolder(name);
  if (!folder.ok()) return folder;
  Result<UniqueFd> own = OpenDirAt(folder->get(), std::string(name));
  return own.ok() ? std::move(own) : std::move(folder);
}

// The dump goes into a new folder, which then takes its place.
Result<UniqueFd> DumpRoot::MakeRun(const std::string& name, DumpOwner owner) {
  Result<UniqueFd> folder = OpenFolder(name);
  if (!folder.ok() || OpenDirAt(folder->get(), name).ok()) return folder;
  const std::string hidden = std::string(kMakingRun) + name;
  Result<UniqueFd> run = MakeDirAt(fd_.get(), hidden, owner);
  if (!run.ok()) return run.status().Annotate("make a folder for the run");
  Status failed;
  if (::renameat(fd_.get(), name.c_str(), run->get(), name.c_str()) != 0) {
    failed = Status::FromErrno(errno, fmt::format("move {} into its run", name));
  } else if (::renameat(fd_.get(), hidden.c_str(), fd_.get(), name.c_str()) != 0) {
    failed = Status::FromErrno(errno, fmt::format("put the run of {} in its place", name));
    ::renameat(run->get(), name.c_str(), fd_.get(), name.c_str());
  }
  if (failed.ok()) return run;
  ::unlinkat(fd_.get(), hidden.c_str(), AT_REMOVEDIR);
  return failed;
}

void DumpRoot::EndMakeRun(const std::string& hidden) {
  const std::string name = hidden.substr(kMakingRun.size());
  if (!IsDumpName(name) || ::unlinkat(fd_.get(), hidden.c_str(), AT_REMOVEDIR) == 0) return;
  // The dump is in it.
  if (errno != ENOTEMPTY && errno != EEXIST) return;
  if (OpenFolder(name).ok()) return;
  ::renameat(fd_.get(), hidden.c_str(), fd_.get(), name.c_str());
}

Status DumpRoot::Remove(std::string_view name_untrusted) {
  if (!IsDumpName(name_untrusted)) return InvalidArgument("not the name of a dump");
  std::string name(name_untrusted);
  std::string hidden = std::string(kRemoving) + name;
  Result<UniqueFd> dir = OpenDirAt(fd_.get(), name);
  if (!dir.ok()) return dir.status();
  if (::renameat(fd_.get(), name.c_str(), fd_.get(), hidden.c_str()) != 0) {
    return Status::FromErrno(errno, fmt::format("remove {}", name));
  }
  // The owner may still be adding files; give up after a few rounds, the rest is out of sight.
  for (int round = 0;; ++round) {
    RETURN_IF_ERROR(RemoveTree(dir->get()).Annotate(name));
    if (::unlinkat(fd_.get(), hidden.c_str(), AT_REMOVEDIR) == 0) return {};
    if (errno != ENOTEMPTY || round == 4) {
      return Status::FromErrno(errno, fmt::format("remove {}", name));
    }
  }
}

Result<uint64_t> DumpRoot::BytesOf(std::string_view name) const {
  Result<UniqueFd> dir = OpenFolder(name);
  if (!dir.ok()) return dir.status();
  uint64_t bytes = 0;
  SumBytes(dir->get(), &bytes).Ignore();
  return bytes;
}

bool DumpRoot::IsDumpName(std::string_view name) {
  if (name.size() > 96 || !name.starts_with("PROF_")) return false;
  name.remove_prefix(5);
  size_t first = name.find('_');
  size_t second = first == std::string_view::npos ? first : name.find('_', first + 1);
  if (second == std::string_view::npos) return false;
  std::string_view letters = name.substr(second + 1);
  return IsNumber(name.substr(0, first), 10) &&
         IsNumber(name.substr(first + 1, second - first - 1), 20) && letters.size() >= 5 &&
         letters.size() <= 20 && std::ranges::all_of(letters, [](char c) {
           return (c >= 'A' && c <= 'Z') || IsDigit(c);
         });
}

}  // namespace profd
