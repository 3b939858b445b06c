#include "daemon/health/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"

namespace profd {
namespace {

constexpr MetricId kUp = MetricByName("atlas_npu_up");
constexpr MetricId kHealth = MetricByName("atlas_npu_health_status");
constexpr MetricId kFault = MetricByName("atlas_npu_fault_active");
constexpr MetricId kFaultCounts = MetricByName("atlas_npu_faults_active");
constexpr MetricId kThrottle = MetricByName("atlas_npu_throttle_reason");
constexpr MetricId kEcc = MetricByName("atlas_npu_ecc_errors_current");

// DCMI's alarm levels (dcmi-and-metrics 1.3, row 1).
constexpr std::array<std::string_view, 4> kLevels = {"none", "minor", "major", "critical"};
constexpr int kMajorAlarm = 2;

// What a fault of this severity makes of the NPU. A warning is listed, and changes nothing.
Verdict OfSeverity(std::string_view severity) {
  if (severity == "major" || severity == "critical") return Verdict::kFaulty;
  return severity == "warning" ? Verdict::kOk : Verdict::kDegraded;
}

int RankOf(Verdict verdict) {
  constexpr std::array<int, 5> kRanks = {0, 2, 3, 4, 1};  // by Verdict
  return kRanks[static_cast<size_t>(verdict)];
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  constexpr std::array<std::string_view, 5> kNames = {"ok", "degraded", "faulty", "down", "unknown"};
  return kNames[static_cast<size_t>(verdict)];
}

Verdict Worse(Verdict a, Verdict b) { return RankOf(a) < RankOf(b) ? b : a; }

void AddStoredFacts(const MetricStore& store, int64_t now_ns, std::vector<HealthFacts>* facts) {
  std::map<int, HealthFacts*> by_device;
  for (HealthFacts& one : *facts) by_device[one.device] = &one;
  constexpr std::array kMetricsOfHealth = {kUp, kHealth, kFault, kFaultCounts, kThrottle, kEcc};
  store.VisitFreshOf(kMetricsOfHealth, now_ns, [&](const SeriesValue& series) {
    auto found = by_device.find(series.device);
    if (found == by_device.end()) return;
    HealthFacts& device = *found->second;
    const bool set = series.value != 0;
    if (series.metric == kUp) {
      device.up = set;
    } else if (series.metric == kHealth) {
      device.health_status = static_cast<int>(series.value);
      device.faults_known = true;
    } else if (series.metric == kFaultCounts) {
      device.faults_known = true;
    } else if (series.metric == kFault && set) {
      device.faults.push_back({std::string(LabelOf(series, "code")),
                               std::string(LabelOf(series, "name")),
                               std::string(LabelOf(series, "severity"))});
    } else if (series.metric == kThrottle && set) {
      device.throttle_reasons.emplace_back(LabelOf(series, "reason"));
    } else if (series.metric == kEcc && LabelOf(series, "type") == "double") {
      device.uncorrected_errors += series.value;
    }
  });
  for (HealthFacts& one : *facts) std::ranges::sort(one.faults);
}

DeviceHealth Judge(const HealthFacts& facts) {
  DeviceHealth health;
  // An NPU that answers, but not this question, is not known to be well.
  health.verdict = facts.health_status.has_value() ? Verdict::kOk : Verdict::kUnknown;
  auto note = [&health](Verdict verdict, v1::Health::Flag flag, std::string reason) {
    health.verdict = Worse(health.verdict, verdict);
    health.flags.push_back(flag);
    health.reasons.push_back(std::move(reason));
  };
  const bool silent = facts.up == false && facts.unreadable.empty();
  if (!facts.problem.empty() || facts.hangs || silent) {
    note(Verdict::kDown, facts.hangs ? v1::Health::FLAG_HUNG : v1::Health::FLAG_GONE,
         !facts.problem.empty() ? facts.problem
         : facts.hangs          ? "a call for it has not returned"
                                : "does not answer the management library");
    return health;  // what was read before is out of date
  }
  if (!facts.unreadable.empty()) {
    health.verdict = Verdict::kUnknown;
    health.reasons.push_back(facts.unreadable);
    return health;
  }
  if (!facts.stuck_call.empty()) note(Verdict::kDegraded, v1::Health::FLAG_STUCK, facts.stuck_call);
  if (facts.uncorrected_errors > 0) {
    note(Verdict::kFaulty, v1::Health::FLAG_ECC,
         fmt::format("{:.0f} memory errors that could not be corrected since the NPU started",
                     facts.uncorrected_errors));
  }
  if (!facts.faults.empty()) {
    Verdict worst = Verdict::kOk;
    std::vector<std::string> texts;
    for (const FaultFact& fault : facts.faults) {
      worst = Worse(worst, OfSeverity(fault.severity));
      texts.push_back(fmt::format("{} ({}{}{})", fault.code, fault.severity,
                                  fault.name.empty() ? "" : ": ", fault.name));
    }
    note(worst, v1::Health::FLAG_FAULT, fmt::format("fault {}", fmt::join(texts, ", ")));
  }
  if (!facts.throttle_reasons.empty()) {
    note(Verdict::kDegraded, v1::Health::FLAG_THROTTLED,
         fmt::format("the AI Core clock is lowered ({})", fmt::join(facts.throttle_reasons, ", ")));
  }
  if (const int level = facts.health_status.value_or(0); level > 0) {
    const std::string name =
        level < static_cast<int>(kLevels.size()) ? std::string(kLevels[static_cast<size_t>(level)])
                                                 : fmt::format("level {}", level);
    note(level >= kMajorAlarm ? Verdict::kFaulty : Verdict::kDegraded, v1::Health::FLAG_ALARM,
         fmt::format("health status {}: its worst alarm is {}", level, name));
  }
  if (health.verdict == Verdict::kUnknown && facts.up == true) {
    health.reasons.emplace_back("libdcmi does not report its health status; see profd_dcmi_call_errors_total");
  } else if (health.verdict == Verdict::kUnknown && !facts.not_read.empty()) {
    health.reasons.push_back(facts.not_read);
  }
  return health;
}

}  // namespace profd
