// The data files that a dump has opened: found by name or number, written, and held to a number of descriptors. A part of
// SessionDump, on its thread.
//
// What changes a file's size is done here, so that the bytes of the dump and of its folders (DumpFolders) are right
// after each call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "dump/dump_folders.h"
#include "dump/dump_sync.h"
#include "dump/slice_writer.h"

namespace profd {

struct DumpFile {
  uint32_t number = 0;  // in the order they were opened
  std::unique_ptr<SliceWriter> writer;
  DataFolder* folder = nullptr;  // null: one of our own
  int device = -1;               // -1: the host's or our own
  uint32_t channel_id = 0;       // 0: no driver channel
  std::string collector;         // of files without a channel, if known
  uint64_t started = 0;          // unsynced bytes whose writing was asked for
  bool dynamic = false;          // may be one of very many: its descriptor is not kept at any price
  bool holds_fd = false;         // counted among those of dynamic files
  bool idle = true;              // nothing was appended since the last FlushAll
  bool appending = false;        // something is about to be

  uint64_t size() const { return writer->bytes() + writer->overhead_bytes(); }
  std::string PathOf(uint32_t slice) const;  // below the dump
};

class DumpFiles {
 public:
  // The references outlive the object. Of dynamic files so many may hold a descriptor.
  DumpFiles(DumpFolders& folders, const RunningSync& sync, size_t max_dynamic_fds)
      : folders_(folders), sync_(sync), max_dynamic_fds_(max_dynamic_fds) {}

  // `folder_or_null`: null for one of our own. kAlreadyExists if the folder has it.
  Result<DumpFile*> Add(DataFolder* folder_or_null, SliceOptions options);
  // Null: it is not open. kOwn: one of our own.
  static constexpr int kOwn = -1;
  DumpFile* Find(int device, std::string_view base);
  DumpFile& at(uint32_t number) const { return *files_[number]; }
  size_t size() const { return files_.size(); }
  const std::vector<std::unique_ptr<DumpFile>>& all() const { return files_; }
  size_t open_fds() const;

  // As SliceWriter has them.
  Status Append(DumpFile& file, std::span<const std::byte> bytes, uint64_t records, int64_t host_ns);
  Status Flush(DumpFile& file);
  Status Cut(DumpFile& file);
  // Of every file, whatever fails; the first error. Dynamic files that were idle give back what they hold.
  Status FlushAll();
  Status CloseAll();
  // Asks the kernel to begin with what has become much.
  void StartWriteback();
  // Hands over what was written since the last time, and touches the folders.
  void Sync();

 private:
  template <typename Change>
  Status Do(DumpFile& file, const Change& change);
  void CountFd(DumpFile& file);
  void GiveFdBack(DumpFile& file);
  const std::string& KeyOf(int device, std::string_view base);  // valid until the next call

  DumpFolders& folders_;
  const RunningSync& sync_;
  const size_t max_dynamic_fds_;
  std::vector<std::unique_ptr<DumpFile>> files_;
  std::unordered_map<std::string, DumpFile*> by_name_;  // "<device>/<base>"
  std::string key_;
  size_t dynamic_fds_ = 0;
};

}  // namespace profd
