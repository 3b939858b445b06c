// npu-exporter's names, labels and units (dcmi-and-metrics section 2) for values that are in the metric
// store under ours, for dashboards and schedulers that were written for that exporter. One table; what
// it cannot serve, and why, stands in the same table.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <vector>

namespace profd {

class MetricStore;

// Appends the families of all rows that have a fresh value at `now_ns` (MONOTONIC_RAW).
void AppendNpuExporterFamilies(const MetricStore& store, int64_t now_ns,
                               std::vector<prometheus::MetricFamily>* out);

}  // namespace profd
