// The parts of a recovery that work on the directories of a dump; private to recovery.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "dump/dump_io.h"
#include "dump/manifest.h"
#include "dump/slice_journal.h"
#include "dump/reader.h"
#include "dump/slice_repair.h"

namespace profd {

struct RepairContext {
  DumpOwner owner;
  int top;
  bool zeros_untrue;  // the machine went down: what was not on the disk may read as zeros
};

// All slices of one file.
struct RepairedFile {
  uint64_t records = 0;  // of the slices that are there, as far as known
  uint64_t bytes = 0;
  int64_t modified_ns = 0;  // last write, wall clock
  int64_t last_ns = 0;      // when its last data were read from the driver (journal); 0 = unknown
  struct Slice {
    uint32_t number = 0;
    ManifestFile file;
  };
  std::vector<Slice> slices;
  std::vector<SliceEntry> aged;
  std::vector<ForgottenSlices> forgotten;
};

// host/ or device_<N>/.
struct RepairedPlace {
  int device = -1;
  std::string name;
  UniqueFd dir;
  std::map<std::string, RepairedFile, std::less<>> files;  // by base name
  uint64_t cut_bytes = 0;
  uint32_t ended_slices = 0;
};

// The size in a .done file; false if it has none, or is incomplete.
bool ReadDone(int dir, const std::string& name, uid_t uid, uint64_t* bytes);
// Opens a regular file of the owner's that has no other name; kPermissionDenied for any other.
Result<UniqueFd> OpenOwn(int dir, const std::string& name, uid_t uid, int flags);

// Our own files by name, without their headings' lines.
using OwnFiles = std::map<std::string, WholePart, std::less<>>;
Result<std::vector<RepairedPlace>> RepairPlaces(const RepairContext& context,
                                                std::vector<std::string>* warnings, OwnFiles* own,
                                                SliceJournal* journal);
// end_info, and the devices' clocks where the crash happened before they were written.
Status EndPlaces(const RepairContext& context, const std::vector<RepairedPlace>& places,
                 int64_t wall_ns, int64_t raw_ns, Manifest* manifest);
// Records, bytes and what was aged, counted anew.
void CountFile(const RepairedFile& file, ManifestChannel* channel);
// Channels the manifest does not name: it was lost, or not written again since they began.
void NameChannels(const std::vector<RepairedPlace>& places, Manifest* manifest);
// recovery_losses.cc. What the journal knows to be lost and the manifest does not say yet.
void ApplyLosses(const SliceJournal& journal, Manifest* manifest);
// What the journal knows of the files of the vendor's profiler in processes, and what of that was under way.
void ApplyFiles(const SliceJournal& journal, Manifest* manifest);
// What is missing at the ends of the files, by the records' timestamps, and is not reported: it was noticed too late to
// be noted.
void FindUnnoted(const DumpReader& reader, Manifest* manifest);
// Manifest::files.
Status ListRepaired(int top, const std::vector<RepairedPlace>& places, Manifest* manifest);

}  // namespace profd
