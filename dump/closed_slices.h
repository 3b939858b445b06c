// What becomes of a dump's slices once they are closed: the journal has them (SliceIndex), a thread compresses them, and
// the oldest go when space is needed (Ageing). What goes is counted in the manifest. A part of SessionDump, on its
// thread.
//
// The journal has a slice before anything else happens to it, and its removal before it is removed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "dump/ageing.h"
#include "dump/dump_files.h"
#include "dump/dump_folders.h"
#include "dump/dump_sync.h"
#include "dump/manifest.h"
#include "dump/manifest_writer.h"
#include "dump/slice_compressor.h"
#include "dump/slice_index.h"
#include "dump/slice_writer.h"

namespace profd {

// Slices a limit has removed, of one file.
struct AgedCount {
  std::string collector;  // empty: a driver channel's file
  int device = -1;
  uint32_t channel = 0;
  uint64_t records = 0;
  uint64_t bytes = 0;
};

class ClosedSlices final : private SliceObserver {
 public:
  // The dump they are in; outlives the object.
  struct Dump {
    DumpFolders& folders;
    DumpFiles& files;
    Manifest& manifest;
    ManifestWriter& manifest_writer;
    const RunningSync& sync;
    const Clock& clock;
  };
  struct Options {
    bool ages = true;          // false: none may go
    int compress = 0;          // zstd level; 0 = as they are
    uint64_t most_bytes = 0;   // that a compressed one may have had; 0 = any
  };
  ClosedSlices(const Dump& dump, Options options);

  // Each file of the dump, in their order.
  void Watch(DumpFile& file);
  SliceIndex& index() { return index_; }

  bool ages() const { return options_.ages; }
  void NeverAge() { options_.ages = false; }
  // Of `folder_or_null` or all: the oldest slice goes, with its partner. False: all that is left must stay.
  bool RemoveOldest(const DataFolder* folder_or_null);
  // The same for a nearly full volume, until `bytes` are free or nothing is left that may go; returns the bytes freed.
  uint64_t AgeFor(uint64_t bytes);
  // When the oldest that AgeFor may remove was closed: 0 = there is none.
  int64_t OldestNs();
  // Bytes on the disk of the folder's slices.
  uint64_t stored(const DataFolder& folder) const { return ageing_.stored(folder.number); }
  // Removed since the last call, for metrics.
  std::vector<AgedCount> TakeAged() { return std::exchange(aged_, {}); }

  // Counts what has been compressed.
  void TakeCompressed();
  // Waits for the rest, but not for long.
  void FinishCompressing();
  // What compressing takes for a moment.
  uint64_t spare_bytes() const { return compressor_ != nullptr ? compressor_->spare_bytes() : 0; }

 private:
  void OnSliceClosed(uint32_t number, const ClosedSlice& slice, UniqueFd fd) override;
  bool Compress(const DumpFile& file, const SliceEntry& slice, uint32_t number);
  bool HasOpen(DumpFile& file);
  void Remove(const Ageing::Slice& slice);
  void CountAged(const DumpFile& file, const SliceEntry& slice);
  ManifestChannel& EntryOf(const DumpFile& file);

  const Dump dump_;
  Options options_;
  SliceIndex index_;
  Ageing ageing_;  // its files have their numbers in the dump
  std::unique_ptr<SliceCompressor> compressor_;
  std::vector<AgedCount> aged_;
  bool for_space_ = false;  // what goes now does so because the volume is nearly full
};

}  // namespace profd
