#include "export/sqlite/pmu_summary.h"

#include <string_view>

#include "export/csv/aicore_metrics.h"
#include "export/sqlite/row_cells.h"

namespace profd::exporting {
namespace {

constexpr size_t kFirstEvent = 2;
constexpr size_t kCycles = 12;
constexpr int64_t kVector = 1;

// Untrusted: wraps rather than overflows.
void AddTo(int64_t& sum, int64_t value) {
  sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(value));
}

// The database's name of a metric and its unit: bytes a second, ns.
struct Unit {
  std::string_view suffix;
  double factor;
};
constexpr std::array<Unit, 3> kUnits = {{{"_extra", 1}, {"(ms)", 1e6}, {"(GB/s)", 1073741824.0}}};

}  // namespace

void PmuSummary::Take(const Batch& batch) {
  device_ = batch.device;
  auto ids = batch.Ints(0);
  auto types = batch.Ints(1);
  auto cycles = batch.Ints(kCycles);
  for (size_t row = 0; row < batch.rows(); ++row) {
    Key key{types[row], ids[row]};
    auto core = cores_.find(key);
    if (core == cores_.end()) {
      if (cores_.size() >= kMaxCores) continue;
      core = cores_.emplace(key, Core()).first;
    }
    for (size_t i = 0; i < kEvents; ++i) {
      AddTo(core->second.sums[i], batch.Ints(kFirstEvent + i)[row]);
    }
    AddTo(core->second.cycles, cycles[row]);
  }
}

Status PmuSummary::Write(CellLoader& cells) const {
  for (const auto& [key, core] : cores_) RETURN_IF_ERROR(WriteCore(key, core, cells));
  return {};
}

Status PmuSummary::WriteCore(const Key& key, const Core& core, CellLoader& cells) const {
  const Place& place = *where_.place;
  const bool vector = key.first == kVector;
  const double hz = static_cast<double>(place.aicore_mhz) * 1e6;
  csv::CoreCounters counters{vector ? place.aiv_events : place.aicore_events, core.sums, core.cycles,
                             hz, place.chip};
  auto metrics = csv::MetricsOf(vector ? place.aiv_metrics : place.aicore_metrics, place.chip);
  if (metrics.empty()) return {};
  double total_ms = hz > 0 ? static_cast<double>(core.cycles) * 1000 / hz : 0;
  RETURN_IF_ERROR(WriteValue(key, "total_time(ms)", total_ms, cells));
  for (const std::string& metric : metrics) {
    std::optional<double> value = csv::MetricValue(metric, counters);
    if (value) RETURN_IF_ERROR(WriteValue(key, metric, *value, cells));
  }
  return {};
}

Status PmuSummary::WriteValue(const Key& key, std::string_view metric, double value,
                              CellLoader& cells) const {
  for (const Unit& unit : kUnits) {
    if (!metric.ends_with(unit.suffix)) continue;
    metric.remove_suffix(unit.suffix.size());
    value *= unit.factor;
  }
  RowCells row(where_.dump_id);
  row.Int(device_).Int(where_.strings->Intern(metric)).Numeric(value).Int(key.second);
  return cells.Add(row.Int(where_.strings->Intern(key.first == kVector ? "AIV" : "AIC")).End(), 0);
}

}  // namespace profd::exporting
