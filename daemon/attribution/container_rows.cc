#include "daemon/attribution/container_rows.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "collectors/metric_table.h"
#include "daemon/attribution/label_text.h"

namespace profd {
namespace {

// A container that processes were seen in, or that the kubelet gave devices.
struct Container {
  ContainerNames names;
  std::string id;
  bool of_pod = false;
  bool named = false;
  std::set<int> devices;
};

std::vector<Container> Used(const AttributionInput& input) {
  std::map<std::pair<std::string, std::string>, Container> found;
  std::set<int> known;
  for (const DeviceInfo& device : input.devices) known.insert(device.id);
  for (const TrainingProcess& process : input.processes) {
    if (process.container_id.empty() && process.pod_uid.empty()) continue;
    Container& container = found[{process.container_id, process.pod_uid}];
    container.id = LabelText(process.container_id);
    container.of_pod = !process.pod_uid.empty();
    container.names.pod = LabelText(process.pod_uid);
    if (auto names = input.names.find(process.container_id); names != input.names.end()) {
      container.names = names->second;
      container.named = true;
    }
    for (int device : process.devices) {
      if (known.contains(device)) container.devices.insert(device);
    }
  }
  std::vector<Container> used;
  for (auto& [key, container] : found) {
    if (!container.devices.empty()) used.push_back(std::move(container));
  }
  return used;
}

std::vector<Container> Given(const AttributionInput& input) {
  std::map<std::array<std::string, 3>, Container> found;
  for (const PodDevice& pod : input.pods) {
    std::optional<int> device = DeviceOfPlugin(input.devices, pod.device_id);
    if (!device) continue;
    Container& container = found[{pod.name_space, pod.pod, pod.container}];
    container.names = {pod.name_space, pod.pod, pod.container};
    container.devices.insert(*device);
  }
  std::vector<Container> given;
  given.reserve(found.size());
  for (auto& [key, container] : found) given.push_back(std::move(container));
  return given;
}

bool Covers(const Container& given, const Container& used) {
  return std::includes(given.devices.begin(), given.devices.end(), used.devices.begin(),
                       used.devices.end());
}

// Without the runtime's word: a pod's container is the one that was given its devices, if there is
// exactly one of each.
void NameByDevices(const std::vector<Container>& given, std::vector<Container>* used) {
  for (Container& container : *used) {
    if (container.named || !container.of_pod) continue;
    const Container* match = nullptr;
    size_t matches = 0;
    for (const Container& candidate : given) {
      if (!Covers(candidate, container)) continue;
      auto rivals = std::ranges::count_if(*used, [&](const Container& other) {
        return other.of_pod && Covers(candidate, other);
      });
      matches += rivals == 1 ? 1 : 2;
      match = &candidate;
    }
    if (matches == 1) container.names = match->names;
  }
}

}  // namespace

ContainerRows DescribeContainers(const AttributionInput& input) {
  std::vector<Container> containers = Used(input);
  std::vector<Container> given = Given(input);
  NameByDevices(given, &containers);
  // What processes show counts more than what the kubelet planned: a scheduler's device plugin may
  // give a container other devices than the kubelet wrote down.
  std::set<int> busy;
  for (const Container& container : containers) {
    busy.insert(container.devices.begin(), container.devices.end());
  }
  for (Container& container : given) {
    std::erase_if(container.devices, [&](int device) { return busy.contains(device); });
    if (!container.devices.empty()) containers.push_back(std::move(container));
  }
  ContainerRows rows;
  size_t shown = std::min(containers.size(), input.max_processes);
  rows.hidden = containers.size() - shown;
  for (size_t i = 0; i < shown; ++i) {
    const Container& container = containers[i];
    for (int device : container.devices) {
      rows.series.push_back({MetricByName("atlas_npu_container_info"), device,
                             {container.names.name_space, container.names.pod,
                              container.names.container, container.id}});
    }
  }
  return rows;
}

std::string ContainerLabel(const TrainingProcess& process,
                           const std::map<std::string, ContainerNames>& names) {
  auto found = names.find(process.container_id);
  bool named = found != names.end() && !found->second.container.empty();
  return named ? found->second.container : LabelText(process.container_id);
}

}  // namespace profd
