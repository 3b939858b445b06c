#include "export/clock_map.h"

#include <gtest/gtest.h>

namespace profd::exporting {
namespace {

// The clocks of dump-format 7.2.
ClockFacts Facts() {
  ClockFacts facts;
  facts.begin_us = 1767225600000000;
  facts.begin_raw_ns = 876117208663770;
  facts.host_ns = 876117208663770;
  facts.host_count = 87611720866377;
  facts.device_ns = 176167889901260;
  facts.device_count = 8808394495063;
  facts.device_hz = 50e6;
  facts.host_hz = 100e6;
  return facts;
}

constexpr int64_t kBegin = 1767225600000000000;

TEST(ClockMap, NanosecondTimestampsAreExact) {
  ClockMap map(Facts());
  EXPECT_EQ(map.HostNs(876117208663770), kBegin);
  EXPECT_EQ(map.HostNs(876117208663771), kBegin + 1);
  EXPECT_EQ(map.DeviceNs(176167889901260), kBegin);
  EXPECT_EQ(map.DeviceNs(176167909901261), kBegin + 20000001);
}

// dump-format 3.2: the row of npu_mem at 10 ms is printed as ...009999.872.
TEST(ClockMap, MicrosAreInStepsOf256) {
  ClockMap map(Facts());
  EXPECT_EQ(map.DeviceMicros(10000), kBegin + 9999872);
  EXPECT_EQ(map.DeviceMicros(20000), kBegin + 20000000);
  for (int64_t us = 0; us < 100000; us += 777) {
    EXPECT_EQ(map.DeviceMicros(us) % 256, 0);
    EXPECT_NEAR(static_cast<double>(map.DeviceMicros(us) - kBegin - us * 1000), 0, 512);
  }
}

TEST(ClockMap, CountersAreIntegerNanoseconds) {
  ClockMap map(Facts());
  EXPECT_EQ(map.DeviceCounter(8808394495063), kBegin);
  EXPECT_EQ(map.DeviceCounter(8808394495063 + 50000), kBegin + 1000000);
  EXPECT_EQ(map.DeviceCounter(8808394495063 + 1), kBegin + 20);
  EXPECT_EQ(map.DeviceCounter(8808394495063 - 1), kBegin - 20);
  EXPECT_EQ(map.HostCounter(87611720866377 + 1000000), kBegin + 10000000);
}

// 1 / 38.4 MHz is 26.041666 ns: cut after the microseconds were rounded to six places.
TEST(ClockMap, CountersAreCutToNanoseconds) {
  ClockFacts facts = Facts();
  facts.device_hz = 38.4e6;
  ClockMap map(facts);
  EXPECT_EQ(map.DeviceCounter(facts.device_count + 1), kBegin + 26);
  EXPECT_EQ(map.DeviceCounter(facts.device_count + 23), kBegin + 598);  // 598.958
  EXPECT_EQ(map.DeviceCounter(facts.device_count + 384), kBegin + 10000);
  EXPECT_EQ(map.DeviceCounter(facts.device_count - 1), kBegin - 27);
}

TEST(ClockMap, CounterDifferenceMovesTheHost) {
  ClockFacts facts = Facts();
  facts.host_count_diff = 100;  // 1 us at 100 MHz
  ClockMap map(facts);
  EXPECT_EQ(map.DeviceCounter(facts.device_count), kBegin + 1000);
  EXPECT_EQ(map.DeviceNs(facts.device_ns), kBegin + 1000);
}

TEST(ClockMap, WithoutFrequencies) {
  ClockFacts facts = Facts();
  facts.device_hz = 0;
  facts.host_hz = 0;
  ClockMap map(facts);
  EXPECT_EQ(map.DeviceCounter(123), kBegin);
  EXPECT_EQ(map.HostCounter(876117208663775), kBegin + 5);  // ns already
}

TEST(ClockMap, AnyTimestampIsSurvived) {
  ClockMap map(Facts());
  for (uint64_t timestamp : {uint64_t{0}, UINT64_MAX, uint64_t{1} << 63}) {
    auto ns = static_cast<int64_t>(timestamp);
    EXPECT_EQ(map.HostNs(ns), map.HostNs(ns));
    EXPECT_EQ(map.DeviceNs(ns), map.DeviceNs(ns));
    EXPECT_EQ(map.DeviceMicros(ns), map.DeviceMicros(ns));
    EXPECT_EQ(map.DeviceCounter(timestamp), map.DeviceCounter(timestamp));
    EXPECT_EQ(map.HostCounter(timestamp), map.HostCounter(timestamp));
  }
  EXPECT_EQ(ClockMap().DeviceNs(5), 5);
}

// Pairs every 300 s of a device whose clocks are 12 ppm fast.
std::vector<DumpClocks> Pairs(int64_t seconds, double ppm, int64_t uncertainty_ns = 500) {
  const ClockFacts facts = Facts();
  std::vector<DumpClocks> pairs;
  for (int64_t s = 0; s <= seconds; s += 300) {
    const int64_t ns = s * 1'000'000'000;
    const auto fast = static_cast<int64_t>(static_cast<double>(ns) * (1 + ppm / 1e6));
    pairs.push_back({facts.host_ns + ns, facts.host_count + static_cast<uint64_t>(ns / 10),
                     facts.device_ns + fast,
                     facts.device_count + static_cast<uint64_t>(fast / 20), uncertainty_ns});
  }
  return pairs;
}

TEST(ClockMap, LaterPairsTakeOutTheDrift) {
  const ClockFacts facts = Facts();
  const ClockMap start(facts);
  const ClockMap all(facts, Pairs(3600, 12));
  for (int64_t s : {1, 150, 300, 1234, 3599, 3700}) {
    const int64_t ns = s * 1'000'000'000;
    const auto fast = static_cast<int64_t>(static_cast<double>(ns) * (1 + 12e-6));
    const auto wanted = static_cast<double>(kBegin + ns);
    EXPECT_NEAR(static_cast<double>(all.DeviceNs(facts.device_ns + fast)), wanted, 50) << s;
    EXPECT_NEAR(static_cast<double>(all.DeviceMicros(fast / 1000)), wanted, 1500) << s;
    EXPECT_NEAR(static_cast<double>(
                    all.DeviceCounter(facts.device_count + static_cast<uint64_t>(fast / 20))),
                wanted, 100)
        << s;
    EXPECT_EQ(all.HostNs(facts.host_ns + ns), kBegin + ns);
    // 12 us a second too late, as the vendor's.
    EXPECT_EQ(start.DeviceNs(facts.device_ns + fast), kBegin + fast);
  }
  // After an hour 43 ms.
  const int64_t late = start.DeviceNs(Pairs(3600, 12).back().device_ns) - kBegin - 3'600'000'000'000;
  EXPECT_NEAR(static_cast<double>(late), 43'200'000, 1);
}

TEST(ClockMap, CorrectionsWithinNoiseAreNotADrift) {
  const ClockFacts facts = Facts();
  const ClockMap map(facts, Pairs(300, 1, 1'000'000));  // 300 us, read within 1 ms
  EXPECT_EQ(map.DeviceNs(facts.device_ns + 200'000'000'000), kBegin + 200'000'000'000);
  // Nor is a clock that was set.
  const ClockMap set(facts, Pairs(300, 5000));
  EXPECT_EQ(set.DeviceNs(facts.device_ns + 200'000'000'000), kBegin + 200'000'000'000);
}

TEST(ClockMap, TheHostsClockIsCorrectedToo) {
  ClockFacts facts = Facts();
  facts.end_us = facts.begin_us + 1'000'010'000;  // wall clock was slewed by 10 ms in 1000 s
  facts.end_raw_ns = facts.begin_raw_ns + 1'000'000'000'000;
  const ClockMap map(facts, Pairs(900, 0));
  EXPECT_EQ(map.HostNs(facts.begin_raw_ns), kBegin);
  EXPECT_EQ(map.HostNs(facts.begin_raw_ns + 500'000'000'000), kBegin + 500'005'000'000);
  EXPECT_EQ(map.DeviceNs(facts.device_ns + 500'000'000'000), kBegin + 500'005'000'000);
  EXPECT_EQ(ClockMap(facts).HostNs(facts.begin_raw_ns + 500'000'000'000), kBegin + 500'000'000'000);
}

}  // namespace
}  // namespace profd::exporting
