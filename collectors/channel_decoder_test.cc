#include "collectors/channel_decoder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#include "collectors/channel_plan.h"
#include "collectors/testing/channel_fixture.h"
#include "driver/records/micros_widener.h"

namespace profd {
namespace {

TimeBase Base() { return testing::MakeTimeBase(); }

TEST(ChannelTimestamp, TextNeedsSecondsAndNanoseconds) {
  std::optional<Timestamp> timestamp = TimestampFromText("1000:000000007", Base());
  ASSERT_TRUE(timestamp);
  EXPECT_EQ(timestamp->source_ns, 1'000'000'000'007);
  EXPECT_EQ(timestamp->host_ns, 5'000'000'000'007);
  for (const char* bad : {"", ":", "1000", "1000:", ":5", "1000:1000000000", "-1:0", "1000:-1",
                          "99999999999:0", "18446744073709551616:0", "1000:5x", "1 000:5"}) {
    EXPECT_FALSE(TimestampFromText(bad, Base())) << bad;
  }
}

TEST(ChannelTimestamp, ImplausibleTimestampsAreRefusedInsteadOfOverflowing) {
  EXPECT_FALSE(TimestampFromDeviceNs(UINT64_MAX, Base()));
  EXPECT_FALSE(TimestampFromDeviceNs(uint64_t{1} << 63, Base()));
  EXPECT_FALSE(TimestampFromMicros(UINT64_MAX / 2, Base()));
  EXPECT_FALSE(TimestampFromDeviceCount(uint64_t{1} << 62, Base()));
  EXPECT_FALSE(TimestampFromHostCount(uint64_t{1} << 62, Base()));
  TimeBase unknown = Base();
  unknown.device_counter_hz = 0;
  EXPECT_FALSE(TimestampFromDeviceCount(unknown.device_count, unknown));
  unknown.host_counter_hz = 0;
  EXPECT_FALSE(TimestampFromHostCount(UINT64_MAX, unknown));
}

TEST(ChannelTimestamp, CountersRunBackwardsFromThePairToo) {
  // 50 MHz: 50 cycles are 1000 ns.
  std::optional<Timestamp> before = TimestampFromDeviceCount(Base().device_count - 50, Base());
  ASSERT_TRUE(before);
  EXPECT_EQ(before->host_ns, 4'999'999'999'000);
  std::optional<Timestamp> after = TimestampFromHostCount(Base().host_count + 50, Base());
  ASSERT_TRUE(after);
  EXPECT_EQ(after->host_ns, 5'000'000'000'500);
}

TEST(ChannelTimestamp, ANewPairOfClocksDoesNotChangeIntervals) {
  // 20 s later, at 50 and 100 MHz.
  TimeBase later = Base();
  later.host_ns += 20'000'000'000;
  later.device_count += 1'000'000'000;
  later.host_count += 2'000'000'000;
  const uint64_t device = Base().device_count + 900'000'000;
  std::optional<Timestamp> first = TimestampFromDeviceCount(device, Base());
  std::optional<Timestamp> second = TimestampFromDeviceCount(device + 50, later);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->source_ns - first->source_ns, 1000);
  EXPECT_EQ(second->host_ns - first->host_ns, 1000);
  const uint64_t host = Base().host_count + 1'900'000'000;
  first = TimestampFromHostCount(host, Base());
  second = TimestampFromHostCount(host + 100, later);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->source_ns - first->source_ns, 1000);
}

