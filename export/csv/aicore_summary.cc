// ai_core_utilization and ai_vector_core_utilization.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "export/csv/aicore_metrics.h"
#include "export/csv/summaries.h"

namespace profd::exporting::csv {
namespace {

constexpr size_t kEvents = 10;
constexpr size_t kFirstEvent = 2;
constexpr size_t kCycles = kFirstEvent + kEvents;

struct Core {
  std::array<int64_t, kEvents> sums = {};
  int64_t cycles = 0;

  void Merge(const Core& later) {
    for (size_t i = 0; i < kEvents; ++i) AddTo(&sums[i], later.sums[i]);
    AddTo(&cycles, later.cycles);
  }
};

class CoreSummary : public Summary {
 public:
  CoreSummary(const PartContext& context, int64_t type) : Summary(context), type_(type) {}

  void Take(const Batch& batch) override {
    auto cores = batch.Ints(0);
    auto types = batch.Ints(1);
    for (size_t row = 0; row < batch.rows(); ++row) {
      Core* core = types[row] == type_ ? cores_.Get(cores[row]) : nullptr;
      if (core == nullptr) continue;
      for (size_t i = 0; i < kEvents; ++i) AddTo(&core->sums[i], batch.Ints(kFirstEvent + i)[row]);
      AddTo(&core->cycles, batch.Ints(kCycles)[row]);
    }
  }
  void Merge(Summary& later) override { cores_.Merge(static_cast<CoreSummary&>(later).cores_); }
  Status Write(std::string_view, CsvText* out) override;

 private:
  // Values by metric, then by core; only metrics whose events were counted.
  struct Table {
    std::vector<std::string> metrics;
    std::vector<std::vector<double>> values;
  };

  Table MakeTable();
  void WriteRow(const Table& table, size_t line, std::string_view name, CsvText* out) const;
  // Values of cube, vector and MTE2, of which the memory bound is made. None: not all were counted.
  using BoundColumns = std::array<const std::vector<double>*, 3>;
  static std::optional<BoundColumns> BoundOf(const Table& table);

  int64_t type_;
  SeriesMap<Core> cores_;
};

CoreSummary::Table CoreSummary::MakeTable() {
  const Place& place = *context_.place;
  bool vector = type_ == 1;
  std::span<const uint32_t> events = vector ? place.aiv_events : place.aicore_events;
  auto names = MetricsOf(vector ? place.aiv_metrics : place.aicore_metrics, place.chip);
  Table table;
  for (const std::string& name : names) {
    if (!IsShown(name, names, place.chip)) continue;
    std::vector<double> values;
    double sum = 0;
    for (auto& [id, core] : cores_.Sorted()) {
      auto value = MetricValue(name, {events, core->sums, core->cycles,
                                      static_cast<double>(place.aicore_mhz) * 1e6, place.chip});
      if (!value) break;
      values.push_back(PyRound3(*value));
      sum += values.back();
    }
    if (values.size() != cores_.size()) continue;
    values.push_back(PyRound3(sum / static_cast<double>(cores_.size())));  // Average
    table.metrics.push_back(name);
    table.values.push_back(std::move(values));
  }
  return table;
}

std::optional<CoreSummary::BoundColumns> CoreSummary::BoundOf(const Table& table) {
  const auto column = [&table](const std::string& name) {
    const auto found = std::ranges::find(table.metrics, name, ColumnOf);
    return found == table.metrics.end() ? nullptr : &table.values[static_cast<size_t>(found - table.metrics.begin())];
  };
  for (const std::string kind : {"_ratio", "_exe_ratio"}) {
    const BoundColumns columns = {column("mac" + kind), column("vec" + kind), column("mte2" + kind)};
    if (std::ranges::find(columns, nullptr) == columns.end()) return columns;
  }
  return std::nullopt;
}

void CoreSummary::WriteRow(const Table& table, size_t line, std::string_view name,
                           CsvText* out) const {
  CsvRow row = NextRow(out);
  row.Text(name);
  for (size_t i = 0; i < table.metrics.size(); ++i) {
    if (IsNotAvailable(table.metrics[i], context_.place->chip)) {
      row.Text("N/A");
    } else {
      row.Repr(table.values[i][line]);
    }
  }
  if (const auto bound = BoundOf(table)) {
    const auto& [mac, vec, mte2] = *bound;
    const double busier = std::max((*vec)[line], (*mac)[line]);
    busier != 0 ? row.Fixed3((*mte2)[line] / busier) : row.Int(0);
  }
  row.End();
}

Status CoreSummary::Write(std::string_view, CsvText* out) {
  if (cores_.empty()) return Status::Ok();
  Table table = MakeTable();
  if (table.metrics.empty()) return Status::Ok();
  if (out->row_count == 0) {
    for (const std::string& metric : table.metrics) out->columns += "," + ColumnOf(metric);
    if (BoundOf(table)) out->columns += ",memory_bound";
  }
  size_t line = 0;
  for (auto& [id, core] : cores_.Sorted()) {
    WriteRow(table, line++, "Core" + std::to_string(id), out);
  }
  WriteRow(table, line, "Average", out);
  return Status::Ok();
}

}  // namespace

std::span<const SummaryKind> AicoreSummaries() {
  static constexpr auto kKinds = std::to_array<SummaryKind>({
      {"ai_core_utilization", TableId::kAicorePmu, "Core ID", MakeSummary<CoreSummary, 0>},
      {"ai_vector_core_utilization", TableId::kAicorePmu, "Core ID", MakeSummary<CoreSummary, 1>},
  });
  return kKinds;
}

}  // namespace profd::exporting::csv
