#include "daemon/collect/daemon_overhead.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <array>

#include "base/log.h"
#include "collectors/metric_table.h"
#include "daemon/metrics/self_metrics.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

// One of so many polls takes place, by the steps of budget_.
constexpr std::array<int, 4> kPaces = {1, 2, 4, 8};

int64_t CpuTimeNs() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) { return time.tv_sec * kNsPerSecond + time.tv_usec * int64_t{1000}; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

}  // namespace

void DaemonOverhead::Tick(int64_t max_permille) {
  const int before = pace();
  budget_.SetLimit(static_cast<double>(max_permille) / 1000, static_cast<int>(kPaces.size()) - 1);
  budget_.Update(clock_.SteadyNs(), CpuTimeNs());
  if (pace() == before) return;
  pollers_.SetPace(pace());
  const std::string spent = fmt::format("{:.1f} % of a core", 100 * budget_.share());
  if (pace() > before) {
    log::Warning("polled collectors are read less often: profd is over its budget",
                 {{"one_of", pace()}, {"spent", spent}, {"max_daemon_permille", max_permille}});
  } else {
    log::Info("polled collectors are read more often again", {{"one_of", pace()}, {"spent", spent}, {"max_daemon_permille", max_permille}});
  }
}

int DaemonOverhead::pace() const { return kPaces[static_cast<size_t>(budget_.step())]; }

void DaemonOverhead::Describe(v1::Overhead* out) const {
  out->set_cores(budget_.share());
  if (budget_.limit() > 0) out->set_max_cores(budget_.limit());
  out->set_pace(static_cast<uint32_t>(pace()));
}

void DaemonOverhead::UpdateMetrics(SelfMetrics* self) const {
  self->Set(MetricByName("profd_overhead_cores"), budget_.share());
  self->Set(MetricByName("profd_overhead_limit_cores"), budget_.limit());
  self->Set(MetricByName("profd_collector_pace"), pace());
}

}  // namespace profd
