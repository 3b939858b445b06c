#include "daemon/metrics/sample_window.h"

#include <algorithm>

namespace profd {
namespace {

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

void SampleWindow::Restart(WindowMean mean) {
  mean_.store(mean, std::memory_order_relaxed);
  for (Bucket& bucket : buckets_) bucket.index.store(kEmpty, std::memory_order_relaxed);
}

// A value that stood over several seconds belongs to each of them, also before the latest scrape: another scraper's
// window may reach further back. No second overwrites the bucket of one after it, which may be that of a late sample.
void SampleWindow::Hold(double value, int64_t from_ns, int64_t to_ns, int64_t oldest_bucket) {
  constexpr auto kLongest = static_cast<int64_t>(kBuckets - 1) * kBucketNs;
  int64_t at = std::max({from_ns, to_ns - kLongest, oldest_bucket * kBucketNs - kLongest});
  while (at < to_ns) {
    const int64_t index = BucketOf(at);
    const int64_t end = std::min(to_ns, (index + 1) * kBucketNs);
    Put(index, value, Seconds(end - at));
    at = end;
  }
}

WindowStats SampleWindow::Merge(int64_t from_ns, int64_t now_ns, double latest,
                                int64_t latest_ns) const {
  WindowStats all{latest, latest, latest};
  double sum = 0;
  double weight = 0;
  bool any = false;
  auto take = [&](double min, double max, double add, double add_weight) {
    all.min = any ? std::min(all.min, min) : min;
    all.max = any ? std::max(all.max, max) : max;
    any = true;
    sum += add;
    weight += add_weight;
  };
  const int64_t last = BucketOf(now_ns);
  const int64_t first = std::max(BucketOf(from_ns), last - static_cast<int64_t>(kBuckets) + 1);
  for (int64_t index = first; index <= last; ++index) {
    const Bucket& bucket = buckets_[static_cast<uint64_t>(index) % kBuckets];
    if (bucket.index.load(std::memory_order_acquire) != index) continue;
    const double min = bucket.min.load(std::memory_order_acquire);
    const double max = bucket.max.load(std::memory_order_acquire);
    const double bucket_sum = bucket.sum.load(std::memory_order_acquire);
    const double bucket_weight = bucket.weight.load(std::memory_order_acquire);
    // Begun anew while we read it: its second is 64 s past.
    if (bucket.index.load(std::memory_order_relaxed) != index) continue;
    take(min, max, bucket_sum, bucket_weight);
  }
  if (mean_.load(std::memory_order_relaxed) == WindowMean::kOverTime) {
    const double open = Seconds(std::max<int64_t>(now_ns - std::max(latest_ns, from_ns), 0));
    take(latest, latest, latest * open, open);
  }
  // Clamped: the four figures of a bucket that is being written need not be of the same moment.
  all.mean = std::clamp(weight > 0 ? sum / weight : latest, all.min, all.max);
  return all;
}

}  // namespace profd
