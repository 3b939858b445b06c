// What the host did while the device had nothing to do.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "analysis/checks/counters.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

std::optional<Finding> Waiting(const CheckInput& input, std::string_view check, std::string_view resource, Text name, std::vector<TranslatedText> advice) {
  const std::array<Watched, 1> watched = {{{"atlas_host_pressure_waiting_seconds_total", resource, "waiting"}}};
  const Intervals& free = input.rank.overlap[OverlapKind::kFree];
  if (free.empty()) return std::nullopt;
  const std::vector<SeriesMean> seen = SeriesOverLimit(input, check, watched, free);
  if (seen.empty()) return std::nullopt;
  int64_t free_ns = 0;
  for (const Interval& each : free) free_ns += each.end_ns - each.start_ns;
  const double lost_ms = Ms(free_ns) * std::min(1.0, seen.front().mean);
  const std::optional<Overall> overall = OverallOf(input.rank);
  Finding finding;
  finding.cost_ms = PerStep(input.rank, lost_ms);
  finding.priority = PriorityOf(lost_ms, overall ? overall->e2e_ms : 0, input.limits);
  finding.title = {fmt::format("Processes of the host wait for {} while the device is free", name.en), fmt::format("器件空闲时 Host 进程在等待{}", name.zh)};
  const double percent = seen.front().mean * 100;
  finding.evidence = {fmt::format("in {:.0f} % of the device's free time a process of the host waited for {}", percent, name.en),
                      fmt::format("器件空闲时间中有 {:.0f} % 有 Host 进程在等待{}", percent, name.zh)};
  finding.advice = std::move(advice);
  AddRows(seen, &finding);
  return finding;
}

// What disks did in the free time: written are checkpoints and dumps, read are data.
void AddDisks(const CheckInput& input, Finding* finding) {
  const Intervals& free = input.rank.overlap[OverlapKind::kFree];
  double written = 0;
  double read = 0;
  for (const auto& series : input.rank.hardware) {
    const bool bytes = series->name.starts_with("atlas_host_disk_bytes_total") || series->name.starts_with("atlas_host_disk_bytes_per_second");
    const auto mean = bytes && series->count > 0 ? MeanDuring(*series, free) : std::nullopt;
    if (!mean || *mean <= 0) continue;
    (series->name.find("direction=write") != std::string::npos ? written : read) += *mean;
    finding->rows.push_back({series->name, series->unit, *mean, series->max});
  }
  if (written + read <= 0) return;
  finding->evidence += Translate({"; disks wrote {:.1f} MB/s and read {:.1f} MB/s in that time", "；期间磁盘写 {:.1f} MB/s，读 {:.1f} MB/s"}, written / 1e6, read / 1e6);
}

}  // namespace

std::optional<Finding> CheckHostCpu(const CheckInput& input) {
  return Waiting(input, "host_cpu", "resource=cpu", Text("a CPU", " CPU"),
                 {Text("Look at what else runs on the node (profctl top), and at the number of data loader workers and threads (OMP_NUM_THREADS).", "检查节点上的其他负载（profctl top），以及数据加载进程数和线程数（OMP_NUM_THREADS）。"),
                  Text("Bind the processes to the CPUs next to their NPU (numactl, taskset).", "将进程绑定到靠近其 NPU 的 CPU（numactl、taskset）。")});
}

std::optional<Finding> CheckHostMemory(const CheckInput& input) {
  return Waiting(input, "host_memory", "resource=memory", Text("memory", "内存"),
                 {Text("Give the job more memory of the host, or use fewer data loader workers and smaller caches.", "为作业分配更多 Host 内存，或减少数据加载进程和缓存。")});
}

std::optional<Finding> CheckHostStorage(const CheckInput& input) {
  auto finding = Waiting(input, "host_storage", "resource=io", Text("storage", "存储"),
                 {Text("See whether checkpoints fall into the gaps (write them in a separate thread), or reads of data (cache it, use archive formats).", "检查空闲期间是否在写 checkpoint（改用独立线程写）或读取数据（使用缓存和归档格式）。")});
  if (finding) AddDisks(input, &*finding);
  return finding;
}

}  // namespace profd::analysis
