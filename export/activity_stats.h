// Count and length of what has one name: kernels, communication, API calls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>

namespace profd::exporting {

struct ActivityTotal {
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t min_ns = std::numeric_limits<int64_t>::max();
  int64_t max_ns = 0;
  // For the variance (Welford), in microseconds.
  double mean_us = 0;
  double squares_us = 0;

  void Add(int64_t ns) {
    ++count;
    total_ns = Sum(total_ns, ns);
    min_ns = std::min(min_ns, ns);
    max_ns = std::max(max_ns, ns);
    const double us = static_cast<double>(ns) / 1000;
    const double delta = us - mean_us;
    mean_us += delta / static_cast<double>(count);
    squares_us += delta * (us - mean_us);
  }
  void Merge(const ActivityTotal& other) {
    if (other.count == 0) return;
    const double delta = other.mean_us - mean_us;
    const auto both = static_cast<double>(count + other.count);
    const auto mine = static_cast<double>(count);
    squares_us += other.squares_us + delta * delta * mine * static_cast<double>(other.count) / both;
    mean_us += delta * static_cast<double>(other.count) / both;
    count += other.count;
    total_ns = Sum(total_ns, other.total_ns);
    min_ns = std::min(min_ns, other.min_ns);
    max_ns = std::max(max_ns, other.max_ns);
  }
  double MeanNs() const { return count == 0 ? 0 : static_cast<double>(total_ns) / static_cast<double>(count); }
  double VarianceUs() const { return count == 0 ? 0 : squares_us / static_cast<double>(count); }

 private:
  // Lengths are untrusted: at the limit a sum stays there.
  static int64_t Sum(int64_t a, int64_t b) {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    return a > kMost - b ? kMost : a + b;
  }
};

// By a key; of too many, later ones are counted in `rest`.
template <class Key>
class ActivityTotals {
 public:
  static constexpr size_t kMax = 65'536;

  void Add(const Key& key, int64_t ns) { At(key).Add(ns); }
  void Merge(const Key& key, const ActivityTotal& total) { At(key).Merge(total); }
  void Merge(const ActivityTotal& rest) { rest_.Merge(rest); }
  void Merge(const ActivityTotals& other) {
    for (const auto& [key, total] : other.totals_) At(key).Merge(total);
    rest_.Merge(other.rest_);
  }
  const std::map<Key, ActivityTotal>& totals() const { return totals_; }
  const ActivityTotal& rest() const { return rest_; }

 private:
  ActivityTotal& At(const Key& key) {
    const auto found = totals_.find(key);
    if (found != totals_.end()) return found->second;
    return totals_.size() >= kMax ? rest_ : totals_[key];
  }

  std::map<Key, ActivityTotal> totals_;
  ActivityTotal rest_;
};

}  // namespace profd::exporting
