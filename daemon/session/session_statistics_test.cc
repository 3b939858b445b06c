#include "daemon/session/session_statistics.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"
#include "daemon/session/stored_session.pb.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

constexpr int64_t kStart = 1000 * kNsPerSecond;

class SessionStatisticsTest : public ::testing::Test {
 protected:
  SessionStatisticsTest() {
    devices_.resize(2);
    for (int i : {0, 1}) {
      devices_[static_cast<size_t>(i)].id = i;
      devices_[static_cast<size_t>(i)].physical_id = i + 4;
      store_.SetDeviceLabels(i, std::to_string(i + 4), "uuid");
    }
  }
  void Write(MetricId metric, double value, std::initializer_list<std::string_view> labels = {},
             int device = 1) {
    SeriesId series = store_.Intern(metric, device, labels);
    store_.Write(std::vector<Sample>{{series, now_, value}});
  }
  // A second later, of device 1.
  void Look(double energy, double memory, double aicore, double single, double corrected_other = 0) {
    Write(MetricByName("atlas_npu_energy_joules_total"), energy);
    Write(MetricByName("atlas_npu_hbm_used_bytes"), memory);
    Write(MetricByName("atlas_npu_utilization_ratio"), aicore, {"aicore"});
    Write(MetricByName("atlas_npu_utilization_ratio"), 0.99, {"npu"});
    Write(MetricByName("atlas_npu_ecc_errors_total"), single, {"hbm", "single"});
    Write(MetricByName("atlas_npu_ecc_errors_total"), corrected_other, {"ddr", "single"});
    Write(MetricByName("atlas_npu_ecc_errors_total"), 3, {"hbm", "double"});
    statistics_.Take(ReadDevices(store_, devices_, now_), std::vector<int>{1});
    now_ += kNsPerSecond;
  }
  v1::SessionStatus Filled() const {
    v1::SessionStatus status;
    statistics_.Fill(&status);
    return status;
  }

  MetricStore store_;
  std::vector<DeviceInfo> devices_;
  SessionStatistics statistics_;
  int64_t now_ = kStart;
};

TEST_F(SessionStatisticsTest, CountsRecordsOfItsRunTime) {
  Write(MetricByName("atlas_npu_energy_joules_total"), 7, {}, 0);  // not the session's
  Look(1000, 10e9, 0.5, 20);
  Look(1250, 30e9, 1.0, 21);
  Look(1500, 20e9, 0.0, 25, 2);
  v1::SessionStatus status = Filled();
  ASSERT_EQ(status.statistics_size(), 1);
  const v1::DeviceStatistics& device = status.statistics(0);
  EXPECT_EQ(device.device(), 1u);
  EXPECT_EQ(device.energy_joules(), 500);
  EXPECT_EQ(device.peak_memory_bytes(), 30'000'000'000u);
  EXPECT_EQ(device.mean_utilization_ratio(), 0.5);
  EXPECT_EQ(device.ecc_corrected(), 7u);
  EXPECT_EQ(device.ecc_uncorrected(), 0u);
}

TEST_F(SessionStatisticsTest, ACounterThatWasClearedCountsAnew) {
  Look(1000, 1, 0, 20);
  Look(1000, 1, 0, 2);
  Look(1000, 1, 0, 5);
  EXPECT_EQ(Filled().statistics(0).ecc_corrected(), 5u);
}

// Energy counts from the daemon's start, ECC errors over the life of the memory: those that came in between belong to no segment.
TEST_F(SessionStatisticsTest, CountsOnUnderTheNextDaemon) {
  Look(1000, 30e9, 0.5, 20);
  Look(1260, 10e9, 1.0, 21);
  state::StoredSession stored;
  statistics_.Save(&stored);
  statistics_.Save(&stored);  // replaces what was saved before
  statistics_ = SessionStatistics::Of(stored);
  EXPECT_EQ(Filled().statistics(0).energy_joules(), 260);
  Look(40, 20e9, 0, 25);
  Look(300, 20e9, 0, 27);
  v1::SessionStatus status = Filled();
  ASSERT_EQ(status.statistics_size(), 1);
  EXPECT_EQ(status.statistics(0).energy_joules(), 520);
  EXPECT_EQ(status.statistics(0).peak_memory_bytes(), 30'000'000'000u);
  EXPECT_EQ(status.statistics(0).mean_utilization_ratio(), 0.375);
  EXPECT_EQ(status.statistics(0).ecc_corrected(), 3u);
  EXPECT_EQ(status.statistics(0).ecc_uncorrected(), 0u);
  // What was not read stays unknown.
  Write(MetricByName("atlas_npu_hbm_used_bytes"), 5, {}, 0);
  SessionStatistics some;
  some.Take(ReadDevices(store_, devices_, now_), std::vector<int>{0});
  some.Save(&stored);
  v1::SessionStatus again;
  SessionStatistics::Of(stored).Fill(&again);
  ASSERT_EQ(again.statistics_size(), 1);
  EXPECT_FALSE(again.statistics(0).has_energy_joules());
  EXPECT_FALSE(again.statistics(0).has_mean_utilization_ratio());
  EXPECT_FALSE(again.statistics(0).has_ecc_corrected());
  EXPECT_EQ(again.statistics(0).peak_memory_bytes(), 5u);
}

TEST_F(SessionStatisticsTest, ValuesThatWereNotReadAreAbsent) {
  Write(MetricByName("atlas_npu_hbm_used_bytes"), 5);
  statistics_.Take(ReadDevices(store_, devices_, now_), std::vector<int>{0, 1});
  v1::SessionStatus status = Filled();
  ASSERT_EQ(status.statistics_size(), 1);
  EXPECT_FALSE(status.statistics(0).has_energy_joules());
  EXPECT_FALSE(status.statistics(0).has_mean_utilization_ratio());
  EXPECT_FALSE(status.statistics(0).has_ecc_corrected());
  // What is out of date is none.
  SessionStatistics later;
  later.Take(ReadDevices(store_, devices_, now_ + 600 * kNsPerSecond), std::vector<int>{0, 1});
  v1::SessionStatus none;
  later.Fill(&none);
  EXPECT_EQ(none.statistics_size(), 0);
}

}  // namespace
}  // namespace profd
