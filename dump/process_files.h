// What the vendor's profiler left in a training process (a PROF directory), beside what profd recorded: which of its
// files can be among a dump's own, and the control files of both merged. Pure functions, except for FindSteps; all input
// is the process's and untrusted.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "dump/mark_files.h"

namespace profd {

struct ProcessFile {
  std::string path;  // below the folder it was copied to
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
  // Of a slice of the step trace: whether it has training steps, by layout of the record (dump/mark_files.h). Unset for
  // other files, and where it was not searched (FindSteps).
  std::optional<std::array<bool, kStepLayouts>> steps = std::nullopt;
};
// Sets `steps` of the slices of a step trace among `files`, as far as their paths are `prefix` and a name in the folder
// `dir`. Reads these slices completely, so it is called by the thread that copies the files, not by one that writes
// dumps. `check` as for FindStepRecords.
Status FindSteps(int dir, std::string_view prefix, std::span<ProcessFile> files, const std::function<Status()>& check);

// "PROF_<n>_<time>_<letters>/<place>/<rest>": the place is host or device_<N>.
struct ProcessPath {
  std::string_view prof;
  std::string_view place;
  int device = -1;        // -1: the host
  std::string_view rest;  // "data/aging.compact.task_track.slice_0", "info.json.0"
  bool data() const { return rest.starts_with("data/"); }
};
// False for what is elsewhere, and then stays there.
bool ParseProcessPath(std::string_view path, ProcessPath* out);
// "task_track.data" of "task_track.data.0.slice_3" and its .done; the name itself where it has no slices.
std::string_view BaseOfProcessFile(std::string_view name);
// A control file of the analyser's, without the device's suffix and without .done; empty for others.
std::string_view ControlOfProcessFile(std::string_view name, int device);

// What the analyser places the records of one directory by.
struct StartClocks {
  std::string info_json, host_start, dev_start;
};
// Both count the same counters by the same clock, so one pair serves the files of both. Otherwise why not.
Status CheckSameClocks(const StartClocks& dump, const StartClocks& process, int device);

// One line of JSON: profd's values for what profd samples, the profiler's for what the profiler was configured to record.
Result<std::string> MergeSampleJson(std::string_view dump, std::string_view process);
// profd's values, and what only the other has. The host's records that count by the CPU's counter are the profiler's, and
// so is the CPU's frequency there.
Result<std::string> MergeInfoJson(std::string_view dump, std::string_view process, bool host);

}  // namespace profd
