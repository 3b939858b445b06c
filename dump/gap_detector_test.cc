#include "dump/gap_detector.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "dump/stream_filter.h"

namespace profd {
namespace {

constexpr int64_t kMs = 1'000'000;

// One HBM record (us, count, event, id).
void AddHbm(std::vector<std::byte>* bytes, uint64_t us, uint32_t event, uint32_t id) {
  const size_t at = bytes->size();
  bytes->resize(at + 24);
  std::span<std::byte> record = std::span(*bytes).subspan(at);
  StoreUnchecked(record, 0, us);
  StoreUnchecked(record, 8, uint64_t{1});
  StoreUnchecked(record, 16, event);
  StoreUnchecked(record, 20, id);
}

class GapDetectorTest : public testing::Test {
 protected:
  GapDetector Make(uint32_t channel, int64_t period_ns) {
    GapDetector::Options options{.format = abi::FindChannelFormat(channel), .period_ns = period_ns,
                                 .device_counter_hz = 50e6};
    return {options, [this](const GapDetector::Gap& gap) { gaps_.push_back(gap); }};
  }
  // What is found in these records.
  GapDetector Watch(uint32_t channel, int64_t period_ns, std::span<const std::byte> bytes) {
    GapDetector finder = Make(channel, period_ns);
    finder.Feed(bytes);
    finder.Finish();
    return finder;
  }
  // Readings at these times in periods of 10 ms.
  void FeedReadings(const std::vector<double>& at) {
    GapDetector::Options options{.period_ns = 10 * kMs, .polled = true};
    GapDetector finder(options, [this](const GapDetector::Gap& gap) { gaps_.push_back(gap); });
    for (double periods : at) {
      finder.FeedTimestamp(0, 1000 * kMs + static_cast<int64_t>(periods * 1e7));
    }
    finder.Finish();
  }
  // HCCS lines at these milliseconds.
  static std::string Lines(const std::vector<int64_t>& at_ms) {
    std::string text = "time_stamp(s):time_stamp(ns) send_amount receive_amount\n";
    for (int64_t ms : at_ms) {
      std::string ns = std::to_string(ms % 1000 * kMs);
      text += std::to_string(ms / 1000) + ":" + std::string(9 - ns.size(), '0') + ns + " 1 2\n";
    }
    return text;
  }
  // What a session of this period has of a channel with lines at these milliseconds, one every 10 ms.
  void FeedThinned(int64_t period_ms, const std::vector<int64_t>& at_ms) {
    StreamFilterOptions thin{.format = abi::FindChannelFormat(9), .channel_period_ns = 10 * kMs,
                             .session_period_ns = period_ms * kMs};
    StreamFilter filter(thin);
    GapDetector::Options options{.format = thin.format, .period_ns = thin.session_period_ns,
                                 .source_period_ns = thin.channel_period_ns};
    GapDetector finder(options, [this](const GapDetector::Gap& gap) { gaps_.push_back(gap); });
    finder.Feed(filter.Filter(AsBytes(Lines(at_ms)), at_ms.size()).bytes);
    finder.Finish();
  }
  std::vector<GapDetector::Gap> gaps_;
};

TEST_F(GapDetectorTest, RegularTimestampsHaveNoGap) {
  GapDetector finder = Make(9, 10 * kMs);
  finder.Feed(AsBytes(Lines({1000, 1010, 1020, 1030})));
  finder.Feed(AsBytes(Lines({1040, 1050})));
  finder.Finish();
  EXPECT_TRUE(gaps_.empty());
  EXPECT_EQ(finder.records(), 6u);
  EXPECT_EQ(finder.first_ns(), 1000 * kMs);
  EXPECT_EQ(finder.last_ns(), 1050 * kMs);
}

TEST_F(GapDetectorTest, CountsWhatIsMissingAndWhere) {
  const GapDetector finder = Watch(9, 10 * kMs, AsBytes(Lines({1000, 1010, 1050, 1060, 1070, 1090})));
  ASSERT_EQ(gaps_.size(), 2u);
  EXPECT_EQ(gaps_[0].from_ns, 1010 * kMs);
  EXPECT_EQ(gaps_[0].to_ns, 1050 * kMs);
  EXPECT_EQ(gaps_[0].missing, 3u);
  // The last step has no successor that could make up for it.
  EXPECT_EQ(gaps_[1].missing, 1u);
  EXPECT_EQ(finder.missing(), 4u);
}

TEST_F(GapDetectorTest, ALateRecordIsNotAGap) {
  Watch(9, 10 * kMs, AsBytes(Lines({1000, 1010, 1026, 1030, 1047, 1050, 1060})));
  EXPECT_TRUE(gaps_.empty());
}

TEST_F(GapDetectorTest, TwoGapsInARow) {
  const GapDetector finder = Watch(9, 10 * kMs, AsBytes(Lines({1000, 1020, 1040, 1050})));
  ASSERT_EQ(gaps_.size(), 2u);
  EXPECT_EQ(finder.missing(), 2u);
}

TEST_F(GapDetectorTest, SeriesAreWatchedOneByOne) {
  std::vector<std::byte> bytes;
  for (uint64_t us = 10'000; us <= 100'000; us += 10'000) {
    for (uint32_t id = 0; id < 4; ++id) {
      for (uint32_t event = 0; event < 2; ++event) {
        if (us == 50'000 && id == 2 && event == 1) continue;
        AddHbm(&bytes, us, event, id);
      }
    }
  }
  const GapDetector finder = Watch(1, 10 * kMs, bytes);
  ASSERT_EQ(gaps_.size(), 1u);
  EXPECT_EQ(gaps_[0].from_ns, 40 * kMs);
  EXPECT_EQ(gaps_[0].to_ns, 60 * kMs);
  EXPECT_EQ(finder.records(), 79u);
}

// NIC lines of two ports and DVPP lines of two engines an instant: lines are counted, also where a part of an
// instant's is missing.
TEST_F(GapDetectorTest, LinesOfOneInstantAreSeries) {
  for (const uint32_t channel : {4u, 6u}) {
    gaps_.clear();
    GapDetector finder = Make(channel, 10 * kMs);
    for (int64_t i = 0; i < 30; ++i) {
      std::string ns = std::to_string(i * 10 * kMs);
      const std::string timestamp = "1:" + std::string(9 - ns.size(), '0') + ns;
      for (int part = 0; part < 2; ++part) {
        // Three instants are missing, and one line of the instant before and after.
        if ((i > 10 && i < 14) || (i == 10 && part == 1) || (i == 14 && part == 0)) continue;
        const std::string id = std::to_string(part);
        finder.Feed(AsBytes(channel == 4
                                ? timestamp + " 100 1 2 3 4 0 0 5 6 7 8 0 0 " + id + "\n"
                                : timestamp + " 1 " + id + " " + std::to_string(i) + " 2 3% 4 5 6% 7 8\n"));
      }
    }
    finder.Finish();
    EXPECT_EQ(finder.records(), 52u) << channel;
    EXPECT_EQ(finder.missing(), 8u) << channel;
    EXPECT_EQ(gaps_.size(), 2u) << channel;
  }
}

TEST_F(GapDetectorTest, AnotherRateIsJudgedByItself) {
  GapDetector::Options options{.period_ns = 1000 * kMs, .polled = true};
  GapDetector finder(options, [this](const GapDetector::Gap& gap) { gaps_.push_back(gap); });
  for (int64_t i = 0; i < 4; ++i) finder.FeedTimestamp(0, i * 1000 * kMs);
  finder.Restart(10 * kMs);
  for (int64_t i = 0; i < 40; ++i) {
    if (i != 30) finder.FeedTimestamp(0, 3500 * kMs + i * 10 * kMs);
  }
  finder.Finish();
  ASSERT_EQ(gaps_.size(), 1u);
  EXPECT_EQ(gaps_[0].missing, 1u);
  EXPECT_EQ(gaps_[0].from_ns, 3790 * kMs);
}

// A record every 2 s, then every 10 ms: nothing is missing in the first run, and between the two three records.
TEST_F(GapDetectorTest, EachRunOfAChannelHasItsOwnRate) {
  for (const int64_t source_period_ms : {0, 5}) {
    for (const int64_t slow_steps : {2, 5, 20}) {
      GapDetector::Options options{.format = abi::FindChannelFormat(9), .period_ns = 10 * kMs,
                                   .source_period_ns = source_period_ms * kMs, .runs_ns = {60'015 * kMs}};
      gaps_.clear();
      GapDetector finder(options, [this](const GapDetector::Gap& gap) { gaps_.push_back(gap); });
      std::vector<int64_t> at;
      for (int64_t i = slow_steps; i >= 0; --i) at.push_back(60'000 - 2000 * i);
      for (int64_t i = 0; i < 40; ++i) {
        if (i != 30) at.push_back(60'040 + 10 * i);
      }
      finder.Feed(AsBytes(Lines(at)));
      finder.Finish();
      ASSERT_EQ(gaps_.size(), 2u) << slow_steps << " " << source_period_ms;
      EXPECT_EQ(gaps_[0].missing, 3u);
      EXPECT_EQ(gaps_[0].from_ns, 60'000 * kMs);
      EXPECT_EQ(gaps_[1].missing, 1u);
    }
  }
}

TEST_F(GapDetectorTest, LearnsAnUnknownPeriod) {
  std::vector<int64_t> at;
  for (int64_t i = 0; i < 40; ++i) {
    if (i != 5 && i != 30) at.push_back(2000 + 7 * i);
  }
  const GapDetector finder = Watch(9, 0, AsBytes(Lines(at)));
  EXPECT_EQ(gaps_.size(), 2u);
  EXPECT_EQ(finder.missing(), 2u);
}

TEST_F(GapDetectorTest, TheDriversOwnPeriodCounts) {
  std::vector<int64_t> at;
  for (int64_t i = 0; i < 40; ++i) {
    if (i != 30) at.push_back(2000 + 10 * i);
  }
  const GapDetector finder = Watch(9, 5 * kMs, AsBytes(Lines(at)));
  EXPECT_EQ(finder.missing(), 1u);
}

// Neighbours of a thinned series are one or two of the channel's periods apart, and nothing is missing.
TEST_F(GapDetectorTest, ThinningMakesNoGaps) {
  std::vector<int64_t> whole;
  for (int64_t i = 0; i < 500; ++i) whole.push_back(1000 + 10 * i);
  for (int64_t period_ms : {11, 12, 13, 15, 17, 19, 20, 23, 25, 29, 33, 70, 101}) {
    FeedThinned(period_ms, whole);
    EXPECT_TRUE(gaps_.empty()) << period_ms;
    gaps_.clear();
  }
}

TEST_F(GapDetectorTest, AGapInAThinnedSeriesIsFound) {
  for (int64_t period_ms : {12, 15, 17, 20, 25, 33}) {
    std::vector<int64_t> at_ms;
    for (int64_t i = 0; i < 500; ++i) {
      if (i < 200 || i >= 220) at_ms.push_back(1000 + 10 * i);
    }
    FeedThinned(period_ms, at_ms);
    ASSERT_EQ(gaps_.size(), 1u) << period_ms;
    EXPECT_NEAR(static_cast<double>(gaps_[0].missing), 200.0 / static_cast<double>(period_ms), 1.5);
    gaps_.clear();
  }
}

TEST_F(GapDetectorTest, WithoutAPeriodThereIsNothingToMiss) {
  std::vector<int64_t> at;
  for (int64_t i = 0; i < 40; ++i) at.push_back(2000 + i * i * i);
  Watch(9, 0, AsBytes(Lines(at)));
  EXPECT_TRUE(gaps_.empty());
}

TEST_F(GapDetectorTest, AfterAKnownLossItBeginsAnew) {
  GapDetector finder = Make(9, 10 * kMs);
  finder.Feed(AsBytes(Lines({1000, 1010})));
  finder.Resync();
  finder.Feed(AsBytes(Lines({1500, 1510})));
  finder.Finish();
  EXPECT_TRUE(gaps_.empty());
}

TEST_F(GapDetectorTest, CountsTimestampsThatGoBackAndLinesWithoutOne) {
  GapDetector finder = Make(9, 10 * kMs);
  finder.Feed(AsBytes(Lines({1000, 990, 1000})));
  finder.Feed(AsBytes("12 no timestamp\n1:99999999999 1 1\n"));
  finder.Finish();
  EXPECT_EQ(finder.backwards(), 1u);
  EXPECT_EQ(finder.unreadable(), 2u);
  // Of unknown form: these are no records.
  GapDetector opaque = Make(abi::kChannelDvppVenc, 10 * kMs);
  opaque.Feed(AsBytes("12 no timestamp\n1:000000001 1 1\n"));
  EXPECT_EQ(opaque.unreadable(), 0u);
  EXPECT_EQ(opaque.records(), 1u);
}

TEST_F(GapDetectorTest, OneOddTimestampIsNotAGap) {
  const GapDetector finder = Watch(9, 10 * kMs, AsBytes(Lines({1000, 1010, 900'000'000, 1030, 1040})));
  EXPECT_TRUE(gaps_.empty());
  EXPECT_EQ(finder.backwards(), 1u);
}

TEST_F(GapDetectorTest, ThirtyTwoBitTimestampsWrap) {
  std::vector<std::byte> bytes;
  for (uint32_t i = 0; i < 4; ++i) {
    const size_t at = bytes.size();
    bytes.resize(at + 20);
    StoreUnchecked(std::span(bytes).subspan(at), 0, 0xFFFFFFFFu - 15'000 + i * 10'000);
  }
  const GapDetector finder = Watch(7, 10 * kMs, bytes);
  EXPECT_TRUE(gaps_.empty());
  EXPECT_EQ(finder.backwards(), 0u);
}

// driver-abi 3.6: one record per type (offset 4), each with entries as old as its own last change.
TEST_F(GapDetectorTest, EachTypeOfTheLowPowerChannelHasAHistoryOfItsOwn) {
  GapDetector finder = Make(132, 0);
  constexpr size_t kSize = 888;
  auto report = [&](std::array<uint64_t, 3> first_of_type) {
    std::vector<std::byte> bytes(kSize * 3);
    for (uint32_t type = 0; type < 3; ++type) {
      auto record = std::span(bytes).subspan(kSize * type);
      StoreUnchecked<uint32_t>(record, 0, 1);
      StoreUnchecked<uint32_t>(record, 4, type);
      StoreUnchecked<uint64_t>(record, 8, first_of_type[type]);
    }
    finder.Feed(bytes);
  };
  report({9'000, 5'000, 1'000});
  report({20'000, 12'000, 2'000});
  EXPECT_EQ(finder.backwards(), 0u);
  EXPECT_EQ(finder.records(), 6u);
  report({30'000, 11'000, 3'000});  // that of type 1 did go back
  EXPECT_EQ(finder.backwards(), 1u);
}

TEST_F(GapDetectorTest, EventDrivenChannelsHaveNoGaps) {
  std::vector<std::byte> bytes(888 * 8);
  for (uint64_t i = 0; i < 8; ++i) {
    StoreUnchecked(std::span(bytes).subspan(888 * i), 8, i == 7 ? 1'000'000'000 : 50'000 * i);
  }
  const GapDetector finder = Watch(132, 0, bytes);
  EXPECT_TRUE(gaps_.empty());
  EXPECT_EQ(finder.records(), 8u);
}

TEST_F(GapDetectorTest, ReadingsMayBeLateByUpToAPeriodForAsLongAsTheyLike) {
  std::vector<double> at;
  for (int i = 0; i < 100; ++i) at.push_back(i + (i < 40 ? 0.02 : i < 70 ? 0.95 : 0.0));
  FeedReadings(at);
  EXPECT_TRUE(gaps_.empty());
}

TEST_F(GapDetectorTest, LateFromTheFirstSampleOn) {
  std::vector<double> at;
  for (int i = 0; i < 100; ++i) at.push_back(i + (i < 20 ? 0.9 : 0.0));
  FeedReadings(at);
  EXPECT_TRUE(gaps_.empty());
}

TEST_F(GapDetectorTest, APointOfTheGridWithoutASampleIsAGap) {
  for (int missing : {3, 50, 97}) {
    gaps_.clear();
    std::vector<double> at;
    for (int i = 0; i < 100; ++i) {
      if (i != missing) at.push_back(i + i % 5 * 0.1);
    }
    FeedReadings(at);
    ASSERT_EQ(gaps_.size(), 1u) << missing;
    EXPECT_EQ(gaps_[0].missing, 1u);
    EXPECT_LE(gaps_[0].from_ns, 1000 * kMs + (missing + 1) * 10 * kMs);
  }
}

// However late below a period, and however seldom.
TEST_F(GapDetectorTest, LatenessBelowAPeriodIsNotAGap) {
  std::vector<double> at;
  for (int i = 0; i < 2000; ++i) at.push_back(i + i * 389 % 1000 * 0.000999);
  FeedReadings(at);
  EXPECT_TRUE(gaps_.empty());
}

TEST_F(GapDetectorTest, AGapBetweenSamplesThatAreAllEquallyLateIsFound) {
  std::vector<double> at;
  for (int i = 0; i < 500; ++i) {
    if (i != 250 && i != 251) at.push_back(i + 0.3);
  }
  FeedReadings(at);
  ASSERT_EQ(gaps_.size(), 1u);
  EXPECT_EQ(gaps_[0].missing, 2u);
}

// A reading for point 30 that came at 31.7 stands for it; 31 was left out.
TEST_F(GapDetectorTest, ASampleLateByMoreThanAPeriodCostsTheNext) {
  std::vector<double> at;
  for (int i = 0; i < 100; ++i) {
    if (i != 31) at.push_back(i == 30 ? 31.7 : i);
  }
  FeedReadings(at);
  ASSERT_EQ(gaps_.size(), 1u);
  EXPECT_EQ(gaps_[0].missing, 1u);
}

// 500 ppm for a quarter of an hour is 45 periods.
TEST_F(GapDetectorTest, ClocksThatDriftApartMakeNoGaps) {
  for (double rate : {0.9995, 1.0005}) {
    gaps_.clear();
    std::vector<double> at;
    for (int i = 0; i < 90'000; ++i) at.push_back(i * rate + i % 3 * 0.01);
    FeedReadings(at);
    EXPECT_TRUE(gaps_.empty()) << rate;
  }
}

// Another instance of the collector, with a period of its own, wrote the beginning.
TEST_F(GapDetectorTest, ReadingsOnAnotherGridAreJudgedByTheirSpacing) {
  std::vector<double> at;
  for (int i = 0; i < 40; ++i) at.push_back(5.0 * i);
  for (int i = 0; i < 40; ++i) at.push_back(200.0 + i);
  FeedReadings(at);
  EXPECT_TRUE(gaps_.empty());
}

TEST_F(GapDetectorTest, GarbageDoesNotMakeItGrow) {
  std::vector<std::byte> bytes;
  for (uint32_t i = 0; i < 5000; ++i) AddHbm(&bytes, i, i, ~i);
  const GapDetector finder = Watch(1, 10 * kMs, bytes);
  EXPECT_EQ(finder.records(), 5000u);
  EXPECT_TRUE(gaps_.empty());
}

// Fed line by line nothing is known of the line before; in one piece the timestamps may be compared.
TEST_F(GapDetectorTest, LinesOfOneInstantAreSeenTheSameInOnePieceAndOneByOne) {
  std::vector<std::string> lines;
  for (int i = 0; i < 60; ++i) {
    if (i == 40 || i == 41) continue;
    for (int engine = 0; engine < 3; ++engine) {
      lines.push_back("1000:" + std::to_string(100'000'000 + i * 10'000'000) + " 0 " +
                      std::to_string(engine) + " 5\n");
    }
    if (i % 7 == 0) lines.push_back("1000:100000000\n");  // its end is the timestamp's; goes back
    if (i % 11 == 0) lines.push_back("1000x\n");
  }
  GapDetector one_by_one = Make(6, 10 * kMs);
  for (const std::string& line : lines) one_by_one.Feed(AsBytes(line));
  one_by_one.Finish();
  const size_t expected = gaps_.size();
  gaps_.clear();
  std::string all;
  for (const std::string& line : lines) all += line;
  const GapDetector whole = Watch(6, 10 * kMs, AsBytes(all));
  EXPECT_EQ(gaps_.size(), expected);
  EXPECT_EQ(whole.records(), one_by_one.records());
  EXPECT_EQ(whole.records(), lines.size());
  EXPECT_EQ(whole.missing(), one_by_one.missing());
  EXPECT_EQ(whole.backwards(), one_by_one.backwards());
  EXPECT_EQ(whole.unreadable(), one_by_one.unreadable());
  EXPECT_EQ(whole.last_ns(), one_by_one.last_ns());
  EXPECT_GT(whole.missing(), 0u);
}

// Channels whose timestamps mean nothing to us: their records are counted all the same.
TEST(GapDetector, RecordsWithoutTimestampsAreCounted) {
  GapDetector::Options options;
  options.format = abi::FindChannelFormat(abi::InstrChannel(0, 0));
  GapDetector finder(options, [](const GapDetector::Gap&) { FAIL(); });
  const std::vector<std::byte> bytes(5 * abi::InstrRecordSize(0));
  finder.Feed(bytes);
  EXPECT_EQ(finder.records(), 5u);
}

}  // namespace
}  // namespace profd
