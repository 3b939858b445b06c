#include "daemon/metrics/scrape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "collectors/histogram.h"
#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"

namespace profd {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

using Labels = std::vector<std::pair<std::string, std::string>>;

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

MetricFamily FamilyOf(MetricId id) {
  MetricFamily family;
  family.name = kMetrics[id].name;
  family.help = kMetrics[id].help;
  family.type = TypeOf(kMetrics[id].type);
  return family;
}

ClientMetric MetricWith(const Labels& labels, size_t count) {
  ClientMetric metric;
  metric.label.reserve(count + 1);
  for (size_t i = 0; i < count; ++i) metric.label.push_back({labels[i].first, labels[i].second});
  return metric;
}

bool SameLabels(const ClientMetric& metric, const Labels& labels, size_t count) {
  return metric.label.size() == count &&
         std::equal(
             metric.label.begin(), metric.label.end(), labels.begin(),
             [](const ClientMetric::Label& a, const auto& b) { return a.value == b.second; });
}

// Puts one series of a histogram (collectors/histogram.h) where the others of it are. They need not
// be neighbours: ids are used again.
void AddHistogramPart(const SeriesValue& series, MetricFamily* family) {
  if (series.labels->empty() || series.labels->back().first != "le") return;
  const size_t own = series.labels->size() - 1;
  const std::string& le = series.labels->back().second;
  auto found = std::find_if(family->metric.rbegin(), family->metric.rend(),
                            [&](const auto& m) { return SameLabels(m, *series.labels, own); });
  if (found == family->metric.rend()) {
    family->metric.push_back(MetricWith(*series.labels, own));
    found = family->metric.rbegin();
  }
  auto& histogram = found->histogram;
  if (le == kHistogramSum) {
    histogram.sample_sum = series.value;
    return;
  }
  const auto count = static_cast<uint64_t>(std::max(series.value, 0.0));
  double bound = std::numeric_limits<double>::infinity();
  if (le == kHistogramInfinity) {
    histogram.sample_count = count;
  } else if (std::from_chars(le.data(), le.data() + le.size(), bound).ec != std::errc()) {
    return;
  }
  auto place = std::find_if(histogram.bucket.begin(), histogram.bucket.end(),
                            [&](const auto& bucket) { return bucket.upper_bound > bound; });
  histogram.bucket.insert(place, {count, bound});
}

// A source that has a `stat` of its own gives to each the figure of the same name; any other gives
// all three.
void AddWindow(const SeriesValue& series, const ClientMetric& source, const WindowStats& stats,
               MetricFamily* family) {
  const std::array<std::pair<std::string_view, double>, 3> figures = {
      {{"min", stats.min}, {"avg", stats.mean}, {"max", stats.max}}};
  const bool has_stat = !series.labels->empty() && series.labels->back().first == "stat";
  for (const auto& [stat, value] : figures) {
    if (has_stat && series.labels->back().second != stat) continue;
    ClientMetric& metric = family->metric.emplace_back(source);
    metric.gauge.value = value;
    if (!has_stat) metric.label.push_back({"stat", std::string(stat)});
  }
}

void AppendNumber(double value, std::string* out) {
  if (std::isnan(value)) {
    *out += "NaN";
  } else if (std::isinf(value)) {
    *out += value > 0 ? "+Inf" : "-Inf";
  } else {
    char text[32];  // 17 digits, sign, point and exponent
    out->append(text, fmt::format_to(text, "{}", value));
  }
}

void AppendEscaped(std::string_view text, bool quotes, std::string* out) {
  size_t plain = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '\\' && c != '\n' && !(c == '"' && quotes)) continue;
    out->append(text, plain, i - plain);
    *out += '\\';
    *out += c == '\n' ? 'n' : c;
    plain = i + 1;
  }
  out->append(text, plain);
}

// name_suffix{a="x",le="1"} value
struct Line {
  const MetricFamily& family;
  const ClientMetric& metric;
  std::string_view suffix = {};
  double value = 0;
  const double* le_or_null = nullptr;
};

void AppendLine(const Line& line, std::string* out) {
  *out += line.family.name;
  *out += line.suffix;
  char next = '{';
  for (const ClientMetric::Label& label : line.metric.label) {
    *out += next;
    *out += label.name;
    *out += "=\"";
    AppendEscaped(label.value, true, out);
    *out += '"';
    next = ',';
  }
  if (line.le_or_null != nullptr) {
    *out += next;
    *out += "le=\"";
    AppendNumber(*line.le_or_null, out);
    *out += '"';
    next = ',';
  }
  if (next == ',') *out += '}';
  *out += ' ';
  AppendNumber(line.value, out);
  *out += '\n';
}

