// A directory that serves as "/": /proc, /sys or a test folder. It is opened once; every path is
// relative to it and cannot leave it, neither by "..", nor by a symlink, nor by /proc's magic
// links. Symlinks that stay inside work (/sys is made of them). All functions are thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace profd {

// One file kept open, read again and again from its start with a single pread. Right for /proc and
// /sys attributes, which render their complete content per read from offset 0.
class KeptFile {
 public:
  KeptFile() = default;
  explicit KeptFile(UniqueFd fd) : fd_(std::move(fd)) {}

  bool valid() const { return fd_.valid(); }
  // The content, as far as it fits into `buffer`; the view points into it. A process that is gone
  // answers kNotFound.
  Result<std::string_view> Read(std::span<char> buffer) const;

 private:
  UniqueFd fd_;
};

class RootedFs {
 public:
  // kByHand walks path components itself, as happens on kernels without openat2 (before 5.6).
  enum class Resolver { kKernelIfAble, kByHand };

  static Result<RootedFs> OpenRoot(const std::string& path,
                                   Resolver resolver = Resolver::kKernelIfAble);

  // Read-only, close-on-exec, never blocking on a FIFO. "" or "." is the root itself.
  Result<UniqueFd> Open(std::string_view relative_path) const;
  Result<KeptFile> Keep(std::string_view relative_path) const;
  // Reads from the start until the end of the file or of `buffer`; gives the bytes read.
  Result<size_t> ReadInto(std::string_view relative_path, std::span<char> buffer) const;
  // The complete file; kOutOfRange when it is longer than `max_bytes`.
  Result<std::string> ReadFile(std::string_view relative_path, size_t max_bytes) const;
  // Calls `visit` with each name in a directory, without "." and "..", in the kernel's order. Allocates nothing.
  Status Visit(std::string_view relative_path,
               const std::function<void(std::string_view name)>& visit) const;
  // The same, all of them, sorted.
  Result<std::vector<std::string>> List(std::string_view relative_path) const;
  // The text of a symlink, not followed ("../../devices/...").
  Result<std::string> ReadLink(std::string_view relative_path) const;
  bool Exists(std::string_view relative_path) const;

 private:
  RootedFs(UniqueFd root, Resolver resolver) : root_(std::move(root)), resolver_(resolver) {}
  Result<UniqueFd> OpenFlags(std::string_view relative_path, int flags) const;

  UniqueFd root_;
  Resolver resolver_;
};

}  // namespace profd
