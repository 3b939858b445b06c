#include "dump/stream_filter.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

using abi::FindChannelFormat;
using abi::SocProfileType;

struct Hbm {
  uint64_t us;
  uint64_t count;
  uint32_t event;
  uint32_t id;
};
static_assert(sizeof(Hbm) == 24);

struct Ddr {
  uint32_t us;
  uint32_t count;
  uint32_t event;
  uint32_t id;
  uint32_t master;
};
static_assert(sizeof(Ddr) == 20);

struct Soc {
  uint16_t head = 0;
  uint16_t magic = abi::kSocProfileMagic;
  uint32_t pad = 0;
  uint64_t cycles = 0;
  uint16_t reserved = 0;
  uint16_t id = 0;
  uint32_t words[11] = {};
};
static_assert(sizeof(Soc) == 64);

template <class T>
std::span<const std::byte> BytesOf(const std::vector<T>& records) {
  return std::as_bytes(std::span<const T>(records));
}

template <class T>
std::vector<T> RecordsOf(std::span<const std::byte> bytes) {
  std::vector<T> records(bytes.size() / sizeof(T));
  EXPECT_EQ(bytes.size() % sizeof(T), 0u);
  if (!bytes.empty()) std::memcpy(records.data(), bytes.data(), bytes.size());
  return records;
}

// Feeds `records` in blocks of varying size, as the pump would.
template <class T>
std::vector<T> Feed(StreamFilter& filter, const std::vector<T>& records, size_t max_block = 7) {
  std::vector<T> out;
  size_t step = 1;
  for (size_t i = 0; i < records.size();) {
    size_t n = std::min(step, records.size() - i);
    std::vector<T> block(records.begin() + static_cast<ptrdiff_t>(i),
                         records.begin() + static_cast<ptrdiff_t>(i + n));
    auto result = filter.Filter(BytesOf(block), n);
    auto got = RecordsOf<T>(result.bytes);
    EXPECT_EQ(got.size(), result.records);
    out.insert(out.end(), got.begin(), got.end());
    i += n;
    step = step % max_block + 1;
  }
  return out;
}

StreamFilterOptions Options(uint32_t channel, double channel_ms, double session_ms) {
  return {.format = FindChannelFormat(channel), .channel_period_ns = static_cast<int64_t>(channel_ms * 1e6),
          .session_period_ns = static_cast<int64_t>(session_ms * 1e6)};
}

// For every point of the grid from `timestamps[0]` on: the timestamp nearest to it, the earlier one of two.
// The last point is the last one whose nearest timestamp no later timestamp could change.
std::vector<int64_t> NearestOnGrid(const std::vector<int64_t>& timestamps, int64_t period) {
  const int64_t step = timestamps[1] - timestamps[0];
  std::vector<int64_t> kept;
  for (int64_t point = timestamps.front(); point <= timestamps.back() + step / 2; point += period) {
    int64_t best = timestamps.front();
    for (int64_t timestamp : timestamps) {
      if (std::abs(timestamp - point) < std::abs(best - point)) best = timestamp;
    }
    kept.push_back(best);
  }
  return kept;
}

TEST(StreamFilter, PassesEqualRatesThroughUntouched) {
  std::vector<Hbm> records = {{1, 2, 0, 0}, {1, 3, 1, 0}};
  for (uint32_t channel : {1u, 132u}) {
    StreamFilter filter(Options(channel, 20, channel == 132 ? 100 : 20));
    EXPECT_TRUE(filter.verbatim());
    auto block = BytesOf(records);
    StreamFilter::Output out = filter.Filter(block, 2);
    EXPECT_EQ(out.bytes.data(), block.data());  // the same bytes, not equal ones
    EXPECT_EQ(out.bytes.size(), block.size());
    EXPECT_EQ(out.records, 2u);
    EXPECT_EQ(filter.counters().records_out, 2u);
  }
}

class Ratios : public testing::TestWithParam<double> {};

