// THE list of metrics: seven parts, one per origin, joined at compile time. A metric is spelled in its
// part and nowhere else; code names it as MetricByName("atlas_..."), which fails to compile when the
// table has no such metric.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "collectors/metric_spec.h"
#include "collectors/metrics_channel.h"
#include "collectors/metrics_device.h"
#include "collectors/metrics_host.h"
#include "collectors/metrics_jobs.h"
#include "collectors/metrics_network.h"
#include "collectors/metrics_self.h"
#include "collectors/metrics_window.h"

namespace profd {

inline constexpr auto kMetrics = [] {
  std::array<MetricSpec, kDeviceMetrics.size() + kNetworkMetrics.size() + kChannelMetrics.size() +
                             kHostMetrics.size() + kJobMetrics.size() + kSelfMetrics.size() +
                             kWindowMetrics.size()>
      all{};
  auto next = all.begin();
  next = std::copy(kDeviceMetrics.begin(), kDeviceMetrics.end(), next);
  next = std::copy(kNetworkMetrics.begin(), kNetworkMetrics.end(), next);
  next = std::copy(kChannelMetrics.begin(), kChannelMetrics.end(), next);
  next = std::copy(kHostMetrics.begin(), kHostMetrics.end(), next);
  next = std::copy(kJobMetrics.begin(), kJobMetrics.end(), next);
  next = std::copy(kSelfMetrics.begin(), kSelfMetrics.end(), next);
  std::copy(kWindowMetrics.begin(), kWindowMetrics.end(), next);
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

static_assert(std::ranges::none_of(kMetrics, [](const MetricSpec& metric) {
  return metric.labels.find("instance") != std::string_view::npos;
}), "instance is a label of Prometheus's own, the scraped node, and would be renamed or take its place");

// The id of a metric of the table, at compile time.
consteval MetricId MetricByName(std::string_view name) {
  for (size_t i = 0; i < kMetrics.size(); ++i) {
    if (kMetrics[i].name == name) return static_cast<MetricId>(i);
  }
  throw "no such metric in the table";
}

inline constexpr MetricId kNoMetric = UINT16_MAX;

// The windowed metric of each metric; kNoMetric for those without one.
inline constexpr auto kWindowMetricOf = [] {
  std::array<MetricId, kMetrics.size()> windows{};
  windows.fill(kNoMetric);
  for (size_t i = 0; i < kMetrics.size(); ++i) {
    for (size_t j = 0; j < kMetrics.size() && !kMetrics[i].window_of.empty(); ++j) {
      if (kMetrics[j].name == kMetrics[i].window_of) windows[j] = static_cast<MetricId>(i);
    }
  }
  return windows;
}();

static_assert([] {
  size_t windows = 0;
  for (size_t i = 0; i < kMetrics.size(); ++i) {
    windows += kMetrics[i].window_of.empty() ? 0 : 1;
    if (kWindowMetricOf[i] == kNoMetric) continue;
    const MetricSpec& source = kMetrics[i];
    const MetricSpec& window = kMetrics[kWindowMetricOf[i]];
    const std::string_view own = source.labels;
    const bool has_stat = own.ends_with("stat");
    const std::string_view added = window.labels.substr(std::min(own.size(), window.labels.size()));
    if (source.type != MetricType::kGauge || window.type != MetricType::kGauge ||
        source.scope != window.scope || source.unit != window.unit ||
        !window.labels.starts_with(own) ||
        added != (has_stat ? "" : own.empty() ? "stat" : ",stat")) {
      return false;
    }
    --windows;
  }
  return windows == 0;
}(), "a windowed metric sums up a gauge that exists, has its unit and its labels, then stat");

}  // namespace profd
