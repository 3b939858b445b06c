// The files of MindSpore's raw logs of its first releases (analysis 4.1-4.3), by kind, device and slice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/read/readers.h"

namespace profd::analysis::mindspore {

inline constexpr std::string_view kHwts = "hwts.log.data.45.dev.profiler_default_tag.";
inline constexpr std::string_view kTrace = "training_trace.46.dev.profiler_default_tag.";
inline constexpr std::string_view kAiCpu = "DATA_PREPROCESS.dev.AICPU.";
inline constexpr std::string_view kTasks = "task_desc_info.";
inline constexpr std::string_view kGraph = "graph_desc_info.";
inline constexpr std::string_view kPoints = "point.";

// Those of a directory and its `data`.
class Files {
 public:
  explicit Files(const std::filesystem::path& directory);
  // By the number of their slice.
  std::map<uint64_t, std::filesystem::path> Of(std::string_view prefix, int device) const;
  bool HasRaw() const;
  std::set<int> Devices() const;

 private:
  std::vector<std::filesystem::path> names_;
};

// All slices one behind the other. `gaps` gets where some are missing, which are numbered from 0; records begin there anew.
std::string ReadAll(const std::map<uint64_t, std::filesystem::path>& files, size_t record, const ReadContext& context, std::set<size_t>* gaps);

}  // namespace profd::analysis::mindspore