TEST_P(Ratios, PicksTheRecordsNearestTheGrid) {
  const double ratio = GetParam();
  struct Qos {
    uint32_t head[2];
    uint64_t pad;
    uint64_t cycles;
    uint32_t words[10];
  };
  static_assert(sizeof(Qos) == 64);
  std::vector<Qos> qos(500);
  std::vector<int64_t> timestamps;
  std::mt19937 random(7);
  const int64_t period = 10'000'000;
  for (size_t i = 0; i < qos.size(); ++i) {
    // Up to a fifth of a period of jitter; in cycles of 20 ns.
    int64_t ns = static_cast<int64_t>(i) * period +
                 (i == 0 ? 0 : static_cast<int64_t>(random() % 4'000'000) - 2'000'000);
    qos[i].cycles = static_cast<uint64_t>(1'000'000'000 + ns / 20);
    qos[i].words[0] = static_cast<uint32_t>(i);
    timestamps.push_back(ns / 20 * 20);
  }
  StreamFilterOptions options = Options(133, 10, 10 * ratio);
  options.device_counter_hz = 50e6;
  StreamFilter filter(options);
  std::vector<Qos> out = Feed(filter, qos);
  // With jitter two neighbours may be about as near; both the count and every distance must fit.
  double expected = 500.0 / ratio;
  EXPECT_NEAR(static_cast<double>(out.size()), expected, expected * 0.02 + 2);
  int64_t session = options.session_period_ns;
  for (const Qos& record : out) {
    int64_t ns = timestamps[record.words[0]];
    int64_t off = (ns + session / 2) % session - session / 2;
    EXPECT_LE(std::abs(off), period / 2 + 4'000'000) << ratio;
  }
  EXPECT_EQ(filter.counters().thinned + out.size(), 500u);
}

TEST_P(Ratios, MatchesBruteForceOnAnEvenGrid) {
  const double ratio = GetParam();
  struct Mem {
    uint32_t us;
    uint32_t event;
    uint64_t pad, ddr, hbm;
  };
  static_assert(sizeof(Mem) == 32);
  std::vector<Mem> records;
  std::vector<int64_t> timestamps;
  for (uint32_t i = 0; i < 400; ++i) {
    uint32_t us = 5'000 + i * 20'000;
    records.push_back({us, 0, 0, i, 0});
    records.push_back({us, 1, 0, i, 0});
    timestamps.push_back(int64_t{us} * 1000);
  }
  StreamFilterOptions options = Options(131, 20, 20 * ratio);
  StreamFilter filter(options);
  std::vector<int64_t> kept[2];
  for (const Mem& record : Feed(filter, records)) {
    kept[record.event].push_back(int64_t{record.us} * 1000);
  }
  if (options.session_period_ns <= options.channel_period_ns) {
    EXPECT_TRUE(filter.verbatim());
    EXPECT_EQ(kept[0], timestamps);
    return;
  }
  std::vector<int64_t> expected = NearestOnGrid(timestamps, options.session_period_ns);
  EXPECT_EQ(kept[0], expected) << ratio;
  EXPECT_EQ(kept[1], kept[0]);  // series of one instant stay together
}

TEST_P(Ratios, SumsConserveEveryCount) {
  const double ratio = GetParam();
  std::vector<Hbm> records;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> totals;
  std::mt19937_64 random(3);
  for (uint64_t i = 0; i < 300; ++i) {
    for (uint32_t id = 0; id < 4; ++id) {
      for (uint32_t event = 0; event < 2; ++event) {
        records.push_back({i * 20'000, random() % 1'000'000, event, id});
      }
    }
  }
  StreamFilter filter(Options(1, 20, 20 * ratio));
  std::vector<Hbm> out = Feed(filter, records, 29);
  // Brute force: a kept record carries all counts of its series since the kept one before.
  std::map<std::pair<uint32_t, uint32_t>, size_t> next;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> last_us;
  for (const Hbm& kept : out) {
    auto key = std::pair(kept.event, kept.id);
    uint64_t sum = 0;
    for (const Hbm& record : records) {
      if (std::pair(record.event, record.id) != key || record.us > kept.us) continue;
      if (last_us.contains(key) && record.us <= last_us[key]) continue;
      sum += record.count;
    }
    EXPECT_EQ(kept.count, sum);
    last_us[key] = kept.us;
    ++next[key];
  }
  // All eight series have the same instants, in groups of eight.
  ASSERT_EQ(next.size(), 8u);
  for (const auto& [key, count] : next) EXPECT_EQ(count, out.size() / 8);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i].us, out[i / 8 * 8].us);
}

INSTANTIATE_TEST_SUITE_P(All, Ratios,
                         testing::Values(1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 10.0 / 3, 5.0, 7.7, 50.0));

TEST(StreamFilter, JoiningInTheMiddleOfAnInstantKeepsSeriesTogetherAfterwards) {
  std::vector<Hbm> records;
  for (uint64_t i = 0; i < 50; ++i) {
    for (uint32_t s = 0; s < 8; ++s) records.push_back({i * 20'000, 1, s % 2, s / 2});
  }
  records.erase(records.begin(), records.begin() + 5);
  StreamFilter filter(Options(1, 20, 100));
  std::vector<Hbm> out = Feed(filter, records);
  ASSERT_EQ(out.size(), 3u + 9 * 8u);
  for (size_t i = 3; i < out.size(); ++i) {
    EXPECT_EQ(out[i].us, out[3 + (i - 3) / 8 * 8].us);
    EXPECT_EQ(out[i].us % 100'000, 0u);
    EXPECT_EQ(out[i].count, 5u);
  }
}

TEST(StreamFilter, GapsAndClockJumpsDoNotStopTheView) {
  std::vector<Hbm> records;
  auto add = [&](uint64_t us) { records.push_back({us, 1, 0, 0}); };
  for (uint64_t i = 0; i < 20; ++i) add(i * 20'000);
  for (uint64_t i = 0; i < 20; ++i) add(10'000'000 + i * 20'000);  // a gap
  add(3'000'000'000'000);                                          // garbage
  for (uint64_t i = 0; i < 20; ++i) add(11'000'000 + i * 20'000);
  for (uint64_t i = 0; i < 20; ++i) add(i * 20'000);  // begun anew
  StreamFilter filter(Options(1, 20, 100));
  std::vector<Hbm> out = Feed(filter, records);
  EXPECT_NEAR(static_cast<double>(out.size()), 17, 2);
  uint64_t sum = std::accumulate(out.begin(), out.end(), uint64_t{0},
                                 [](uint64_t s, const Hbm& r) { return s + r.count; });
  EXPECT_GE(sum, 76u);
  EXPECT_LE(sum, 81u);
}

TEST(StreamFilter, SumsSaturateAtTheFieldsWidth) {
  std::vector<Ddr> records;
  for (uint32_t i = 0; i < 4; ++i) records.push_back({i * 20'000, 0xC0000000u, 0, 0, ~0u});
  StreamFilter filter(Options(7, 20, 60));
  std::vector<Ddr> out = Feed(filter, records);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].count, 0xC0000000u);
  EXPECT_EQ(out[1].count, 0xFFFFFFFFu);
  EXPECT_EQ(out[1].us, 60'000u);
}

TEST(StreamFilter, MoreSeriesThanAnyChipHasAreNotThinned) {
  std::vector<Hbm> records;
  for (uint32_t i = 0; i < 2000; ++i) records.push_back({i, 1, 0, i});
  StreamFilter filter(Options(1, 20, 100));
  EXPECT_EQ(Feed(filter, records, 100).size() + filter.counters().thinned, 2000u);
  EXPECT_GT(filter.counters().records_out, 1700u);
}

TEST(StreamFilter, RebasesTimestampsAndDropsRecordsOlderThanTheSession) {
  std::vector<Hbm> records = {{100, 7, 0, 0}, {499, 7, 0, 0}, {500, 8, 0, 0}, {900, 9, 1, 3}};
  StreamFilterOptions options = Options(1, 20, 20);
  options.rebase_us = -500;
  StreamFilter filter(options);
  EXPECT_TRUE(filter.rebases());
  EXPECT_FALSE(filter.thins());
  std::vector<Hbm> out = Feed(filter, records);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].us, 0u);
  EXPECT_EQ(out[0].count, 8u);
  EXPECT_EQ(out[1].us, 400u);
  EXPECT_EQ(out[1].id, 3u);
  EXPECT_EQ(filter.counters().before_start, 2u);
  EXPECT_EQ(filter.counters().records_in, 4u);
  EXPECT_EQ(filter.counters().records_out, 2u);
}

TEST(StreamFilter, RebasesForwardToo) {
  StreamFilterOptions options = Options(1, 20, 20);
  options.rebase_us = 30;
  StreamFilter filter(options);
  EXPECT_EQ(Feed(filter, std::vector<Hbm>{{100, 7, 0, 0}})[0].us, 130u);
}

TEST(StreamFilter, ThirtyTwoBitTimestampsAreRebasedAcrossTheirWrap) {
  // The channel has run for 2 h when the session joins: its timestamps have wrapped once already and
  // wrap again during the session.
  const uint64_t age = 7'200'000'000;
  StreamFilterOptions options = Options(7, 20, 20);
  options.rebase_us = -static_cast<int64_t>(age);
  options.channel_age_us = static_cast<int64_t>(age);
  StreamFilter filter(options);
  std::vector<Ddr> records;
  for (uint64_t i = 0; i < 120; ++i) {
    uint64_t us = age - 1'000'000 + i * 60'000'000;
    records.push_back({static_cast<uint32_t>(us), 1, 0, 0, ~0u});
  }
  std::vector<Ddr> out = Feed(filter, records);
  EXPECT_EQ(filter.counters().before_start, 1u);
  ASSERT_EQ(out.size(), 119u);
  for (uint64_t i = 1; i < 120; ++i) {
    EXPECT_EQ(out[i - 1].us, static_cast<uint32_t>(i * 60'000'000 - 1'000'000)) << i;
  }
}

// Nothing disappears that is not counted as thinned: those who read the dump count it as bad.
TEST(StreamFilter, ImpossibleTimestampsAreKeptAsTheyAre) {
  StreamFilterOptions options = Options(1, 20, 100);
  options.rebase_us = 3;
  StreamFilter filter(options);
  std::vector<Hbm> records = {{~0ull, 1, 0, 0}, {5, 1, 0, 0}, {1ull << 63, 1, 0, 0}};
  const std::vector<Hbm> out = Feed(filter, records);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].us, ~0ull);
  EXPECT_EQ(out[1].us, 8u) << "neither the begin of the grid nor the clock of the series";
  EXPECT_EQ(out[2].us, 1ull << 63);
  EXPECT_EQ(filter.counters().thinned, 0u);
  // A cut record (the pump never sends one) is not passed on.
  auto bytes = BytesOf(records).subspan(24, 20);
  EXPECT_EQ(filter.Filter(bytes, 1).bytes.size(), 0u);
  EXPECT_EQ(filter.counters().malformed_bytes, 20u);
}

TEST(StreamFilter, ThinsTextByItsTimestamp) {
  StreamFilter filter(Options(4, 10, 30));
  std::string text = "time bandwidth rxPacket/s\n";
  std::string expected = text;
  for (int i = 0; i < 10; ++i) {
    for (int port = 0; port < 2; ++port) {
      int64_t ns = 1'995'000'000 + i * int64_t{10'000'000};
      std::string line = fmt::format("{}:{:09} 100000 1 2 3 4 5 6 7 8 9 10 11 12 {}\n",
                                     ns / kNsPerSecond, ns % kNsPerSecond, port);
      text += line;
      if (i % 3 == 0) expected += line;
    }
  }
  text += "garbage\n12:999999999999 1 2\n:5 1\n1:-5 2\n";
  StreamFilter::Output out = filter.Filter(AsBytes(text), 24);
  EXPECT_EQ(AsText(out.bytes), expected);
  EXPECT_EQ(out.records, 8u);
  EXPECT_EQ(filter.counters().malformed, 4u);
  EXPECT_EQ(filter.counters().thinned, 12u);
}

// The channels of single DVPP engines: what is no line with a timestamp cannot be thinned.
TEST(StreamFilter, DataOfUnknownFormIsNotThinned) {
  StreamFilter filter(Options(abi::kChannelDvppVenc, 10, 30));
  const StreamFilter::Output out = filter.Filter(AsBytes("1:000000000 a\nx\n\n1:010000000 b\n\x01\x02"), 2);
  EXPECT_EQ(AsText(out.bytes), "1:000000000 a\nx\n\n\x01\x02");
  EXPECT_EQ(out.records, 1u);
  EXPECT_EQ(filter.counters().malformed, 0u);
  EXPECT_EQ(filter.counters().thinned, 1u);
}

// Channel 52 at 20 ms for SIO and chip transfers, 10 ms for SoC levels.
class SocFilter : public testing::Test {
 protected:
  SocFilter() {
    options_.format = FindChannelFormat(52);
    options_.device_counter_hz = 50e6;
    options_.chip_id = abi::kChip910B;
  }
  static Soc Make(SocProfileType type, uint64_t ms, uint16_t id, uint16_t sub_type = 0) {
    Soc record;
    record.head = static_cast<uint16_t>(static_cast<unsigned>(type) | 5u << 6 |
                                        static_cast<unsigned>(sub_type) << 10);
    record.cycles = 777 + ms * 50'000;
    record.id = id;
    return record;
  }
  StreamFilterOptions options_;
};

TEST_F(SocFilter, SumsSioPerDieAndPicksTheRest) {
  options_.Soc(SocProfileType::kSio) = {20'000'000, 100'000'000, true};
  options_.Soc(SocProfileType::kChipTrans) = {20'000'000, 100'000'000, true};
  options_.Soc(SocProfileType::kSocLevels) = {10'000'000, 10'000'000, true};
  options_.Soc(SocProfileType::kAccPmu).wanted = false;
  std::vector<Soc> records;
  for (uint64_t i = 0; i < 51; ++i) {
    for (uint16_t die = 0; die < 2; ++die) {
      Soc sio = Make(SocProfileType::kSio, i * 20, die);
      for (uint32_t w = 0; w < 11; ++w) sio.words[w] = w * 100 + die;
      records.push_back(sio);
    }
    records.push_back(Make(SocProfileType::kChipTrans, i * 20, 3, abi::kChipTransPaLink));
    records.push_back(Make(SocProfileType::kChipTrans, i * 20, 3, abi::kChipTransPcie));
    records.push_back(Make(SocProfileType::kAccPmu, i * 20, 1));
    records.push_back(Make(SocProfileType::kSocLevels, i * 20, 0));
    records.push_back(Make(SocProfileType::kSocLevels, i * 20 + 10, 0));
  }
  StreamFilter filter(options_);
  std::map<int, std::vector<Soc>> by_type;
  for (const Soc& record : Feed(filter, records, 13)) {
    by_type[abi::SocProfileTypeOf(record.head)].push_back(record);
  }
  const auto& sio = by_type[static_cast<int>(SocProfileType::kSio)];
  ASSERT_EQ(sio.size(), 22u);
  for (size_t i = 0; i < sio.size(); ++i) {
    EXPECT_EQ(sio[i].cycles, 777 + i / 2 * 5'000'000);
    for (uint32_t w = 0; w < 11; ++w) {
      uint32_t one = w * 100 + sio[i].id;
      EXPECT_EQ(sio[i].words[w], w >= 3 && i >= 2 ? one * 5 : one) << i << " " << w;
    }
  }
  EXPECT_EQ(by_type[static_cast<int>(SocProfileType::kChipTrans)].size(), 22u);
  EXPECT_EQ(by_type[static_cast<int>(SocProfileType::kSocLevels)].size(), 102u);
  EXPECT_EQ(by_type.count(static_cast<int>(SocProfileType::kAccPmu)), 0u);
}

TEST_F(SocFilter, SioSaturates) {
  options_.Soc(SocProfileType::kSio) = {20'000'000, 40'000'000, true};
  std::vector<Soc> records;
  for (uint64_t i = 0; i < 3; ++i) {
    records.push_back(Make(SocProfileType::kSio, i * 20, 0));
    records.back().words[3] = 0x90000000u;
  }
  StreamFilter filter(options_);
  std::vector<Soc> out = Feed(filter, records);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[1].words[3], 0xFFFFFFFFu);
}

TEST_F(SocFilter, PassesEverythingWhenRatesAreEqual) {
  options_.Soc(SocProfileType::kSio) = {20'000'000, 20'000'000, true};
  EXPECT_TRUE(StreamFilter(options_).verbatim());
}

TEST_F(SocFilter, DropsRecordsWithoutTheMagicWhenItMustLookInside) {
  options_.Soc(SocProfileType::kAccPmu).wanted = false;
  StreamFilter filter(options_);
  std::vector<Soc> records = {Make(SocProfileType::kSio, 0, 0), Make(SocProfileType::kSio, 20, 0)};
  records[0].magic = 0;
  EXPECT_EQ(Feed(filter, records).size(), 1u);
  EXPECT_EQ(filter.counters().malformed, 1u);
}

// Any bytes at all, for every channel: no crash, never more out than in.
TEST(StreamFilter, SurvivesGarbage) {
  std::mt19937_64 random(11);
  for (const abi::ChannelFormat& format : abi::kChannelFormats) {
    StreamFilterOptions options{.format = &format, .channel_period_ns = 10'000'000, .session_period_ns = 35'000'000,
                                .rebase_us = -12345, .device_counter_hz = 50e6};
    for (SocRate& rate : options.soc) rate = {10'000'000, 35'000'000, true};
    StreamFilter filter(options);
    for (int i = 0; i < 200; ++i) {
      std::vector<uint8_t> bytes(random() % 4096);
      const bool text = format.framing == abi::Framing::kText;
      for (uint8_t& byte : bytes) {
        byte = text ? static_cast<uint8_t>("0123456789: \n"[random() % 13])
                    : static_cast<uint8_t>(random());
      }
      StreamFilter::Output out = filter.Filter(BytesOf(bytes), 1);
      EXPECT_LE(out.bytes.size(), bytes.size());
    }
  }
}

}  // namespace
}  // namespace profd
