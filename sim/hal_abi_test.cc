// libascend_hal.so as the daemon meets it: loaded with dlopen, on the real clock.
#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "sim/test_support.h"

namespace profd::sim {
namespace {

int64_t SteadyNs() { return SystemClock().SteadyNs(); }

// Reads until `wanted` bytes are there; poll is what waits. A stuck simulator is ended by the
// test's own time limit.
std::string ReadAtLeast(const Hal& hal, unsigned device, unsigned channel, size_t wanted) {
  std::string bytes;
  char buffer[4096];
  while (bytes.size() < wanted) {
    abi::ProfPollInfo info[6];
    EXPECT_GE(hal.poll(info, 6, 1), 0);
    for (int n; (n = hal.read(device, channel, buffer, sizeof buffer)) > 0;) {
      bytes.append(buffer, static_cast<size_t>(n));
    }
  }
  return bytes;
}

TEST(HalLibrary, ExportsTheVendorsSymbolsOnly) {
  Hal hal;
  EXPECT_FALSE(hal.lib.Has("dcmi_init"));
  EXPECT_FALSE(
      hal.lib.Has("_ZN5profd3sim13ParseScenarioESt17basic_string_viewIcSt11char_traitsIcEE"));
}

TEST(HalLibrary, DescribesTheDefaultNode) {
  Hal hal;
  uint32_t count = 0;
  ASSERT_EQ(hal.dev_num(&count), 0);
  EXPECT_EQ(count, 8u);
  uint32_t ids[8];
  ASSERT_EQ(hal.dev_ids(ids, 8), 0);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(ids[i], i);
  uint32_t platform = 9, phy = 9;
  EXPECT_EQ(hal.platform(&platform), 0);
  EXPECT_EQ(platform, abi::kPlatformHostSide);
  EXPECT_EQ(hal.phy_id(3, &phy), 0);
  EXPECT_EQ(phy, 3u);
  int version = 0, status = -1;
  EXPECT_EQ(hal.api_version(&version), 0);
  EXPECT_GE(version, abi::kApiOscFreq);
  EXPECT_EQ(hal.status(0, &status), 0);
  EXPECT_EQ(status, abi::kDrvStatusWork);
  unsigned mode = 9;
  EXPECT_EQ(hal.split_mode(0, &mode), 0);
  EXPECT_EQ(mode, 0u);
  int64_t value = 0;
  ASSERT_EQ(hal.info(7, abi::kModuleSystem, abi::kInfoVersion, &value), 0);
  EXPECT_EQ(abi::ChipIdOf(value), abi::kChip910B);
  ASSERT_EQ(hal.info(0, abi::kModuleSystem, abi::kInfoDevOscFreque, &value), 0);
  EXPECT_EQ(value, 50'000);
  ASSERT_EQ(hal.info(0, abi::kModuleAicore, abi::kInfoFreque, &value), 0);
  EXPECT_EQ(value, 1800);
  ASSERT_EQ(hal.info(0, abi::kModuleSystem, abi::kInfoHostOscFreque, &value), 0);
  EXPECT_GT(value, 1'000);
  EXPECT_EQ(hal.info(0, abi::kModuleLog, abi::kInfoIp, &value), abi::kDrvErrorNotSupport);
  EXPECT_EQ(hal.info(8, abi::kModuleSystem, abi::kInfoVersion, &value),
            abi::kDrvErrorInvalidDevice);
}

TEST(HalLibrary, OtherChips) {
  Hal first("chip = \"910\"\ndevices = 3");
  Hal third("chip = \"A3\"\ndevices = 4");
  int64_t value = 0;
  ASSERT_EQ(first.info(0, abi::kModuleSystem, abi::kInfoVersion, &value), 0);
  EXPECT_EQ(abi::ChipIdOf(value), abi::kChip910);
  ASSERT_EQ(first.info(0, abi::kModuleSystem, abi::kInfoDevOscFreque, &value), 0);
  EXPECT_EQ(value, 100'000);
  EXPECT_EQ(first.info(0, abi::kModuleVectorCore, abi::kInfoCoreNum, &value),
            abi::kDrvErrorNotSupport);
  ASSERT_EQ(third.info(0, abi::kModuleSystem, abi::kInfoVersion, &value), 0);
  EXPECT_EQ(abi::ChipIdOf(value), abi::kChip910B);
  ASSERT_EQ(third.info(3, abi::kModuleSystem, abi::kInfoPhyDieId, &value), 0);
  EXPECT_EQ(value, 1);
  uint32_t count = 0;
  EXPECT_EQ(third.dev_num(&count), 0);
  EXPECT_EQ(count, 4u);
}

TEST(HalLibrary, QosStreams) {
  Hal hal;
  abi::QosProfileInfo info{};
  int32_t size = sizeof info;
  ASSERT_EQ(hal.info_by_buff(0, abi::kModuleQos, abi::kInfoConfig, &info, &size), 0);
  ASSERT_EQ(info.stream_num, 4u);
  const uint8_t id = info.mpam_id[1];
  info = {};
  // stream_num is the index into mpam_id, from 0, in this mode.
  info.mode = abi::kQosModeIdToName;
  info.stream_num = 2;
  info.mpam_id[2] = id;
  ASSERT_EQ(hal.info_by_buff(0, abi::kModuleQos, abi::kInfoConfig, &info, &size), 0);
  EXPECT_STREQ(info.stream_name, "st_mpamid_13");
  info.stream_num = 1;
  EXPECT_NE(hal.info_by_buff(0, abi::kModuleQos, abi::kInfoConfig, &info, &size), 0);
  info.stream_num = 999;
  EXPECT_NE(hal.info_by_buff(0, abi::kModuleQos, abi::kInfoConfig, &info, &size), 0);
  info.mode = abi::kQosModeNameToId;
  info.mpam_id[0] = 0;
  ASSERT_EQ(hal.info_by_buff(0, abi::kModuleQos, abi::kInfoConfig, &info, &size), 0);
  EXPECT_EQ(info.mpam_id[0], id);
  size = 10;
  EXPECT_NE(hal.info_by_buff(0, abi::kModuleQos, abi::kInfoConfig, &info, &size), 0);
}

TEST(HalLibrary, PollAnswersAtOnceWhenNothingIsStarted) {
  Hal hal;
  abi::ProfPollInfo info;
  EXPECT_EQ(hal.poll(&info, 1, 1000), abi::kProfStoppedAlready);
}

TEST(HalLibrary, PollWaitsItsFullTimeoutWithoutData) {
  Hal hal;
  StartPara silent(abi::kChannelTsfw, 10);
  ASSERT_EQ(hal.start(0, abi::kChannelTsfw, silent.get()), 0);
  abi::ProfPollInfo info;
  const int64_t before = SteadyNs();
  EXPECT_EQ(hal.poll(&info, 1, 1), 0);
  EXPECT_GE(SteadyNs() - before, 1'000'000'000);
}

TEST(HalLibrary, PollWakesForTheNextRecord) {
  Hal hal;
  StartPara para(abi::kChannelPcie, 20);
  ASSERT_EQ(hal.start(5, abi::kChannelPcie, para.get()), 0);
  abi::ProfPollInfo info;
  ASSERT_EQ(hal.poll(&info, 1, 600), 1);
  EXPECT_EQ(info.device_id, 5u);
  EXPECT_EQ(info.channel_id, 3u);
  char buffer[960];
  EXPECT_GE(hal.read(5, abi::kChannelPcie, buffer, sizeof buffer), 96);
}

TEST(HalLibrary, PollWakesForAChannelStartedMeanwhile) {
  Hal hal;
  StartPara silent(abi::kChannelTsfw, 10);
  ASSERT_EQ(hal.start(0, abi::kChannelTsfw, silent.get()), 0);
  abi::ProfPollInfo info;
  int found = 0;
  std::thread poller([&] { found = hal.poll(&info, 1, 600); });
  StartPara para(abi::kChannelHccs, 1000);
  EXPECT_EQ(hal.start(1, abi::kChannelHccs, para.get()), 0);
  poller.join();  // the header line is there at once
  EXPECT_EQ(found, 1);
  EXPECT_EQ(info.device_id, 1u);
}

TEST(HalLibrary, TimestampsAreOnTheDevicesClock) {
  Hal hal;
  int64_t before = 0, after = 0;
  ASSERT_EQ(hal.info(1, abi::kModuleSystem, abi::kInfoMonotonicRaw, &before), 0);
  StartPara para(abi::kChannelPcie, 2);
  ASSERT_EQ(hal.start(1, abi::kChannelPcie, para.get()), 0);
  const std::string bytes = ReadAtLeast(hal, 1, abi::kChannelPcie, 5 * 96);
  ASSERT_EQ(hal.info(1, abi::kModuleSystem, abi::kInfoMonotonicRaw, &after), 0);
  for (size_t at = 0; at < bytes.size(); at += 96) {
    const auto timestamp = static_cast<int64_t>(At<uint64_t>(bytes, at));
    EXPECT_GT(timestamp, before);
    EXPECT_LE(timestamp, after);
    if (at > 0) {
      EXPECT_EQ(timestamp - static_cast<int64_t>(At<uint64_t>(bytes, at - 96)), 2'000'000);
    }
  }
  int64_t count = 0, other = 0;
  ASSERT_EQ(hal.info(1, abi::kModuleSystem, abi::kInfoSysCount, &count), 0);
  ASSERT_EQ(hal.info(2, abi::kModuleSystem, abi::kInfoMonotonicRaw, &other), 0);
  EXPECT_NE(other / 1'000'000'000, after / 1'000'000'000);  // each device has its own clock
  EXPECT_GT(count, 0);
}

TEST(HalLibrary, ModuleMemoryCanBeTimestampedInHostCycles) {
  Hal hal;
  const uint64_t before = SystemClock().CpuCounter();
  StartPara para(abi::kChannelNpuModuleMem, 1);
  ASSERT_EQ(hal.start(0, abi::kChannelNpuModuleMem, para.Set(abi::MemCfg{1, 1, 0, 0}).get()), 0);
  const std::string bytes = ReadAtLeast(hal, 0, abi::kChannelNpuModuleMem, 24);
  const auto timestamp = At<uint64_t>(bytes, 8);
  EXPECT_GT(timestamp, before);
  EXPECT_LT(timestamp, SystemClock().CpuCounter());
}

TEST(HalLibrary, BadScenarioReportsWhyAndHasNoDevices) {
  testing::internal::CaptureStderr();
  Hal hal("chip = \"910Z\"");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("libascend_hal.so"), std::string::npos) << said;
  EXPECT_NE(said.find("line 1: unknown chip '910Z'"), std::string::npos) << said;
  uint32_t count = 9;
  EXPECT_EQ(hal.dev_num(&count), 0);
  EXPECT_EQ(count, 0u);
  abi::ChannelList list;
  EXPECT_EQ(hal.get_channels(0, &list), abi::kProfError);
  abi::ProfPollInfo info;
  EXPECT_EQ(hal.poll(&info, 1, 0), abi::kProfStoppedAlready);
  int64_t value;
  EXPECT_NE(hal.info(0, 0, 1, &value), 0);
}

TEST(HalLibrary, PrintsNothingOtherwise) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  {
    Hal hal;
    StartPara para(abi::kChannelHccs, 1);
    EXPECT_EQ(hal.start(0, abi::kChannelHccs, para.get()), 0);
    ReadAtLeast(hal, 0, abi::kChannelHccs, 100);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

std::string FaultFromNow(const std::string& body, double seconds) {
  return fmt::format("[[fault]]\nat = 0\nfor = {}\n{}", ScenarioSeconds() + seconds, body);
}

TEST(HalFaults, HangingCardBlocksItsCallsAndNoOthers) {
  const double length = 0.4;
  const double end = ScenarioSeconds() + length;
  Hal hal(FaultFromNow("kind = \"card_drop\"\nmode = \"hang\"\ndevice = 1", length));
  std::atomic<int> done{0};
  std::vector<std::thread> blocked;
  const auto run = [&](auto call) {
    blocked.emplace_back([&, call] {
      call();
      EXPECT_GE(ScenarioSeconds() + kEpochSlack, end);
      ++done;
    });
  };
  run([&] {
    int s;
    EXPECT_EQ(hal.status(1, &s), 0);
  });
  run([&] {
    int64_t v;
    EXPECT_EQ(hal.info(1, 0, 1, &v), 0);
  });
  run([&] {
    char b[8];
    EXPECT_EQ(hal.read(1, 1, b, 8), abi::kProfStoppedAlready);
  });
  run([&] {
    abi::ChannelList list;
    EXPECT_EQ(hal.get_channels(1, &list), 0);
  });
  int status = -1;
  EXPECT_EQ(hal.status(0, &status), 0);
  StartPara para(abi::kChannelHccs, 10);
  EXPECT_EQ(hal.start(0, abi::kChannelHccs, para.get()), 0);
  abi::ProfPollInfo info;
  EXPECT_EQ(hal.poll(&info, 1, 600), 1);
  for (std::thread& thread : blocked) thread.join();
  EXPECT_EQ(done, 4);
}

TEST(HalFaults, MissingCardIsGone) {
  Hal hal("[[fault]]\nkind = \"card_drop\"\ndevice = 1");
  int status = -1;
  EXPECT_EQ(hal.status(1, &status), 0);
  EXPECT_EQ(status, abi::kDrvStatusCommunicationLost);
  int64_t value;
  EXPECT_EQ(hal.info(1, abi::kModuleSystem, abi::kInfoVersion, &value), abi::kDrvErrorNoDevice);
  char buffer[8];
  EXPECT_EQ(hal.read(1, 1, buffer, 8), abi::kProfError);
  uint32_t count = 0;
  EXPECT_EQ(hal.dev_num(&count), 0);
  EXPECT_EQ(count, 8u);
}

TEST(HalFaults, PollErrors) {
  for (int code : {-1, -4, -5}) {
    Hal hal(FaultFromNow(fmt::format("kind = \"poll_error\"\ncode = {}", code), 3600));
    StartPara para(abi::kChannelHccs, 10);
    ASSERT_EQ(hal.start(0, abi::kChannelHccs, para.get()), 0);
    abi::ProfPollInfo info;
    EXPECT_EQ(hal.poll(&info, 1, 600), code);
  }
  Hal hal(FaultFromNow("kind = \"poll_error\"\ncode = -2", 3600));
  abi::ProfPollInfo info;
  const int64_t before = SteadyNs();
  EXPECT_EQ(hal.poll(&info, 1, 1), -2);
  EXPECT_GE(SteadyNs() - before, 1'000'000'000);  // a timeout takes its time
}

TEST(HalFaults, StopHangsUntilTheFaultEnds) {
  const double length = 0.4;
  const double end = ScenarioSeconds() + length;
  Hal hal(FaultFromNow("kind = \"stop_hang\"\nchannel = \"hccs\"", length));
  for (unsigned channel : {3u, 9u}) {
    StartPara para(channel, 5);
    ASSERT_EQ(hal.start(0, channel, para.get()), 0);
  }
  std::thread stopper([&] {
    EXPECT_EQ(hal.stop(0, 9), 0);
    EXPECT_GE(ScenarioSeconds() + kEpochSlack, end);
  });
  // Meanwhile the rest of the driver works, the hanging channel's reads too.
  EXPECT_EQ(hal.stop(0, 3), 0);
  char buffer[16];
  EXPECT_GT(hal.read(0, 9, buffer, sizeof buffer), 0);
  stopper.join();
}

// For the sanitizers: everything at once from many threads.
TEST(HalLibrary, ManyThreads) {
  Hal hal;
  constexpr unsigned kChannels[] = {1, 3, 8, 9, 52, 129, 132, 142};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> total{0};
  std::vector<std::thread> threads;
  for (unsigned device = 0; device < 4; ++device) {
    threads.emplace_back([&, device] {
      std::vector<char> buffer(8192);
      for (int round = 0; round < 20; ++round) {
        for (unsigned channel : kChannels) {
          StartPara para(channel, 1);
          EXPECT_EQ(hal.start(device, channel, para.get()), 0);
        }
        for (unsigned channel : kChannels) {
          int64_t value;
          hal.info(device, 0, abi::kInfoSysCount, &value);
          const int n = hal.read(device, channel, buffer.data(), 8192);
          if (n > 0) total += static_cast<uint64_t>(n);
          EXPECT_EQ(hal.stop(device, channel), 0);
          EXPECT_EQ(hal.stop(device, channel), abi::kProfStoppedAlready);
        }
      }
    });
  }
  std::thread poller([&] {
    while (!stop) {
      abi::ProfPollInfo info[6];
      const int n = hal.poll(info, 6, 1);
      char buffer[512];
      for (int i = 0; i < n; ++i) hal.read(info[i].device_id, info[i].channel_id, buffer, 512);
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  poller.join();
  EXPECT_GT(total, 0u);
}

}  // namespace
}  // namespace profd::sim
