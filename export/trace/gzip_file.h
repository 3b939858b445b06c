// A shared file that is one gzip member, deflated by many threads: each piece by the thread that
// brings it, ended at a byte boundary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/status.h"
#include "export/shared_file.h"

namespace profd::exporting {

class GzipFile {
 public:
  Status Create(std::string path, GoOn go_on);
  // Any thread.
  Status Append(std::string_view bytes);
  Status Commit();

  uint64_t bytes() const { return file_.bytes(); }
  const std::string& path() const { return file_.path(); }

 private:
  SharedFile file_;
  Mutex mutex_;
  unsigned long crc_ GUARDED_BY(mutex_) = 0;
  uint64_t size_ GUARDED_BY(mutex_) = 0;  // of what was brought
};

}  // namespace profd::exporting
