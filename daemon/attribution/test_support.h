// For tests of this folder only: what a round is made from, and reading its result.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/metric_table.h"
#include "daemon/attribution/attribution_rows.h"

namespace profd {

inline TrainingProcess ProcessOf(int pid, uint32_t uid, std::string job, std::vector<int> devices) {
  return {.pid = pid, .start_ticks = static_cast<uint64_t>(pid) * 10, .uid = uid, .job_id = std::move(job),
          .devices = std::move(devices), .command = "python3", .scheduler = "slurm"};
}

struct RoundInput {
  RoundInput() {
    for (int i = 0; i < 4; ++i) {
      DeviceInfo device{.id = i, .physical_id = 4 + i, .uuid = "D1E-00" + std::to_string(i)};
      devices.push_back(device);
    }
  }
  AttributionRows Describe() const {
    return DescribeAttribution(AttributionInput{processes, devices, user_of, map, pods, names,
                                                max_processes, max_jobs});
  }

  std::vector<TrainingProcess> processes;
  std::vector<DeviceInfo> devices;  // logical 0 to 3, physical 4 to 7
  std::function<std::optional<std::string>(uint32_t)> user_of = [](uint32_t uid) {
    return "u" + std::to_string(uid);
  };
  JobMap map;
  std::vector<PodDevice> pods;
  std::map<std::string, ContainerNames> names;
  size_t max_processes = 512;
  size_t max_jobs = 256;
};

// "device: a|b|c" of every series of the metric, with its value unless that is 1.
inline std::vector<std::string> SeriesOf(const AttributionRows& rows, MetricId metric) {
  std::vector<std::string> out;
  for (const auto& [key, value] : rows.series) {
    if (key.metric != metric) continue;
    std::string line = std::to_string(key.device) + ":";
    for (const std::string& label : key.labels) line += (line.back() == ':' ? " " : "|") + label;
    if (value != 1) line += " = " + std::to_string(value);
    out.push_back(line);
  }
  return out;
}

}  // namespace profd
