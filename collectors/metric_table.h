// THE list of metrics: five parts, one per origin, joined at compile time. A metric is spelled in its
// part and nowhere else; code names it as MetricByName("atlas_..."), which fails to compile when the
// table has no such metric.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "collectors/metric_spec.h"
#include "collectors/metrics_channel.h"
#include "collectors/metrics_device.h"
#include "collectors/metrics_host.h"
#include "collectors/metrics_jobs.h"
#include "collectors/metrics_self.h"

namespace profd {

inline constexpr auto kMetrics = [] {
  std::array<MetricSpec, kDeviceMetrics.size() + kChannelMetrics.size() + kHostMetrics.size() +
                             kJobMetrics.size() + kSelfMetrics.size()>
      all{};
  auto next = all.begin();
  next = std::copy(kDeviceMetrics.begin(), kDeviceMetrics.end(), next);
  next = std::copy(kChannelMetrics.begin(), kChannelMetrics.end(), next);
  next = std::copy(kHostMetrics.begin(), kHostMetrics.end(), next);
  next = std::copy(kJobMetrics.begin(), kJobMetrics.end(), next);
  std::copy(kSelfMetrics.begin(), kSelfMetrics.end(), next);
  return all;
}();

static_assert([] {
  for (size_t i = 0; i < kMetrics.size(); ++i) {
    if (kMetrics[i].name.empty() || kMetrics[i].help.empty() || kMetrics[i].help.back() == '.') {
      return false;
    }
    for (size_t j = 0; j < i; ++j) {
      if (kMetrics[i].name == kMetrics[j].name) return false;
    }
  }
  return true;
}(), "every metric has a help text without a full stop and a name of its own");

// The id of a metric of the table, at compile time.
consteval MetricId MetricByName(std::string_view name) {
  for (size_t i = 0; i < kMetrics.size(); ++i) {
    if (kMetrics[i].name == name) return static_cast<MetricId>(i);
  }
  throw "no such metric in the table";
}

}  // namespace profd
