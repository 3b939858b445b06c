#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "collectors/channel_options.h"
#include "collectors/collector.h"
#include "collectors/collector_hint.h"
#include "collectors/testing/channel_fixture.h"
#include "driver/abi/channels.h"

namespace profd {
namespace {

TEST(CollectorTable, IsSortedByNameWithoutRepetition) {
  std::span<const CollectorEntry> all = Collectors();
  ASSERT_FALSE(all.empty());
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].spec->name, all[i].spec->name);
}

TEST(CollectorTable, FindsEveryEntryAndNothingElse) {
  for (const CollectorEntry& entry : Collectors()) {
    EXPECT_EQ(FindCollector(entry.spec->name), &entry);
  }
  for (std::string_view name : {"", "a", "hb", "hbmm", "zzz", "HBM"}) {
    EXPECT_EQ(FindCollector(name), nullptr) << name;
  }
}

TEST(CollectorTable, HintsAtTheNameThatWasMeant) {
  EXPECT_EQ(CollectorHint("host-cpu"), "; did you mean host_cpu?");
  EXPECT_EQ(CollectorHint("gpu"), "");
}

TEST(CollectorTable, NamesAreTheFoldersThatBuildCollectors) {
  std::set<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator("collectors")) {
    std::string name = entry.path().filename();
    if (std::filesystem::exists(entry.path() / (name + "_collector.cc"))) folders.insert(name);
  }
  std::set<std::string> names;
  for (const CollectorEntry& entry : Collectors()) names.emplace(entry.spec->name);
  EXPECT_EQ(names, folders);
}

// A channel has one user for each device. Those of the tasks are the application's own profiler's, and so are those that
// count on the AI Cores: sampling them would take them from an aclprof session with aic_metrics (in-application 8.5).
TEST(CollectorTable, ChannelsOfTheApplicationAreLeftToIt) {
  const std::set<uint32_t> left = {
      abi::kChannelAicore,           abi::kChannelTsfw,          abi::kChannelHwtsLog,       abi::kChannelTsfwL2,
      abi::kChannelHwtsLog1,         abi::kChannelTsfw1,         abi::kChannelStarsSocLog,   abi::kChannelStarsBlockLog,
      abi::kChannelFftsProfileTask,  abi::kChannelFftsProfileSample, abi::kChannelAiv,       abi::kChannelAicpu,
      abi::kChannelCusAicpu,         abi::kChannelAdprof,        abi::kChannelStarsNanoProfile, abi::kChannelNtsTask,
      abi::kChannelNtsPmu};
  size_t planned = 0;
  for (const CollectorEntry& entry : Collectors()) {
    if (entry.spec->source != CollectorSource::kChannel) continue;
    for (const int chip : {0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16}) {
      ChannelOptions options;
      options.hz = 10;
      for (const ChannelRequest& request : entry.plan(testing::MakeDevice(chip), options)) {
        ++planned;
        EXPECT_FALSE(left.contains(request.channel)) << entry.spec->name << " on chip " << chip;
      }
    }
  }
  EXPECT_GT(planned, 0u);
}

TEST(CollectorTable, EveryEntryHasTheFunctionsOfItsKind) {
  for (const CollectorEntry& entry : Collectors()) {
    SCOPED_TRACE(entry.spec->name);
    bool is_channel = entry.spec->source == CollectorSource::kChannel;
    EXPECT_EQ(entry.plan != nullptr, is_channel);
    EXPECT_EQ(entry.make_decoder != nullptr, is_channel);
    EXPECT_EQ(entry.probe_device != nullptr, is_channel);
    EXPECT_EQ(entry.make_poller != nullptr, !is_channel);
    EXPECT_EQ(entry.probe_host != nullptr, !is_channel);
    EXPECT_FALSE(entry.spec->summary.empty());
    // Without a rate it needs an option that says how it measures.
    EXPECT_TRUE(entry.spec->default_hz > 0 || !OptionKeys(*entry.spec).empty());
    EXPECT_LE(entry.spec->default_hz, entry.spec->max_hz);
    EXPECT_LE(entry.spec->always_on_hz, entry.spec->max_hz);
    EXPECT_TRUE(!is_channel || entry.spec->always_on_hz == 0);
  }
}

// The channels of each collector on a device that lists all of them and with everything asked for.
std::multimap<uint32_t, std::string> ClaimedChannels(int chip_id) {
  DeviceInfo device = testing::MakeDevice(chip_id);
  device.mpam_ids = {1};
  std::multimap<uint32_t, std::string> claimed;
  for (const CollectorEntry& entry : Collectors()) {
    if (entry.plan == nullptr) continue;
    ChannelOptions options;
    SetEverything(*entry.spec, 10, &options);
    for (const ChannelRequest& request : entry.plan(device, options)) {
      claimed.emplace(request.channel, entry.spec->name);
    }
  }
  return claimed;
}

TEST(CollectorTable, EveryChannelBelongsToExactlyOneCollector) {
  std::multimap<uint32_t, std::string> claimed = ClaimedChannels(5);
  for (const abi::ChannelFormat& format : abi::kChannelFormats) {
    EXPECT_EQ(claimed.count(format.id), 1u) << "channel " << format.id << " " << format.name;
  }
  EXPECT_EQ(claimed.size(), abi::kChannelFormats.size());
}

// A collector that is not listed on a device plans nothing there, and its probe gives the reason.
TEST(CollectorTable, WithoutChannelsNothingIsPlannedAndTheProbeNamesTheChip) {
  DeviceInfo device = testing::MakeDevice(1);
  device.mpam_ids = {1};
  device.channels = {2, 5, 43};
  for (const CollectorEntry& entry : Collectors()) {
    if (entry.plan == nullptr) continue;
    SCOPED_TRACE(entry.spec->name);
    ChannelOptions options;
    SetEverything(*entry.spec, 10, &options);
    EXPECT_TRUE(entry.plan(device, options).empty());
    Status status = testing::ProbeWith(entry, 1, device.channels);
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_NE(status.message().find("not supported on Ascend910: no channel"), std::string::npos)
        << status.message();
  }
}

// The driver takes 1 ms when a period is out of 1..1000 (driver-abi 3.2): none may be.
TEST(CollectorTable, PeriodsStayInTheDriversRangeAtAnyRate) {
  DeviceInfo device = testing::MakeDevice(5);
  device.mpam_ids = {1};
  for (double hz : {-1.0, 0.0, 1e-9, 0.5, 1.0, 3.0, 50.0, 99.0, 100.0, 1e9, 1e300}) {
    ChannelOptions options;
    options.hz = hz;
    for (const CollectorEntry& entry : Collectors()) {
      if (entry.plan == nullptr) continue;
      SCOPED_TRACE(entry.spec->name);
      for (const ChannelRequest& request : entry.plan(device, options)) {
        // The task scheduler's channels have no period (driver-abi 3.5).
        EXPECT_EQ(request.task_scheduler_owned, entry.spec->default_hz == 0);
        if (request.task_scheduler_owned) {
          EXPECT_EQ(request.sample_period_ms, 0u);
          continue;
        }
        EXPECT_GE(request.sample_period_ms, 1u);
        EXPECT_LE(request.sample_period_ms, 1000u);
      }
    }
  }
}

}  // namespace
}  // namespace profd
