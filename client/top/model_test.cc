#include "client/top/model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "client/top/test_support.h"

namespace profd::client::top {
namespace {

constexpr int64_t kT = 1000 * kNsPerSecond;

class ModelTest : public ::testing::Test {
 protected:
  ModelTest() {
    model_.SetNode(MakeNode(2));
    model_.BeginStream(0);
  }
  // One sample `seconds` after the beginning, on both clocks.
  void Send(uint32_t series, double seconds, double value) {
    auto ns = static_cast<int64_t>(seconds * 1e9);
    chunk_.Sample(series, kT + ns, value);
    model_.Take(chunk_.Take(), ns);
  }
  void Roll(double seconds) { model_.Roll(static_cast<int64_t>(seconds * 1e9)); }
  double Now(Measure measure, uint32_t device = 0) const {
    return model_.devices().at(device).Now(measure);
  }

  Model model_;
  ChunkMaker chunk_;
};

TEST_F(ModelTest, ShowsTheMeanOfAnIntervalAndThenTheLastValue) {
  uint32_t power = chunk_.Series("atlas_npu_power_watts", 0, {{"scope", "chip"}});
  EXPECT_TRUE(std::isnan(Now(Measure::kPower)));
  Send(power, 0.1, 100);
  Send(power, 0.2, 300);
  Roll(1);
  EXPECT_EQ(Now(Measure::kPower), 200);
  Roll(2);
  EXPECT_EQ(Now(Measure::kPower), 200);
  EXPECT_TRUE(std::isnan(Now(Measure::kPower, 1)));
  const History& history = model_.devices().at(0).Of(Measure::kPower);
  EXPECT_EQ(history.size(), 2u);
  EXPECT_EQ(history.Back(0), 200);
}

TEST_F(ModelTest, OldValuesDisappear) {
  uint32_t power = chunk_.Series("atlas_npu_power_watts", 0, {{"scope", "chip"}});
  uint32_t other = chunk_.Series("atlas_npu_power_watts", 1, {{"scope", "chip"}});
  Send(power, 0, 100);
  Send(power, 1, 100);
  Send(other, 6, 5);
  Roll(6);
  EXPECT_EQ(Now(Measure::kPower), 100);
  Roll(6.1);
  EXPECT_TRUE(std::isnan(Now(Measure::kPower)));
  EXPECT_EQ(Now(Measure::kPower, 1), 5);
}

TEST_F(ModelTest, DirectionsAddUpAndTheChannelWinsOverCounters) {
  uint32_t flits =
      chunk_.Series("atlas_npu_hccs_flits_total", 0, {{"link", "1"}, {"direction", "tx"}});
  Send(flits, 0, 1000);
  Roll(0.5);
  EXPECT_TRUE(std::isnan(Now(Measure::kHccs)));
  Send(flits, 10, 1000 + 500);
  Roll(10);
  EXPECT_DOUBLE_EQ(Now(Measure::kHccs), 500 * 20 / 10.0);
  uint32_t tx = chunk_.Series("atlas_npu_hccs_bandwidth_bytes_per_second", 0,
                              {{"link", "all"}, {"direction", "tx"}});
  uint32_t rx = chunk_.Series("atlas_npu_hccs_bandwidth_bytes_per_second", 0,
                              {{"link", "all"}, {"direction", "rx"}});
  uint32_t one = chunk_.Series("atlas_npu_hccs_bandwidth_bytes_per_second", 0,
                               {{"link", "3"}, {"direction", "rx"}});
  Send(tx, 10.1, 7);
  Send(rx, 10.2, 5);
  Send(one, 10.2, 1e12);
  Roll(11);
  EXPECT_EQ(Now(Measure::kHccs), 12);
}

TEST_F(ModelTest, ACounterThatWentBackHasNoRate) {
  uint32_t flits =
      chunk_.Series("atlas_npu_hccs_flits_total", 0, {{"link", "1"}, {"direction", "tx"}});
  Send(flits, 0, 1000);
  Send(flits, 1, 10);
  Roll(1);
  EXPECT_TRUE(std::isnan(Now(Measure::kHccs)));
  Send(flits, 2, 20);
  Roll(2);
  EXPECT_EQ(Now(Measure::kHccs), 200);
}

TEST_F(ModelTest, ADroppedCardHasNoValues) {
  uint32_t power = chunk_.Series("atlas_npu_power_watts", 0, {{"scope", "chip"}});
  uint32_t up = chunk_.Series("atlas_npu_up", 0);
  Send(power, 0, 100);
  Send(up, 0, 0);
  Roll(0.5);
  EXPECT_TRUE(std::isnan(Now(Measure::kPower)));
  EXPECT_EQ(model_.devices().at(0).Problem(), "does not answer");
  Send(up, 1, 1);
  Roll(1);
  EXPECT_EQ(model_.devices().at(0).Problem(), "");
  EXPECT_EQ(Now(Measure::kPower), 100);
}

TEST_F(ModelTest, TemperatureIsTheHottestSensor) {
  uint32_t hbm = chunk_.Series("atlas_npu_temperature_celsius", 0, {{"sensor", "hbm"}});
  uint32_t chip = chunk_.Series("atlas_npu_temperature_celsius", 0, {{"sensor", "chip"}});
  uint32_t other = chunk_.Series("atlas_npu_temperature_celsius", 0, {{"sensor", "optical_cage"}});
  Send(hbm, 0, 60);
  Send(other, 0, 99);
  Roll(0.5);
  EXPECT_EQ(Now(Measure::kTemperature), 60);
  Send(chip, 1, 70);
  Roll(1);
  EXPECT_EQ(Now(Measure::kTemperature), 70);
  EXPECT_EQ(Now(Measure::kHbmTemperature), 60);
}

TEST_F(ModelTest, ProcessMemoryByPidVanishesWithTheProcess) {
  uint32_t one = chunk_.Series("atlas_npu_process_memory_bytes", 0, {{"pid", "4711"}});
  uint32_t bad = chunk_.Series("atlas_npu_process_memory_bytes", 0, {{"pid", "x"}});
  Send(one, 0, 1e9);
  Send(bad, 0, 5);
  Roll(0.5);
  ASSERT_EQ(model_.devices().at(0).process_memory.size(), 1u);
  EXPECT_EQ(model_.devices().at(0).process_memory.at(4711), 1e9);
  Roll(61);
  EXPECT_TRUE(model_.devices().at(0).process_memory.empty());
}

TEST_F(ModelTest, ASeriesDescribedAgainIsAnother) {
  uint32_t power = chunk_.Series("atlas_npu_power_watts", 0, {{"scope", "chip"}});
  Send(power, 0, 100);
  Roll(0.5);
  v1::SampleChunk again;
  v1::SeriesInfo* series = again.add_series();
  series->set_id(power);
  series->set_metric("profd_something_else");
  series->set_device(0);
  model_.Take(again, kNsPerSecond);
  Send(power, 1, 500);
  Roll(1);
  EXPECT_TRUE(std::isnan(Now(Measure::kPower)));
}

TEST_F(ModelTest, ALostConnectionKeepsTheValuesAndCountsDropsOfAllStreams) {
  uint32_t power = chunk_.Series("atlas_npu_power_watts", 0, {{"scope", "chip"}});
  chunk_.SetDropped(7);
  Send(power, 0, 100);
  Roll(0.5);
  EXPECT_EQ(model_.dropped_samples(), 7u);
  model_.Lose("gone", 5);
  Roll(1);
  EXPECT_FALSE(model_.connection().up);
  EXPECT_EQ(Now(Measure::kPower), 100);
  EXPECT_TRUE(std::isnan(model_.devices().at(0).Of(Measure::kPower).Back(0)));
  model_.BeginStream(2 * kNsPerSecond);
  chunk_.SetDropped(2);
  Send(power, 2, 0);
  EXPECT_EQ(model_.dropped_samples(), 9u);
  EXPECT_EQ(model_.connection().losses, 1u);
}

TEST_F(ModelTest, UnknownSeriesAndDevicesBeyondTheLimitAreLeftOut) {
  for (int i = 0; i < 1000; ++i) {
    uint32_t power = chunk_.Series("atlas_npu_power_watts", i, {{"scope", "chip"}});
    Send(power, 0, i);
  }
  Send(chunk_.Series("atlas_npu_power_watts", -1, {{"scope", "chip"}}), 0, 1);
  Send(999'999, 0, 1);
  Roll(0.5);
  EXPECT_EQ(model_.devices().size(), Model::kMaxDevices);
  EXPECT_EQ(Now(Measure::kPower, 255), 255);
}

TEST_F(ModelTest, IsCompleteWhenEveryHealthyDeviceSpoke) {
  v1::Node node = MakeNode(2);
  EXPECT_FALSE(model_.Complete());
  uint32_t one = chunk_.Series("atlas_npu_utilization_ratio", 0, {{"unit", "aicore"}});
  Send(one, 0, 0.5);
  EXPECT_FALSE(model_.Complete());
  EXPECT_TRUE(model_.Complete({0}));
  node.mutable_devices(1)->set_problem("communication lost");
  model_.SetNode(node);
  EXPECT_TRUE(model_.Complete());
}

TEST(HistoryTest, KeepsTheNewest) {
  History history;
  EXPECT_TRUE(std::isnan(history.Back(0)));
  for (int i = 0; i < 1000; ++i) history.Push(i);
  EXPECT_EQ(history.size(), History::kSize);
  EXPECT_EQ(history.Back(0), 999);
  EXPECT_EQ(history.Back(History::kSize - 1), 1000 - static_cast<int>(History::kSize));
  EXPECT_TRUE(std::isnan(history.Back(History::kSize)));
}

TEST(ShortTextTest, FitsAColumn) {
  EXPECT_EQ(ShortText(Measure::kUtilization, 0.634), "63%");
  EXPECT_EQ(ShortText(Measure::kFrequency, 1.8e9), "1.80G");
  EXPECT_EQ(ShortText(Measure::kHccs, 999'600), "1.00M");
  EXPECT_EQ(ShortText(Measure::kHccs, 12.4e9), "12.4G");
  EXPECT_EQ(ShortText(Measure::kPower, 299.7), "300W");
  EXPECT_EQ(ShortText(Measure::kHbmUsed, 64.0 * (1 << 30)), "64.0G");
  EXPECT_EQ(ShortText(Measure::kPower, kNothing), "-");
  EXPECT_EQ(ShortText(Measure::kPower, 1e300), "?");
}

}  // namespace
}  // namespace profd::client::top
