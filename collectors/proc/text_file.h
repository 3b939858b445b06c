// Small text files of /proc and /sys, read over and over: what the host collectors share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "driver/rooted_fs.h"

namespace profd {

// Where files are read into; grows with the largest one up to kMaxBytes and is then reused.
class TextBuffer {
 public:
  static constexpr size_t kMaxBytes = size_t{4} << 20;

  explicit TextBuffer(size_t bytes = 16384) : bytes_(bytes) {}
  char* data() { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  // False when it already is as large as it may get.
  [[nodiscard]] bool Grow() {
    if (bytes_.size() >= kMaxBytes) return false;
    bytes_.resize(bytes_.size() * 2);
    return true;
  }

 private:
  std::vector<char> bytes_;
};

// One file of a rooted tree, kept open between reads.
class TextFile {
 public:
  // How the kernel renders it.
  enum class Kind {
    kOnePiece,  // complete in a single pread: attributes of /sys, /proc/stat, /proc/meminfo, ...
    kRecords,   // a page of records per pread, until one gives nothing: net/dev, diskstats
  };

  // `fs` must outlive it.
  TextFile(const RootedFs& fs, std::string path, Kind kind = Kind::kOnePiece)
      : fs_(&fs), path_(std::move(path)), kind_(kind) {}

  // The file's content now, from its beginning; the view lives until `buffer` is used again. A file
  // larger than the buffer may get is cut. After an error the file is opened anew next time.
  Result<std::string_view> Read(TextBuffer& buffer);
  // Gives the descriptor back; the next Read opens the file again.
  void Close() { fd_.Reset(); }

  const std::string& path() const { return path_; }

 private:
  const RootedFs* fs_;
  std::string path_;
  Kind kind_;
  UniqueFd fd_;
};

// kUnimplemented with `shown` (the path as people know it) when there is no such file; any other
// reason why it cannot be read as it is.
Status ProbeFile(const RootedFs& fs, const std::string& path, std::string_view shown);

// For a Poll that continues after an error and reports the first one.
class FirstError {
 public:
  void Note(Status status) {
    if (status_.ok() && !status.ok()) status_ = std::move(status);
  }
  Status Take() { return std::exchange(status_, Status()); }

 private:
  Status status_;
};

// True at most once per period; the first time at once.
class SlowPace {
 public:
  explicit SlowPace(int64_t period_ns) : period_ns_(period_ns) {}
  bool Due(int64_t due_ns) {
    if (started_ && due_ns - last_ns_ < period_ns_) return false;
    started_ = true;
    last_ns_ = due_ns;
    return true;
  }

 private:
  int64_t period_ns_;
  int64_t last_ns_ = 0;
  bool started_ = false;
};

}  // namespace profd
