// THE list of collectors. The only file that names them all; sorted by name.
#include <algorithm>
#include <array>
#include <vector>

#include "base/nearest.h"
#include "collectors/aicore_freq/aicore_freq_collector.h"
#include "collectors/collector.h"
#include "collectors/collector_hint.h"
#include "collectors/ddr/ddr_collector.h"
#include "collectors/dvpp/dvpp_collector.h"
#include "collectors/hbm/hbm_collector.h"
#include "collectors/hccs/hccs_collector.h"
#include "collectors/host_cpu/host_cpu_collector.h"
#include "collectors/host_disk/host_disk_collector.h"
#include "collectors/host_mem/host_mem_collector.h"
#include "collectors/host_net/host_net_collector.h"
#include "collectors/host_pressure/host_pressure_collector.h"
#include "collectors/instr/instr_collector.h"
#include "collectors/llc/llc_collector.h"
#include "collectors/nic/nic_collector.h"
#include "collectors/npu_mem/npu_mem_collector.h"
#include "collectors/npu_optics/npu_optics_collector.h"
#include "collectors/npu_state/npu_state_collector.h"
#include "collectors/pcie/pcie_collector.h"
#include "collectors/qos/qos_collector.h"
#include "collectors/rdma/rdma_collector.h"
#include "collectors/roce/roce_collector.h"
#include "collectors/soc_profile/soc_profile_collector.h"

namespace profd {

std::span<const CollectorEntry> Collectors() {
  // Copies of constants of other files, which are initialised before anything runs (constinit).
  // That the order is right is the test's to say: their names are not known at compile time here.
  static const std::array kCollectors = {
      kAicoreFreqCollector, kDdrCollector,          kDvppCollector,       kHbmCollector,
      kHccsCollector,       kHostCpuCollector,      kHostDiskCollector,   kHostMemCollector,
      kHostNetCollector,    kHostPressureCollector, kInstrCollector,      kLlcCollector,
      kNicCollector,        kNpuMemCollector,       kNpuOpticsCollector,  kNpuStateCollector,
      kPcieCollector,       kQosCollector,          kRdmaCollector,       kRoceCollector,
      kSocProfileCollector,
  };
  return kCollectors;
}

const CollectorEntry* FindCollector(std::string_view name) {
  std::span<const CollectorEntry> all = Collectors();
  auto found = std::lower_bound(all.begin(), all.end(), name,
                                [](const CollectorEntry& entry, std::string_view wanted) {
                                  return entry.spec->name < wanted;
                                });
  return found != all.end() && found->spec->name == name ? &*found : nullptr;
}

std::vector<std::string> CheckSettings(const CollectorSettings& settings) {
  std::vector<std::string> problems;
  for (const CollectorEntry& entry : Collectors()) {
    const auto items = settings.find(entry.spec->settings);
    if (entry.check_settings == nullptr || items == settings.end()) continue;
    for (const std::string& problem : entry.check_settings(items->second)) {
      problems.push_back("metrics." + items->first + ": " + problem);
    }
  }
  return problems;
}

std::string CollectorHint(std::string_view name) {
  std::vector<std::string_view> names;
  for (const CollectorEntry& entry : Collectors()) names.push_back(entry.spec->name);
  return DidYouMean(name, names) + " (see `profctl collectors`)";
}

}  // namespace profd
