// The sources of npu_exporter_table.h, prepared for one pass over the metric store.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/metric_spec.h"
#include "daemon/metrics/npu_exporter_table.h"

namespace profd {

using NpuExporterSeriesLabels = std::vector<std::pair<std::string, std::string>>;

// One source of one row.
struct NpuExporterReader {
  uint16_t row = 0;
  uint8_t rank = 0;  // among the row's sources
  const NpuExporterSource* source = nullptr;
  std::vector<std::pair<std::string_view, std::string_view>> conditions;
  NpuExporterName name;

  bool Matches(const NpuExporterSeriesLabels& labels) const;
};

// Who reads a metric of ours.
std::span<const NpuExporterReader> NpuExporterReaders(MetricId metric);

// What changing units in binary floating point adds is taken off again: 0.29 is 29 %, exactly.
double RoundedForNpuExporter(double value);

}  // namespace profd
