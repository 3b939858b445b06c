// Metrics of this origin; see metric_table.h.
#pragma once

#include <array>

#include "collectors/metric_spec.h"

namespace profd {

inline constexpr auto kDeviceMetrics = std::to_array<MetricSpec>({
    {"profd_placeholder_device", MetricType::kGauge, MetricScope::kNode, "", "", "placeholder", ""},
});

}  // namespace profd
