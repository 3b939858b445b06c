#include "daemon/metrics/metric_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"
#include "collectors/metric_table.h"
#include "daemon/data/stream_hub.h"
#include "daemon/metrics/scrape.h"

namespace profd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kNow = 1000 * kNsPerSecond;

std::string MetricsAsText(const MetricStore& store, int64_t now_ns) {
  std::ostringstream text;
  StoreFamilies(store, now_ns, ScraperTable::kDefaultWindowNs).Write(text);
  return text.str();
}

TEST(MetricStore, SameLabelsSameSeriesAndReleaseRemovesTheLastOwner) {
  MetricStore store;
  constexpr MetricId kMetric = MetricByName("profd_collector_errors_total");
  SeriesId a = store.Intern(kMetric, kHostDevice, {"hbm"});
  SeriesId b = store.Intern(kMetric, kHostDevice, {"hbm"});
  SeriesId c = store.Intern(kMetric, kHostDevice, {"llc"});
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  store.Write(std::vector<Sample>{{a, kNow, 3}, {c, kNow, 4}});
  store.Release(a);
  EXPECT_THAT(MetricsAsText(store, kNow), HasSubstr("{collector=\"hbm\"} 3"));
  uint32_t generation = store.Generation(a);
  store.Release(b);
  EXPECT_NE(store.Generation(a), generation);
  EXPECT_THAT(MetricsAsText(store, kNow), Not(HasSubstr("hbm")));
  EXPECT_THAT(MetricsAsText(store, kNow), HasSubstr("# TYPE profd_collector_errors_total counter"));
}

class TwoSources : public ::testing::Test {
 protected:
  void Channel(int64_t at_ns, double value) {
    store_.Write(std::vector<Sample>{{series_, kNow + at_ns, value}}, SampleSource::kChannel);
  }
  void Reading(int64_t at_ns, double value) {
    store_.Write(std::vector<Sample>{{series_, kNow + at_ns, value}}, SampleSource::kReading);
  }
  void Open(MetricId metric, std::initializer_list<std::string_view> labels) {
    series_ = store_.Intern(metric, 0, labels);
  }
  double Shown() const { return store_.LastTotal(series_); }

  MetricStore store_;
  SeriesId series_ = kNoSeries;
};

TEST_F(TwoSources, ReadingsOfAGaugeRestWhileTheChannelFeedsIt) {
  Open(MetricByName("atlas_npu_dvpp_utilization_ratio"), {"vpc"});
  Reading(0, 0.5);
  EXPECT_EQ(Shown(), 0.5);
  Channel(kNsPerSecond, 0.75);
  Reading(kNsPerSecond + 1, 0.25);
  EXPECT_EQ(Shown(), 0.75);
  Channel(5 * kNsPerSecond, 0.125);
  Reading(8 * kNsPerSecond - 1, 0.25);
  EXPECT_EQ(Shown(), 0.125);
  Reading(8 * kNsPerSecond, 0.25);
  EXPECT_EQ(Shown(), 0.25);
}

TEST_F(TwoSources, ACounterIsTheReadingsOnceTheyFedIt) {
  Open(MetricByName("atlas_npu_network_bytes_total"), {"tx", "nic"});
  Reading(0, 1000);
  for (int second : {1, 60, 3600}) {
    Channel(second * kNsPerSecond, 10);
    Channel(second * kNsPerSecond, 99999);
    EXPECT_EQ(Shown(), 1000);
  }
  Reading(3601 * kNsPerSecond, 1010);
  EXPECT_EQ(Shown(), 1010);
  Reading(3602 * kNsPerSecond, 7);  // the NPU was reset
  EXPECT_EQ(Shown(), 7);
}

TEST_F(TwoSources, ACounterContinuesWhereTheChannelWas) {
  Open(MetricByName("atlas_npu_network_bytes_total"), {"tx", "nic"});
  Channel(0, 500);
  Channel(1, 510);
  EXPECT_EQ(Shown(), 510);
  Reading(2, 100);
  EXPECT_EQ(Shown(), 510);
  Channel(3, 520);
  Reading(4, 105);
  EXPECT_EQ(Shown(), 515);
  Reading(5, 3);  // the NPU was reset
  EXPECT_EQ(Shown(), 3);
  Reading(6, 4);
  EXPECT_EQ(Shown(), 4);
}

TEST_F(TwoSources, AnotherSeriesOfTheSameIdKnowsNothingOfIt) {
  Open(MetricByName("atlas_npu_network_bytes_total"), {"tx", "nic"});
  Channel(0, 500);
  Reading(1, 100);
  store_.Release(series_);
  Open(MetricByName("atlas_npu_network_packets_total"), {"tx", "nic"});
  Channel(2, 30);
  EXPECT_EQ(Shown(), 30);
}

