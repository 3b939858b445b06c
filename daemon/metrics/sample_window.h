// What a series did lately, second by second: the least, mean and largest of its samples, for
// metrics that cover the time since a scraper's previous scrape. 64 buckets of one second, 2.5 KiB;
// nothing is allocated after construction.
//
// Threads: meant for one writer and any number of readers, without locks. A reader that meets the
// writer may miss the sample being written; it sees no bucket of another second. Two writers at
// once (a channel's decoder and a DCMI poll feeding one series) can overwrite each other: one of
// two samples of the same few nanoseconds may then be missing from a bucket.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "collectors/metric_spec.h"

namespace profd {

struct WindowStats {
  double min = 0;
  double mean = 0;
  double max = 0;
};

class SampleWindow {
 public:
  static constexpr int64_t kBucketNs = kNsPerSecond;
  static constexpr size_t kBuckets = 64;

  static constexpr int64_t BucketOf(int64_t time_ns) { return time_ns / kBucketNs; }

  // Before the series' first sample; no writer, no reader.
  void Restart(WindowMean mean);

  // Takes a sample. `previous` is the one before (time 0: none). A sample timestamped before
  // `oldest_bucket`, the second of the latest scrape, counts for that second: it arrived too late
  // for that scrape and must not be lost to the next one.
  void Add(double value, int64_t time_ns, double previous, int64_t previous_ns,
           int64_t oldest_bucket) {
    if (mean_.load(std::memory_order_relaxed) == WindowMean::kOfSamples) {
      Put(Clamped(BucketOf(time_ns), oldest_bucket), value, 1);
      return;
    }
    if (previous_ns != 0) Hold(previous, previous_ns, time_ns, oldest_bucket);
    Put(Clamped(BucketOf(time_ns), oldest_bucket), value, 0);
  }

  // Over [from_ns, now_ns], from the beginning of the second of `from_ns` on. `latest` is the
  // series' newest sample: it is the answer where the window has no other.
  WindowStats Merge(int64_t from_ns, int64_t now_ns, double latest, int64_t latest_ns) const;

 private:
  static constexpr int64_t kEmpty = -1;
  struct Bucket {
    std::atomic<int64_t> index{kEmpty};
    std::atomic<double> min{0};
    std::atomic<double> max{0};
    std::atomic<double> sum{0};
    std::atomic<double> weight{0};  // samples, or seconds
  };

  static constexpr int64_t Clamped(int64_t bucket, int64_t oldest) {
    return bucket < oldest ? oldest : bucket;
  }
  void Put(int64_t index, double value, double weight) {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    Bucket& bucket = buckets_[static_cast<uint64_t>(index) % kBuckets];
    if (bucket.index.load(kRelaxed) != index) {
      // Readers that see one of the new figures also see kEmpty, or the new index.
      bucket.index.store(kEmpty, kRelaxed);
      bucket.min.store(value, std::memory_order_release);
      bucket.max.store(value, std::memory_order_release);
      bucket.sum.store(value * weight, std::memory_order_release);
      bucket.weight.store(weight, std::memory_order_release);
      bucket.index.store(index, std::memory_order_release);
      return;
    }
    if (value < bucket.min.load(kRelaxed)) bucket.min.store(value, kRelaxed);
    if (value > bucket.max.load(kRelaxed)) bucket.max.store(value, kRelaxed);
    bucket.sum.store(bucket.sum.load(kRelaxed) + value * weight, kRelaxed);
    bucket.weight.store(bucket.weight.load(kRelaxed) + weight, kRelaxed);
  }
  void Hold(double value, int64_t from_ns, int64_t to_ns, int64_t oldest_bucket);

  std::array<Bucket, kBuckets> buckets_;
  std::atomic<WindowMean> mean_{WindowMean::kOfSamples};
};

}  // namespace profd
