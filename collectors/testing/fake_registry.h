// A series registry for tests: remembers every series by its printed name, counts its owners, and
// prints batches as "metric{labels} time value" lines.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/collector.h"
#include "collectors/metric_table.h"
#include "collectors/series.h"

namespace profd::testing {

// Not thread-safe. A label list that does not fit the metric, a release without an intern and an
// unknown metric fail the test at once.
class FakeRegistry final : public SeriesRegistry {
 public:
  // `limit`: how many different series it takes before it refuses, like the real one when full.
  explicit FakeRegistry(size_t limit = SIZE_MAX) : limit_(limit) {}

  using SeriesRegistry::Intern;
  SeriesId Intern(MetricId metric, int device, std::span<const std::string_view> labels) override {
    if (metric >= kMetrics.size()) {
      ADD_FAILURE() << "no metric " << metric;
      return kNoSeries;
    }
    std::string name = NameOf(kMetrics[metric], device, labels);
    auto [entry, is_new] = ids_.try_emplace(name, static_cast<SeriesId>(series_.size()));
    if (is_new) {
      if (series_.size() >= limit_) {
        ids_.erase(entry);
        ++refused_;
        return kNoSeries;
      }
      series_.push_back({name, metric, 0});
    }
    ++series_[entry->second].owners;
    return entry->second;
  }

  void Release(SeriesId series) override {
    if (series == kNoSeries) return;
    if (series >= series_.size() || series_[series].owners == 0) {
      ADD_FAILURE() << "release of series " << series << ", which has no owner";
      return;
    }
    --series_[series].owners;
  }

  // Of the batches that Hold() took.
  double LastTotal(SeriesId series) const override {
    const auto found = totals_.find(series);
    return found == totals_.end() ? 0 : found->second;
  }
  void Hold(const SampleBatch& batch) {
    for (const Sample& sample : batch.samples()) totals_[sample.series] = sample.value;
  }

  // "metric{npu="0",link="all"}"; also of series released since.
  std::string Name(SeriesId series) const {
    return series < series_.size() ? series_[series].name : "(none)";
  }
  // Series with at least one owner.
  size_t live() const {
    size_t n = 0;
    for (const Entry& entry : series_) n += entry.owners > 0 ? 1 : 0;
    return n;
  }
  bool IsLive(SeriesId series) const {
    return series < series_.size() && series_[series].owners > 0;
  }
  // Different series ever interned, and interns refused because of the limit.
  size_t total() const { return series_.size(); }
  size_t refused() const { return refused_; }

  // One line per sample in emission order: "metric{labels} time_ns value\n", values to 15 digits.
  std::string Print(const SampleBatch& batch) const {
    std::string text;
    for (const Sample& sample : batch.samples()) {
      text += fmt::format("{} {} {:.15g}\n", Name(sample.series), sample.time_ns, sample.value);
    }
    return text;
  }
  // The same lines without the time.
  std::string PrintValues(const SampleBatch& batch) const {
    std::string text;
    for (const Sample& sample : batch.samples()) {
      text += fmt::format("{} {:.15g}\n", Name(sample.series), sample.value);
    }
    return text;
  }

 private:
  struct Entry {
    std::string name;
    MetricId metric;
    size_t owners;
  };

  static std::string NameOf(const MetricSpec& spec, int device,
                            std::span<const std::string_view> labels) {
    std::string inside;
    if (spec.scope == MetricScope::kDevice) inside = fmt::format("npu=\"{}\"", device);
    EXPECT_EQ(spec.scope == MetricScope::kNode, device == kHostDevice) << spec.name;
    size_t used = 0;
    for (std::string_view rest = spec.labels; !rest.empty();) {
      size_t comma = rest.find(',');
      std::string_view key = rest.substr(0, comma);
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
      std::string_view value = used < labels.size() ? labels[used] : "(missing)";
      inside += fmt::format("{}{}=\"{}\"", inside.empty() ? "" : ",", key, value);
      ++used;
    }
    // A histogram's series are distinguished by one more (collectors/histogram.h).
    if (spec.type == MetricType::kHistogram && used < labels.size()) {
      inside += fmt::format("{}le=\"{}\"", inside.empty() ? "" : ",", labels[used]);
      ++used;
    }
    EXPECT_EQ(used, labels.size()) << "labels of " << spec.name << " are: " << spec.labels;
    return inside.empty() ? std::string(spec.name) : fmt::format("{}{{{}}}", spec.name, inside);
  }

  size_t limit_;
  size_t refused_ = 0;
  std::vector<Entry> series_;
  std::map<std::string, SeriesId> ids_;
  std::map<SeriesId, double> totals_;
};

}  // namespace profd::testing
