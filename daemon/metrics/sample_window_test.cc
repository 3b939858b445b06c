#include "daemon/metrics/sample_window.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace profd {
namespace {

constexpr int64_t kSecond = kNsPerSecond;
constexpr int64_t kNow = 1000 * kSecond;

void ExpectStats(const WindowStats& stats, double min, double mean, double max) {
  EXPECT_DOUBLE_EQ(stats.min, min);
  EXPECT_DOUBLE_EQ(stats.mean, mean);
  EXPECT_DOUBLE_EQ(stats.max, max);
}

// Feeds a window as the store does.
class Feeder {
 public:
  explicit Feeder(WindowMean mean = WindowMean::kOfSamples) { window_.Restart(mean); }
  void Add(int64_t time_ns, double value, int64_t oldest_bucket = 0) {
    window_.Add(value, time_ns, value_, time_ns_, oldest_bucket);
    value_ = value;
    time_ns_ = time_ns;
  }
  WindowStats Over(int64_t from_ns, int64_t now_ns) const {
    return window_.Merge(from_ns, now_ns, value_, time_ns_);
  }
  const SampleWindow& window() const { return window_; }

 private:
  SampleWindow window_;
  double value_ = 0;
  int64_t time_ns_ = 0;
};

TEST(SampleWindow, MergesExactlyTheSecondsOfTheWindow) {
  Feeder feeder;
  feeder.Add(kNow - 2 * kSecond - 1, 1);  // the second before the window's first
  feeder.Add(kNow - 2 * kSecond, 50);     // the first moment of its first second
  feeder.Add(kNow - kSecond - 1, 70);     // the last moment of it
  feeder.Add(kNow - 1, 60);
  feeder.Add(kNow + kSecond, 2);  // timestamped ahead of the scrape: the next one's
  ExpectStats(feeder.Over(kNow - 2 * kSecond, kNow), 50, 60, 70);
  // The second in which the window begins counts in whole.
  ExpectStats(feeder.Over(kNow - kSecond - 1, kNow), 50, 60, 70);
  ExpectStats(feeder.Over(kNow - kSecond, kNow), 60, 60, 60);
  ExpectStats(feeder.Over(kNow - 3 * kSecond, kNow), 1, (1 + 50 + 70 + 60) / 4.0, 70);
}

TEST(SampleWindow, AShortDipShows) {
  Feeder feeder;
  for (int64_t t = kNow - 15 * kSecond; t < kNow; t += 20 * kNsPerMs) {
    feeder.Add(t, t == kNow - 7 * kSecond ? 3 : 100);
  }
  ExpectStats(feeder.Over(kNow - 15 * kSecond, kNow), 3, (749 * 100 + 3) / 750.0, 100);
}

TEST(SampleWindow, AWindowWithoutSamplesShowsTheLatest) {
  Feeder feeder;
  feeder.Add(kNow - 20 * kSecond, 5);
  feeder.Add(kNow - 10 * kSecond, 7);
  ExpectStats(feeder.Over(kNow - 5 * kSecond, kNow), 7, 7, 7);
}

TEST(SampleWindow, BucketsAreUsedAgainAfterAMinute) {
  Feeder feeder;
  for (int64_t second = 0; second < 200; ++second) {
    feeder.Add(kNow + second * kSecond, static_cast<double>(second));
  }
  const int64_t now = kNow + 199 * kSecond;
  ExpectStats(feeder.Over(now - 60 * kSecond, now), 139, 169, 199);
  // No further back than the ring reaches.
  ExpectStats(feeder.Over(now - 150 * kSecond, now), 136, 167.5, 199);
  // All of it is old.
  ExpectStats(feeder.Over(now + 70 * kSecond, now + 90 * kSecond), 199, 199, 199);
}

TEST(SampleWindow, ASampleThatArrivesAfterItsScrapeIsInTheNextOne) {
  Feeder feeder;
  feeder.Add(kNow - kSecond, 10);
  ExpectStats(feeder.Over(kNow - 5 * kSecond, kNow), 10, 10, 10);
  const int64_t scraped = SampleWindow::BucketOf(kNow);
  feeder.Add(kNow - 2 * kSecond, 4, scraped);
  feeder.Add(kNow + 2 * kSecond, 10, scraped);
  ExpectStats(feeder.Over(kNow, kNow + 5 * kSecond), 4, 7, 10);
}

TEST(SampleWindow, ValuesThatStandWeighByTime) {
  Feeder feeder(WindowMean::kOverTime);
  feeder.Add(kNow - 10 * kSecond, 1800);
  feeder.Add(kNow - 2 * kSecond, 800);
  feeder.Add(kNow - kSecond, 1800);
  ExpectStats(feeder.Over(kNow - 10 * kSecond, kNow), 800, (9 * 1800 + 800) / 10.0, 1800);
  // Only the end of the dip is in it, and the second in which it ended.
  ExpectStats(feeder.Over(kNow - kSecond / 2, kNow), 1800, 1800, 1800);
  // Nothing changed: the value stands.
  ExpectStats(feeder.Over(kNow + 20 * kSecond, kNow + 35 * kSecond), 1800, 1800, 1800);
}

TEST(SampleWindow, AValueThatStoodOverAScrapeIsNotCountedTwice) {
  Feeder feeder(WindowMean::kOverTime);
  feeder.Add(kNow - 10 * kSecond, 1000);
  ExpectStats(feeder.Over(kNow - 10 * kSecond, kNow), 1000, 1000, 1000);
  feeder.Add(kNow + 4 * kSecond, 2000, SampleWindow::BucketOf(kNow));
  ExpectStats(feeder.Over(kNow, kNow + 8 * kSecond), 1000, 1500, 2000);
}

TEST(SampleWindow, AScrapeOfAnotherTakesNothingOfWhatStoodBeforeIt) {
  Feeder feeder(WindowMean::kOverTime);
  feeder.Add(kNow, 1800);
  feeder.Add(kNow + 10 * kSecond, 800, SampleWindow::BucketOf(kNow + 9 * kSecond));
  ExpectStats(feeder.Over(kNow, kNow + 15 * kSecond), 800, (10 * 1800 + 5 * 800) / 15.0, 1800);
}

// A sample that is a minute late is in the second of the scrape, which the seconds of the past must leave as it is.
TEST(SampleWindow, WhatStoodLongAgoLeavesTheSecondOfTheScrape) {
  Feeder feeder(WindowMean::kOverTime);
  const int64_t scraped = SampleWindow::BucketOf(kNow + kSecond);
  feeder.Add(kNow - 70 * kSecond, 1800, scraped);
  feeder.Add(kNow - kSecond, 800, scraped);
  ExpectStats(feeder.Over(kNow + kSecond, kNow + 2 * kSecond), 800, 800, 1800);
}

TEST(SampleWindow, TimestampsThatGoBackOrAreInvalidAreHarmless) {
  for (WindowMean mean : {WindowMean::kOfSamples, WindowMean::kOverTime}) {
    Feeder feeder(mean);
    feeder.Add(-5 * kSecond, 1);
    feeder.Add(INT64_MAX / 2, 2);
    feeder.Add(kNow, 3);
    feeder.Add(kNow - kSecond, 2);
    const WindowStats stats = feeder.Over(kNow - 2 * kSecond, kNow);
    EXPECT_EQ(stats.min, 2);
    EXPECT_EQ(stats.max, 3);
  }
}

// Under TSan: the writer and scrapes share nothing but atomics, and no bucket shows what was never
// wrote.
TEST(SampleWindow, AReaderNeverSeesAnotherSecond) {
  SampleWindow window;
  window.Restart(WindowMean::kOfSamples);
  std::atomic<int64_t> written{0};
  std::atomic<bool> stop{false};
  // In second s all samples are s: buckets whose figures are of two seconds would show.
  std::thread writer([&] {
    for (int64_t s = 1; s <= 20'000; ++s) {
      for (int i = 0; i < 3; ++i) {
        window.Add(static_cast<double>(s), s * kSecond + i, 0, 0, 0);
      }
      written.store(s, std::memory_order_release);
    }
    stop.store(true, std::memory_order_release);
  });
  while (!stop.load(std::memory_order_acquire)) {
    const int64_t s = written.load(std::memory_order_acquire);
    const int64_t from = s > 60 ? s - 60 : 0;
    const WindowStats stats = window.Merge(from * kSecond, s * kSecond, 0, 0);
    ASSERT_LE(stats.min, stats.mean);
    ASSERT_LE(stats.mean, stats.max);
    ASSERT_LE(stats.max, static_cast<double>(s));
    ASSERT_TRUE(stats.max == 0 || stats.min >= static_cast<double>(from)) << stats.min << s;
  }
  writer.join();
}

}  // namespace
}  // namespace profd
