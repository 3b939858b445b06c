// Keeps a dump below its limit at every instant: before anything is written, what it takes and what running and ending
// the dump will still take (manifest, journal, end_info, .done files) must fit; if the dump ages, the oldest closed
// slices go for it. Near the limit open slices are closed early, for only closed ones may go. A part of SessionDump, on
// its thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "dump/closed_slices.h"
#include "dump/dump_files.h"
#include "dump/dump_folders.h"
#include "dump/manifest.h"
#include "dump/manifest_writer.h"

namespace profd {

// kResourceExhausted: the dump is as large as it may become (and not: the disk is full).
Status AtStorageLimit(std::string text);
bool IsAtStorageLimit(const Status& status);

class DumpSpace {
 public:
  struct Limits {
    uint64_t bytes = 0;         // of everything in the dump; 0 = no limit
    bool ages = false;          // at the limit the oldest closed slices go
    uint64_t folder_bytes = 0;  // with `ages`: of each directory (PlaceLimit); 0 = no limit
  };
  // The dump; outlives the object.
  struct Dump {
    DumpFolders& folders;
    DumpFiles& files;
    ClosedSlices& closed;
    const ManifestWriter& manifest_writer;
    const Manifest& manifest;
  };
  DumpSpace(const Dump& dump, Limits limits) : dump_(dump), limits_(limits) {}

  // It ages at its limit, and its chips allow it.
  bool ages() const { return limits_.ages && dump_.closed.ages(); }
  // Journal included, manifest not.
  uint64_t used() const { return dump_.folders.bytes() + dump_.closed.index().bytes(); }
  // As it is now, without anything going for it.
  bool Fits(uint64_t more) const;

  // Makes sure that `more` bytes fit: all at once, or of a file that is appended to, in its directory, too.
  Status Reserve(uint64_t more);
  Status Reserve(DumpFile& file, uint64_t more);
  // Takes `bytes` that others write; nothing goes for them.
  Status Take(uint64_t bytes);
  // After an append: directories that have too much in closed slices.
  void AgeFolders();
  // Something came that no call above had the size of: the next append looks at the limits again.
  void Forget() { known_ = 0; }
  // The manifest's gaps may have become more.
  void CountGaps();
  // Closes all open slices that are worth it, so that they may go once more has come. False: none was.
  bool CutAll();

 private:
  uint64_t Reserved() const;
  void FindKnown(uint64_t needed);
  uint64_t CutBytes(const DumpFile& file) const;
  bool Cut(DumpFile& file, uint64_t least);
  void CutNear(DumpFile& file, bool near_limit);

  const Dump dump_;
  const Limits limits_;
  uint64_t gap_bytes_ = 0;  // what the manifest's gaps take, as counted last
  uint64_t known_ = 0;      // so much may be appended without a look at the limits
  bool near_limit_ = false;
};

}  // namespace profd