void AppendHistogram(const MetricFamily& family, const ClientMetric& metric, std::string* out) {
  for (const ClientMetric::Bucket& bucket : metric.histogram.bucket) {
    AppendLine({family, metric, "_bucket", static_cast<double>(bucket.cumulative_count),
                &bucket.upper_bound},
               out);
  }
  AppendLine({family, metric, "_sum", metric.histogram.sample_sum}, out);
  AppendLine({family, metric, "_count", static_cast<double>(metric.histogram.sample_count)}, out);
}

std::string_view TypeText(prometheus::MetricType type) {
  switch (type) {
    case prometheus::MetricType::Counter:
      return "counter";
    case prometheus::MetricType::Gauge:
      return "gauge";
    case prometheus::MetricType::Histogram:
      return "histogram";
    default:
      return "untyped";
  }
}

}  // namespace

std::vector<MetricFamily> AtlasFamilies(const MetricStore& store, int64_t now_ns,
                                        int64_t window_ns) {
  std::vector<MetricFamily> families;
  std::vector<MetricFamily> windows;
  int current = -1;
  bool has_window = false;
  store.NoteScrape(now_ns);
  store.VisitFresh(now_ns, [&](const SeriesValue& series) {
    const MetricSpec& spec = kMetrics[series.metric];
    if (spec.visibility != MetricVisibility::kEverywhere) return;
    if (series.metric != current) {
      current = series.metric;
      has_window = false;
      families.push_back(FamilyOf(series.metric));
    }
    MetricFamily& family = families.back();
    if (spec.type == MetricType::kHistogram) {
      AddHistogramPart(series, &family);
      return;
    }
    ClientMetric metric = MetricWith(*series.labels, series.labels->size());
    (spec.type == MetricType::kCounter ? metric.counter.value : metric.gauge.value) = series.value;
    if (series.window_or_null != nullptr) {
      if (!has_window) windows.push_back(FamilyOf(kWindowMetricOf[series.metric]));
      has_window = true;
      AddWindow(
          series, metric,
          series.window_or_null->Merge(now_ns - window_ns, now_ns, series.value, series.time_ns),
          &windows.back());
    }
    family.metric.push_back(std::move(metric));
  });
  std::move(windows.begin(), windows.end(), std::back_inserter(families));
  return families;
}

int64_t ScraperTable::Window(std::string_view peer, std::string_view agent, int64_t now_ns) {
  std::string name(peer);
  name += '\x1f';
  name += agent;
  Scraper* scraper = std::find_if(scrapers_.begin(), scrapers_.end(),
                                  [&](const Scraper& s) { return s.name == name; });
  if (scraper == scrapers_.end()) {
    scraper =
        std::min_element(scrapers_.begin(), scrapers_.end(),
                         [](const Scraper& a, const Scraper& b) { return a.last_ns < b.last_ns; });
    *scraper = {std::move(name), now_ns};
    return kDefaultWindowNs;
  }
  const int64_t since = now_ns - scraper->last_ns;
  scraper->last_ns = now_ns;
  return std::clamp(since, kMinWindowNs, kMaxWindowNs);
}

std::string FamiliesAsText(const std::vector<MetricFamily>& families) {
  std::string out;
  size_t series = 0;
  for (const MetricFamily& family : families) series += family.metric.size();
  out.reserve(160 * series + 200 * families.size());
  for (const MetricFamily& family : families) {
    out.append("# HELP ").append(family.name).append(" ");
    AppendEscaped(family.help, false, &out);
    out.append("\n# TYPE ").append(family.name).append(" ").append(TypeText(family.type));
    out += '\n';
    for (const ClientMetric& metric : family.metric) {
      switch (family.type) {
        case prometheus::MetricType::Counter:
          AppendLine({family, metric, {}, metric.counter.value}, &out);
          break;
        case prometheus::MetricType::Gauge:
          AppendLine({family, metric, {}, metric.gauge.value}, &out);
          break;
        case prometheus::MetricType::Histogram:
          AppendHistogram(family, metric, &out);
          break;
        default:
          AppendLine({family, metric, {}, metric.untyped.value}, &out);
      }
    }
  }
  return out;
}

}  // namespace profd
