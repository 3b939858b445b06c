// The files of one directory of a result (host or device_N): control files, and data that grows in slices. A write is
// never split, a slice that has reached its size is closed and gets its .done, and with a storage limit the oldest
// closed ones go.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace profd::sim::aclprof {

class ResultFiles {
 public:
  // `suffix`: "" of the host, ".0" of device 0. storage_limit_mb 0: none.
  static Result<ResultFiles> Make(const std::string& folder, std::string suffix, uint64_t storage_limit_mb);

  void PutControl(const std::string& name, const std::string& text);
  // Into the slices of data/`name`, with the directory's suffix.
  void Append(const std::string& name, std::string_view record);
  template <class Record>
  void AppendRecord(const std::string& name, const Record& record) {
    Append(name, {reinterpret_cast<const char*>(&record), sizeof record});
  }
  // What is not yet in a file.
  void Flush();
  // A write has found the disk full, and whatever followed was left out.
  bool disk_full() const { return disk_full_; }

 private:
  struct Growing {
    std::string bytes;
    uint64_t slice = 0;
  };
  struct Closed {
    std::string file, path;
    uint64_t bytes = 0;
  };

  void Write(const std::string& path, std::string_view bytes);
  void CloseSlice(const std::string& name, Growing& growing);
  void Age();

  std::string folder_, suffix_;
  uint64_t limit_bytes_ = 0;  // from which on the oldest go; 0: none
  uint64_t stored_ = 0;
  bool disk_full_ = false;
  std::map<std::string, Growing> growing_;
  std::deque<Closed> closed_;
};

}  // namespace profd::sim::aclprof