TEST(MetricStore, StaleSeriesDisappear) {
  MetricStore store;
  constexpr MetricId kMetric = MetricByName("profd_series");
  SeriesId id = store.Intern(kMetric, kHostDevice);
  store.Write(std::vector<Sample>{{id, kNow, 1}});
  store.Write(std::vector<Sample>{{id, kNow + kNsPerSecond, 2}});
  EXPECT_THAT(MetricsAsText(store, kNow + 9 * kNsPerSecond), HasSubstr("profd_series 2"));
  EXPECT_THAT(MetricsAsText(store, kNow + 12 * kNsPerSecond), Not(HasSubstr("profd_series")));
}

TEST(MetricStore, NothingIsShownBeforeTheFirstSample) {
  MetricStore store;
  store.Intern(MetricByName("profd_series"), kHostDevice);
  EXPECT_EQ(MetricsAsText(store, kNow), "");
}

TEST(MetricStore, RefusesWhenFullAndCounts) {
  MetricStore store;
  constexpr MetricId kMetric = MetricByName("profd_collector_errors_total");
  for (size_t i = 0; i < MetricStore::kMaxSeries; ++i) {
    ASSERT_NE(store.Intern(kMetric, kHostDevice, {std::to_string(i)}), kNoSeries);
  }
  EXPECT_EQ(store.Intern(kMetric, kHostDevice, {"one more"}), kNoSeries);
  EXPECT_EQ(store.refused(), 1U);
  store.Write(std::vector<Sample>{{kNoSeries, kNow, 1}});
}

TEST(MetricStore, WritersAndScrapesRunTogether) {
  MetricStore store;
  constexpr MetricId kMetric = MetricByName("profd_collector_errors_total");
  std::thread writer([&] {
    for (int i = 0; i < 2000; ++i) {
      SeriesId id = store.Intern(kMetric, kHostDevice, {std::to_string(i % 7)});
      store.Write(std::vector<Sample>{{id, kNow, 1}});
      if (i % 3 == 0) store.Release(id);
      SeriesId windowed = store.Intern(MetricByName("atlas_npu_power_watts"), i % 3, {"chip"});
      store.Write(std::vector<Sample>{{windowed, kNow + i * kNsPerMs, 1}});
      store.Release(windowed);
    }
  });
  for (int i = 0; i < 200; ++i) {
    for (char c : MetricsAsText(store, kNow)) ASSERT_NE(c, '\0');
  }
  writer.join();
  EXPECT_EQ(store.size(), 7U);
}

TEST(MetricStore, WindowsAreTakenBackWithTheirSeriesAndBeginAnew) {
  MetricStore store;
  constexpr MetricId kPower = MetricByName("atlas_npu_power_watts");
  for (int round = 0; round < 3; ++round) {
    SeriesId id = store.Intern(kPower, 0, {"chip"});
    store.Write(std::vector<Sample>{{id, kNow, 100.0 + round}});
    EXPECT_THAT(MetricsAsText(store, kNow), HasSubstr("stat=\"min\"} 10" + std::to_string(round)));
    store.Release(id);
  }
}

TEST(MetricStore, TooManyWindowsAreRefusedAndTheirSeriesKept) {
  MetricStore store;
  constexpr MetricId kPower = MetricByName("atlas_npu_power_watts");
  for (size_t i = 0; i < MetricStore::kMaxWindows; ++i) {
    store.Intern(kPower, 0, {std::to_string(i)});
  }
  EXPECT_EQ(store.refused(), 0U);
  SeriesId id = store.Intern(kPower, 0, {"more"});
  ASSERT_NE(id, kNoSeries);
  EXPECT_EQ(store.refused(), 1U);
  store.Write(std::vector<Sample>{{id, kNow, 1}});
  EXPECT_THAT(MetricsAsText(store, kNow), HasSubstr("scope=\"more\"} 1"));
  EXPECT_THAT(MetricsAsText(store, kNow), Not(HasSubstr("window")));
}

TEST(MetricStore, ACounterOfADeviceIsRememberedForThoseWhoSumUp) {
  MetricStore store;
  constexpr MetricId kBytes = MetricByName("atlas_npu_hbm_bytes_total");
  SeriesId first = store.Intern(kBytes, 0, {"0", "read"});
  EXPECT_EQ(store.LastTotal(first), 0);
  store.Write(std::vector<Sample>{{first, kNow, 4096}});
  store.Release(first);
  EXPECT_THAT(MetricsAsText(store, kNow), Not(HasSubstr("hbm")));
  SeriesId other = store.Intern(kBytes, 1, {"0", "read"});
  SeriesId again = store.Intern(kBytes, 0, {"0", "read"});
  EXPECT_EQ(store.LastTotal(other), 0);
  EXPECT_EQ(store.LastTotal(again), 4096);
  EXPECT_THAT(MetricsAsText(store, kNow), Not(HasSubstr("hbm")));  // not before it is written
  EXPECT_EQ(store.LastTotal(kNoSeries), 0);
}

