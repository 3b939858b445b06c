// The directories of one dump, its control files, and what is known of the bytes and the files in it. A part of
// SessionDump, on its thread.
//
// bytes() is of everything in the dump but journal and manifest, what is buffered or set aside included; the bytes of a
// folder are those of its control and data files. Whatever changes them calls Grow or Shrink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "dump/control_files.h"
#include "dump/dump_io.h"
#include "dump/dump_root.h"
#include "dump/dump_sync.h"

namespace profd {

struct DataFolder {  // host/ or device_N/
  int device = kVendorHostId;
  size_t number = 0;  // host/ is the first
  UniqueFd dir;
  UniqueFd data;
  std::string name;    // "host"
  uint64_t bytes = 0;  // taken for files in it
  size_t files = 0;    // data files in it
  size_t singles = 0;  // of them, those that should have one slice only
  bool near_limit = false;
  std::vector<std::string> unsynced;  // control files that the sync thread has not got
  bool touched = false;               // something in it was synced since the directory was
};

struct ListedFile {
  uint32_t crc32c = 0;
  std::optional<uint64_t> records = {};
  int pid = 0;  // not 0: the vendor's profiler in this process wrote it
};
// Of files that are no slices, by their path below the dump.
using ListedFiles = std::map<std::string, ListedFile, std::less<>>;

// "info.json.5"; sample.json and the host's have no suffix.
std::string ControlName(std::string_view name, int device);

class DumpFolders {
 public:
  // `io` and `sync` outlive the object.
  DumpFolders(DumpIo& io, DumpOwner owner, const RunningSync& sync) : io_(io), owner_(owner), sync_(sync) {}

  // The dump's directory, empty.
  Status Make(DumpRoot& root, int64_t start_wall_ns);
  // host/ (kVendorHostId), then the devices'. They stay where they are in memory.
  Result<DataFolder*> Add(int device);
  // Of our own files, in host/.
  Status AddOwn();

  DumpIo& io() const { return io_; }
  const DumpOwner& owner() const { return owner_; }
  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  int top() const { return top_.get(); }
  int own() const { return own_.get(); }
  std::deque<DataFolder>& all() { return all_; }
  DataFolder* Find(int device);

  // A control file and its .done; `name` is without the device.
  Status WriteControl(DataFolder& folder, std::string_view name, std::string_view text);
  // In the place of one that had `before` bytes.
  Status ReplaceControl(DataFolder& folder, std::string_view name, std::string_view text, uint64_t before);

  uint64_t bytes() const { return bytes_; }
  // `folder_or_null`: null for what is in none, or not in its files. `more` may be a negative difference that wrapped.
  void Grow(DataFolder* folder_or_null, uint64_t more);
  void Shrink(DataFolder* folder_or_null, uint64_t less);
  ListedFiles& listed() { return listed_; }
  // Control files, and those of others that came: the last manifest lists them besides data files.
  uint64_t entries() const { return entries_; }
  void AddEntries(uint64_t more) { entries_ += more; }

  // A directory that was removed takes what is written to its open files and keeps none of it; one that was moved away
  // is not found again.
  Status CheckStillThere() const;
  // Hands over the control files that are new, and the directories in which something is (`touched`).
  void SyncControls();
  void SyncTouched();

 private:
  bool IsAt(const std::string& path) const;

  DumpIo& io_;
  const DumpOwner owner_;
  const RunningSync& sync_;
  std::string name_;
  std::string path_;
  UniqueFd top_;
  UniqueFd own_;
  std::deque<DataFolder> all_;
  uint64_t bytes_ = 0;
  ListedFiles listed_;
  uint64_t entries_ = 0;
};

}  // namespace profd
