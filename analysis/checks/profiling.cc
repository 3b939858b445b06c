// What recording itself costs: the daemon where it was watched as a process, and collecting inside the training process.

#include <array>
#include <string>

#include "analysis/checks/check.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

struct OwnCpu {
  std::string_view series;
  std::string_view label;
  double to_cpus;
};
constexpr auto kOwnCpu =
    std::to_array<OwnCpu>({{"atlas_host_process_cpu_seconds_total", "comm=profd", 1},
                           {"atlas_process_cpu_jiffies_total", "process=profd", 0.01}});

}  // namespace

std::optional<Finding> CheckProfiling(const CheckInput& input) {
  Finding finding;
  finding.columns = {"counter", "mean_cpus", "max_cpus"};
  double cpus = 0;
  for (const auto& series : input.rank.hardware) {
    for (const OwnCpu& own : kOwnCpu) {
      const size_t at =
          series->name.starts_with(own.series) ? series->name.find(own.label) : std::string::npos;
      // The name ends there: another program's may begin with it.
      if (series->count == 0 || at == std::string::npos ||
          (at + own.label.size() < series->name.size() &&
           series->name[at + own.label.size()] != ' '))
        continue;
      const double mean = series->sum / static_cast<double>(series->count) * own.to_cpus;
      finding.rows.push_back({series->name, mean, series->max * own.to_cpus});
      cpus += mean;
    }
  }
  double collecting = 0;
  const auto fact = input.rank.facts.find(std::string(kCollectingCpus));
  if (fact != input.rank.facts.end() && ParseNumber(fact->second, &collecting)) {
    finding.rows.push_back({"profd in the training process", collecting, nullptr});
  }
  if (cpus + collecting < input.limits.At("host_profiling", "cpus")) return std::nullopt;
  finding.priority = Priority::kLow;
  finding.title = Text("Recording itself takes CPU time of the node", "采集本身占用节点的 CPU");
  finding.evidence = Translate({"profd used {:.3f} CPUs on average, and {:.3f} inside the training process", "profd 平均占用 {:.3f} 个 CPU，训练进程内采集占用 {:.3f} 个"},
                         cpus, collecting);
  finding.advice = {
      Text("Lower the rates of the collectors, or record fewer of them (profctl status shows what "
           "runs).",
           "降低采集频率，或减少采集项（profctl status 显示正在运行的采集）。")};
  return finding;
}

}  // namespace profd::analysis
