// The channel engine on a clock that stands still until told: every byte of every channel is
// decided here.
#include "sim/hal_engine.h"

#include <gtest/gtest.h>

#include <set>

#include "driver/abi/channels.h"
#include "sim/emitters.h"
#include "sim/test_support.h"

namespace profd::sim {
namespace {

constexpr int64_t kMs = 1'000'000;

class Engine {
 public:
  explicit Engine(const std::string& toml = "")
      : node(ParseScenario(toml).value(), clock, /*epoch_raw_ns=*/0), engine(node) {}
  int Start(unsigned device, unsigned channel, uint32_t period_ms) {
    StartPara para(channel, period_ms);
    return engine.Start(device, channel, para.get());
  }
  std::string ReadAll(unsigned device, unsigned channel, unsigned piece = 4096) {
    std::string all;
    std::string buffer(piece, '\0');
    for (int n; (n = engine.Read(device, channel, buffer.data(), piece)) > 0;) {
      EXPECT_LE(n, static_cast<int>(piece));
      all.append(buffer, 0, static_cast<size_t>(n));
    }
    return all;
  }
  int64_t DeviceNow(unsigned device) {
    return node.device_clock(device).FromHost(clock.MonotonicRawNs());
  }
  int64_t ScenarioAt(unsigned device, int64_t device_ns) {
    return node.ToScenario(node.device_clock(device).ToHost(device_ns));
  }
  // Moves the device's clock on by `ms`; the host's drifts against it, so go a hair further.
  void AdvanceMs(int64_t ms) { clock.Advance(ms * kMs + 5 * kMs / 1000 * ms / 1000 + 100); }

  ManualClock clock;
  Node node;
  HalEngine engine;
};

TEST(HalEngine, HbmRecords) {
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

TEST(HalEngine, LlcRecordsObeyTheAnalysersFormulas) {
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

TEST(HalEngine, DdrOnlyOn910) {
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

TEST(HalEngine, HccsText) {
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
    const int64_t stamp = StampNs(words[0]);
    EXPECT_EQ(stamp, start + static_cast<int64_t>(i + 1) * 20 * kMs);
    const int64_t t = e.ScenarioAt(0, stamp);
    EXPECT_EQ(std::stoull(words[1]), e.node.model(0).HccsTx(t));
    EXPECT_EQ(std::stoull(words[2]), e.node.model(0).HccsRx(t));
  }
}

TEST(HalEngine, NetAndDvppText) {
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

TEST(HalEngine, PcieRecords) {
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

TEST(HalEngine, MemoryRecords) {
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

TEST(HalEngine, LpReportsEveryChangeOnce) {
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
  EXPECT_EQ(by_type.at(1).size(), freq.size());
  EXPECT_EQ(by_type.at(2).size(), 1u);
  Engine old("chip = \"910\"");
  ASSERT_EQ(old.Start(0, abi::kChannelLp, 0), 0);
  for (int i = 0; i < 60; ++i) old.AdvanceMs(1000);
  const auto old_types = DecodeLp(old.ReadAll(0, abi::kChannelLp));
  ASSERT_EQ(old_types.size(), 1u);
  EXPECT_EQ(old_types.count(0), 1u);
}

TEST(HalEngine, QosRecords) {
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

TEST(HalEngine, SocProfileRespectsItsSwitches) {
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
  EXPECT_EQ(e.engine.Poll(&info, 1, 0), 1);  // told once
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

TEST(HalEngine, RingIsBoundedWhenNobodyReads) {
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
