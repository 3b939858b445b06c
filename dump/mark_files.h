// Marks, ranges and steps of training processes as a dump keeps them: lines of host/profd/marks.tsv (ours,
// docs/dumps.md) and step trace records for the vendor's analyser (dump-format 2.12 and section 4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace profd {

// Names in our folder, and their first lines.
inline constexpr std::string_view kOwnSamplesFile = "samples.tsv";
// `labels` is key=value pairs joined by ','.
inline constexpr std::string_view kOwnSamplesHeading = "time_ns\tmetric\tdevice\tlabels\tvalue\n";
inline constexpr std::string_view kMarksFile = "marks.tsv";
inline constexpr std::string_view kMarksHeading = "time_ns\tpid\trank\tthread\tkind\tname\tvalue\tdomain\n";
// Sampled call stacks. kind "frame": `frame` is an id of its process, `caller` that of the frame that called it, 0 =
// none. kind "stack": a sample of `thread`, whose innermost frame `frame` is. A frame lies before the stacks that need
// it, and may be there again.
inline constexpr std::string_view kStacksFile = "stacks.tsv";
inline constexpr std::string_view kStacksHeading = "time_ns\tpid\trank\tthread\tkind\tframe\tcaller\tname\n";
// Whose they are, in the manifest.
inline constexpr std::string_view kMarksCollector = "marks";
inline constexpr std::string_view kStacksCollector = "stacks";
// A text as these files have it: tabs and control bytes become spaces.
void AppendCell(std::string_view text, std::string* out);
// The heading of one of our own files; empty for a name that is none of them.
std::string_view OwnFileHeading(std::string_view file);

struct MarkLine {
  int64_t time_ns = 0;  // CLOCK_MONOTONIC_RAW
  int pid = 0;
  std::optional<int> rank;  // written as nothing where unknown
  int thread = 0;
  std::string_view kind;  // "mark", "push", "pop", "step_begin", "step_end", "range_start", "range_end"
  std::string_view name;  // tabs and control bytes become spaces
  int64_t value = 0;      // the step, or the id of a range; 0 otherwise
  std::string_view domain = {};  // as name; empty = none
};
void AppendMarkLine(const MarkLine& mark, std::string* out);
// A line of kStacksFile; `value` as MarkKind::kFrame and kStack have it.
void AppendStackLine(const MarkLine& mark, std::string* out);

inline constexpr std::string_view kStepTraceFile = "ts_track.data";
inline constexpr size_t kStepRecordBytes = 40;
// One begin or end of a training step. `device_count` is the device's system counter at that instant.
std::array<std::byte, kStepRecordBytes> StepRecord(uint32_t chip_id, uint64_t device_count,
                                                   int64_t step, bool begin);
// Chips have one of two layouts of this record.
inline constexpr size_t kStepLayouts = 2;
size_t StepLayoutOf(uint32_t chip_id);
// By layout: whether such a file, open for reading, has records of the begin or end of a training step. Reads the file up
// to the first of them. `first`: offset of the first record that begins in it; one that two slices share is skipped.
// `check` is called before each read; its error ends the search.
Result<std::array<bool, kStepLayouts>> FindStepRecords(int fd, uint64_t first, const std::function<Status()>& check);

}  // namespace profd
