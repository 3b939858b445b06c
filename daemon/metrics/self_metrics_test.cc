#include "daemon/metrics/self_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "driver/rooted_fs.h"

namespace profd {
namespace {

class SelfMetricsTest : public ::testing::Test {
 protected:
  // Label values, in the order of the labels' names, joined, to the value.
  std::map<std::string, double> Values(MetricId metric) { return Values(self_, metric); }
  static std::map<std::string, double> Values(const SelfMetrics& self, MetricId metric) {
    std::map<std::string, double> values;
    for (const prometheus::MetricFamily& family : self.Collect()) {
      if (family.name != kMetrics[metric].name) continue;
      EXPECT_EQ(family.help, kMetrics[metric].help);
      for (const prometheus::ClientMetric& series : family.metric) {
        std::string key;
        for (const prometheus::ClientMetric::Label& label : series.label) key += label.value + "/";
        values[key] = family.type == prometheus::MetricType::Counter ? series.counter.value : series.gauge.value;
      }
    }
    return values;
  }

  SystemClock clock_;
  RootedFs fs_ = RootedFs::OpenRoot("/proc").value();
  std::vector<DeviceInfo> devices_;
  Host host_{clock_, fs_, fs_, nullptr, devices_, 0};
  SelfMetrics self_{host_};
};

TEST_F(SelfMetricsTest, ASeriesLastsAsLongAsItIsSet) {
  constexpr MetricId kStuck = MetricByName("profd_device_stuck");
  const std::vector<std::vector<std::string>> rounds = {
      {"0", "1", "2"}, {"0", "1", "2"}, {"2", "0"}, {"1", "2", "0", "3"}, {"3"}, {}, {"0", "1", "2", "3"}};
  double value = 0;
  for (const std::vector<std::string>& round : rounds) {
    std::map<std::string, double> want;
    for (const std::string& npu : round) {
      self_.Set(kStuck, ++value, npu, "hal");
      want["hal/" + npu + "/"] = value;
    }
    self_.Commit();
    EXPECT_EQ(Values(kStuck), want);
  }
}

// As in a session: of a device that cannot be used nothing can be read.
TEST_F(SelfMetricsTest, CollectorsOfADeviceThatIsLostAreNotAvailable) {
  constexpr MetricId kAvailable = MetricByName("profd_collector_available");
  const CollectorStatsTable stats;
  DeviceInfo device;
  device.chip_id = 5;
  device.channels = {1};
  for (const auto& [usable, available] : {std::pair(Status(), 1.0), std::pair(Unavailable("lost"), 0.0)}) {
    device.usable = usable;
    const std::vector<DeviceInfo> devices = {device};
    const Host host{clock_, fs_, fs_, nullptr, devices, 0};
    SelfMetrics self(host);
    self.SetCollectors(stats);
    self.Commit();
    EXPECT_EQ(Values(self, kAvailable).at("hbm/"), available);
  }
}

// Of one that only a session ran, whose last read failed, ProfdCollectorFailing would fire for ever.
TEST_F(SelfMetricsTest, ACollectorThatDoesNotRunHasNoState) {
  CollectorStatsTable stats;
  const std::string name = std::string(Collectors()[0].spec->name) + "/";
  stats[0].readings = 3;
  stats[0].last_ok = false;
  for (const auto& [running, states] : {std::pair{1, 1u}, {0, 0u}, {2, 1u}}) {
    stats[0].running = running;
    self_.SetCollectors(stats);
    self_.Commit();
    for (const char* metric : {"profd_collector_success", "profd_collector_duration_seconds", "profd_collector_lateness_seconds"}) {
      const auto metric_id = static_cast<MetricId>(std::ranges::find(kMetrics, metric, &MetricSpec::name) - kMetrics.begin());
      EXPECT_EQ(Values(metric_id).count(name), states) << metric;
    }
    EXPECT_EQ(Values(MetricByName("profd_collector_readings_total")).at(name), 3);
  }
}

TEST_F(SelfMetricsTest, ACountBeginsWithTheFirstEvent) {
  constexpr MetricId kDropped = MetricByName("profd_channel_dropped_bytes_total");
  using Counts = std::map<std::string, double>;
  const std::pair<double, Counts> rounds[] = {
      {0, {}}, {7, {{"hbm/0/", 7}}}, {7, {{"hbm/0/", 7}}}, {9, {{"hbm/0/", 9}}}};
  for (const auto& [value, want] : rounds) {
    self_.SetCount(kDropped, value, "0", "hbm");
    self_.SetCount(kDropped, 0, "1", "hbm");
    self_.Commit();
    EXPECT_EQ(Values(kDropped), want);
  }
}

TEST_F(SelfMetricsTest, ACountThatBeganAgainIsShownAsItIs) {
  constexpr MetricId kBytes = MetricByName("profd_dump_bytes_total");
  constexpr MetricId kCpu = MetricByName("process_cpu_seconds_total");
  for (double value : {0.1, 1e6, 3.0, 4.7}) {
    self_.Set(kBytes, value);
    self_.Commit();
    EXPECT_EQ(Values(kBytes), (std::map<std::string, double>{{"", value}}));
  }
  // What adding up rounds off must not look like that.
  double last = 0;
  for (int i = 1; i < 1000; ++i) {
    self_.Set(kCpu, i * 0.1);
    const double now = Values(kCpu).at("");
    EXPECT_GE(now, last);
    EXPECT_DOUBLE_EQ(now, i * 0.1);
    last = now;
  }
}

TEST_F(SelfMetricsTest, ReportsWhatTheProcessUses) {
  auto one = [&](MetricId metric) {
    auto values = Values(metric);
    return values.size() == 1 ? values.begin()->second : -1;
  };
  self_.SetProcess();
  EXPECT_GT(one(MetricByName("process_resident_memory_bytes")), 100'000);
  const double before = one(MetricByName("process_open_fds"));
  EXPECT_GE(before, 3);
  std::vector<UniqueFd> more;
  for (int i = 0; i < 5; ++i) more.push_back(fs_.Open("self/stat").value());
  self_.SetProcess();
  EXPECT_EQ(one(MetricByName("process_open_fds")), before + 5);
  EXPECT_GE(one(MetricByName("process_max_fds")), before);
}

}  // namespace
}  // namespace profd
