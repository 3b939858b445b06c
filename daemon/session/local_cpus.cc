#include "daemon/session/local_cpus.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/text.h"
#include "collectors/collector.h"
#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"
#include "driver/rooted_fs.h"

namespace profd {
namespace {

constexpr size_t kMaxListBytes = 4096;

}  // namespace

std::string LocalCpusOf(const Host& host, const MetricStore& store, int device) {
  constexpr std::array kInfo = {MetricByName("atlas_npu_info")};
  std::optional<uint32_t> node;
  store.VisitFreshOf(kInfo, host.clock.MonotonicRawNs(), [&](const SeriesValue& series) {
    uint32_t number = 0;
    if (series.device == device && ParseNumber(LabelOf(series, "numa_node"), &number)) node = number;
  });
  if (!node) return {};
  const auto cpus = host.sys.ReadFile(fmt::format("devices/system/node/node{}/cpulist", *node), kMaxListBytes);
  return cpus.ok() ? std::string(Trim(*cpus)) : std::string();
}

}  // namespace profd
