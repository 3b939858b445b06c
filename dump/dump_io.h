// The system calls with which dumps are made. Everything is relative to a directory descriptor,
// never follows a symbolic link, never opens anything but what it names. Tests override single
// calls to make a disk full or broken.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace profd {

// Who a dump belongs to: directories are 0750, files 0640, both owned by this user and group.
struct DumpOwner {
  uid_t uid = 0;
  gid_t gid = 0;
};

inline constexpr mode_t kDumpDirMode = 0750;
inline constexpr mode_t kDumpFileMode = 0640;

class DumpIo {
 public:
  virtual ~DumpIo() = default;
  // Creates (O_EXCL) `name` in `dir` for appending, owned by `owner`.
  virtual Result<UniqueFd> Create(int dir, const std::string& name, DumpOwner owner);
  // As write(2): bytes written or -1 and errno.
  virtual ssize_t Write(int fd, const void* data, size_t size);
  // As writev(2).
  virtual ssize_t WriteV(int fd, const struct iovec* parts, int count);
  // As ftruncate(2), unlinkat(2) of a file: 0, or -1 and errno.
  virtual int Truncate(int fd, uint64_t size);
  virtual int Unlink(int dir, const std::string& name);
  // As fdatasync(2) and syncfs(2): 0, or -1 and errno.
  virtual int Sync(int fd);
  virtual int SyncFileSystem(int fd);
  // Requests that dirty pages are written soon, and that clean ones are dropped.
  virtual void StartWriteback(int fd);
  virtual void DropCache(int fd);
};

// The real thing; has no state.
DumpIo& SystemDumpIo();

// One component of a path that may exist in a dump: [A-Za-z0-9._-]{1,96}, not "." or "..".
bool IsSafeName(std::string_view name);
// Such names, with '/' between them.
bool IsSafePath(std::string_view path);

// Creates directory `name` in `dir` (0750, `owner`) and opens it.
Result<UniqueFd> MakeDirAt(int dir, const std::string& name, DumpOwner owner);
// The same directly in a dump, which must hold no other folders (IsTopFolder).
Result<UniqueFd> MakeTopFolderAt(int dump, const std::string& name, DumpOwner owner);
// Opens an existing directory; a symbolic link is an error.
Result<UniqueFd> OpenDirAt(int dir, const std::string& name);
// Names in `dir`, sorted; not "." and "..". kOutOfRange if there are more than `limit`.
Result<std::vector<std::string>> ListNames(int dir, size_t limit = SIZE_MAX);
// Another descriptor of the same file; none if `fd` is none.
UniqueFd CopyOf(int fd);
// Opens an existing regular file for reading; never blocks on a FIFO, never follows a link.
Result<UniqueFd> OpenFileAt(int dir, const std::string& name);
// Reads a complete file; kOutOfRange if it is longer than `limit`.
Result<std::string> ReadWhole(int fd, size_t limit);

// Writes all of `data`; on error *written is how much was written. `what` names the file in the error.
Status WriteAll(DumpIo& io, int fd, std::span<const std::byte> data, std::string_view what,
                size_t* written = nullptr);
// The same of two pieces, one behind the other, without copying them together.
Status WriteBoth(DumpIo& io, int fd, std::span<const std::byte> first,
                 std::span<const std::byte> second, std::string_view what, size_t* written);
// Creates `name` with `text`.
Status WriteNewFile(DumpIo& io, int dir, const std::string& name, std::string_view text,
                    DumpOwner owner);
// Puts `text` in the place of `name` in one step (temporary file, fsync if `sync`, renameat).
Status ReplaceFile(DumpIo& io, int dir, const std::string& name, std::string_view text,
                   DumpOwner owner, bool sync);

// What a walk through a dump's tree met: regular files and directories only; links and everything
// else are reported with `other` set and never opened.
struct TreeEntry {
  std::string path = {};  // relative to where the walk began
  uint64_t bytes = 0;
  uid_t uid = 0;
  nlink_t links = 0;
  bool is_dir = false;
  bool other = false;
};

struct TreeLimits {
  int depth = 8;             // deeper directories are an error
  size_t entries = 200'000;  // more are an error
};

// Visits everything below `dir`, directories before their content, in name order. Stops at the
// first error a visit returns.
Status WalkTree(int dir, const TreeLimits& limits,
                const std::function<Status(const TreeEntry&)>& visit);
// Removes everything below `dir` (not `dir` itself), links as links, never leaving its file system.
Status RemoveTree(int dir);

}  // namespace profd
