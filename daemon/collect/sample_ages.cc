#include "daemon/collect/sample_ages.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "collectors/metric_table.h"
#include "driver/dcmi_service.h"

namespace profd {

void UpdateSampleAges(const Host& host, const CollectorStatsTable& stats, const ChannelRouter& router, SelfMetrics* self) {
  constexpr MetricId kAge = MetricByName("profd_sample_age_seconds");
  constexpr int64_t kForgottenNs = 300 * kNsPerSecond;
  auto set = [self](std::string_view collector, std::string_view npu, int64_t age_ns) {
    self->Set(kAge, static_cast<double>(std::max<int64_t>(age_ns, 0)) / 1e9, collector, npu);
  };
  const int64_t raw = host.clock.MonotonicRawNs();
  const int64_t steady = host.clock.SteadyNs();
  DcmiService* dcmi = host.dcmi_or_null;
  std::span<const CollectorEntry> collectors = Collectors();
  for (size_t i = 0; i < collectors.size(); ++i) {
    const CollectorSpec& spec = *collectors[i].spec;
    const int64_t last = stats[i].last_sample_ns.load(std::memory_order_relaxed);
    if (last == 0) continue;
    if (spec.source != CollectorSource::kDcmi || dcmi == nullptr) {
      if (steady - last < kForgottenNs) set(spec.name, "", steady - last);
      continue;
    }
    // One NPU may be silent while the others answer.
    for (const DcmiDevice& device : dcmi->devices()) {
      const int64_t answered = dcmi->LastAnswerNs(device);
      if (answered == 0 || raw - answered >= kForgottenNs) continue;
      set(spec.name, std::to_string(device.physical_id), raw - answered);
    }
  }
  // Several channels may be one collector's: the newest counts.
  std::vector<std::tuple<uint32_t, CollectorIndex, int64_t>> newest_blocks;
  router.VisitRunning([&newest_blocks](CollectorIndex collector, uint32_t device, int64_t last_ns) {
    newest_blocks.emplace_back(device, collector, last_ns);
  });
  std::ranges::sort(newest_blocks);
  for (size_t i = 0; i < newest_blocks.size(); ++i) {
    const auto& [device, collector, last_ns] = newest_blocks[i];
    const bool is_last = i + 1 == newest_blocks.size() || std::get<0>(newest_blocks[i + 1]) != device ||
                         std::get<1>(newest_blocks[i + 1]) != collector;
    if (!is_last) continue;
    if (const DeviceInfo* info = host.FindDevice(static_cast<int>(device))) {
      set(collectors[collector].spec->name, std::to_string(info->physical_id), raw - last_ns);
    }
  }
}

}  // namespace profd
