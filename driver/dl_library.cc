#include "driver/dl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>

#include "driver/path_parts.h"

namespace profd {
namespace {

Status CheckEntry(const std::string& path, const PathFacts& facts) {
  if (facts.uid != 0) {
    return PermissionDenied(fmt::format("{} belongs to uid {}, not to root", path, facts.uid));
  }
  bool is_link = (facts.mode & S_IFMT) == S_IFLNK;  // a link's mode means nothing
  if (!is_link && (facts.mode & (S_IWGRP | S_IWOTH)) != 0) {
    return PermissionDenied(
        fmt::format("{} is writable by others than root (mode {:o})", path, facts.mode & 07777));
  }
  return Status::Ok();
}

std::string Canonical(const std::string& path) {
  std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), ::free);
  return real ? std::string(real.get()) : path;
}

std::string LastDlError() {
  const char* text = ::dlerror();
  return text != nullptr ? text : "unknown loader error";
}

std::string LoadedFrom(void* handle) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr) {
    return {};
  }
  return Canonical(map->l_name);
}

constexpr int kFlags = RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE;

struct Attempt {
  void* handle = nullptr;
  std::string path;
  Status status;
  bool nowhere = false;  // there is no such file, not one of those that it needs
};

Attempt LoadFile(const std::string& file, bool trust) {
  std::string path = file;
  if (::access(file.c_str(), F_OK) != 0) return {nullptr, file, Status::FromErrno(errno, file)};
  if (!trust) {
    Result<std::string> resolved = CheckTrustedPath(file);
    if (!resolved.ok()) return {nullptr, file, resolved.status()};
    path = *resolved;
  }
  void* handle = ::dlopen(path.c_str(), kFlags);
  if (handle == nullptr) return {nullptr, path, Unavailable(LastDlError())};
  return {handle, Canonical(path), Status::Ok()};
}

// The loader's search cannot be queried in advance, so the file is judged after the fact: its
// initialisers have run by then, but nothing of it will be called.
Attempt LoadByName(const std::string& soname, bool trust) {
  void* handle = ::dlopen(soname.c_str(), kFlags);
  if (handle == nullptr) {
    const std::string error = LastDlError();
    // glibc has no code for it, but begins with the file that is missing.
    return {nullptr, soname, NotFound(error), error.starts_with(soname + ": cannot open")};
  }
  std::string path = LoadedFrom(handle);
  if (!trust) {
    Status trusted = CheckTrustedPath(path).status();
    if (!trusted.ok()) return {nullptr, path, trusted};
  }
  return {handle, path, Status::Ok()};
}

StatusCode WorstOf(StatusCode so_far, StatusCode next) {
  if (so_far == StatusCode::kPermissionDenied || next == StatusCode::kPermissionDenied) {
    return StatusCode::kPermissionDenied;
  }
  return so_far == StatusCode::kNotFound ? next : so_far;
}

}  // namespace

Result<PathFacts> LookUpPath(const std::string& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return Status::FromErrno(errno, path);
  PathFacts result{facts.st_uid, facts.st_mode, {}};
  if (S_ISLNK(facts.st_mode)) {
    std::array<char, PATH_MAX> target{};
    ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
    if (length < 0) return Status::FromErrno(errno, path);
    result.link_target.assign(target.data(), static_cast<size_t>(length));
  }
  return result;
}

Result<std::string> CheckTrustedPath(const std::string& path, const PathLookup& look_up) {
  if (path.empty() || path.front() != '/') {
    return InvalidArgument(fmt::format("\"{}\" is not an absolute path", path));
  }
  std::deque<std::string> todo;
  PushPathFront(path, &todo);
  std::vector<std::string> done;  // directories walked so far; each one checked
  std::string here;               // "/a/b", empty for "/"
  int links = 0;
  Result<PathFacts> root = look_up("/");
  if (!root.ok()) return root.status();
  RETURN_IF_ERROR(CheckEntry("/", *root));
  while (!todo.empty()) {
    std::string part = std::move(todo.front());
    todo.pop_front();
    if (part == "..") {
      if (!done.empty()) done.pop_back();
      here = done.empty() ? "" : done.back();
      continue;
    }
    std::string next = here;
    next.append("/").append(part);
    Result<PathFacts> facts = look_up(next);
    if (!facts.ok()) return facts.status();
    RETURN_IF_ERROR(CheckEntry(next, *facts));
    if ((facts->mode & S_IFMT) == S_IFLNK) {
      if (++links > kMaxSymlinks) return FailedPrecondition(path + ": too many symbolic links");
      if (!facts->link_target.empty() && facts->link_target.front() == '/') {
        done.clear();
        here.clear();
      }
      PushPathFront(facts->link_target, &todo);
      continue;
    }
    here = std::move(next);
    done.push_back(here);
  }
  return here.empty() ? std::string("/") : here;
}

Result<DlLibrary> DlLibrary::Open(const DlOptions& options) {
  std::string tried;
  StatusCode code = StatusCode::kNotFound;
  auto note = [&](const std::string& candidate, const Status& why) {
    tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", candidate, why.message());
    code = WorstOf(code, why.code());
  };
  if (!options.configured_path.empty()) {
    Attempt only = LoadFile(options.configured_path, options.trust_unsafe_path);
    if (only.handle != nullptr) return DlLibrary(only.handle, only.path);
    note(options.configured_path, only.status);
    return Status(code, fmt::format("cannot load the configured library: {}", tried));
  }
  Attempt by_name = LoadByName(options.soname, options.trust_unsafe_path);
  if (by_name.handle != nullptr) return DlLibrary(by_name.handle, by_name.path);
  bool nowhere = by_name.nowhere;
  note(options.soname == by_name.path ? options.soname
                                      : options.soname + " found as " + by_name.path,
       by_name.status);
  // A refused copy is mapped already; loading a second one beside it would mix the two.
  if (by_name.status.code() != StatusCode::kNotFound) {
    return Status(code, fmt::format("refused {}: {}", options.soname, tried));
  }
  for (const std::string& folder : options.usual_folders) {
    std::string file = folder + "/" + options.soname;
    Attempt attempt = LoadFile(file, options.trust_unsafe_path);
    if (attempt.handle != nullptr) return DlLibrary(attempt.handle, attempt.path);
    note(file, attempt.status);
    nowhere = nowhere && attempt.status.code() == StatusCode::kNotFound;
  }
  if (nowhere) {
    return NotFound(fmt::format("no {} on this machine: neither where the loader looks, nor in {}",
                                options.soname, fmt::join(options.usual_folders, ", ")));
  }
  return Status(code, fmt::format("cannot load {}; tried {}", options.soname, tried));
}

void* DlLibrary::FindSymbol(const char* name) const { return ::dlsym(handle_, name); }

}  // namespace profd