TEST(ChannelTimestamp, UnknownHostFrequencyMeansNanoseconds) {
  TimeBase time = Base();
  time.host_counter_hz = 0;
  std::optional<Timestamp> timestamp = TimestampFromHostCount(123'456, time);
  ASSERT_TRUE(timestamp);
  EXPECT_EQ(timestamp->host_ns, 123'456);
}

TEST(MicrosWidener, AddsATurnOnlyForASmallStepOverTheEnd) {
  records::MicrosWidener micros;
  EXPECT_EQ(micros.Widen(0xFFFFFFF0), 0xFFFFFFF0u);
  EXPECT_EQ(micros.Widen(0x10), 0x100000010u);
  EXPECT_EQ(micros.Widen(0x20), 0x100000020u);
  // Garbage and back again is not a turn.
  EXPECT_EQ(micros.Widen(0x90000000), 0x190000000u);
  EXPECT_EQ(micros.Widen(0x30), 0x100000030u);
  micros = {};
  EXPECT_EQ(micros.Widen(0x10), 0x10u);
}

TEST(MicrosWidener, ASeriesThatIsBehindAtTheEndAddsNoTurn) {
  records::MicrosWidener micros;
  EXPECT_EQ(micros.Widen(0xFFFFFFF0), 0xFFFFFFF0u);
  EXPECT_EQ(micros.Widen(0x10), 0x100000010u);
  EXPECT_EQ(micros.Widen(0xFFFFFFF8), 0xFFFFFFF8u);
  EXPECT_EQ(micros.Widen(0x20), 0x100000020u);
}

TEST(IntervalTimer, RefusesRepeatedTimestampsAndForgetsAJumpIntoTheFuture) {
  IntervalTimer timer;
  double seconds = 0;
  EXPECT_EQ(timer.Next({0, 1'000}, &seconds), IntervalTimer::Step::kFirst);
  EXPECT_EQ(timer.Next({0, 1'000}, &seconds), IntervalTimer::Step::kNotLater);
  EXPECT_EQ(timer.Next({0, 3'000}, &seconds), IntervalTimer::Step::kForward);
  EXPECT_DOUBLE_EQ(seconds, 2e-6);
  EXPECT_EQ(timer.Next({0, 1'000'000'000}, &seconds), IntervalTimer::Step::kForward);
  int refused = 0;
  int64_t ns = 4'000;
  while (timer.Next({0, ns}, &seconds) == IntervalTimer::Step::kNotLater && refused < 100) {
    ns += 1'000;
    ++refused;
  }
  EXPECT_EQ(refused, 16);
}

TEST(IdTable, TakesSixtyFourIdsAndNoMore) {
  IdTable<int> table;
  for (uint64_t id = 0; id < 1000; ++id) {
    int* state = table.FindOrAdd(id * 7, [&] { return static_cast<int>(id); });
    EXPECT_EQ(state != nullptr, id < IdTable<int>::kMaxIds) << id;
  }
  int* first = table.Find(0);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first, table.FindOrAdd(0, [] { return -1; }));
  EXPECT_EQ(table.states().size(), IdTable<int>::kMaxIds);
}

TEST(InstantGroup, ClosesTheFirstByTheNextAndOthersByCount) {
  InstantGroup group;
  EXPECT_FALSE(group.Begin(100));
  EXPECT_FALSE(group.Add());
  EXPECT_FALSE(group.Begin(100));
  EXPECT_FALSE(group.Add());
  EXPECT_TRUE(group.Begin(200));  // the first had two parts
  EXPECT_FALSE(group.Add());
  EXPECT_FALSE(group.Begin(200));
  EXPECT_TRUE(group.Add());
  EXPECT_FALSE(group.Begin(300));  // was closed already
  EXPECT_FALSE(group.Add());
  EXPECT_TRUE(group.Begin(400));  // 300 had one part only
  EXPECT_TRUE(group.Add());       // as many as 300
}

TEST(LineTokens, ReadsNumbersStrictly) {
  LineTokens tokens("  12 1.5 -3 nan 1e999 x 18446744073709551616\t7\r");
  ASSERT_EQ(tokens.size(), 8u);
  uint64_t integer = 0;
  double real = 0;
  EXPECT_TRUE(tokens.Get(0, &integer));
  EXPECT_EQ(integer, 12u);
  EXPECT_FALSE(tokens.Get(1, &integer));
  EXPECT_TRUE(tokens.Get(1, &real));
  EXPECT_EQ(real, 1.5);
  for (size_t i = 2; i <= 5; ++i) EXPECT_FALSE(tokens.Get(i, &real)) << i;
  EXPECT_FALSE(tokens.Get(6, &integer));
  EXPECT_TRUE(tokens.Get(7, &integer));
  EXPECT_FALSE(tokens.Get(8, &integer));
  EXPECT_FALSE(tokens.Get(100, &integer));
}

TEST(LineTokens, ALineOfManyTokensFitsNoCount) {
  std::string line;
  for (int i = 0; i < 1000; ++i) line += "1 ";
  EXPECT_GT(LineTokens(line).size(), 16u);
}

void ExpectSameTokens(const LineTokens& fast, const LineTokens& slow, const std::string& line) {
  ASSERT_EQ(fast.size(), slow.size()) << line;
  TimeBase time;
  for (size_t i = 0; i < LineTokens::kMax + 2; ++i) {
    if (fast.size() <= LineTokens::kMax) {
      ASSERT_EQ(fast[i], slow[i]) << line;
    }
    if (fast.size() > LineTokens::kMax) continue;
    uint64_t expected_integer = 0;
    uint64_t integer = 0;
    const bool is_integer = ParseNumber(slow[i], &expected_integer);
    ASSERT_EQ(fast.Get(i, &integer), is_integer) << line << " at " << i;
    if (is_integer) {
      ASSERT_EQ(integer, expected_integer) << line;
    }
    double expected_real = 0;
    double real = 0;
    auto is_gauge = [](std::string_view text, double* out) {
      return ParseNumber(text, out) && std::isfinite(*out) && *out >= 0;
    };
    const bool is_real = is_gauge(slow[i], &expected_real);
    ASSERT_EQ(fast.Get(i, &real), is_real) << line << " at " << i;
    if (is_real) {
      ASSERT_EQ(real, expected_real) << line;
    }
    std::string_view number = slow[i];
    if (!number.empty() && number.back() == '%') number.remove_suffix(1);
    const bool is_percent = is_gauge(number, &expected_real);
    ASSERT_EQ(fast.GetPercent(i, &real), is_percent) << line << " at " << i;
    if (is_percent) {
      ASSERT_EQ(real, expected_real) << line;
    }
    std::optional<Timestamp> timestamp = fast.GetTimestamp(i, time);
    std::optional<Timestamp> expected_timestamp = TimestampFromText(slow[i], time);
    ASSERT_EQ(timestamp.has_value(), expected_timestamp.has_value()) << line << " at " << i;
    if (timestamp) {
      ASSERT_EQ(timestamp->source_ns, expected_timestamp->source_ns) << line;
    }
  }
}

// Whatever the text, tokens found by the line's shape are those found character by character.
TEST(LineTokens, TheFastWayIsTheSlowWay) {
  std::minstd_rand random(1);
  constexpr std::string_view kCharacters = "0123456789012345678901234567890 .:%-a\x7f\xc3   ";
  int compared = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string line = round % 2 == 0 ? "51168:391356200 0 3 1 123456789012 99 45% 9007199254740993"
                                      : "";
    for (size_t size = random() % 70; size > 0; --size) {
      line += kCharacters[random() % kCharacters.size()];
    }
    if (!line.empty() && round % 3 == 0) line[random() % line.size()] = static_cast<char>(random());
    LineShape shape;
    // Nothing may be read outside the text: sanitizers look at exactly these bytes.
    const std::string text = line + "\n";
    if (!ScanLine(std::string(text), &shape)) continue;
    ++compared;
    const std::string_view seen = std::string_view(text).substr(0, shape.size);
    ExpectSameTokens(LineTokens(seen, shape), LineTokens(seen), line);
  }
  EXPECT_GT(compared, 15'000);
}

TEST(ChannelPlan, PeriodIsTheRoundedDownThousandth) {
  EXPECT_EQ(PeriodMs(50), 20u);
  EXPECT_EQ(PeriodMs(100), 10u);
  EXPECT_EQ(PeriodMs(3), 333u);
  EXPECT_EQ(PeriodMs(60), 16u);
  EXPECT_EQ(PeriodMs(1), 1000u);
  EXPECT_EQ(PeriodMs(0.5), 1000u);
  EXPECT_EQ(PeriodMs(5000), 1u);
  EXPECT_EQ(PeriodMs(5000, kMinMemoryPeriodMs), 10u);
}

}  // namespace
}  // namespace profd
