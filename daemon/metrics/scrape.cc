#include "daemon/metrics/scrape.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "collectors/histogram.h"
#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"

namespace profd {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

prometheus::MetricType TypeOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
    case MetricType::kGauge:
      break;
  }
  return prometheus::MetricType::Gauge;
}

void Begin(MetricId id, MetricFamily* family) {
  family->name = kMetrics[id].name;
  family->help = kMetrics[id].help;
  family->type = TypeOf(kMetrics[id].type);
  family->metric.clear();
}

void SetLabels(std::span<const std::pair<std::string, std::string>> labels, ClientMetric* metric) {
  metric->label.reserve(labels.size() + 1);
  for (const auto& [name, value] : labels) metric->label.push_back({name, value});
}

// Puts one part of a histogram (collectors/histogram.h) into it. The store keeps the parts together, the
// buckets in ascending order.
void AddHistogramPart(const SeriesValue& series, MetricFamily* family) {
  if (series.labels->empty() || series.labels->back().first != "le") return;
  const std::string& le = series.labels->back().second;
  double bound = std::numeric_limits<double>::infinity();
  const bool is_sum = le == kHistogramSum;
  const bool is_all = le == kHistogramInfinity;
  if (!is_sum && !is_all && std::from_chars(le.data(), le.data() + le.size(), bound).ec != std::errc()) return;
  ClientMetric part;
  SetLabels(std::span(*series.labels).first(series.labels->size() - 1), &part);
  if (family->metric.empty() || family->metric.back().label != part.label) family->metric.push_back(std::move(part));
  ClientMetric::Histogram& histogram = family->metric.back().histogram;
  if (is_sum) {
    histogram.sample_sum = series.value;
    return;
  }
  const uint64_t count = series.value > 0 ? static_cast<uint64_t>(series.value) : 0;
  if (is_all) histogram.sample_count = count;
  histogram.bucket.push_back({count, bound});
}

// A source that has a `stat` of its own gives to each the figure of the same name; any other gives
// all three.
void AddWindow(const SeriesValue& series, const ClientMetric& source, const WindowStats& stats,
               MetricFamily* family) {
  const std::pair<const char*, double> figures[] = {{"min", stats.min}, {"avg", stats.mean}, {"max", stats.max}};
  const bool has_stat = !series.labels->empty() && series.labels->back().first == "stat";
  for (const auto& [stat, value] : figures) {
    if (has_stat && series.labels->back().second != stat) continue;
    ClientMetric& metric = family->metric.emplace_back();
    metric.gauge.value = value;
    metric.label.reserve(source.label.size() + 1);
    metric.label = source.label;
    if (!has_stat) metric.label.push_back({"stat", stat});
  }
}

}  // namespace

void StoreFamilies::Visit(LabelForm form, const Take& take) const {
  MetricFamily family;
  MetricFamily window;
  std::vector<std::vector<ClientMetric::Label>*> taken;  // of the family's metrics
  int current = -1;
  const auto end = [&] {
    if (!family.metric.empty()) take(family);
    for (size_t i = 0; i < taken.size(); ++i) taken[i]->swap(family.metric[i].label);
    taken.clear();
    if (!window.metric.empty()) take(window);
  };
  store_.NoteScrape(now_ns_);
  store_.VisitFresh(now_ns_, [&](const SeriesValue& series) {
    const MetricSpec& spec = kMetrics[series.metric];
    if (spec.visibility != MetricVisibility::kEverywhere) return;
    if (series.metric != current) {
      end();
      current = series.metric;
      Begin(series.metric, &family);
      window.metric.clear();
      if (kWindowMetricOf[series.metric] != kNoMetric) Begin(kWindowMetricOf[series.metric], &window);
    }
    if (spec.type == MetricType::kHistogram) {
      AddHistogramPart(series, &family);
      return;
    }
    ClientMetric& metric = family.metric.emplace_back();
    if (form == LabelForm::kJoined) {
      metric.label.swap(*series.joined);
      taken.push_back(series.joined);
    } else {
      SetLabels(*series.labels, &metric);
    }
    if (series.window_or_null != nullptr) {
      AddWindow(series, metric,
                series.window_or_null->Merge(now_ns_ - window_ns_, now_ns_, series.value, series.time_ns), &window);
    }
    (spec.type == MetricType::kCounter ? metric.counter.value : metric.gauge.value) = series.value;
  }, end);
}

std::vector<MetricFamily> StoreFamilies::Collect() const {
  std::vector<MetricFamily> families;
  Visit(LabelForm::kSeparate, [&](MetricFamily& family) { families.push_back(std::move(family)); });
  return families;
}

// prometheus-cpp 1.0 sends the values of labels through the stream one character at a time, which for 3,000
// series with a UUID each takes a millisecond, and their names in one piece: so all but the last value is
// handed over as part of a name, which the store makes once and lends. One family at a time stays in the cache.
void StoreFamilies::Write(std::ostream& out) const {
  const prometheus::TextSerializer serializer;
  std::vector<MetricFamily> one(1);
  Visit(LabelForm::kJoined, [&](MetricFamily& family) {
    std::swap(one.front(), family);
    serializer.Serialize(out, one);
    std::swap(one.front(), family);
  });
}

int64_t ScraperTable::Window(std::string_view peer, std::string_view agent, int64_t now_ns) {
  Scraper* scraper = std::ranges::find_if(scrapers_, [&](const Scraper& known) {
    return known.last_ns != 0 && known.peer == peer && known.agent == agent;
  });
  if (scraper == scrapers_.end()) {
    scraper = std::ranges::min_element(scrapers_, {}, &Scraper::last_ns);
    *scraper = {std::string(peer), std::string(agent), now_ns};
    return kDefaultWindowNs;
  }
  const int64_t since = now_ns - scraper->last_ns;
  scraper->last_ns = now_ns;
  return std::clamp(since, kMinWindowNs, kMaxWindowNs);
}

}  // namespace profd
