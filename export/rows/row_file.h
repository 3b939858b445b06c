// A file several threads append complete lines to. It appears under its name when it is complete.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"

namespace profd::exporting {

class RowFile {
 public:
  RowFile() = default;
  ~RowFile();
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;

  // Makes `path`.part.
  Status Create(std::string path);
  // Any thread. `*offset`, if not null: where `text` begins in the file.
  Status Append(std::string_view text, uint64_t* offset = nullptr);
  // Adds the range [offset, offset + size) to `out`. No thread appends meanwhile.
  Status Read(uint64_t offset, size_t size, std::string* out) const;
  // Gives it its name.
  Status Commit();
  // Removes what there is, unless committed.
  void Discard();

  const std::string& path() const { return path_; }
  uint64_t bytes() const {
    MutexLock lock(mutex_);
    return bytes_;
  }

 private:
  std::string path_;
  UniqueFd fd_;
  mutable Mutex mutex_;
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
  bool there_ = false;  // the .part
};

}  // namespace profd::exporting
