// What profd itself may cost: its own CPU time is held against overhead.max_daemon_permille, and polled collectors are read
// less often while it is above. What collecting costs in training processes their own collector holds against
// overhead.max_process_permille (client/libprofd/mspti/collect_kinds.h). docs/jobs.md, What it may cost, has the order.
#include <fmt/format.h>
#include <sys/resource.h>

#include <array>

#include "base/log.h"
#include "collectors/metric_table.h"
#include "daemon/app_impl.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

// Of so many readings one takes place, by the steps of the budget.
constexpr std::array<int, 4> kPaces = {1, 2, 4, 8};

int64_t CpuTimeNs() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) { return time.tv_sec * kNsPerSecond + time.tv_usec * int64_t{1000}; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

}  // namespace

void App::Impl::TickOverhead() {
  const int before = pace();
  budget.SetLimit(static_cast<double>(options.config.overhead_max_daemon_permille) / 1000, static_cast<int>(kPaces.size()) - 1);
  budget.Update(clock.SteadyNs(), CpuTimeNs());
  if (pace() == before) return;
  pollers->SetPace(pace());
  const std::string spent = fmt::format("{:.1f} % of a core", 100 * budget.share());
  const int64_t limit = options.config.overhead_max_daemon_permille;
  if (pace() > before) {
    log::Warning("polled collectors are read less often: profd is over its budget",
                 {{"one_of", pace()}, {"spent", spent}, {"max_daemon_permille", limit}});
  } else {
    log::Info("polled collectors are read more often again", {{"one_of", pace()}, {"spent", spent}, {"max_daemon_permille", limit}});
  }
}

int App::Impl::pace() const { return kPaces[static_cast<size_t>(budget.step())]; }

void App::Impl::DescribeOverhead(v1::Node* out) const {
  v1::Overhead& wire = *out->mutable_overhead();
  wire.set_cores(budget.share());
  if (budget.limit() > 0) wire.set_max_cores(budget.limit());
  if (const int64_t permille = options.config.overhead_max_process_permille; permille > 0) {
    wire.set_max_process_cores(static_cast<double>(permille) / 1000);
  }
  wire.set_pace(static_cast<uint32_t>(pace()));
}

void App::Impl::UpdateOverheadMetrics() {
  self->Set(MetricByName("profd_overhead_cores"), budget.share());
  self->Set(MetricByName("profd_overhead_limit_cores"), budget.limit());
  self->Set(MetricByName("profd_collector_pace"), pace());
}

}  // namespace profd