TEST(MetricStore, SamplesFromBeforeADeviceWasGoneAreNotShown) {
  MetricStore store;
  constexpr MetricId kVolts = MetricByName("atlas_npu_voltage_volts");
  // A channel's decoder owns it too, and does not notice.
  SeriesId volts = store.Intern(kVolts, 1, {"bus"});
  SeriesId neighbour = store.Intern(kVolts, 0, {"bus"});
  SeriesId up = store.Intern(MetricByName("atlas_npu_up"), 1);
  store.Write(std::vector<Sample>{{volts, kNow, 0.9}, {neighbour, kNow, 0.8}});
  store.DeviceGone(1, kNow);
  store.Write(std::vector<Sample>{{up, kNow + 1, 0}});
  std::string text = MetricsAsText(store, kNow + 1);
  EXPECT_THAT(text, Not(HasSubstr("0.9")));
  EXPECT_THAT(text, HasSubstr("0.8"));
  EXPECT_THAT(text, HasSubstr("atlas_npu_up{npu=\"1\",uuid=\"\"} 0"));
  store.Write(std::vector<Sample>{{volts, kNow + 2, 0.7}});
  EXPECT_THAT(MetricsAsText(store, kNow + 2), HasSubstr("0.7"));
}

TEST(StreamHub, DropsTheNewestWithoutAReaderAndCounts) {
  StreamHub hub;
  auto subscriber = hub.Subscribe({}, 4);
  std::vector<Sample> samples;
  for (uint32_t i = 0; i < 6; ++i) samples.push_back({i, kNow, 0});
  hub.Publish(0, samples);
  std::vector<StreamedSample> taken;
  subscriber->Take(10, &taken);
  ASSERT_EQ(taken.size(), 4U);
  EXPECT_EQ(taken[0].sample.series, 0U);
  EXPECT_EQ(taken[3].sample.series, 3U);
  EXPECT_EQ(subscriber->dropped(), 2U);
  hub.Unsubscribe(subscriber);
  hub.Publish(0, samples);
  EXPECT_EQ(hub.dropped(), 2U);
}

TEST(StreamHub, RingGrowsOnDemandAsFarAsItsMemoryIsGranted) {
  constexpr size_t kCapacity = 65536;
  StreamHub hub;
  int64_t held = 0;
  int64_t limit = kCapacity * sizeof(StreamedSample);
  auto memory = [&](int64_t bytes) {
    if (held + bytes > limit) return false;
    held += bytes;
    return true;
  };
  auto subscriber = hub.Subscribe({}, kCapacity, memory);
  EXPECT_EQ(held, 0);
  hub.Publish(0, std::vector<Sample>(10, Sample{1, kNow, 0}));
  EXPECT_LE(held, 64 << 10);
  hub.Publish(0, std::vector<Sample>(kCapacity, Sample{1, kNow, 0}));
  EXPECT_EQ(held, limit);
  EXPECT_EQ(subscriber->waiting(), kCapacity);
  EXPECT_EQ(subscriber->dropped(), 10U);
  // A scraper that comes back for a while gives it back.
  std::vector<StreamedSample> taken;
  subscriber->Take(kCapacity, &taken);
  EXPECT_EQ(taken.size(), kCapacity);
  for (int i = 0; i < 1000; ++i) {
    hub.Publish(0, std::vector<Sample>(10, Sample{static_cast<SeriesId>(i), kNow, 0}));
    taken.clear();
    subscriber->Take(kCapacity, &taken);
    ASSERT_EQ(taken.size(), 10U);
    ASSERT_EQ(taken[9].sample.series, static_cast<SeriesId>(i));
  }
  EXPECT_LE(held, 64 << 10);
  // Refused in between: what came before stays, in its order.
  limit = held;
  for (SeriesId i = 0; i < 5000; ++i) hub.Publish(0, std::vector<Sample>{{i, kNow, 0}});
  taken.clear();
  subscriber->Take(kCapacity, &taken);
  ASSERT_GE(taken.size(), 100U);
  EXPECT_EQ(subscriber->dropped(), 10 + 5000 - taken.size());
  for (SeriesId i = 0; i < taken.size(); ++i) ASSERT_EQ(taken[i].sample.series, i);
}

TEST(StreamHub, SendsOnlyWantedCollectors) {
  StreamHub hub;
  std::bitset<kMaxCollectors> wanted;
  wanted.set(3);
  auto subscriber = hub.Subscribe(wanted, 4);
  hub.Publish(2, std::vector<Sample>{{1, kNow, 0}});
  hub.Publish(3, std::vector<Sample>{{2, kNow, 0}});
  std::vector<StreamedSample> taken;
  subscriber->Take(10, &taken);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].sample.series, 2U);
}

}  // namespace
}  // namespace profd
