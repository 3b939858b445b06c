#include "daemon/metrics/npu_exporter_reader.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"

namespace profd {
namespace {

using Conditions = std::vector<std::pair<std::string_view, std::string_view>>;

Conditions ConditionsOf(std::string_view match) {
  Conditions conditions;
  for (std::string_view one; NextPart(&match, ',', &one);) {
    const size_t equals = one.find('=');
    conditions.emplace_back(one.substr(0, equals), one.substr(equals + 1));
  }
  return conditions;
}

// By MetricId. Sources that are not in our table have no reader; a test finds them.
std::vector<std::vector<NpuExporterReader>> MakeReaders() {
  std::vector<std::vector<NpuExporterReader>> readers(kMetrics.size());
  std::span<const NpuExporterRow> rows = NpuExporterTable();
  for (size_t row = 0; row < rows.size(); ++row) {
    uint8_t rank = 0;
    for (const NpuExporterSource& source : SourcesOf(rows[row])) {
      auto metric = std::ranges::find(kMetrics, source.metric, &MetricSpec::name);
      if (metric != kMetrics.end()) {
        readers[static_cast<size_t>(metric - kMetrics.begin())].push_back(
            {static_cast<uint16_t>(row), rank, &source, ConditionsOf(source.match),
             SplitNpuExporterName(rows[row].name)});
      }
      ++rank;
    }
  }
  return readers;
}

}  // namespace

bool NpuExporterReader::Matches(const NpuExporterSeriesLabels& labels) const {
  return std::ranges::all_of(conditions, [&](const auto& condition) {
    const std::string_view have = LabelOf(labels, condition.first);
    if (condition.second == "/") return have.find('/') != have.npos;
    if (condition.second == "!/") return have.find('/') == have.npos;
    return have == condition.second;
  });
}

std::span<const NpuExporterReader> NpuExporterReaders(MetricId metric) {
  static const std::vector<std::vector<NpuExporterReader>> readers = MakeReaders();
  return readers[metric];
}

double RoundedForNpuExporter(double value) {
  constexpr double kSteps = 1e9;  // to a billionth of npu-exporter's unit
  constexpr double kExact = 4e6;  // below which a billionth is more than a double's own step
  return std::abs(value) < kExact ? std::round(value * kSteps) / kSteps : value;
}

}  // namespace profd
