// Loads a vendor library into a process that usually runs as root, so it looks at who could have
// written the file before it runs any of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace profd {

struct DlOptions {
  // Tried alone when set: an operator who names a file does not want another one.
  std::string configured_path = {};
  // Otherwise: this name through the loader's own search (LD_LIBRARY_PATH, ldconfig), ...
  std::string soname = {};
  // ... then <folder>/<soname>, in order.
  std::vector<std::string> usual_folders = {};
  // Skips the ownership checks. For processes without privileges, or on an operator's explicit
  // word.
  bool trust_unsafe_path = false;
};

// RTLD_LAZY | RTLD_NODELETE: the code stays mapped for good, so that a thread that is stuck inside
// it, or a function pointer taken from it, never outlives it. Copies are cheap.
class DlLibrary {
 public:
  // The error lists every candidate and why it failed: kNotFound when there was none,
  // kPermissionDenied when one was refused by the ownership checks.
  static Result<DlLibrary> Open(const DlOptions& options);

  // Null when the library does not export `name`.
  void* FindSymbol(const char* name) const;
  // Fills `*function`; appends the name to `*missing` when it is not there.
  template <class Function>
  void Resolve(const char* name, Function* function, std::vector<std::string>* missing) const {
    *function = reinterpret_cast<Function>(FindSymbol(name));
    if (*function == nullptr) missing->emplace_back(name);
  }

  // The file as loaded, symlinks resolved.
  const std::string& path() const { return path_; }

 private:
  DlLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* handle_;
  std::string path_;
};

// What the path checks need to know of one directory entry (lstat).
struct PathFacts {
  uint32_t uid = 0;
  uint32_t mode = 0;        // st_mode
  std::string link_target;  // symlinks only
};
using PathLookup = std::function<Result<PathFacts>(const std::string& path)>;
// lstat + readlink of the real file system.
Result<PathFacts> LookUpPath(const std::string& path);

// Walks the absolute `path` from "/" through every symlink: each directory, link and finally the
// file must belong to root, directories and the file must not be writable by group or others (a
// sticky bit does not help: any user who may create a file there can be first). Gives the resolved path.
Result<std::string> CheckTrustedPath(const std::string& path,
                                     const PathLookup& look_up = LookUpPath);

}  // namespace profd
