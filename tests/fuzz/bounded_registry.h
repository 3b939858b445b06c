// A series registry that ends the process when a collector breaks its contract: more series than
// allowed, a release of what was never interned, samples that are no numbers.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/collector.h"
#include "collectors/metric_table.h"
#include "collectors/series.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::fuzz {

class BoundedRegistry final : public SeriesRegistry {
 public:
  explicit BoundedRegistry(size_t most) : most_(most) {}
  ~BoundedRegistry() override { FUZZ_EXPECT(owners_ == 0); }

  using SeriesRegistry::Intern;
  SeriesId Intern(MetricId metric, int device, std::span<const std::string_view> labels) override {
    FUZZ_EXPECT(metric < kMetrics.size());
    std::string name = std::to_string(metric) + "/" + std::to_string(device);
    for (std::string_view label : labels) name.append("/").append(label);
    auto [entry, is_new] = ids_.try_emplace(name, static_cast<SeriesId>(owners_of_.size()));
    if (is_new) owners_of_.push_back(0);
    if (owners_of_[entry->second]++ == 0) FUZZ_EXPECT(++live_ <= most_);
    ++owners_;
    return entry->second;
  }
  void Release(SeriesId series) override {
    if (series == kNoSeries) return;
    FUZZ_EXPECT(series < owners_of_.size() && owners_of_[series] > 0);
    if (--owners_of_[series] == 0) --live_;
    --owners_;
  }
  // Every sample belongs to a series with an owner and is a number.
  void Check(const SampleBatch& batch) const {
    for (const Sample& sample : batch.samples()) {
      FUZZ_EXPECT(sample.series < owners_of_.size() && owners_of_[sample.series] > 0);
      FUZZ_EXPECT(std::isfinite(sample.value));
    }
  }

 private:
  size_t most_;
  size_t live_ = 0;
  size_t owners_ = 0;
  std::vector<size_t> owners_of_;
  std::map<std::string, SeriesId> ids_;
};

}  // namespace profd::fuzz
