// Checks the integrity of a dump. Reads every byte of it and holds it against its manifest, its slice journal and
// itself: sizes, checksums, framing of records, order of timestamps, clock pairs, and for every channel
// that what was expected = what is there + what the manifest reports as lost.
//
// Nothing is changed. Bytes are untrusted; memory does not depend on the dump's size.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dump/manifest.h"
#include "dump/reader.h"

namespace profd {

// What is checked; `ran` false where the dump has nothing to check it by (a dump of the vendor's
// collector has no checksums).
enum class VerifyCheck : uint8_t {
  kManifest,    // there, readable
  kSizes,       // files are there and as long as manifest, journal and .done say; nothing else is
  kChecksums,   // CRC-32C of slices
  kFraming,     // complete records and lines, readable timestamps
  kOrder,       // timestamps of a series never go back
  kClocks,      // control files and clock pairs agree with each other
  kAccounting,  // expected = received + lost; of an ended session
};
inline constexpr size_t kVerifyChecks = 7;
std::string_view ToString(VerifyCheck check);

struct VerifyProblem {
  VerifyCheck check = VerifyCheck::kManifest;
  std::string where;  // file or channel
  std::string what;
};

struct VerifyChannel {
  std::string collector = {};
  int device = -1;
  uint32_t channel = 0;
  std::string file = {};
  uint64_t slices = 0;
  uint64_t bytes = 0;
  uint64_t received = 0;     // records in the files
  uint64_t lost = 0;         // of these the manifest knows
  uint64_t missing = 0;      // by the timestamps: in places the manifest names; without a period: by the manifest
  uint64_t unexplained = 0;  // and elsewhere
  bool judged = true;        // false: a file of a kind that is not checked here, counted only
  uint64_t expected() const { return received + missing + unexplained; }
  double hz = 0;  // 0 = event driven
};

struct VerifyReport {
  std::string name;
  DumpState state = DumpState::kDone;
  bool has_manifest = false;
  bool ran[kVerifyChecks] = {};
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t checksums = 0;  // slices whose CRC was compared
  std::vector<VerifyChannel> channels;
  std::vector<VerifyProblem> problems;  // the first kMaxProblems
  uint64_t problem_count = 0;
  uint64_t removed_records = 0;    // by limits, the oldest first, as the manifest has it
  uint64_t removed_for_space = 0;  // part of removed_records: because the volume was nearly full
  ManifestOption storage_limit;    // the others for this one; without a key: not known
  std::vector<std::string> notes;  // worth knowing, and no fault of the dump

  static constexpr size_t kMaxProblems = 1000;
  bool ok() const { return problem_count == 0; }
  void Add(VerifyCheck check, std::string where, std::string what);
};

// Called now and then with the bytes read so far; false gives up (kCancelled).
using VerifyProgress = std::function<bool(uint64_t done, uint64_t total)>;

// An error only if the directory itself cannot be read; whatever is wrong inside is in the report.
Result<VerifyReport> VerifyDump(const DumpReader& reader, std::string_view name,
                                const VerifyProgress& progress = {});

}  // namespace profd
