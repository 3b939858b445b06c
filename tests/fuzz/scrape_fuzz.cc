// Input: series of any metrics, with labels made from strangers' text as collectors make them, and
// their values. The page is Prometheus's text format line by line, in both ways of naming, no line
// is there twice, and no label ends a line or a quote.
#include <prometheus/text_serializer.h>

#include <cmath>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "collectors/metric_table.h"
#include "collectors/proc/proc_text.h"
#include "daemon/metrics/metric_store.h"
#include "daemon/metrics/npu_exporter_names.h"
#include "daemon/metrics/scrape.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd {
namespace {

constexpr int64_t kNow = 100'000'000'000;
constexpr size_t kMaxSeries = 64;

bool IsName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == ':';
}

// Takes `name="value"` off the front.
bool TakeLabel(std::string_view* rest) {
  size_t at = 0;
  while (at < rest->size() && IsName((*rest)[at])) ++at;
  if (at == 0 || !rest->substr(at).starts_with("=\"")) return false;
  at += 2;
  while (at < rest->size() && (*rest)[at] != '"') {
    if ((*rest)[at] == '\\') {
      if (at + 1 >= rest->size() ||
          std::string_view("\\n\"").find((*rest)[at + 1]) == std::string_view::npos) {
        return false;
      }
      ++at;
    }
    ++at;
  }
  if (at >= rest->size()) return false;
  rest->remove_prefix(at + 1);
  return true;
}

// The series' name and labels; empty where the line is not a sample.
std::string_view SeriesOf(std::string_view line) {
  std::string_view rest = line;
  while (!rest.empty() && IsName(rest.front())) rest.remove_prefix(1);
  if (rest.size() == line.size()) return {};
  if (rest.starts_with('{')) {
    do {
      rest.remove_prefix(1);
      if (!TakeLabel(&rest)) return {};
    } while (rest.starts_with(','));
    if (!rest.starts_with('}')) return {};
    rest.remove_prefix(1);
  }
  if (!rest.starts_with(' ')) return {};
  return line.substr(0, line.size() - rest.size());
}

void CheckPage(std::string_view page) {
  FUZZ_EXPECT(page.empty() || page.back() == '\n');
  std::set<std::string_view> seen;
  while (!page.empty()) {
    const size_t end = page.find('\n');
    const std::string_view line = page.substr(0, end);
    page.remove_prefix(end + 1);
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) continue;
    const std::string_view series = SeriesOf(line);
    FUZZ_EXPECT(!series.empty());
    FUZZ_EXPECT(seen.insert(series).second);
  }
}

size_t LabelCount(const MetricSpec& spec) {
  size_t count = spec.labels.empty() ? 0 : 1;
  for (char c : spec.labels) count += c == ',' ? 1 : 0;
  return count + (spec.type == MetricType::kHistogram ? 1 : 0);
}

}  // namespace

void fuzz::Run(Input input) {
  MetricStore store;
  NpuExporterRates rates;
  store.SetDeviceLabels(0, "0", CleanLabel(input.TakePiece(input.Take<uint8_t>()), 64));
  store.SetDeviceLabels(1, "1", "");
  std::vector<Sample> samples;
  for (size_t i = 0; i < kMaxSeries && !input.empty(); ++i) {
    const MetricId metric = static_cast<MetricId>(input.Take<uint16_t>() % kMetrics.size());
    const MetricSpec& spec = kMetrics[metric];
    // Windows follow from what they are windows of; buckets have numbers for labels.
    if (!spec.window_of.empty() || spec.type == MetricType::kHistogram) continue;
    const int device = spec.scope == MetricScope::kDevice ? input.Take<uint8_t>() % 3 : kHostDevice;
    std::vector<std::string> texts;
    for (size_t k = LabelCount(spec); k > 0; --k) {
      texts.push_back(CleanLabel(input.TakePiece(input.Take<uint8_t>()), 64));
    }
    const std::vector<std::string_view> labels(texts.begin(), texts.end());
    const auto value = input.Take<double>();
    if (!std::isfinite(value)) continue;
    samples.push_back({store.Intern(metric, device, labels), kNow - 1000, value});
  }
  store.Write(samples);
  for (int round = 0; round < 2; ++round) {
    std::ostringstream page;
    StoreFamilies(store, kNow, 15'000'000'000).Write(page);
    prometheus::TextSerializer().Serialize(page, NpuExporterFamilies(store, kNow, "1", &rates));
    CheckPage(page.str());
  }
  for (const Sample& sample : samples) store.Release(sample.series);
  FUZZ_EXPECT(store.size() == 0);
}

}  // namespace profd
