// The one file that the sinks of a format write together. Under a temporary name until it is complete.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"

namespace profd::exporting {

// False: the export is interrupted, and nothing more is written. Any thread. Empty: it never is.
using GoOn = std::function<bool()>;
// What ends a format then.
Status IsInterrupted(const GoOn& go_on);

class SharedFile {
 public:
  // Leaves `path` alone until Commit.
  Status Create(std::string path, GoOn go_on = {});
  ~SharedFile();
  SharedFile() = default;
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  // Any thread. All of it in one piece.
  Status Append(std::string_view bytes);
  // Like Append, but leaves the first byte (a separator) out when nothing has been appended so
  // before.
  Status AppendItems(std::string_view items);
  // Gives it its name.
  Status Commit();
  void Discard();

  uint64_t bytes() const {
    MutexLock lock(mutex_);
    return bytes_;
  }
  const std::string& path() const { return path_; }

 private:
  Status Write(std::string_view bytes) REQUIRES(mutex_);

  std::string path_;
  std::string temporary_;
  GoOn go_on_;
  mutable Mutex mutex_;
  UniqueFd fd_;
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
  bool has_items_ GUARDED_BY(mutex_) = false;
  Status failed_ GUARDED_BY(mutex_);  // the first error; nothing is written after it
};

}  // namespace profd::exporting
