#include "export/trace/utilization.h"

#include "export/trace/layout.h"

namespace profd::exporting {
namespace {

constexpr int64_t kAiCore = 0;
constexpr int64_t kAverage = 2;
constexpr size_t kMaxCores = 4096;  // ids are untrusted

}  // namespace

void Utilization::Add(int64_t t_ns, int64_t core, int64_t type, double value) {
  timestamps_.push_back(t_ns);
  core_.push_back(BatchBuilder::ToCell(core));
  type_.push_back(BatchBuilder::ToCell(type));
  value_.push_back(BatchBuilder::ToCell(value));
}

void Utilization::CloseRound() {
  if (!round_.empty()) {
    Add(round_t_, -1, kAverage, round_sum_ / static_cast<double>(round_.size()));
  }
  round_.clear();
  round_sum_ = 0;
}

Batch Utilization::Rows(int device) {
  cells_ = core_;
  cells_.insert(cells_.end(), type_.begin(), type_.end());
  cells_.insert(cells_.end(), value_.begin(), value_.end());
  return {&UtilizationTable(), device, timestamps_, cells_.data(), timestamps_.size()};
}

Batch Utilization::Convert(const Batch& batch) {
  static const int kCycles = ColumnIndex(TableOf(TableId::kAicorePmu), "cycles");
  timestamps_.clear();
  core_.clear();
  type_.clear();
  value_.clear();
  if (mhz_ <= 0 || kCycles < 0) return Rows(batch.device);
  for (size_t row = 0; row < batch.rows(); ++row) {
    int64_t core = batch.Ints(0)[row];
    int64_t type = batch.Ints(1)[row];
    int64_t t_ns = batch.t_ns[row];
    if (last_.size() >= kMaxCores) last_.clear();
    auto [it, first] = last_.try_emplace({type, core}, t_ns);
    int64_t since = t_ns - it->second;
    it->second = t_ns;
    if (first || since <= 0) continue;
    double cycles = batch.Number(static_cast<size_t>(kCycles), row);
    // MHz * ns / 1000 = cycles that were possible.
    double value = cycles * 100 / (mhz_ * static_cast<double>(since) / 1000);
    Add(t_ns, core, type, value);
    if (type != kAiCore) continue;
    if (round_.contains(core)) CloseRound();
    round_.insert(core);
    round_sum_ += value;
    round_t_ = t_ns;
  }
  return Rows(batch.device);
}

Batch Utilization::Finish(int device) {
  timestamps_.clear();
  core_.clear();
  type_.clear();
  value_.clear();
  CloseRound();
  return Rows(device);
}

}  // namespace profd::exporting
