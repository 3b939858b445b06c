#include "export/rows/series.h"

#include <fmt/format.h>

#include "base/text.h"

namespace profd::exporting {

std::vector<Label> ParseLabels(std::string_view text) {
  std::vector<Label> labels;
  for (std::string_view item; NextPart(&text, ',', &item);) {
    size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    labels.push_back({std::string(item.substr(0, equals)), std::string(item.substr(equals + 1))});
  }
  return labels;
}

std::vector<MetricColumn> MetricColumns(const TableSpec& table) {
  std::vector<MetricColumn> metrics;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    bool own_name = table.id == TableId::kSample && !IsKey(column.type);
    if (IsKey(column.type) || (column.metric.empty() && !own_name)) continue;
    metrics.push_back({i, std::string(column.metric), ParseLabels(LabelsOf(table, column)), column.scale,
                       column.type == ColumnType::kInt && column.scale == 1});
  }
  return metrics;
}

std::vector<MetricColumn> MetricsOf(const TableSpec& table, std::span<const uint64_t> keys,
                                    const Strings& strings) {
  std::vector<MetricColumn> metrics = MetricColumns(table);
  if (table.id == TableId::kSample) {
    for (MetricColumn& metric : metrics) {
      metric.metric = strings.Text(static_cast<int64_t>(keys[0]));
      metric.labels = ParseLabels(strings.Text(static_cast<int64_t>(keys[1])));
    }
    return metrics;
  }
  std::vector<Label> labels;
  bool has_die = false;
  for (size_t i = 0; i < keys.size(); ++i) {
    const Column& column = table.columns[i];
    auto value = static_cast<int64_t>(keys[i]);
    has_die = has_die || (column.name == "die" && value != -1);
    if (column.type == ColumnType::kKey && value == -1) {
      if (!column.none.empty()) labels.push_back({std::string(column.name), std::string(column.none)});
      continue;
    }
    std::string_view text =
        column.type == ColumnType::kName ? strings.Text(value) : KeyText(column, value);
    bool number = column.type == ColumnType::kKey && text.empty();
    labels.push_back(
        {std::string(column.name), number ? fmt::to_string(value) : std::string(text)});
  }
  for (MetricColumn& metric : metrics) {
    const std::string_view of_die = table.columns[metric.column].metric_of_die;
    if (has_die && !of_die.empty()) metric.metric = of_die;
    metric.labels.insert(metric.labels.begin(), labels.begin(), labels.end());
  }
  return metrics;
}

}  // namespace profd::exporting
