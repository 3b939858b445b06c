#include "daemon/health/npu_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "collectors/metric_table.h"
#include "profd/v1/profd.pb.h"
#include "proto/enum_word/enum_word.h"

namespace profd {
namespace {

constexpr MetricId kVerdict = MetricByName("atlas_npu_verdict");

v1::Health::Verdict WireVerdict(Verdict verdict) {
  return EnumOf<v1::Health::Verdict>(VerdictName(verdict));
}

log::Level LevelOf(Verdict verdict) {
  if (verdict == Verdict::kFaulty || verdict == Verdict::kDown) return log::Level::kError;
  return verdict == Verdict::kDegraded ? log::Level::kWarning : log::Level::kInfo;
}

void Log(const HealthChange& change) {
  std::vector<log::Field> fields;
  for (const auto& [key, value] : change.fields) fields.emplace_back(key, value);
  log::Write(LevelOf(change.verdict), change.event, fields);
}

}  // namespace

bool NpuHealth::Update(std::vector<HealthFacts> facts, std::vector<HealthFacts> dcmi_only) {
  DCHECK_ON(control_);
  const int64_t now = clock_.MonotonicRawNs();
  AddStoredFacts(store_, now, &facts);
  AddStoredFacts(store_, now, &dcmi_only);
  const std::vector<HealthChange> changes = board_.Update(std::move(facts), clock_.WallNs());
  for (const HealthChange& change : changes) Log(change);
  for (const auto& [device, record] : board_.devices()) Write(device, record.health.verdict, now);
  for (const HealthFacts& one : dcmi_only) Write(one.device, Judge(one).verdict, now);
  return !changes.empty();
}

void NpuHealth::Write(int device, Verdict verdict, int64_t now_ns) {
  auto [series, is_new] = verdict_series_.try_emplace(device, kNoSeries);
  if (is_new) series->second = store_.Intern(kVerdict, device);
  const Sample sample{series->second, now_ns, static_cast<double>(verdict)};
  store_.Write(std::span(&sample, 1));
}

const DeviceRecord* NpuHealth::Of(int device) const {
  DCHECK_ON(control_);
  return board_.Of(device);
}

bool NpuHealth::IsDown(int device) const {
  const DeviceRecord* record = Of(device);
  return record != nullptr && record->health.verdict == Verdict::kDown;
}

void NpuHealth::Describe(int device, v1::Device* out) const {
  v1::Health& wire = *out->mutable_health();
  const DeviceRecord* record = Of(device);
  wire.set_verdict(record == nullptr ? v1::Health::VERDICT_UNKNOWN : WireVerdict(record->health.verdict));
  if (record == nullptr) return;
  if (record->health.verdict == Verdict::kDown) out->set_problem(record->health.reasons.front());
  for (const v1::Health::Flag flag : record->health.flags) wire.add_flags(flag);
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

void NpuHealth::Describe(const std::string& driver_problem, v1::Node* out) const {
  DCHECK_ON(control_);
  v1::Health& wire = *out->mutable_health();
  wire.set_verdict(WireVerdict(board_.node()));
  if (board_.devices().empty()) {
    wire.add_flags(v1::Health::FLAG_NO_NPU);
    wire.add_reasons("no usable NPU: " + driver_problem);
  }
  for (const auto& [device, record] : board_.devices()) {
    if (record.health.verdict == Verdict::kOk) continue;
    for (const v1::Health::Flag flag : record.health.flags) {
      if (std::ranges::find(wire.flags(), flag) == wire.flags().end()) wire.add_flags(flag);
    }
    wire.add_reasons(fmt::format("NPU {} is {}", record.facts.npu, VerdictName(record.health.verdict)));
  }
}

}  // namespace profd
