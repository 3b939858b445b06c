// Which CPUs are next to a device.
#pragma once

#include <string>

namespace profd {

struct Host;
class MetricStore;

// CPUs of the NUMA node that the device (logical id) is attached to, as the kernel lists them: "0-31,64"; empty: not
// known. The node is a label of atlas_npu_info, from the kernel's view of the PCIe device that DCMI names.
std::string LocalCpusOf(const Host& host, const MetricStore& store, int device);

}  // namespace profd
