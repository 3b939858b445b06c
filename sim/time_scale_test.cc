// The device side in fast motion, and the ledger.
#include <algorithm>
#include <array>
#include <fstream>

#include "driver/abi/channels.h"
#include "sim/engine_test_support.h"
#include "sim/hal_info.h"
#include "sim/ledger.h"

namespace profd::sim {
namespace {

constexpr const char* kHour = "time_scale = 60";

TEST(TimeScale, RecordsLieOnTheDevicesOwnGrid) {
  Engine fast(kHour);
  Engine real;
  real.clock.raw_ns = 60 * fast.clock.raw_ns;  // the same instant of the scenario
  ASSERT_EQ(fast.Start(0, abi::kChannelHbm, 10), 0);
  ASSERT_EQ(real.Start(0, abi::kChannelHbm, 10), 0);
  fast.clock.Advance(100 * kMs + 10'000);
  real.clock.Advance(6'000 * kMs + 600'000);
  const std::string records = fast.ReadAll(0, abi::kChannelHbm);
  // Eight records of 24 bytes per instant, 600 instants in 100 ms.
  EXPECT_EQ(records.size(), size_t{24} * 8 * 600);
  EXPECT_EQ(records, real.ReadAll(0, abi::kChannelHbm));
}

TEST(TimeScale, ClockAndCounterAgreeByTheReportedFrequency) {
  Engine e(kHour);
  HalInfo info(e.node);
  const auto ask = [&](int32_t what) {
    int64_t value = 0;
    EXPECT_EQ(info.DeviceInfo(0, abi::kModuleSystem, what, &value), 0);
    return value;
  };
  const int64_t khz = ask(abi::kInfoDevOscFreque);
  EXPECT_EQ(khz, 50'000);  // of 910B, fast motion or not
  const int64_t ns = ask(abi::kInfoMonotonicRaw);
  const int64_t count = ask(abi::kInfoSysCount);
  e.clock.Advance(1000 * kMs);
  const int64_t ns_later = ask(abi::kInfoMonotonicRaw) - ns;
  const int64_t count_later = ask(abi::kInfoSysCount) - count;
  EXPECT_NEAR(static_cast<double>(ns_later), 60e9, 60e9 * 6e-6);  // its crystal drifts by 5 ppm
  EXPECT_NEAR(static_cast<double>(count_later) / static_cast<double>(khz) * 1e6,
              static_cast<double>(ns_later), 1e3);
}

TEST(TimeScale, FaultsKeepScenarioTime) {
  Engine e("time_scale = 60\n[[fault]]\nkind = \"start_error\"\nat = 60\nfor = 60\ncode = -7");
  e.clock.raw_ns = 0;
  EXPECT_EQ(e.Start(0, abi::kChannelHccs, 10), abi::kProfOk);
  e.clock.raw_ns = 1'500 * kMs;  // scenario second 90
  EXPECT_EQ(e.Start(1, abi::kChannelHccs, 10), -7);
  e.clock.raw_ns = 2'100 * kMs;
  EXPECT_EQ(e.Start(1, abi::kChannelHccs, 10), abi::kProfOk);
}

TEST(TimeScale, PlayedAndRealTimeAreInverse) {
  const PlayedTime played(1'000'000'007, 60);
  for (const int64_t raw : {int64_t{1'000'000'007}, int64_t{5'123'456'789}}) {
    EXPECT_EQ(played.ToReal(played.FromReal(raw)), raw);
  }
  EXPECT_EQ(played.WaitFor(1), 1);  // never too short
  EXPECT_EQ(played.WaitFor(600), 10);
}

TEST(TimeScale, EnvironmentPrecedesTheScenario) {
  const TempDir dir;
  const std::string path = dir.Write("scenario.toml", "time_scale = 2");
  setenv("PROFD_SIM_SCENARIO", path.c_str(), 1);
  EXPECT_EQ(ScenarioFromEnvironment()->time_scale, 2);
  setenv("PROFD_SIM_TIME_SCALE", "60", 1);
  EXPECT_EQ(ScenarioFromEnvironment()->time_scale, 60);
  setenv("PROFD_SIM_TIME_SCALE", "fast", 1);
  EXPECT_FALSE(ScenarioFromEnvironment().ok());
  unsetenv("PROFD_SIM_TIME_SCALE");
  unsetenv("PROFD_SIM_SCENARIO");
}

struct Columns {
  uint64_t runs, records, bytes, dropped, read, left, earlier_records, earlier_bytes;
};

Columns RowOf(const std::string& path, unsigned device, unsigned channel) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(16 + 64 * (static_cast<long>(device) * abi::kMaxChannels + channel));
  Columns row{};
  file.read(reinterpret_cast<char*>(&row), sizeof row);
  return row;
}

// By the library itself: what is made is read, left behind or still there.
TEST(Ledger, BalancesAcrossRuns) {
  const TempDir dir;
  const std::string path = dir.path() + "/ledger";
  setenv("PROFD_SIM_LEDGER", path.c_str(), 1);
  setenv("PROFD_SIM_TIME_SCALE", "10", 1);
  Hal hal("devices = 64");
  unsetenv("PROFD_SIM_TIME_SCALE");
  StartPara para(abi::kChannelHccs, 10);
  std::array<char, 4096> buffer;
  uint64_t lines = 0;
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(hal.start(63, abi::kChannelHccs, para.get()), 0);
    abi::ProfPollInfo ready{};
    ASSERT_EQ(hal.poll(&ready, 1, 10), 1);  // 10 ms of the device are 1 ms
    EXPECT_EQ(ready.device_id, 63u);
    for (unsigned left = 100; left > 0;) {
      const int got = hal.read(63, abi::kChannelHccs, buffer.data(), left);
      ASSERT_GE(got, 0);
      lines += static_cast<uint64_t>(std::count(buffer.data(), buffer.data() + got, '\n'));
      left -= static_cast<unsigned>(got);
    }
    ASSERT_EQ(hal.poll(&ready, 1, 10), 1);  // and there is more
    ASSERT_EQ(hal.stop(63, abi::kChannelHccs), 0);
  }
  unsetenv("PROFD_SIM_LEDGER");
  const Columns before = RowOf(path, 63, abi::kChannelHccs);
  EXPECT_EQ(before.runs, 2u);
  EXPECT_EQ(before.read, 200u);
  EXPECT_GT(before.left, 0u);  // of the first run; the second one's is still there
  EXPECT_GE(before.records + 2, lines);
  EXPECT_EQ(before.earlier_bytes, 100 + before.left);  // all of the first run
  EXPECT_GT(before.earlier_records, 0u);
  uint64_t rest = 0;
  for (int got; (got = hal.read(63, abi::kChannelHccs, buffer.data(), buffer.size())) > 0;) {
    rest += static_cast<uint64_t>(got);
  }
  const Columns after = RowOf(path, 63, abi::kChannelHccs);
  EXPECT_EQ(after.read, before.read + rest);
  EXPECT_EQ(after.bytes, after.dropped + after.read + after.left);
  EXPECT_EQ(RowOf(path, 0, abi::kChannelHccs).runs, 0u);
}

}  // namespace
}  // namespace profd::sim
