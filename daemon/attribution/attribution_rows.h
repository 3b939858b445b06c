// From what is known about processes, job maps, pods and containers to series. Pure.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectors/collector.h"
#include "collectors/process_names.h"
#include "daemon/attribution/job_map.h"
#include "daemon/attribution/kube_names.h"
#include "daemon/attribution/kube_pods.h"
#include "daemon/jobs/job_directory.h"

namespace profd {

struct AttributionInput {
  std::span<const TrainingProcess> processes;
  std::span<const DeviceInfo> devices;
  // Nothing = not known yet: what would name the user waits.
  std::function<std::optional<std::string>(uint32_t uid)> user_of;
  const JobMap& job_map;
  std::span<const PodDevice> pods;
  const std::map<std::string, ContainerNames>& names;  // by container id
  size_t max_processes = 0;
  size_t max_jobs = 0;
};

struct SeriesKey {
  MetricId metric = 0;
  int device = kHostDevice;
  std::vector<std::string> labels;
  auto operator<=>(const SeriesKey&) const = default;
};

struct AttributionRows {
  std::map<SeriesKey, double> series;
  std::map<int, ProcessName> process_names;
  size_t hidden_processes = 0;
  size_t hidden_jobs = 0;
  size_t hidden_containers = 0;
  std::vector<std::string> ignored;  // of the job map: "7: this node has no NPU 7"
};

AttributionRows DescribeAttribution(const AttributionInput& input);

// The logical id of the device that a device plugin calls so: "Ascend910-3", "Ascend310P-2c-101-3" and
// "npu-3" are physical id 3, "<uuid>-0" a share of the device with that uuid. Nothing if it is none.
std::optional<int> DeviceOfPlugin(std::span<const DeviceInfo> devices, std::string_view id_untrusted);

}  // namespace profd
