// How the NPUs are: gathered once a second, logged where it changes, shown everywhere from here.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "collectors/metric_table.h"
#include "daemon/app_impl.h"
#include "profd/v1/profd.pb.h"
#include "proto/enum_word/enum_word.h"

namespace profd {
namespace {

constexpr MetricId kVerdict = MetricByName("atlas_npu_verdict");

v1::Health::Verdict WireVerdict(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return v1::Health::VERDICT_OK;
    case Verdict::kDegraded:
      return v1::Health::VERDICT_DEGRADED;
    case Verdict::kFaulty:
      return v1::Health::VERDICT_FAULTY;
    case Verdict::kDown:
      return v1::Health::VERDICT_DOWN;
    case Verdict::kUnknown:
      break;
  }
  return v1::Health::VERDICT_UNKNOWN;
}

log::Level LevelOf(Verdict verdict) {
  if (verdict == Verdict::kFaulty || verdict == Verdict::kDown) return log::Level::kError;
  return verdict == Verdict::kDegraded ? log::Level::kWarning : log::Level::kInfo;
}

void Log(const HealthChange& change) {
  const auto& f = change.fields;
  const log::Level level = LevelOf(change.verdict);
  if (f.size() == 3) {
    log::Write(level, change.event,
               {{f[0].first, f[0].second}, {f[1].first, f[1].second}, {f[2].first, f[2].second}});
  } else {
    log::Write(level, change.event,
               {{f[0].first, f[0].second}, {f[1].first, f[1].second}, {f[2].first, f[2].second},
                {f[3].first, f[3].second}});
  }
}

}  // namespace

// Both driver libraries may have noticed; DCMI's text says what to do.
DeviceReadings App::Impl::ReadingsOf(const DeviceInfo& device) {
  DeviceReadings facts;
  facts.device = device.id;
  facts.npu = std::to_string(device.physical_id);
  const int64_t now = clock.SteadyNs();
  auto add = [&facts](const std::string& problem) {
    if (problem.empty()) return;
    facts.problem += (facts.problem.empty() ? "" : "; ") + problem;
  };
  add(arbiter->ProblemOf(device.id));
  const HalDevice* hal = node->HalDeviceOf(device.id);
  if (facts.problem.empty() && hal != nullptr && !hal->usable.ok()) add(hal->usable.message());
  if (node->pump_or_null()->IsDeviceStuck(static_cast<uint32_t>(device.id))) facts.hangs = true;
  if (DeviceControl* control_of = node->ControlOf(device.id); control_of != nullptr) {
    if (const Status calls = control_of->Health(); !calls.ok()) facts.stuck_call = calls.message();
  }
  add(node->DcmiProblemOf(device));
  if (const DcmiService* dcmi = node->dcmi_or_null(); dcmi != nullptr) {
    if (!dcmi->SilenceOf(device.id, device.physical_id).empty()) facts.hangs = true;
    for (const DcmiStuckCall& call : dcmi->StuckCalls(now)) {
      if (call.physical_id == device.physical_id) facts.hangs = true;
    }
  }
  return facts;
}

void App::Impl::UpdateHealth() {
  std::vector<DeviceReadings> facts;
  for (const DeviceInfo& device : node->host().devices) facts.push_back(ReadingsOf(device));
  const int64_t now = clock.MonotonicRawNs();
  AddStoredFacts(store, now, &facts);
  const std::vector<HealthChange> changes = health.Update(std::move(facts), clock.WallNs());
  for (const HealthChange& change : changes) Log(change);
  if (!changes.empty()) web_outdated = true;
  for (const auto& [device, record] : health.devices()) {
    auto [series, is_new] = verdict_series.try_emplace(device, kNoSeries);
    if (is_new) series->second = store.Intern(kVerdict, device);
    const Sample sample{series->second, now, static_cast<double>(record.health.verdict)};
    store.Write(std::span(&sample, 1));
  }
}

void App::Impl::DescribeHealth(int device, v1::Device* out) const {
  v1::Health& wire = *out->mutable_health();
  const DeviceRecord* record = health.Of(device);
  wire.set_verdict(record == nullptr ? v1::Health::VERDICT_UNKNOWN : WireVerdict(record->health.verdict));
  if (record == nullptr) return;
  if (record->health.verdict == Verdict::kDown) out->set_problem(record->health.reasons.front());
  for (const std::string& flag : record->health.flags) wire.add_flags(EnumOf<v1::Health::Flag>(flag));
  for (const std::string& reason : record->health.reasons) wire.add_reasons(reason);
  if (record->facts.health_status && record->health.verdict != Verdict::kDown) {
    wire.set_health_status(static_cast<uint32_t>(*record->facts.health_status));
  }
  for (const ActiveFault& one : record->faults) {
    v1::Fault& fault = *wire.add_faults();
    fault.set_code(one.fault.code);
    fault.set_name(one.fault.name);
    fault.set_severity(EnumOf<v1::Fault::Severity>(one.fault.severity));
    if (one.since_ns != 0) fault.set_since_ns(one.since_ns);
  }
  if (record->since_ns != 0) wire.set_since_ns(record->since_ns);
}

void App::Impl::DescribeNodeHealth(v1::Node* out) const {
  v1::Health& wire = *out->mutable_health();
  wire.set_verdict(WireVerdict(health.node()));
  if (health.devices().empty()) {
    wire.add_flags(v1::Health::FLAG_NO_NPU);
    const DriverReport& report = node->report();
    wire.add_reasons("no usable NPU: " +
                     (report.hal_error.empty() ? "no devices" : report.hal_error));
  }
  for (const auto& [device, record] : health.devices()) {
    if (record.health.verdict == Verdict::kOk) continue;
    std::string text = fmt::format("NPU {} is {}", record.facts.npu,
                                   VerdictName(record.health.verdict));
    for (const std::string& word : record.health.flags) {
      const auto flag = EnumOf<v1::Health::Flag>(word);
      if (std::find(wire.flags().begin(), wire.flags().end(), flag) == wire.flags().end()) wire.add_flags(flag);
    }
    wire.add_reasons(std::move(text));
  }
}

}  // namespace profd
