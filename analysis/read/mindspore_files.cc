#include "analysis/read/mindspore_files.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/text.h"

namespace profd::analysis::mindspore {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMostLogBytes = uint64_t{8} << 30;

// Device and slice of "<prefix><device>.slice_<n>"; none: it has another name.
std::optional<std::pair<int, uint64_t>> DeviceAndSlice(std::string_view name, std::string_view prefix) {
  const size_t at = name.find(prefix);
  if (at == std::string_view::npos || (at != 0 && !name.starts_with("Framework."))) return std::nullopt;
  name.remove_prefix(at + prefix.size());
  const size_t dot = name.find(".slice_");
  int device = 0;
  uint64_t slice = 0;
  if (dot == std::string_view::npos || !ParseNumber(name.substr(0, dot), &device) ||
      !ParseNumber(name.substr(dot + 7), &slice)) {
    return std::nullopt;
  }
  return std::pair(device, slice);
}

// Logs of the input pipeline, and what MindInsight made of the others: the device follows.
constexpr std::array<std::string_view, 7> kParsed = {"minddata_aicpu_", "device_queue_profiling_", "dataset_iterator_profiling_",
                                                     "pipeline_profiling_", "minddata_pipeline_raw_", "step_trace_raw_",
                                                     "output_timeline_data_"};

}  // namespace

Files::Files(const fs::path& directory) {
  for (const fs::path& place : {directory, directory / "data"}) {
    std::error_code error;
    for (fs::directory_iterator it(place, error), end; !error && it != end; it.increment(error)) {
      names_.push_back(it->path());
    }
  }
  std::ranges::sort(names_);
}

std::map<uint64_t, fs::path> Files::Of(std::string_view prefix, int device) const {
  std::map<uint64_t, fs::path> found;
  for (const fs::path& path : names_) {
    const auto place = DeviceAndSlice(path.filename().native(), prefix);
    if (place && place->first == device) found.emplace(place->second, path);
  }
  return found;
}

bool Files::HasRaw() const {
  return std::ranges::any_of(names_, [](const fs::path& path) {
    const std::string name = path.filename().string();
    return DeviceAndSlice(name, kHwts) || DeviceAndSlice(name, kTrace) || DeviceAndSlice(name, kAiCpu);
  });
}

std::set<int> Files::Devices() const {
  std::set<int> devices;
  for (const fs::path& path : names_) {
    const std::string name = path.filename().string();
    for (const std::string_view prefix : {kHwts, kTrace, kAiCpu, kTasks, kGraph}) {
      if (const auto place = DeviceAndSlice(name, prefix)) devices.insert(place->first);
    }
    for (const std::string_view prefix : kParsed) {
      if (!name.starts_with(prefix)) continue;
      int device = 0;
      const std::string_view rest = std::string_view(name).substr(prefix.size());
      if (ParseNumber(rest.substr(0, rest.find_first_of("._")), &device)) devices.insert(device);
    }
  }
  return devices;
}

std::string ReadAll(const std::map<uint64_t, fs::path>& files, size_t record, const ReadContext& context, std::set<size_t>* gaps) {
  std::string bytes;
  uint64_t next = 0;
  for (const auto& [number, file] : files) {
    ReportMissingSlices(next, number, file, context);
    Result<std::string> slice = ReadWhole(file, kMostLogBytes);
    if (!slice.ok()) context.AddProblem(file, slice.status());
    if (number != next || !slice.ok()) {
      bytes.resize(bytes.size() / record * record);
      gaps->insert(bytes.size());
    }
    if (slice.ok()) bytes += *slice;
    next = number + 1;
  }
  if (record > 1 && bytes.empty() && gaps->empty() && !files.empty()) context.AddProblem(files.begin()->second, "the file is empty");
  return bytes;
}

}  // namespace profd::analysis::mindspore
