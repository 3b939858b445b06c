#include <algorithm>
#include <utility>

#include "analysis/checks/check.h"
#include "analysis/checks/computing_kinds.h"
#include "analysis/views/views.h"

namespace profd::analysis {

std::optional<Finding> CheckOverall(const CheckInput& input) {
  const std::optional<Overall> overall = OverallOf(input.rank);
  if (!overall) return std::nullopt;
  const double total_ms = overall->e2e_ms;
  const Shares& ms = overall->shares;
  Finding finding;
  finding.title = Text("Where the time went", "耗时分布");
  finding.evidence = Translate({"{:.3f} ms from end to end: computing {:.3f} ms, communication that nothing covers {:.3f} ms, free {:.3f} ms",
                          "端到端 {:.3f} ms：计算 {:.3f} ms，未掩盖通信 {:.3f} ms，空闲 {:.3f} ms"},
                         total_ms, ms.computing, ms.uncovered, ms.free);
  finding.columns = {"part", "duration_ms", "ratio", "executions"};
  const auto add = [&finding, total_ms](std::string_view part, double part_ms, Json executions) {
    finding.rows.push_back({part, part_ms, total_ms > 0 ? Json(part_ms / total_ms) : Json(), std::move(executions)});
  };
  add("computing", ms.computing, nullptr);
  const auto kinds = ComputingKindsOf(input.rank);
  for (size_t i = 0; i < kinds.size(); ++i) {
    // The last two are rare: no row of nothing.
    const bool always = i < static_cast<size_t>(ComputingKind::kPageAttention);
    if (!input.rank.executions.empty() && (always || kinds[i].executions > 0)) add(ComputingKindName(static_cast<ComputingKind>(i)), kinds[i].ms, kinds[i].executions);
  }
  add("uncovered_communication", ms.uncovered, nullptr);
  if (!input.rank.waits.empty()) {
    const double wait = std::min(UncoveredWaitMs(input.rank), ms.uncovered);
    add("uncovered communication: wait", wait, nullptr);
    add("uncovered communication: transmit", ms.uncovered - wait, nullptr);
  }
  add("free", ms.free, nullptr);
  if (!input.rank.copies.empty()) {
    const double copies = std::min(FreeCopiesMs(input.rank), ms.free);
    add("free: SDMA", copies, nullptr);
    add("free: free", ms.free - copies, nullptr);
  }
  add("e2e", total_ms, nullptr);
  constexpr double kMuch = 0.1;  // of all
  if (input.rank.only_device && ms.free > kMuch * total_ms) {
    finding.advice.emplace_back(Text("Only the device was recorded: record the host as well (ProfilerActivity.CPU, Level1) to see what it does in the free time.",
                                     "仅采集了 Device 侧：请同时采集 Host 侧（ProfilerActivity.CPU、Level1），以了解空闲时间内 Host 的行为。"));
  } else if (ms.free > 0) {
    finding.advice.emplace_back(Text("Free time is the host's: look at the checks of schedule and of the data loader.", "空闲时间源于 Host 侧：查看下发和数据加载维度的检查。"));
  }
  if (ms.uncovered > 0) finding.advice.emplace_back(Text("Communication that computing does not cover: look at the checks of communication, and at who is waited for.", "未被计算掩盖的通信：查看通信维度的检查，以及在等待哪个 rank。"));
  return finding;
}

}  // namespace profd::analysis
