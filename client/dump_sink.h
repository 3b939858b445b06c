// Writes a fetched dump below a directory of the user's. Every name is sent by the daemon and is
// trusted as little as a stranger's archive: nothing is written outside the dump's own new
// directory, through a symbolic link, or over an existing file; never more than was announced.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "profd/v1/profd.pb.h"

namespace profd::client {

// `path` in its components; an error unless it is relative, plain, and stays below its root.
Result<std::vector<std::string>> SplitDumpPath(std::string_view path);

class DumpSink {
 public:
  // `out_dir` is created if it is missing (its parent must exist).
  explicit DumpSink(std::string out_dir) : out_dir_(std::move(out_dir)) {}
  DumpSink(const DumpSink&) = delete;
  DumpSink& operator=(const DumpSink&) = delete;

  Status Write(const v1::DumpChunk& chunk);
  // After the last chunk: kDataLoss unless everything announced has arrived and is on disk.
  Status Finish();
  // The same where another dump follows: what is left of the announced bytes is that one's.
  Status FinishPart() const;
  // Removes what was written, and only that.
  void Discard();

  // Where the dump is: out_dir/name. Empty before the first chunk.
  std::string path() const;
  const std::string& name() const { return name_; }
  uint64_t received_bytes() const { return received_; }
  uint64_t total_bytes() const { return total_; }
  uint64_t files() const { return files_; }

 private:
  Status Begin(const v1::DumpChunk& chunk);
  Status OpenFile(const std::string& path);
  Status CloseFile();
  // A descriptor of the directory `components` (all but the last) below root_, created as needed.
  Result<UniqueFd> OpenParent(const std::vector<std::string>& components);

  std::string out_dir_;
  std::string name_;
  UniqueFd out_;
  UniqueFd root_;
  UniqueFd file_;
  std::string file_path_;
  uint64_t file_bytes_ = 0;
  uint64_t received_ = 0;
  uint64_t total_ = 0;
  uint64_t files_ = 0;
  // What we made, in order: relative to root_.
  struct CreatedEntry {
    std::string path;
    bool directory;
  };
  std::vector<CreatedEntry> created_;
};

}  // namespace profd::client
