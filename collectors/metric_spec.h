// What a metric is. The table itself is metric_table.h, the only place where a metric is spelled;
// /metrics, docs/metrics.md, the live stream and the tests are printed from it.
#pragma once

#include <cstdint>
#include <string_view>

namespace profd {

enum class MetricType : uint8_t { kGauge, kCounter, kHistogram };

// Whom a metric's series belong to; decides the labels every series of it carries in front of its own.
enum class MetricScope : uint8_t {
  kNode,    // none
  kDevice,  // npu (physical id), uuid
};

// Where a metric is shown.
enum class MetricVisibility : uint8_t {
  kEverywhere,  // /metrics and live streams
  kStreamOnly,  // live streams and dumps only: unbounded or fast-changing label sets (pids)
};

// What "avg" of a window is.
enum class WindowMean : uint8_t {
  kOfSamples,  // of the samples in it: values of a source that measures at a steady pace
  kOverTime,   // over time, each value standing until the next: sources that report changes
};

struct MetricSpec {
  std::string_view name;  // Prometheus name; base unit is its suffix
  MetricType type;
  MetricScope scope;
  std::string_view labels;  // comma-separated names of its own labels, in order; may be empty
  std::string_view unit;    // "bytes", "ratio", "hertz", ... as docs print it
  std::string_view help;    // one sentence, ends without a full stop
  std::string_view source;  // what it is read from, for docs/metrics.md
  MetricVisibility visibility = MetricVisibility::kEverywhere;
  // Only in metrics_window.h: the gauge whose samples since the last scrape are summed up.
  std::string_view window_of = {};
  WindowMean window_mean = WindowMean::kOfSamples;
};

// Index into the metric table.
using MetricId = uint16_t;

}  // namespace profd
