#include "client/libprofd/aclprof/result_directory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/dir_stream.h"
#include "base/text.h"

namespace profd::lib::aclprof {
namespace {

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kDepth = 16;
constexpr char kPrefix[] = "profd-";
constexpr size_t kMaxSession = 64;

constexpr char kVariable[] = "PROFD_COLLECT_DIR";

// As its user gave it, though it may not be absolute.
std::string Base() {
  const char* const named = ::getenv(kVariable);
  if (named != nullptr && *named != '\0') return named;
  const char* const temporary = ::getenv("TMPDIR");
  return temporary != nullptr && *temporary == '/' ? temporary : "/tmp";
}

std::string Safe(std::string_view session) {
  std::string name(session.substr(0, kMaxSession));
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return !(IsLetterOrDigit(c) || c == '-' || c == '_');
      },
      '_');
  return name;
}

void RemoveBelow(int directory, int depth) {
  DirStream stream{UniqueFd(::openat(directory, ".", kOpenDirectory))};
  if (!stream.valid()) return;
  while (const dirent* entry = stream.Next()) {
    if (::unlinkat(directory, entry->d_name, 0) == 0) continue;
    const int below = depth > 0 ? ::openat(directory, entry->d_name, kOpenDirectory) : -1;
    if (below < 0) continue;
    RemoveBelow(below, depth - 1);
    ::close(below);
    ::unlinkat(directory, entry->d_name, AT_REMOVEDIR);
  }
}

// What stands behind the last dash, if that can be a process's number; else 0.
pid_t TakeNumber(std::string_view* name) {
  constexpr size_t kMostDigits = 7;  // of 4194304, the kernel's limit
  const size_t dash = name->rfind('-');
  if (dash == std::string_view::npos) return 0;
  const std::string digits(name->substr(dash + 1));
  if (digits.size() > kMostDigits || !IsDigits(digits)) return 0;
  *name = name->substr(0, dash);
  return static_cast<pid_t>(std::strtol(digits.c_str(), nullptr, 10));
}

// The process of "profd-<session>-<pid>" or "profd-<session>-<pid>-<n>" is no more. A session's id is longer than a number.
bool NamesADeadProcess(std::string_view name) {
  const pid_t last = TakeNumber(&name);
  const pid_t before = TakeNumber(&name);
  const pid_t pid = before > 0 ? before : last;
  return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

// The vendor's profiler writes nothing else.
bool HoldsResultsOnly(int directory) {
  DirStream stream{UniqueFd(::openat(directory, ".", kOpenDirectory))};
  bool only = stream.valid();
  while (const dirent* entry = only ? stream.Next() : nullptr) only = std::strncmp(entry->d_name, "PROF_", 5) == 0;
  return only;
}

// Of a process that was killed. In another container that shares the folder the same number may be another process, or
// one that is not seen from here: as long as that lives it holds the lock.
void RemoveIfLeft(int base, const char* name, int64_t now_s) {
  constexpr int64_t kFreshS = 60;
  if (std::strncmp(name, kPrefix, sizeof kPrefix - 1) != 0 || !NamesADeadProcess(name)) return;
  const int directory = ::openat(base, name, kOpenDirectory);
  if (directory < 0) return;
  struct stat info {};
  const bool left = ::fstat(directory, &info) == 0 && info.st_uid == ::geteuid() && (info.st_mode & 077) == 0 &&
                    info.st_mtim.tv_sec + kFreshS < now_s && HoldsResultsOnly(directory) &&
                    ::flock(directory, LOCK_EX | LOCK_NB) == 0;
  if (left) {
    RemoveBelow(directory, kDepth);
    ::unlinkat(base, name, AT_REMOVEDIR);
  }
  ::close(directory);
}

void RemoveLeftovers(const std::string& base) {
  constexpr int kMostNames = 10'000;
  DirStream stream{UniqueFd(::open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC))};
  if (!stream.valid()) return;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  int seen = 0;
  while (const dirent* entry = stream.Next()) {
    if (++seen > kMostNames) break;
    RemoveIfLeft(stream.fd(), entry->d_name, now.tv_sec);
  }
}

}  // namespace

std::string ResultDirectory::Make(const std::string& session, uint64_t least_free_bytes) {
  constexpr char kAdvice[] = "; PROFD_COLLECT_DIR can name another place";
  const std::string base = Base();
  if (base.front() != '/') return std::string(kVariable) + "=" + base + " is not an absolute path; set it to one";
  RemoveLeftovers(base);
  struct statvfs volume {};
  if (::statvfs(base.c_str(), &volume) != 0) return base + ": " + std::generic_category().message(errno) + kAdvice;
  free_bytes_ = static_cast<uint64_t>(volume.f_bavail) * volume.f_frsize;
  if (free_bytes_ < least_free_bytes) {
    return base + " has " + std::to_string(free_bytes_ >> 20) + " MiB free, " + std::to_string(least_free_bytes >> 20) +
           " MiB are needed" + kAdvice;
  }
  const std::string name = base + "/" + kPrefix + Safe(session) + "-" + std::to_string(::getpid());
  // A name that is there belongs to another process, or to a process before us with this number.
  constexpr int kAttempts = 100;
  for (int i = 0; i < kAttempts && path_.empty(); ++i) {
    const std::string path = i == 0 ? name : name + "-" + std::to_string(i);
    if (::mkdir(path.c_str(), 0700) == 0) {
      path_ = path;
    } else if (errno != EEXIST) {
      return path + ": " + std::generic_category().message(errno) + kAdvice;
    }
  }
  if (path_.empty()) return name + " and others of its name are there already";
  maker_ = ::getpid();
  fd_ = ::open(path_.c_str(), kOpenDirectory);
  struct stat info {};
  if (fd_ >= 0 && ::fstat(fd_, &info) == 0 && info.st_uid == ::geteuid()) {
    // Until the last process has closed it, also the daemon: RemoveIfLeft.
    ::flock(fd_, LOCK_SH | LOCK_NB);
    return {};
  }
  std::string why = path_ + ": " + std::generic_category().message(errno);
  Remove();
  return why;
}

bool ResultDirectory::empty() const {
  DirStream stream{UniqueFd(::openat(fd_, ".", kOpenDirectory))};
  return !stream.valid() || stream.Next() == nullptr;
}

void ResultDirectory::Remove() {
  const std::string path = std::exchange(path_, {});
  const int fd = std::exchange(fd_, -1);
  if (path.empty()) return;
  if (maker_ == ::getpid()) {
    if (fd >= 0) RemoveBelow(fd, kDepth);
    ::rmdir(path.c_str());
  }
  if (fd >= 0) ::close(fd);
}

}  // namespace profd::lib::aclprof
