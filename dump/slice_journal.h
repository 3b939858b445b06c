// host/profd/slices.tsv: what became of every slice of a dump, written as it happens, so that a dump whose
// end was never written can still be checked. Lines are only ever added; a line without its '\n' is
// the one a crash cut off, and counts for nothing. Fields are separated by tabs, timestamps are the
// host's CLOCK_MONOTONIC_RAW in ns (0 = unknown), check sums 8 digits of lower-case hex:
//
//   closed      path bytes records crc32c first_ns last_ns closed_ns
//   compressed  path bytes crc32c                    now <path>.zst; size and sum of that file
//   aged        path bytes records from_ns to_ns aged_ns                     removed by a limit
//   forgotten   file slices bytes records from_ns to_ns ns
//   lost        device/channel/collector reason records bytes from_ns to_ns gap_records
//   files       folder pid rank state files bytes refused
//
// `files` is of what the vendor's profiler left in a process (ManifestProcessFiles): the folder below host/profd/ that
// it is copied to, the rank (-1 = none), the state at that moment.
// `lost` is what is missing and why, as the manifest will have it when it is next replaced: all records and bytes of
// that reason so far, and the gap that was noticed last. Lines the manifest has meanwhile are left out by rewriting.
// `path` is below the dump, without .zst. `bytes` and `crc32c` of `closed` are of the slice as
// recorded (its header line included, `records` does not count that), whether or not it was
// compressed later. `forgotten` stands for the slices of one file (path without .slice_<k>) that were
// aged before the journal was last rewritten: rewriting leaves their lines out, so that a session
// that ages for weeks does not fill its limit with the journal. Readers skip kinds they do not know.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dump/loss_reason.h"

namespace profd {

struct ManifestFile;

// In our own folder, and below the dump.
inline constexpr std::string_view kJournalName = "slices.tsv";
inline constexpr std::string_view kJournalFile = "host/profd/slices.tsv";
// Longer ones are not read.
inline constexpr size_t kMaxJournalBytes = 64u << 20;
// Between a file's name and the number of its slice.
inline constexpr std::string_view kSliceMark = ".slice_";
// A compressed slice is called this after its own name. Its .done keeps its name and has the size
// before compression.
inline constexpr std::string_view kCompressedSuffix = ".zst";
// Of the file beside a closed one that has its size.
inline constexpr std::string_view kDoneSuffix = ".done";

struct SliceEntry {
  std::string path = {};    // "device_0/data/hbm.data.0.slice_3"
  uint64_t bytes = 0;  // as recorded
  uint64_t records = 0;
  uint32_t crc32c = 0;
  int64_t first_ns = 0;  // when the first and the last of its data were read from the driver
  int64_t last_ns = 0;
  int64_t closed_ns = 0;
  bool compressed = false;
  uint64_t stored_bytes = 0;  // of the compressed file
  uint32_t stored_crc32c = 0;
  bool aged = false;  // no longer there
  int64_t aged_ns = 0;
  bool operator==(const SliceEntry&) const = default;
};

// Slices that are gone and no longer listed one by one.
struct ForgottenSlices {
  std::string file;  // "device_0/data/hbm.data.0"
  uint64_t slices = 0;
  uint64_t bytes = 0;
  uint64_t records = 0;
  int64_t from_ns = 0;
  int64_t to_ns = 0;
  int64_t ns = 0;
  bool operator==(const ForgottenSlices&) const = default;
};

// Something that is missing from one channel (ManifestLoss, ManifestGap).
struct JournalLoss {
  int device = -1;
  uint32_t channel = 0;
  std::string collector;
  LossReason reason = LossReason::kUnknown;
  uint64_t records = 0;  // for this reason so far
  uint64_t bytes = 0;
  int64_t from_ns = 0;  // of the gap
  int64_t to_ns = 0;
  uint64_t gap_records = 0;
  bool operator==(const JournalLoss&) const = default;
};

struct JournalFiles {
  std::string folder;  // in our own
  int pid = 0;
  int rank = -1;
  std::string state;
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t refused = 0;
};

struct SliceJournal {
  std::map<std::string, JournalFiles> files;  // by folder, as it was noted last
  std::vector<JournalLoss> losses;  // in the order they were noticed
  std::vector<SliceEntry> slices;  // in the order they were closed
  std::map<std::string, ForgottenSlices> forgotten;  // by file
  uint64_t bad_lines = 0;  // that could not be parsed; their meaning is unknown
  bool torn = false;       // the last line was cut off

  // Null if the journal does not know the slice.
  const SliceEntry* Find(std::string_view path) const;
  SliceEntry* Find(std::string_view path);
  // The entry of `slice.path` becomes `slice`.
  void Put(SliceEntry slice);

 private:
  std::map<std::string, size_t, std::less<>> by_path_;
};

SliceJournal ParseSliceJournal(std::string_view text_untrusted);

std::string ClosedLine(const SliceEntry& slice);
std::string CompressedLine(const SliceEntry& slice);
std::string AgedLine(const SliceEntry& slice);
std::string ForgottenLine(const ForgottenSlices& slices);
std::string LostLine(const JournalLoss& loss);
std::string FilesLine(const JournalFiles& files);

// What the manifest has of a slice, besides its path and size.
void DescribeSlice(const SliceEntry& slice, bool compressed, ManifestFile* file);

// A slice's path as the journal has it, without .zst.
std::string_view RecordedName(std::string_view path);
// "device_0/data/hbm.data.0" of "device_0/data/hbm.data.0.slice_3[.zst]"; empty if `path` is none of
// a slice.
std::string_view FileOfSlice(std::string_view path);

}  // namespace profd
