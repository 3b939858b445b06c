// Containers as series: who uses an NPU by its cgroup, named by the container runtime or the kubelet.
// Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "daemon/attribution/attribution_rows.h"

namespace profd {

struct ContainerRows {
  std::vector<SeriesKey> series;
  size_t hidden = 0;  // containers beyond max_processes
};

ContainerRows DescribeContainers(const AttributionInput& input);

// What a process's container is called: its name, else its id, else nothing.
std::string ContainerLabel(const TrainingProcess& process,
                           const std::map<std::string, ContainerNames>& names);

}  // namespace profd
