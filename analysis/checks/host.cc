// What the host did while the device had nothing to do.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "analysis/checks/counters.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

std::optional<Finding> Waiting(const CheckInput& input, std::string_view check, std::string_view resource, std::string_view name, std::vector<std::string> advice) {
  const std::array<Watched, 1> watched = {{{"atlas_host_pressure_waiting_seconds_total", resource, "waiting"}}};
  const Intervals& free = input.rank.overlap[static_cast<size_t>(OverlapKind::kFree)];
  if (free.empty()) return std::nullopt;
  const std::vector<Seen> seen = SeenIn(input, check, watched, free);
  if (seen.empty()) return std::nullopt;
  int64_t free_ns = 0;
  for (const Interval& each : free) free_ns += each.end_ns - each.start_ns;
  const double lost_ms = Ms(free_ns) * std::min(1.0, seen.front().mean);
  const Json overall = OverallView(input.rank);
  Finding finding;
  finding.cost_ms = PerStep(input.rank, lost_ms);
  finding.priority = PriorityOf(lost_ms, overall.is_object() ? overall["e2e_ms"].get<double>() : 0, input.limits);
  finding.title = fmt::format("Processes of the host wait for {} while the device is free", name);
  finding.evidence = fmt::format("in {:.0f} % of the device's free time a process of the host waited for {}", seen.front().mean * 100, name);
  finding.advice = std::move(advice);
  AddRows(seen, &finding);
  return finding;
}

}  // namespace

std::optional<Finding> CheckHostCpu(const CheckInput& input) {
  return Waiting(input, "host_cpu", "resource=cpu", "a CPU",
                 {"Look at what else runs on the node (profctl top), and at the number of data loader workers and threads (OMP_NUM_THREADS).",
                  "Bind the processes to the CPUs next to their NPU (numactl, taskset)."});
}

std::optional<Finding> CheckHostMemory(const CheckInput& input) {
  return Waiting(input, "host_memory", "resource=memory", "memory", {"Give the job more memory of the host, or use fewer data loader workers and smaller caches."});
}

std::optional<Finding> CheckHostStorage(const CheckInput& input) {
  return Waiting(input, "host_storage", "resource=io", "storage",
                 {"See whether checkpoints fall into the gaps (write them in a separate thread), or reads of data (cache it, use archive formats)."});
}

}  // namespace profd::analysis
