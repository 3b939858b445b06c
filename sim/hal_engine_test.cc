// The channel engine's promises: codes, order, bounds, faults (driver-abi 1.4, 1.8, 9).
#include "sim/hal_engine.h"

#include <map>
#include <set>

#include "driver/abi/channels.h"
#include "sim/engine_test_support.h"

namespace profd::sim {
namespace {

// Same seed, same device time: the same bytes, however they are read.
TEST(HalEngine, Deterministic) {
  Engine a("seed = 4"), b("seed = 4"), other("seed = 5");
  for (Engine* e : {&a, &b, &other}) {
    for (const abi::ChannelFormat& format : abi::kChannelFormats) {
      if (format.id != abi::kChannelDdr) {
        ASSERT_EQ(e->Start(1, format.id, 10), 0) << format.name;
      }
    }
  }
  std::map<unsigned, std::string> from_b;
  for (int i = 0; i < 100; ++i) {
    for (Engine* e : {&a, &b, &other}) e->AdvanceMs(13);
    for (const abi::ChannelFormat& format : abi::kChannelFormats) {
      if (format.id != abi::kChannelDdr) from_b[format.id] += b.ReadAll(1, format.id, 37);
    }
  }
  int different = 0;
  for (const auto& [channel, bytes] : from_b) {
    EXPECT_EQ(a.ReadAll(1, channel), bytes) << channel;
    different += other.ReadAll(1, channel) != bytes;
    EXPECT_GT(bytes.size(), 0u) << channel;
  }
  EXPECT_GT(different, 10);
}

TEST(HalEngine, ReturnCodes) {
  Engine e;
  char buffer[64];
  StartPara hccs(abi::kChannelHccs, 10);
  EXPECT_EQ(e.engine.Start(8, abi::kChannelHccs, hccs.get()), abi::kProfError);
  EXPECT_EQ(e.engine.Start(0, abi::kChannelAicore, hccs.get()), abi::kProfError);  // not on 910B
  EXPECT_EQ(e.engine.Start(0, 0, hccs.get()), abi::kProfError);
  EXPECT_EQ(e.engine.Start(0, 160, hccs.get()), abi::kProfError);
  EXPECT_EQ(e.engine.Start(0, abi::kChannelHccs, nullptr), abi::kProfError);
  EXPECT_EQ(e.engine.Stop(0, abi::kChannelHccs), abi::kProfStoppedAlready);
  EXPECT_EQ(e.engine.Read(0, abi::kChannelHccs, buffer, 64), abi::kProfStoppedAlready);
  EXPECT_EQ(e.engine.Start(0, abi::kChannelHccs, hccs.get()), abi::kProfOk);
  EXPECT_EQ(e.engine.Start(0, abi::kChannelHccs, hccs.get()), abi::kProfStartedAlready);
  EXPECT_EQ(e.engine.Read(0, abi::kChannelHccs, nullptr, 64), abi::kProfError);
  EXPECT_EQ(e.engine.Read(0, abi::kChannelHccs, buffer, 0), abi::kProfError);
  EXPECT_EQ(e.engine.Stop(0, abi::kChannelHccs), abi::kProfOk);
  EXPECT_EQ(e.engine.Stop(0, abi::kChannelHccs), abi::kProfStoppedAlready);
  abi::ProfPollInfo info;
  EXPECT_EQ(e.engine.Poll(nullptr, 1, 0), abi::kProfError);
  EXPECT_EQ(e.engine.Poll(&info, 0, 0), abi::kProfError);
  // Channels without data can be started and stay silent.
  StartPara silent(abi::kChannelTsfw, 10);
  silent.Resize(36);
  EXPECT_EQ(e.engine.Start(0, abi::kChannelTsfw, silent.get()), abi::kProfOk);
  e.AdvanceMs(1000);
  EXPECT_EQ(e.engine.Read(0, abi::kChannelTsfw, buffer, 64), 0);
}

TEST(HalEngine, UserDataIsValidated) {
  Engine e;
  for (unsigned channel : {1u, 8u, 52u, 130u, 131u, 132u, 133u, 142u}) {
    StartPara longer(channel, 10);
    const size_t size = longer.get()->user_data_size;
    ASSERT_GT(size, 0u);
    EXPECT_EQ(e.engine.Start(0, channel, longer.Resize(size + 1).get()), abi::kProfError);
    StartPara shorter(channel, 10);
    EXPECT_EQ(e.engine.Start(0, channel, shorter.Resize(size - 1).get()), abi::kProfError);
    StartPara none(channel, 10);
    EXPECT_EQ(e.engine.Start(0, channel, none.Resize(0).get()), abi::kProfError) << channel;
    StartPara null_with_size(channel, 10);
    null_with_size.get()->user_data = nullptr;
    abi::ProfStartPara raw = *null_with_size.get();
    raw.user_data = nullptr;
    EXPECT_EQ(e.engine.Start(0, channel, &raw), abi::kProfError) << channel;
  }
  for (unsigned channel : {1u, 3u, 4u, 6u, 8u, 9u, 129u, 130u, 131u, 135u, 142u}) {
    for (uint32_t period : {0u, 1001u, 0xFFFFFFFFu}) {
      StartPara bad(channel, 10);
      bad.get()->sample_period = period;
      EXPECT_EQ(e.engine.Start(0, channel, bad.get()), abi::kProfError) << channel;
    }
    StartPara fast(channel, 1);
    EXPECT_EQ(e.engine.Start(0, channel, fast.get()), abi::kProfOk) << channel;
  }
  StartPara text(abi::kChannelHccs, 10);
  EXPECT_EQ(e.engine.Start(1, abi::kChannelHccs, text.Resize(4).get()), abi::kProfError);
  StartPara event(abi::kChannelHbm, 10);
  EXPECT_EQ(e.engine.Start(1, abi::kChannelHbm,
                           event.Set(abi::MemEventCfg{10, abi::kAllMasters, 3, {0, 1}}).get()),
            abi::kProfError);
  EXPECT_EQ(e.engine.Start(1, abi::kChannelHbm,
                           event.Set(abi::MemEventCfg{10, abi::kAllMasters, 2, {0, 7}}).get()),
            abi::kProfError);
  // Some callers hand over period 0 in channels 52 and 133 (driver-abi 4.2).
  EXPECT_EQ(e.Start(1, abi::kChannelStarsSocProfile, 0), abi::kProfOk);
  EXPECT_EQ(e.Start(1, abi::kChannelQos, 0), abi::kProfOk);
}

TEST(HalEngine, StopLeavesAResidueUntilDrainedOrRestarted) {
  Engine e;
  ASSERT_EQ(e.Start(0, abi::kChannelHbm, 10), 0);
  e.AdvanceMs(30);
  ASSERT_EQ(e.engine.Stop(0, abi::kChannelHbm), 0);
  e.AdvanceMs(500);
  abi::ProfPollInfo info;
  EXPECT_EQ(e.engine.Poll(&info, 1, 0), 1);  // reported once
  EXPECT_EQ(info.channel_id, 1u);
  EXPECT_EQ(e.engine.Poll(&info, 1, 0), abi::kProfStoppedAlready);
  EXPECT_EQ(e.ReadAll(0, abi::kChannelHbm).size(), 3u * 8 * 24);  // nothing after the stop
  char buffer[8];
  EXPECT_EQ(e.engine.Read(0, abi::kChannelHbm, buffer, 8), abi::kProfStoppedAlready);
  ASSERT_EQ(e.Start(0, abi::kChannelHbm, 10), 0);
  e.AdvanceMs(10);
  ASSERT_EQ(e.engine.Stop(0, abi::kChannelHbm), 0);
  ASSERT_EQ(e.Start(0, abi::kChannelHbm, 10), 0);
  EXPECT_EQ(e.engine.Read(0, abi::kChannelHbm, buffer, 8), 0);
  e.AdvanceMs(10);
  EXPECT_EQ(At<uint64_t>(e.ReadAll(0, abi::kChannelHbm), 0), 10'000u);  // counts from this start
}

TEST(HalEngine, RingIsBoundedWithoutAReader) {
  Engine e;
  ASSERT_EQ(e.Start(0, abi::kChannelPcie, 1), 0);
  ASSERT_EQ(e.Start(0, abi::kChannelHccs, 1), 0);
  const int64_t start = e.DeviceNow(0);
  e.AdvanceMs(24 * 3'600'000);
  const std::string bytes = e.ReadAll(0, abi::kChannelPcie, 1 << 16);
  EXPECT_LE(bytes.size(), RecordRing::kCapacity);
  EXPECT_GT(bytes.size(), RecordRing::kCapacity - 96);
  ASSERT_EQ(bytes.size() % 96, 0u);
  EXPECT_GT(e.engine.DroppedBytesForTest(0, abi::kChannelPcie), 86'000'000u * 96);
  const auto newest = static_cast<int64_t>(At<uint64_t>(bytes, bytes.size() - 96));
  EXPECT_EQ((newest - start) % kMs, 0);
  EXPECT_LT(e.DeviceNow(0) - newest, 2 * kMs);
  const std::vector<std::string> lines = Lines(e.ReadAll(0, abi::kChannelHccs, 1 << 16));
  EXPECT_GT(lines.size(), 10'000u);
}

TEST(HalEngine, ChannelLists) {
  struct Case {
    const char* toml;
    uint32_t chip_type;
    std::set<unsigned> present, absent;
  };
  const Case cases[] = {
      {"",
       5,
       {1, 3, 4, 6, 8, 9, 11, 42, 44, 47, 50, 52, 84, 86, 98, 129, 142},
       {2, 5, 7, 43, 45, 51, 85, 99, 128, 143}},
      {"chip = \"A3\"", 5, {1, 9, 52, 132, 133}, {7, 43}},
      {"chip = \"910\"", 1, {1, 3, 4, 6, 7, 8, 9, 10, 43, 47, 129, 132, 142}, {2, 5, 11, 52, 143}},
  };
  for (const Case& c : cases) {
    Engine e(c.toml);
    abi::ChannelList list;
    memset(&list, 0xAA, sizeof list);
    ASSERT_EQ(e.engine.GetChannels(0, &list), 0);
    EXPECT_EQ(list.chip_type, c.chip_type);
    std::set<unsigned> ids;
    ASSERT_LE(list.channel_num, abi::kMaxChannels);
    for (unsigned i = 0; i < list.channel_num; ++i) {
      ids.insert(list.channel[i].channel_id);
      EXPECT_NE(list.channel[i].channel_name[0], '\0');
      EXPECT_EQ(list.channel[i].channel_type, 1u);
    }
    EXPECT_EQ(ids.size(), list.channel_num);
    for (unsigned id : c.present) EXPECT_EQ(ids.count(id), 1u) << c.toml << id;
    for (unsigned id : c.absent) EXPECT_EQ(ids.count(id), 0u) << c.toml << id;
  }
  Engine e;
  abi::ChannelList list;
  EXPECT_EQ(e.engine.GetChannels(8, &list), abi::kProfError);
  EXPECT_EQ(e.engine.GetChannels(0, nullptr), abi::kProfError);
}

TEST(HalEngine, PollIsFairAndBounded) {
  Engine e;
  for (unsigned device = 0; device < 4; ++device) {
    ASSERT_EQ(e.Start(device, abi::kChannelHbm, 10), 0);
    ASSERT_EQ(e.Start(device, abi::kChannelPcie, 10), 0);
  }
  e.AdvanceMs(10);
  std::map<std::pair<unsigned, unsigned>, int> hits;
  for (int i = 0; i < 8; ++i) {
    abi::ProfPollInfo info[3];
    memset(info, 0xFF, sizeof info);
    ASSERT_EQ(e.engine.Poll(info, 2, 0), 2);
    EXPECT_EQ(info[2].device_id, 0xFFFFFFFF);  // never more than asked for
    for (int k = 0; k < 2; ++k) ++hits[{info[k].device_id, info[k].channel_id}];
  }
  EXPECT_EQ(hits.size(), 8u);
  for (const auto& [channel, count] : hits) EXPECT_EQ(count, 2);
}

TEST(HalEngine, Flush) {
  Engine e;
  unsigned length = 77;
  EXPECT_EQ(e.engine.Flush(0, abi::kChannelHccs, &length), abi::kDrvErrorNotSupport);
  EXPECT_EQ(e.engine.Flush(0, abi::kChannelNpuMem, &length), abi::kProfStoppedAlready);
  EXPECT_EQ(length, 77u);
  ASSERT_EQ(e.Start(0, abi::kChannelNpuMem, 10), 0);
  e.AdvanceMs(25);
  EXPECT_EQ(e.engine.Flush(0, abi::kChannelNpuMem, &length), 0);
  EXPECT_EQ(length, 64u);
  EXPECT_EQ(e.ReadAll(0, abi::kChannelNpuMem).size(), 64u);
}

TEST(HalEngine, ShortReadsCutRecords) {
  Engine e("[[fault]]\nkind = \"short_read\"\nchannel = \"pcie\"\nbytes = 7");
  ASSERT_EQ(e.Start(0, abi::kChannelPcie, 10), 0);
  ASSERT_EQ(e.Start(0, abi::kChannelHbm, 10), 0);
  e.AdvanceMs(10);
  char buffer[4096];
  EXPECT_EQ(e.engine.Read(0, abi::kChannelPcie, buffer, sizeof buffer), 7);
  EXPECT_EQ(e.ReadAll(0, abi::kChannelPcie).size(), 96u - 7);
  EXPECT_EQ(e.engine.Read(0, abi::kChannelHbm, buffer, sizeof buffer), 192);
}

TEST(HalEngine, GarbageHitsOnlyItsChannel) {
  Engine clean;
  Engine flip("[[fault]]\nkind = \"garbage\"\nchannel = \"pcie\"\nevery = 4");
  Engine junk("[[fault]]\nkind = \"garbage\"\nchannel = \"pcie\"\nmode = \"junk\"\nevery = 4");
  for (Engine* e : {&clean, &flip, &junk}) {
    ASSERT_EQ(e->Start(0, abi::kChannelPcie, 10), 0);
    ASSERT_EQ(e->Start(0, abi::kChannelHbm, 10), 0);
    e->AdvanceMs(80);
  }
  EXPECT_EQ(clean.ReadAll(0, abi::kChannelHbm), flip.ReadAll(0, abi::kChannelHbm));
  const std::string good = clean.ReadAll(0, abi::kChannelPcie);
  const std::string flipped = flip.ReadAll(0, abi::kChannelPcie);
  ASSERT_EQ(good.size(), flipped.size());
  EXPECT_EQ(good.substr(0, 3 * 96), flipped.substr(0, 3 * 96));
  EXPECT_NE(good.substr(3 * 96, 96), flipped.substr(3 * 96, 96));
  const std::string junked = junk.ReadAll(0, abi::kChannelPcie);
  EXPECT_GT(junked.size(), good.size());
  EXPECT_EQ(good.substr(0, 4 * 96), junked.substr(0, 4 * 96));
}

TEST(HalEngine, FaultsAtStart) {
  Engine e(R"(
[[fault]]
kind = "channel_busy"
device = 0
channel = "hccs"
at = 0
for = 10
[[fault]]
kind = "start_error"
channel = "hbm"
code = 115
)");
  EXPECT_EQ(e.Start(0, abi::kChannelHccs, 10), abi::kProfNotEnoughSubChannel);
  EXPECT_EQ(e.Start(1, abi::kChannelHccs, 10), abi::kProfOk);
  EXPECT_EQ(e.Start(0, abi::kChannelHbm, 10), 115);
  e.AdvanceMs(10'000);
  EXPECT_EQ(e.Start(0, abi::kChannelHccs, 10), abi::kProfOk);
}

TEST(HalEngine, MissingCard) {
  Engine e("[[fault]]\nkind = \"card_drop\"\ndevice = 2\nat = 2\nfor = 3");
  ASSERT_EQ(e.Start(2, abi::kChannelHbm, 10), 0);
  char buffer[8];
  e.AdvanceMs(100);
  EXPECT_EQ(e.engine.Read(2, abi::kChannelHbm, buffer, 8), 8);
  e.AdvanceMs(1'500);
  abi::ProfPollInfo info;
  EXPECT_EQ(e.engine.Poll(&info, 1, 0), 0);
  EXPECT_EQ(e.engine.Read(2, abi::kChannelHbm, buffer, 8), abi::kProfError);
  EXPECT_EQ(e.engine.Stop(2, abi::kChannelHbm), abi::kProfError);
  EXPECT_EQ(e.Start(2, abi::kChannelPcie, 10), abi::kProfError);
  e.AdvanceMs(4'000);
  EXPECT_EQ(e.engine.Poll(&info, 1, 0), 1);
  EXPECT_EQ(e.engine.Read(2, abi::kChannelHbm, buffer, 8), 8);
}

}  // namespace
}  // namespace profd::sim
