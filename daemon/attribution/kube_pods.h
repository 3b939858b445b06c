// What the kubelet gave to whom (pod-resources v1). Blocks for up to 2 s.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace profd {

// A device a container was given; strings as labels take them.
struct PodDevice {
  std::string name_space;
  std::string pod;
  std::string container;
  std::string device_id;  // as the device plugin named it
};

inline constexpr size_t kMaxPodDevices = 4096;

// Devices of resources "huawei.com/...". kNotFound: there is no kubelet here.
Result<std::vector<PodDevice>> AskKubelet(const std::string& socket, uid_t own_uid);

}  // namespace profd
