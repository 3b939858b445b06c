#include "client/libprofd/aclprof/result_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

namespace profd::lib::aclprof {
namespace {

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kDepth = 16;
constexpr size_t kMaxSession = 64;

std::string Base() {
  for (const char* name : {"PROFD_COLLECT_DIR", "TMPDIR"}) {
    const char* const value = ::getenv(name);
    if (value != nullptr && *value == '/') return value;
  }
  return "/tmp";
}

std::string Safe(std::string_view session) {
  std::string name(session.substr(0, kMaxSession));
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return !((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_');
      },
      '_');
  return name;
}

bool IsDot(const char* name) { return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0; }

void RemoveBelow(int directory, int depth) {
  const int copy = ::openat(directory, ".", kOpenDirectory);
  DIR* const stream = copy < 0 ? nullptr : ::fdopendir(copy);
  if (stream == nullptr) {
    if (copy >= 0) ::close(copy);
    return;
  }
  while (const dirent* entry = ::readdir(stream)) {
    if (IsDot(entry->d_name) || ::unlinkat(directory, entry->d_name, 0) == 0) continue;
    const int below = depth > 0 ? ::openat(directory, entry->d_name, kOpenDirectory) : -1;
    if (below < 0) continue;
    RemoveBelow(below, depth - 1);
    ::close(below);
    ::unlinkat(directory, entry->d_name, AT_REMOVEDIR);
  }
  ::closedir(stream);
}

}  // namespace

std::string ResultDirectory::Make(const std::string& session, uint64_t least_free_bytes) {
  constexpr char kAdvice[] = "; PROFD_COLLECT_DIR can name another place";
  const std::string base = Base();
  struct statvfs volume {};
  if (::statvfs(base.c_str(), &volume) != 0) return base + ": " + std::generic_category().message(errno) + kAdvice;
  free_bytes_ = static_cast<uint64_t>(volume.f_bavail) * volume.f_frsize;
  if (free_bytes_ < least_free_bytes) {
    return base + " has " + std::to_string(free_bytes_ >> 20) + " MiB free, " + std::to_string(least_free_bytes >> 20) +
           " MiB are needed" + kAdvice;
  }
  const std::string name = base + "/profd-" + Safe(session) + "-" + std::to_string(::getpid());
  // A name that is there belongs to someone else, or to a process before us with this number.
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
  if (fd_ >= 0 && ::fstat(fd_, &info) == 0 && info.st_uid == ::geteuid()) return {};
  std::string why = path_ + ": " + std::generic_category().message(errno);
  Remove();
  return why;
}

bool ResultDirectory::empty() const {
  const int copy = fd_ < 0 ? -1 : ::openat(fd_, ".", kOpenDirectory);
  DIR* const stream = copy < 0 ? nullptr : ::fdopendir(copy);
  if (stream == nullptr) return true;
  bool empty = true;
  while (const dirent* entry = ::readdir(stream)) empty = empty && IsDot(entry->d_name);
  ::closedir(stream);
  return empty;
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
