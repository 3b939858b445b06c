// Runs an export: opens the dumps, spreads their data files over threads, feeds every wanted
// decoder and format. Memory: one read buffer, one batch and the formats' own buffers per thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "export/decoder.h"
#include "export/format.h"

namespace profd::exporting {

inline constexpr std::string_view kEventsChannel = "events";

struct ExportOptions {
  std::vector<std::string> dumps;    // paths
  std::vector<std::string> formats;  // FormatNames()
  std::string out_dir;
  std::set<int> devices;  // empty = all; -1 = host
  // Names of tables, and kEventsChannel for marks, steps and losses; empty = all.
  std::set<std::string> channels;
  TimeWindow window;
  std::set<int> ranks;  // empty = all; of dumps without a rank, or with several, their devices and processes
  size_t longest = 0;   // of operators, collectives and APIs only so many, the longest; 0 = all
  unsigned threads = 0;  // 0 = one per core
  bool gzip = false;
  bool compat_msprof = false;  // with the defects that docs/export.md lists under --compat msprof
  bool legacy_names = false;   // also the files that earlier releases of the vendor's analyser wrote
  bool start_clock = false;  // times by the start's clock pair alone, as the vendor's analyser has them
};

struct ExportProgress {
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;
};

struct ChannelReport {
  std::string dump;
  int device = -1;
  std::string file;
  uint64_t bytes = 0;
  uint64_t records = 0;
  uint64_t rows = 0;
  uint64_t bad_records = 0;
  uint64_t bad_bytes = 0;
  uint64_t clipped = 0;   // as DecodeStats
  uint64_t unpaired = 0;
};

struct FormatFailure {
  std::string format;
  Status error;
};

struct ExportReport {
  std::vector<OutputFile> outputs;
  std::vector<FormatFailure> failed;  // the others are complete
  std::vector<ChannelReport> channels;
  std::vector<DumpInfo::Problem> problems;  // with the dump's name in front of the file
  std::vector<std::string> unfinished;      // names of dumps that were still being written
  uint64_t input_bytes = 0;
  double seconds = 0;
  // Something of the dumps is missing, cut, or could not be decoded. (The last bytes of a session that
  // runs are still on their way.)
  bool damaged = false;
};

// Called from a worker a few times a second at most; false cancels.
using ProgressCall = std::function<bool(const ExportProgress&)>;

// An error: nothing could be exported, or every format failed; no outputs are left then. A single
// format that failed, and bad bytes, are in the report.
Result<ExportReport> RunExport(const ExportOptions& options, const ProgressCall& progress);

// The same with formats of one's own (profctl show).
Result<ExportReport> RunExportInto(const ExportOptions& options,
                                   std::vector<std::unique_ptr<Format>> formats,
                                   const ProgressCall& progress);

}  // namespace profd::exporting
