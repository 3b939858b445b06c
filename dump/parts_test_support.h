// The parts of a dump that is being written (SessionDump), without it: host/ and the directories of devices 0 and 5.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/testing/temp_dir.h"
#include "dump/closed_slices.h"
#include "dump/dump_files.h"
#include "dump/dump_folders.h"
#include "dump/dump_sync.h"
#include "dump/manifest.h"
#include "dump/manifest_writer.h"
#include "dump/test_support.h"

namespace profd {

class DumpPartsTest : public testing::Test {
 protected:
  explicit DumpPartsTest(DumpSync* sync_or_null = nullptr) : sync_(sync_or_null) {
    EXPECT_TRUE(folders_.Make(root_, 0).ok());
    for (int device : {kVendorHostId, 0, 5}) EXPECT_TRUE(folders_.Add(device).ok());
    EXPECT_TRUE(folders_.AddOwn().ok());
  }

  DataFolder& Folder(int device) { return *folders_.Find(device); }
  DumpFile& Open(int device, const std::string& base, uint64_t slice_bytes = kDefaultSliceBytes) {
    SliceOptions options{.base = base, .slice_bytes = slice_bytes};
    return *files_.Add(&Folder(device), std::move(options)).value();
  }
  Status Append(DumpFile& file, size_t bytes, int64_t host_ns = 0) {
    return files_.Append(file, AsBytes(std::string(bytes, 'x')), 1, host_ns);
  }
  std::string Text(const std::string& name) { return ReadText(folders_.path() + "/" + name); }
  // Of the files below `folder`, but for the journal.
  uint64_t SizeOf(const std::string& folder = "") {
    uint64_t sum = 0;
    for (const std::string& file : FilesBelow(folders_.path() + "/" + folder)) {
      if (!file.ends_with(kJournalName)) sum += std::filesystem::file_size(folders_.path() + "/" + folder + "/" + file);
    }
    return sum;
  }

  TempDir tmp_;
  ManualClock clock_;
  DumpRoot root_ = std::move(DumpRoot::Open(tmp_ / "root")).value();
  FullDiskIo io_;
  Manifest manifest_;
  const RunningSync sync_;
  DumpFolders folders_{io_, Myself(), sync_};
  DumpFiles files_{folders_, sync_, 2};
  ManifestWriter manifest_writer_{folders_, sync_, clock_};
};

}  // namespace profd
