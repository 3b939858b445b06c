#include "daemon/metrics/scrape.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "collectors/histogram.h"
#include "collectors/metric_table.h"
#include "daemon/metrics/exposition.h"
#include "daemon/metrics/metric_store.h"

namespace profd {
namespace {

constexpr std::string_view kBucketSuffix = "_bucket";
constexpr std::string_view kSumSuffix = "_sum";
constexpr std::string_view kCountSuffix = "_count";

static_assert(std::all_of(kMetrics.begin(), kMetrics.end(),
                          [](const MetricSpec& spec) { return IsPlainHelp(spec.help); }),
              "a help text with a backslash or a line feed in it");

// What the series says of a histogram (collectors/histogram.h).
enum class Part : uint8_t { kNone, kBucket, kInfinity, kSum };

Part PartOf(const SeriesValue& series) {
  if (series.labels->empty() || series.labels->back().first != "le") return Part::kNone;
  const std::string& le = series.labels->back().second;
  if (le == kHistogramSum) return Part::kSum;
  if (le == kHistogramInfinity) return Part::kInfinity;
  double bound = 0;
  const auto end = std::from_chars(le.data(), le.data() + le.size(), bound);
  return end.ec == std::errc() ? Part::kBucket : Part::kNone;
}

// `name{labels} `, and of a part of a histogram `name_bucket{labels,le="1"} ` or `name_sum{labels} `.
void Spell(const SeriesValue& series, std::string* out) {
  const MetricSpec& spec = kMetrics[series.metric];
  out->assign(spec.name);
  LabelWriter labels(out);
  auto end = series.labels->end();
  const Part part = spec.type == MetricType::kHistogram ? PartOf(series) : Part::kNone;
  if (spec.type == MetricType::kHistogram) {
    if (part == Part::kNone) {
      out->clear();
      return;
    }
    *out += part == Part::kSum ? kSumSuffix : kBucketSuffix;
    --end;
  }
  for (auto label = series.labels->begin(); label != end; ++label) {
    labels.Add(label->first, label->second);
  }
  if (part == Part::kInfinity) labels.Add("le", kHistogramInfinity);
  if (part == Part::kBucket) {
    const std::string& le = end->second;
    double bound = 0;
    std::from_chars(le.data(), le.data() + le.size(), bound);
    std::string number;
    AppendNumber(bound, &number);
    labels.Add("le", number);
  }
  labels.End();
}

// `{a="x"` of a part of a histogram: without `le`, and not closed. Empty where it has none.
std::string_view OwnLabels(Part part, std::string_view name, std::string_view spelling) {
  if (part == Part::kSum) {
    spelling.remove_prefix(name.size() + kSumSuffix.size());
    return spelling.substr(0, spelling.rfind('}') == spelling.npos ? 0 : spelling.rfind('}'));
  }
  spelling.remove_prefix(name.size() + kBucketSuffix.size());
  return spelling.substr(0, spelling.rfind("le=\"") - 1);
}

}  // namespace

// Kept with the series, so that it is put together once in its life.
std::string_view AtlasWriter::SpellingOf(const SeriesValue& series) {
  if (series.spelling->empty()) {
    Spell(series, &spelling_);
    *series.spelling = std::string(spelling_);  // a copy has no room to spare
    ++spelled_;
  }
  return *series.spelling;
}

void AtlasWriter::Append(const MetricStore& store, int64_t now_ns, int64_t window_ns,
                         std::string* out) {
  current_ = -1;
  windows_.clear();
  store.NoteScrape(now_ns);
  store.VisitFresh(now_ns, [&](const SeriesValue& series) {
    const MetricSpec& spec = kMetrics[series.metric];
    if (spec.visibility != MetricVisibility::kEverywhere) return;
    if (series.metric != current_) {
      EndHistogram(out);
      current_ = series.metric;
      has_window_head_ = false;
      AppendHead(spec.name, spec.help, spec.type, out);
    }
    const std::string_view spelling = SpellingOf(series);
    if (spec.type == MetricType::kHistogram) {
      AddHistogramPart(series, spelling, out);
      return;
    }
    out->append(spelling);
    AppendNumber(series.value, out);
    *out += '\n';
    if (series.window_or_null == nullptr) return;
    AddWindow(series, spelling.substr(spec.name.size()),
              series.window_or_null->Merge(now_ns - window_ns, now_ns, series.value,
                                           series.time_ns));
  });
  EndHistogram(out);
  out->append(windows_);
}

// The store keeps the parts of a histogram together, the buckets in ascending order.
void AtlasWriter::AddHistogramPart(const SeriesValue& series, std::string_view spelling,
                                   std::string* out) {
  const Part part = PartOf(series);
  if (part == Part::kNone) return;
  const std::string_view own = OwnLabels(part, kMetrics[series.metric].name, spelling);
  if (histogram_.open && histogram_.labels != own) EndHistogram(out);
  if (!histogram_.open) {
    histogram_.open = true;
    histogram_.labels.assign(own);
    histogram_.sum = histogram_.count = 0;
  }
  if (part == Part::kSum) {
    histogram_.sum = series.value;
    return;
  }
  const double count = series.value > 0 ? std::floor(series.value) : 0;
  if (part == Part::kInfinity) histogram_.count = count;
  out->append(spelling);
  AppendNumber(count, out);
  *out += '\n';
}

void AtlasWriter::EndHistogram(std::string* out) {
  if (!histogram_.open) return;
  histogram_.open = false;
  const std::pair<std::string_view, double> lines[] = {{kSumSuffix, histogram_.sum},
                                                       {kCountSuffix, histogram_.count}};
  for (const auto& [suffix, value] : lines) {
    out->append(kMetrics[static_cast<size_t>(current_)].name).append(suffix);
    out->append(histogram_.labels).append(histogram_.labels.empty() ? " " : "} ");
    AppendNumber(value, out);
    *out += '\n';
  }
}

// A source that has a `stat` of its own gives to each the figure of the same name; any other gives
// all three. `labels`: as spelled, with the blank behind them.
void AtlasWriter::AddWindow(const SeriesValue& series, std::string_view labels,
                            const WindowStats& stats) {
  const MetricSpec& spec = kMetrics[kWindowMetricOf[series.metric]];
  if (!has_window_head_) AppendHead(spec.name, spec.help, spec.type, &windows_);
  has_window_head_ = true;
  const bool has_stat = !series.labels->empty() && series.labels->back().first == "stat";
  const size_t close = labels.rfind('}');
  const std::pair<std::string_view, double> figures[] = {
      {"min", stats.min}, {"avg", stats.mean}, {"max", stats.max}};
  for (const auto& [stat, value] : figures) {
    if (has_stat && series.labels->back().second != stat) continue;
    windows_.append(spec.name);
    if (has_stat) {
      windows_.append(labels);
    } else {
      windows_.append(close == labels.npos ? "{" : labels.substr(0, close));
      windows_.append(close == labels.npos ? "stat=\"" : ",stat=\"").append(stat).append("\"} ");
    }
    AppendNumber(value, &windows_);
    windows_ += '\n';
  }
}

int64_t ScraperTable::Window(std::string_view peer, std::string_view agent, int64_t now_ns) {
  Scraper* scraper =
      std::find_if(scrapers_.begin(), scrapers_.end(), [&](const Scraper& known) {
        return known.last_ns != 0 && known.peer == peer && known.agent == agent;
      });
  if (scraper == scrapers_.end()) {
    scraper =
        std::min_element(scrapers_.begin(), scrapers_.end(),
                         [](const Scraper& a, const Scraper& b) { return a.last_ns < b.last_ns; });
    *scraper = {std::string(peer), std::string(agent), now_ns};
    return kDefaultWindowNs;
  }
  const int64_t since = now_ns - scraper->last_ns;
  scraper->last_ns = now_ns;
  return std::clamp(since, kMinWindowNs, kMaxWindowNs);
}

}  // namespace profd
