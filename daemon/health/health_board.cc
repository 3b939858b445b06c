#include "daemon/health/health_board.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace profd {
namespace {

Verdict OfFault(const FaultFact& fault) {
  HealthFacts facts{.up = true, .faults = {fault}};
  return Judge(facts).verdict;
}

HealthChange FaultChange(std::string event, Verdict verdict, const std::string& npu,
                         const FaultFact& fault) {
  return {verdict,
          std::move(event),
          {{"npu", npu}, {"code", fault.code}, {"name", fault.name}, {"severity", fault.severity}}};
}

}  // namespace

std::vector<HealthChange> HealthBoard::Update(std::vector<HealthFacts> facts, int64_t wall_ns) {
  std::vector<HealthChange> changes;
  std::map<int, DeviceRecord> fresh;
  for (HealthFacts& one : facts) {
    const int device = one.device;
    DeviceRecord& now = fresh[device];
    now.health = Judge(one);
    now.facts = std::move(one);
    Memory& memory = memory_[device];
    const auto before = devices_.find(device);
    CompareVerdict(before == devices_.end() ? DeviceRecord() : before->second, &now, &memory, wall_ns,
                   &changes);
    CompareFaults(&now, &memory, wall_ns, &changes);
  }
  devices_ = std::move(fresh);
  return changes;
}

void HealthBoard::CompareVerdict(const DeviceRecord& before, DeviceRecord* now, Memory* memory,
                                 int64_t wall_ns, std::vector<HealthChange>* changes) {
  const Verdict verdict = now->health.verdict;
  const bool first = !memory->read;
  const bool same = verdict == before.health.verdict;
  now->since_ns = same ? before.since_ns : first ? 0 : wall_ns;
  if (verdict == Verdict::kUnknown) return;
  const Verdict last = std::exchange(memory->verdict, verdict);
  memory->read = true;
  const std::string& npu = now->facts.npu;
  if (verdict != last && !(first && verdict == Verdict::kOk)) {
    changes->push_back({verdict,
                        "NPU health changed",
                        {{"npu", npu},
                         {"from", std::string(VerdictName(last))},
                         {"to", std::string(VerdictName(verdict))},
                         {"why", fmt::format("{}", fmt::join(now->health.reasons, "; "))}}});
  }
  if (verdict == Verdict::kDown || !now->facts.health_status) return;
  const std::optional<int> status = std::exchange(memory->health_status, now->facts.health_status);
  if (status == now->facts.health_status || (!status && now->facts.health_status == 0)) return;
  changes->push_back({verdict,
                      "NPU alarm level changed",
                      {{"npu", npu},
                       {"from", status ? std::to_string(*status) : "unknown"},
                       {"to", std::to_string(*now->facts.health_status)}}});
}

void HealthBoard::CompareFaults(DeviceRecord* now, Memory* memory, int64_t wall_ns,
                                std::vector<HealthChange>* changes) {
  if (now->health.verdict == Verdict::kDown || !now->facts.faults_known) return;
  std::vector<ActiveFault> active;
  for (const FaultFact& fault : now->facts.faults) {
    auto known = std::ranges::find(memory->faults, fault, &ActiveFault::fault);
    if (known != memory->faults.end()) {
      active.push_back(*known);
      continue;
    }
    active.push_back({fault, memory->faults_known ? wall_ns : 0});
    changes->push_back(FaultChange("NPU fault raised", OfFault(fault), now->facts.npu, fault));
  }
  for (const ActiveFault& one : memory->faults) {
    const auto& faults = now->facts.faults;
    if (std::ranges::find(faults, one.fault) != faults.end()) continue;
    changes->push_back(FaultChange("NPU fault cleared", Verdict::kOk, now->facts.npu, one.fault));
  }
  memory->faults_known = true;
  memory->faults = active;
  now->faults = std::move(active);
}

const DeviceRecord* HealthBoard::Of(int device) const {
  auto found = devices_.find(device);
  return found == devices_.end() ? nullptr : &found->second;
}

Verdict HealthBoard::node() const {
  if (devices_.empty()) return Verdict::kUnknown;
  Verdict worst = Verdict::kOk;
  for (const auto& [device, record] : devices_) worst = Worse(worst, record.health.verdict);
  return worst;
}

}  // namespace profd
