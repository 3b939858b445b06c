// Whether what launches kernels may run on CPUs that are far from its NPU: launches and copies then cross the socket.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/checks/check.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

constexpr uint32_t kMostCpus = 8192;  // of any kernel

// "0-31,64"; empty: it is no such list.
std::set<uint32_t> CpusOf(std::string_view list) {
  std::set<uint32_t> cpus;
  for (std::string_view part; NextPart(&list, ',', &part);) {
    const size_t dash = part.find('-');
    uint32_t first = 0;
    uint32_t last = 0;
    if (!ParseNumber(part.substr(0, dash), &first)) return {};
    last = first;
    if (dash != std::string_view::npos && !ParseNumber(part.substr(dash + 1), &last)) return {};
    if (last < first || last >= kMostCpus) return {};
    for (uint32_t cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
  }
  return cpus;
}

std::string FactOf(const Rank& rank, std::string_view name) {
  const auto fact = rank.facts.find(std::string(name));
  return fact == rank.facts.end() ? std::string() : fact->second;
}

}  // namespace

std::optional<Finding> CheckHostAffinity(const CheckInput& input) {
  // Kernels are launched by one thread, which may be bound apart from the first; where it is not known, by that.
  const std::string launcher_list = FactOf(input.rank, kLaunchCpus);
  const bool of_launcher = !launcher_list.empty();
  const std::string allowed_list = of_launcher ? launcher_list : FactOf(input.rank, kProcessCpus);
  const std::string local_list = FactOf(input.rank, kLocalCpus);
  const std::set<uint32_t> allowed = CpusOf(allowed_list);
  const std::set<uint32_t> local = CpusOf(local_list);
  if (allowed.empty() || local.empty()) return std::nullopt;
  const auto far = static_cast<size_t>(std::ranges::count_if(allowed, [&local](uint32_t cpu) { return !local.contains(cpu); }));
  const double share = static_cast<double>(far) / static_cast<double>(allowed.size());
  if (share < input.limits.At("host_affinity", "far_share")) return std::nullopt;
  Finding finding;
  const bool all = far == allowed.size();
  finding.priority = all ? Priority::kMedium : Priority::kInfo;
  if (of_launcher) {
    finding.title = all ? Text("The thread that launches kernels runs on CPUs far from its NPU", "下发算子的线程运行在远离其 NPU 的 CPU 上")
                        : Text("The thread that launches kernels is not bound to the CPUs next to its NPU", "下发算子的线程未绑定到靠近其 NPU 的 CPU");
  } else {
    finding.title = all ? Text("The training process runs on CPUs far from its NPU", "训练进程运行在远离其 NPU 的 CPU 上")
                        : Text("The training process is not bound to the CPUs next to its NPU", "训练进程未绑定到靠近其 NPU 的 CPU");
  }
  finding.evidence = Translate({"it may run on CPUs {}; next to the NPU are {}", "可运行在 CPU {}；靠近 NPU 的是 {}"}, allowed_list, local_list);
  finding.advice = {Text("Let torch_npu bind its threads (CPU_AFFINITY_CONF), or start each rank with the CPUs of its NPU.", "使用 torch_npu 的绑核（CPU_AFFINITY_CONF），或在启动各 rank 时指定其 NPU 附近的 CPU。")};
  finding.code = {"export CPU_AFFINITY_CONF=1", fmt::format("taskset -c {} python train.py", local_list)};
  finding.columns = {of_launcher ? "cpus_of_launching_thread" : "cpus_of_process", "cpus_next_to_npu", "far_share"};
  finding.rows.push_back({allowed_list, local_list, share});
  return finding;
}

}  // namespace profd::analysis
