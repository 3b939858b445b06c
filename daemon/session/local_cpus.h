// Which CPUs are next to a device, and which a process may run on.
#pragma once

#include <sys/types.h>

#include <string>

namespace profd {

struct Host;
class MetricStore;
class RootedFs;

// CPUs of the NUMA node that the device (logical id) is attached to, as the kernel lists them: "0-31,64"; empty: not
// known. The node is a label of atlas_npu_info, from the kernel's view of the PCIe device that DCMI names.
std::string LocalCpusOf(const Host& host, const MetricStore& store, int device);

// Of the process's first thread (Cpus_allowed_list); empty: not known, or it has ended.
std::string AllowedCpusOf(const RootedFs& proc, pid_t pid);

}  // namespace profd
