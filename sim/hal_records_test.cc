// Every channel's bytes, decided to the last one by a clock that stands still (driver-abi 3.6).
#include <algorithm>
#include <map>
#include <set>

#include "driver/abi/channels.h"
#include "sim/emitters.h"
#include "sim/engine_test_support.h"

namespace profd::sim {
namespace {

TEST(HalRecords, HbmRecords) {
  Engine e;
  ASSERT_EQ(e.Start(0, abi::kChannelHbm, 10), 0);
  const int64_t start = e.DeviceNow(0);
  e.AdvanceMs(35);
  const std::string bytes = e.ReadAll(0, abi::kChannelHbm);
  ASSERT_EQ(bytes.size(), 3u * 8 * 24);
  uint64_t read_count = 0;
  for (size_t i = 0; i < 24; ++i) {
    const size_t at = i * 24;
    EXPECT_EQ(At<uint64_t>(bytes, at), (i / 8 + 1) * 10'000);  // us since start, on the grid
    EXPECT_EQ(At<uint32_t>(bytes, at + 16), i % 2);            // read, write
    EXPECT_EQ(At<uint32_t>(bytes, at + 20), i % 8 / 2);        // id
    if (i % 2 == 0) read_count += At<uint64_t>(bytes, at + 8);
  }
  const DeviceModel& model = e.node.model(0);
  const uint64_t moved = model.Total(kHbmRead, e.ScenarioAt(0, start + 30 * kMs)) -
                         model.Total(kHbmRead, e.ScenarioAt(0, start));
  EXPECT_NEAR(static_cast<double>(read_count) * 32, static_cast<double>(moved), 4 * 128);
  EXPECT_GT(read_count, 0u);
}

TEST(HalRecords, LlcRecordsObeyTheAnalysersFormulas) {
  Engine e;
  ASSERT_EQ(e.Start(1, abi::kChannelLlc, 20), 0);
  e.AdvanceMs(20);
  const std::string bytes = e.ReadAll(1, abi::kChannelLlc);
  ASSERT_EQ(bytes.size(), 2u * 8 * 24);  // two slices on 910B
  const uint32_t codes[] = {0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36};
  uint64_t count[8];
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(At<uint64_t>(bytes, i * 24), 20'000u);
    EXPECT_EQ(At<uint32_t>(bytes, i * 24 + 16), codes[i % 8]);
    EXPECT_EQ(At<uint32_t>(bytes, i * 24 + 20), i / 8);
    if (i < 8) count[i] = At<uint64_t>(bytes, i * 24 + 8);
  }
  const double hits = static_cast<double>(count[2] + count[3] + count[5] + count[7]);
  const double hit_rate = hits / static_cast<double>(count[4] + count[6]);
  EXPECT_GT(hit_rate, 0.3);
  EXPECT_LE(hit_rate, 1.0);
  EXPECT_GT(count[0] + count[1], 0u);
}

TEST(HalRecords, DdrOnlyOn910) {
  Engine b;
  EXPECT_EQ(b.Start(0, abi::kChannelDdr, 10), abi::kProfError);
  Engine e("chip = \"910\"");
  ASSERT_EQ(e.Start(0, abi::kChannelDdr, 10), 0);
  e.AdvanceMs(20);
  const std::string bytes = e.ReadAll(0, abi::kChannelDdr);
  ASSERT_EQ(bytes.size(), 2u * 2 * 20);
  EXPECT_EQ(At<uint32_t>(bytes, 0), 10'000u);
  EXPECT_EQ(At<uint32_t>(bytes, 40), 20'000u);
  EXPECT_EQ(At<uint32_t>(bytes, 8), 0u);
  EXPECT_EQ(At<uint32_t>(bytes, 28), 1u);
  EXPECT_EQ(At<uint32_t>(bytes, 16), abi::kAllMasters);
}

TEST(HalRecords, HccsText) {
  Engine e;
  ASSERT_EQ(e.Start(0, abi::kChannelHccs, 20), 0);
  const int64_t start = e.DeviceNow(0);
  std::string text = e.ReadAll(0, abi::kChannelHccs);
  EXPECT_EQ(text, abi::kHccsHeader);  // at once, and never again
  text.clear();
  for (int i = 0; i < 50; ++i) {
    e.AdvanceMs(20);
    text += e.ReadAll(0, abi::kChannelHccs, 11);
  }
  const std::vector<std::string> lines = Lines(text);
  ASSERT_EQ(lines.size(), 50u);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string> words = Words(lines[i]);
    ASSERT_EQ(words.size(), 3u) << lines[i];
    const int64_t timestamp = TimestampNs(words[0]);
    EXPECT_EQ(timestamp, start + static_cast<int64_t>(i + 1) * 20 * kMs);
    const int64_t t = e.ScenarioAt(0, timestamp);
    EXPECT_EQ(std::stoull(words[1]), e.node.model(0).HccsTx(t));
    EXPECT_EQ(std::stoull(words[2]), e.node.model(0).HccsRx(t));
  }
}

TEST(HalRecords, NetAndDvppText) {
  Engine e;
  for (unsigned channel : {4u, 129u, 6u, 137u}) ASSERT_EQ(e.Start(2, channel, 10), 0) << channel;
  e.AdvanceMs(10);
  const int64_t t = e.ScenarioAt(2, e.DeviceNow(2));
  for (unsigned channel : {4u, 129u}) {
    const std::vector<std::string> lines = Lines(e.ReadAll(2, channel));
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_NE(lines[0].find("rxPacket/s"), std::string::npos);
    const std::vector<std::string> words = Words(lines[1]);
    ASSERT_EQ(words.size(), 15u) << lines[1];
    EXPECT_EQ(words[1], "200000");
    EXPECT_LE(std::stoull(words[5]), e.node.model(2).MacRx(t));
    EXPECT_GE(std::stoull(words[5]), e.node.model(2).Total(kRoceRx, t - 11 * kMs));
  }
  const std::vector<std::string> all = Lines(e.ReadAll(2, 6));
  ASSERT_EQ(all.size(), 1u + 7 * 2);
  EXPECT_NE(all[0].find("dvpp_id engine_type"), std::string::npos);
  std::set<std::string> types;
  for (size_t i = 1; i < all.size(); ++i) {
    const std::vector<std::string> words = Words(all[i]);
    ASSERT_EQ(words.size(), 12u) << all[i];
    EXPECT_TRUE(words[6].ends_with("%") && words[9].ends_with("%")) << all[i];
    types.insert(words[2]);
  }
  EXPECT_EQ(types.size(), 7u);
  const std::vector<std::string> vdec = Lines(e.ReadAll(2, 137));
  ASSERT_EQ(vdec.size(), 3u);
  EXPECT_EQ(Words(vdec[1])[2], "0");
}

TEST(HalRecords, PcieRecords) {
  Engine e;
  ASSERT_EQ(e.Start(3, abi::kChannelPcie, 20), 0);
  const int64_t start = e.DeviceNow(3);
  for (int i = 0; i < 40; ++i) e.AdvanceMs(20);
  const std::string bytes = e.ReadAll(3, abi::kChannelPcie);
  ASSERT_EQ(bytes.size(), 40u * 96);
  for (size_t i = 0; i < 40; ++i) {
    const size_t at = i * 96;
    EXPECT_EQ(At<uint64_t>(bytes, at), static_cast<uint64_t>(start) + (i + 1) * 20 * kMs);
    EXPECT_EQ(At<uint32_t>(bytes, at + 8), 3u);
    for (size_t group = 0; group < 7; ++group) {
      const auto low = At<uint32_t>(bytes, at + 12 + group * 12);
      const auto high = At<uint32_t>(bytes, at + 16 + group * 12);
      const auto average = At<uint32_t>(bytes, at + 20 + group * 12);
      EXPECT_LE(low, average);
      EXPECT_LE(average, high);
      if (group != 3) {
        EXPECT_LE(high, 63'000u);  // B/us of gen5 x16
      }
    }
  }
}

TEST(HalRecords, MemoryRecords) {
  Engine e;
  for (unsigned channel : {130u, 131u, 142u}) ASSERT_EQ(e.Start(0, channel, 50), 0);
  const int64_t start = e.DeviceNow(0);
  e.AdvanceMs(50);
  const int64_t t = e.ScenarioAt(0, start + 50 * kMs);
  const std::string app = e.ReadAll(0, 130);
  const std::string device = e.ReadAll(0, 131);
  const std::string modules = e.ReadAll(0, 142);
  ASSERT_EQ(app.size(), 32u);
  ASSERT_EQ(device.size(), 32u);
  EXPECT_EQ(At<uint32_t>(device, 0), 50'000u);
  EXPECT_EQ(At<uint32_t>(app, 4), 0u);
  EXPECT_EQ(At<uint32_t>(device, 4), 1u);
  EXPECT_EQ(At<uint64_t>(device, 24), e.node.model(0).HbmUsedBytes(t));
  EXPECT_LT(At<uint64_t>(app, 24), At<uint64_t>(device, 24));
  ASSERT_EQ(modules.size(), 24 * ModuleTable().size());
  uint64_t sum = 0;
  for (size_t i = 0; i < ModuleTable().size(); ++i) {
    EXPECT_EQ(At<uint32_t>(modules, i * 24), ModuleTable()[i].id);
    EXPECT_EQ(At<uint64_t>(modules, i * 24 + 8), e.node.device_clock(0).Counter(start + 50 * kMs));
    sum += At<uint64_t>(modules, i * 24 + 16);
  }
  EXPECT_EQ(sum, At<uint64_t>(device, 24));
}

struct LpEntry {
  uint64_t counter;
  uint32_t value;
};
std::map<uint32_t, std::vector<LpEntry>> DecodeLp(const std::string& bytes) {
  std::map<uint32_t, std::vector<LpEntry>> by_type;
  EXPECT_EQ(bytes.size() % 888, 0u);
  for (size_t at = 0; at + 888 <= bytes.size(); at += 888) {
    const auto count = At<uint32_t>(bytes, at);
    EXPECT_LE(count, 55u);
    for (size_t i = 0; i < std::min(count, 55u); ++i) {
      by_type[At<uint32_t>(bytes, at + 4)].push_back(
          {At<uint64_t>(bytes, at + 8 + i * 16), At<uint32_t>(bytes, at + 16 + i * 16)});
    }
  }
  return by_type;
}

TEST(HalRecords, LpReportsEveryChangeOnce) {
  Engine e(R"(
[[fault]]
kind = "throttle"
at = 5
for = 2
device = 0
mhz = 800
)");
  ASSERT_EQ(e.Start(0, abi::kChannelLp, 0), 0);
  const int64_t t0 = e.ScenarioAt(0, e.DeviceNow(0));
  for (int i = 0; i < 120; ++i) e.AdvanceMs(1000);
  const auto by_type = DecodeLp(e.ReadAll(0, abi::kChannelLp));
  ASSERT_EQ(by_type.size(), 3u);
  // The last report covers whole periods only.
  std::vector<FreqEvent> expected = e.node.model(0).FreqEvents(t0, t0 + 120'000 * kMs);
  const std::vector<LpEntry>& freq = by_type.at(0);
  ASSERT_EQ(freq.size(), 1 + expected.size());
  EXPECT_EQ(freq[0].value, e.node.model(0).AicoreMhz(t0));
  bool saw_throttle = false;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(freq[i + 1].value, expected[i].mhz);
    const int64_t device_ns = e.node.device_clock(0).FromHost(expected[i].t_ns);
    const uint64_t counter = e.node.device_clock(0).Counter(device_ns);
    EXPECT_LE(std::abs(static_cast<int64_t>(freq[i + 1].counter - counter)), 50);  // 1 us
    saw_throttle = saw_throttle || expected[i].mhz == 800;
  }
  EXPECT_TRUE(saw_throttle);
  // Each with a history of its own, which continues where it was.
  EXPECT_EQ(by_type.at(1).size(), freq.size());
  EXPECT_GT(by_type.at(1)[1].counter, freq[1].counter);
  ASSERT_EQ(by_type.at(2).size(), 3u);  // lower while throttled
  EXPECT_LT(by_type.at(2)[1].value, by_type.at(2)[0].value);
  EXPECT_EQ(by_type.at(2)[2].value, by_type.at(2)[0].value);
  for (const auto& [type, entries] : by_type) {
    EXPECT_TRUE(std::ranges::is_sorted(entries, {}, &LpEntry::counter)) << type;
  }
  Engine old("chip = \"910\"");
  ASSERT_EQ(old.Start(0, abi::kChannelLp, 0), 0);
  for (int i = 0; i < 60; ++i) old.AdvanceMs(1000);
  const auto old_types = DecodeLp(old.ReadAll(0, abi::kChannelLp));
  ASSERT_EQ(old_types.size(), 1u);
  EXPECT_EQ(old_types.count(0), 1u);
}

TEST(HalRecords, QosRecords) {
  Engine e;
  ASSERT_EQ(e.Start(0, abi::kChannelQos, 100), 0);
  const int64_t start = e.DeviceNow(0);
  e.AdvanceMs(100);
  const std::string bytes = e.ReadAll(0, abi::kChannelQos);
  ASSERT_EQ(bytes.size(), 64u);
  EXPECT_EQ(At<uint64_t>(bytes, 16), e.node.device_clock(0).Counter(start + 100 * kMs));
  EXPECT_GT(At<uint32_t>(bytes, 28), 0u);  // stream 13: HBM reads
  for (size_t slot = 2; slot < 10; ++slot) EXPECT_EQ(At<uint32_t>(bytes, 24 + slot * 4), 0u);
  StartPara unknown(abi::kChannelQos, 100);
  unknown.Set(abi::QosProfileConfig{100, 1, 0, {99}});
  EXPECT_EQ(e.engine.Start(1, abi::kChannelQos, unknown.get()), abi::kProfError);
}

// 96 bytes an AI Core's record, 64 an AI Vector core's; the period is in cycles.
TEST(HalRecords, InstrRecords) {
  Engine e;
  ASSERT_EQ(e.Start(0, abi::InstrChannel(0, 0), 0), 0);
  ASSERT_EQ(e.Start(0, abi::InstrChannel(24, 2), 0), 0);
  const int64_t start = e.DeviceNow(0);
  e.AdvanceMs(50);
  const std::string cube = e.ReadAll(0, abi::InstrChannel(0, 0));
  const std::string vector = e.ReadAll(0, abi::InstrChannel(24, 2));
  ASSERT_EQ(cube.size(), 5u * 96);
  ASSERT_EQ(vector.size(), 5u * 64);
  // An AI Core's record is two blocks by turns of 8 bytes: the time is at 22 of the first one, its cube cycles are 12
  // bits at 24 of the other, of a period of 1000.
  EXPECT_EQ(At<uint16_t>(cube, 96 + 70) | uint64_t{At<uint32_t>(cube, 96 + 80)} << 16 |
                uint64_t{At<uint16_t>(cube, 96 + 84)} << 48,
            e.node.device_clock(0).Counter(start + 20 * kMs));
  const DeviceModel& model = e.node.model(0);
  const uint64_t busy_ns = model.Total(kCubeBusy, e.ScenarioAt(0, start + 20 * kMs)) -
                           model.Total(kCubeBusy, e.ScenarioAt(0, start + 10 * kMs));
  EXPECT_NEAR((At<uint16_t>(cube, 96 + 43) - At<uint16_t>(cube, 43)) & 0xFFF, static_cast<double>(busy_ns) / 10'000, 1);
  // Of an AI Vector core the time begins at bit 84.
  const uint64_t time = e.node.device_clock(0).Counter(start + 10 * kMs);
  EXPECT_EQ(At<uint32_t>(vector, 42) >> 4 & 0xFFF, time & 0xFFF);
  EXPECT_EQ(At<uint32_t>(vector, 44) & 0xFFF, time >> 12 & 0xFFF);
  for (uint32_t period : {299u, 30001u}) {
    StartPara wrong(abi::InstrChannel(1, 1), 0);
    wrong.Set(abi::InstrProfileCfg{period, 0});
    EXPECT_EQ(e.engine.Start(0, abi::InstrChannel(1, 1), wrong.get()), abi::kProfError) << period;
  }
  StartPara peripheral(abi::InstrChannel(1, 1), 0);
  peripheral.get()->channel_type = abi::kProfPeripheralType;
  EXPECT_EQ(e.engine.Start(0, abi::InstrChannel(1, 1), peripheral.get()), abi::kProfError);
}

TEST(HalRecords, SocProfileRespectsItsSwitches) {
  for (const char* chip : {"910B", "A3"}) {
    Engine e("chip = \"" + std::string(chip) + "\"\ndevices = 2");
    StartPara para(abi::kChannelStarsSocProfile, 0);
    para.Set(abi::SocProfileCfg{{1, 20}, {abi::kSwitchDisable, 20}, {1, 10}, {0, 10}, {}, {}, {}});
    ASSERT_EQ(e.engine.Start(0, abi::kChannelStarsSocProfile, para.get()), 0);
    ASSERT_EQ(e.Start(1, abi::kChannelStarsSocProfile, 10), 0);
    for (int i = 0; i < 60; ++i) e.AdvanceMs(10);
    std::map<unsigned, int> seen;
    const std::string bytes = e.ReadAll(0, abi::kChannelStarsSocProfile);
    ASSERT_EQ(bytes.size() % 64, 0u);
    uint64_t sio = 0, last = 0;
    for (size_t at = 0; at < bytes.size(); at += 64) {
      const auto head = At<uint16_t>(bytes, at);
      EXPECT_EQ(At<uint16_t>(bytes, at + 2), abi::kSocProfileMagic);
      EXPECT_EQ((head >> 6) & 0xF, at / 64 % 16);  // running count
      EXPECT_GE(At<uint64_t>(bytes, at + 8), last);
      last = At<uint64_t>(bytes, at + 8);
      ++seen[head & 0x3F];
      if ((head & 0x3F) != 0b011001) continue;
      EXPECT_LT(At<uint16_t>(bytes, at + 18), 2);
      for (size_t word = 3; word < 11; ++word) sio += At<uint32_t>(bytes, at + 20 + word * 4);
    }
    EXPECT_EQ(seen[0b011001], 60 * 2);
    EXPECT_EQ(seen[0b011010], 30 * 4);
    EXPECT_EQ(seen.size(), 2u);  // no levels, no chip trans
    EXPECT_EQ(sio > 0, chip == std::string("A3"));
    std::set<unsigned> types;
    std::set<unsigned> kinds;
    const std::string rest = e.ReadAll(1, abi::kChannelStarsSocProfile);
    for (size_t at = 0; at < rest.size(); at += 64) {
      types.insert(At<uint16_t>(rest, at) & 0x3F);
      if ((At<uint16_t>(rest, at) & 0x3F) == 0b011011) kinds.insert(At<uint16_t>(rest, at) >> 10);
    }
    EXPECT_EQ(types, (std::set<unsigned>{0b011001, 0b011010, 0b011011, 0b011100}));
    EXPECT_EQ(kinds, (std::set<unsigned>{0b111111, 0b100010}));
  }
}

}  // namespace
}  // namespace profd::sim
