// Prints docs/metrics.md from the metric table, or with --exposition one made-up sample of every
// metric in Prometheus' text format, for `promtool check metrics`. Needs no daemon.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/text.h"
#include "collectors/metric_table.h"

namespace profd {
namespace {

std::string_view TypeName(MetricType type) {
  switch (type) {
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kCounter:
      return "counter";
    case MetricType::kHistogram:
      return "histogram";
  }
  return "untyped";
}

std::string AllLabels(const MetricSpec& metric) {
  std::string labels = metric.scope == MetricScope::kDevice ? "npu,uuid" : "";
  if (!labels.empty() && !metric.labels.empty()) labels += ",";
  return labels.append(metric.labels);
}

// "`npu` `uuid`"
std::string LabelCell(const MetricSpec& metric) {
  const std::string labels = AllLabels(metric);
  std::string_view rest = labels;
  std::string cell;
  for (std::string_view label; NextPart(&rest, ',', &label);) {
    cell += fmt::format("{}`{}`", cell.empty() ? "" : " ", label);
  }
  return cell;
}

// Table cells may not contain the separator.
std::string Cell(std::string_view text) {
  std::string cell;
  for (char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

void PrintPart(std::string_view title, std::string_view about, std::span<const MetricSpec> part) {
  fmt::print("\n## {}\n\n{}\n\n", title, about);
  fmt::print("| metric | type | unit | labels | meaning | read from |\n");
  fmt::print("|---|---|---|---|---|---|\n");
  for (const MetricSpec& metric : part) {
    const bool stream_only = metric.visibility == MetricVisibility::kStreamOnly;
    fmt::print("| `{}` | {} | {} | {} | {}{} | {} |\n", metric.name, TypeName(metric.type),
               metric.unit, LabelCell(metric), Cell(metric.help),
               stream_only ? " (live streams only)" : "", Cell(metric.source));
  }
}

void PrintDocument() {
  fmt::print(
      "# Metrics\n\n"
      "Printed from the metric table by `build/dev/tools/metrics_doc`; do not edit.\n\n"
      "Every value is in a base unit: bytes, seconds, hertz, watts, joules, volts, degrees\n"
      "Celsius, ratios from 0 to 1.\n"
      "Counters end in `_total` and only grow, unless the device or the daemon restarts. A value "
      "that cannot be read is\nabsent, never -1 or 0; counters exist from the first sample on. Samples "
      "carry no timestamps.\n"
      "`npu` is the physical id (`/dev/davinciN`), `uuid` the die id; all other constant properties "
      "of an NPU\nare labels of `atlas_npu_info`, to be joined `on(npu, uuid)`. "
      "Directions are the device's: tx is what it sends.\n");
  PrintPart("NPUs",
            "From the driver's management library (DCMI, numbered as in its call table), once a "
            "second to once a minute.\nWhere a channel of the driver is named too, it alone feeds a "
            "gauge, at its own rate, while it runs; a\ncounter is DCMI's at all times, because the "
            "channel's total is another one, and the channel's only on a node\nwithout DCMI.",
            std::span(kMetrics).first(kDeviceMetrics.size() + kNetworkMetrics.size()));
  PrintPart("NPU channels",
            "From the sampling channels of the driver, while a session or the configuration runs "
            "them.",
            kChannelMetrics);
  PrintPart("NPUs, since the previous scrape",
            "Minimum (`stat=\"min\"`), mean (`avg`) and maximum (`max`) of the samples of a metric above since the "
            "scraper's previous\nscrape ([metrics-guide.md](metrics-guide.md#windowed-metrics)).",
            kWindowMetrics);
  PrintPart("Host", "From /proc and /sys.", kHostMetrics);
  PrintPart("Jobs",
            "Jobs, processes and containers of the NPUs ([jobs.md](jobs.md#attribution)). Their number is bounded; "
            "series end\nwith what they describe.",
            kJobMetrics);
  PrintPart("profd itself", "How the daemon and its collectors are doing.", kSelfMetrics);
}

void PrintExposition() {
  for (const MetricSpec& metric : kMetrics) {
    std::string labels;
    for (char c : AllLabels(metric)) {
      labels += c == ',' ? std::string("=\"x\",") : std::string(1, c);
    }
    if (!labels.empty()) labels += "=\"x\"";
    fmt::print("# HELP {0} {1}\n# TYPE {0} {2}\n", metric.name, metric.help, TypeName(metric.type));
    if (metric.type == MetricType::kHistogram) {
      fmt::print("{0}_bucket{{{1}{2}le=\"+Inf\"}} 1\n{0}_sum{{{1}}} 1\n{0}_count{{{1}}} 1\n",
                 metric.name, labels, labels.empty() ? "" : ",");
      continue;
    }
    fmt::print("{}{} 1\n", metric.name, labels.empty() ? "" : "{" + labels + "}");
  }
}

}  // namespace
}  // namespace profd

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--exposition") == 0) {
    profd::PrintExposition();
  } else if (argc == 1) {
    profd::PrintDocument();
  } else {
    fmt::print(stderr, "usage: metrics_doc [--exposition]\n");
    return 2;
  }
  return 0;
}
