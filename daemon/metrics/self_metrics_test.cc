#include "daemon/metrics/self_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "driver/rooted_fs.h"

namespace profd {
namespace {

class SelfMetricsTest : public ::testing::Test {
 protected:
  SelfMetricsTest() : fs_(RootedFs::OpenRoot("/proc").value()) {}

  // Label values, joined, to the value.
  std::map<std::string, double> Values(MetricId metric) {
    std::map<std::string, double> values;
    store_.VisitFresh(clock_.MonotonicRawNs(), [&](const SeriesValue& series) {
      if (series.metric != metric) return;
      std::string key;
      for (const auto& [name, value] : *series.labels) key += value + "/";
      values[key] = series.value;
    });
    return values;
  }

  SystemClock clock_;
  RootedFs fs_;
  MetricStore store_;
  std::vector<DeviceInfo> devices_;
  Host host_{clock_, fs_, fs_, nullptr, devices_, 0};
};

TEST_F(SelfMetricsTest, EveryRoundReachesItsSeriesInWhateverOrder) {
  constexpr MetricId kStuck = MetricByName("profd_device_stuck");
  SelfMetrics self(store_, host_);
  const std::vector<std::vector<std::string>> rounds = {
      {"0", "1", "2"}, {"0", "1", "2"}, {"2", "0"}, {"1", "2", "0", "3"}, {"3"}, {}, {"0", "1", "2", "3"}};
  double value = 0;
  std::map<std::string, double> want;
  for (const std::vector<std::string>& round : rounds) {
    for (const std::string& npu : round) {
      self.Set(kStuck, ++value, npu, "hal");
      want[npu + "/hal/"] = value;
    }
    self.Commit();
    EXPECT_EQ(Values(kStuck), want);
  }
  EXPECT_EQ(store_.size(), 4U);
}

TEST_F(SelfMetricsTest, ACountBeginsWithTheFirstEvent) {
  constexpr MetricId kDropped = MetricByName("profd_channel_dropped_bytes_total");
  SelfMetrics self(store_, host_);
  for (double value : {0.0, 7.0, 0.0}) {
    self.SetCount(kDropped, value, "0", "hbm");
    self.SetCount(kDropped, 0, "1", "hbm");
    self.Commit();
    const auto want = value > 0 || store_.size() > 0
                          ? std::map<std::string, double>{{"0/hbm/", value}}
                          : std::map<std::string, double>{};
    EXPECT_EQ(Values(kDropped), want);
  }
  EXPECT_EQ(store_.size(), 1U);
}

TEST_F(SelfMetricsTest, SaysWhatTheProcessTakes) {
  SelfMetrics self(store_, host_);
  auto one = [&](MetricId metric) {
    auto values = Values(metric);
    return values.size() == 1 ? values.begin()->second : -1;
  };
  self.SetProcess();
  self.Commit();
  EXPECT_GT(one(MetricByName("process_resident_memory_bytes")), 100'000);
  const double before = one(MetricByName("process_open_fds"));
  EXPECT_GE(before, 3);
  std::vector<UniqueFd> more;
  for (int i = 0; i < 5; ++i) more.push_back(fs_.Open("self/stat").value());
  self.SetProcess();
  self.Commit();
  EXPECT_EQ(one(MetricByName("process_open_fds")), before + 5);
  EXPECT_GE(one(MetricByName("process_max_fds")), before);
}

}  // namespace
}  // namespace profd
