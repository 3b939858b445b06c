#include "client/commands/start_parse.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace profd::client {
namespace {

constexpr int64_t kNewYear = 1'767'225'600'000'000'000;  // 2026-01-01 00:00:00 UTC

class InZone {
 public:
  explicit InZone(const char* zone) {
    setenv("TZ", zone, 1);
    tzset();
  }
  ~InZone() {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

TEST(ParseInstant, UtcAndOffsets) {
  for (const char* text :
       {"2026-01-01T00:00:00Z", "2026-01-01t00:00:00z", "2026-01-01 00:00:00Z",
        "2026-01-01T08:00:00+08:00", "2025-12-31T18:30:00-05:30", "1767225600", "1767225600.0"}) {
    auto instant = ParseInstant(text);
    ASSERT_TRUE(instant.ok()) << text;
    EXPECT_EQ(*instant, kNewYear) << text;
  }
}

TEST(ParseInstant, Fractions) {
  EXPECT_EQ(*ParseInstant("2026-01-01T00:00:00.25Z"), kNewYear + 250'000'000);
  EXPECT_EQ(*ParseInstant("1767225600.000000001"), kNewYear + 1);
  EXPECT_FALSE(ParseInstant("1767225600.").ok());
  EXPECT_FALSE(ParseInstant("1767225600.0000000001").ok());
}

TEST(ParseInstant, WithoutAZoneItIsLocal) {
  InZone zone("XXX-8");
  EXPECT_EQ(*ParseInstant("2026-01-01T08:00:00"), kNewYear);
  EXPECT_EQ(*ParseInstant("2026-01-01T00:00:00Z"), kNewYear);
}

TEST(ParseInstant, RefusesTheRest) {
  for (const char* text :
       {"", "now", "2026-01-01", "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z",
        "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:00X",
        "2026-01-01T00:00:00+8", "2026-01-01T00:00:00+24:00", "1960-01-01T00:00:00Z", "0", "-1",
        "+1767225600", "99999999999999999999", "9223372037", "1e9", "2026-1-1T0:0:0Z"}) {
    EXPECT_FALSE(ParseInstant(text).ok()) << text;
  }
}

TEST(ParseRanks, ListsAndRanges) {
  EXPECT_EQ(*ParseRanks("0"), (std::vector<uint32_t>{0}));
  EXPECT_EQ(*ParseRanks("0,8-10"), (std::vector<uint32_t>{0, 8, 9, 10}));
  EXPECT_EQ(*ParseRanks("3,1-3"), (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(ParseRanks("0-65535")->size(), 65536u);
  EXPECT_EQ(*ParseRanks("4294967295"), (std::vector<uint32_t>{4294967295u}));
  for (const char* text : {"", ",", "0,", "a", "-1", "3-1", "1-", "0-65536", "0-4294967295",
                           "0-65535,65536", "1.5", " 1"}) {
    EXPECT_FALSE(ParseRanks(text).ok()) << text;
  }
}

TEST(ParseAgo, WithAndWithoutTheSign) {
  EXPECT_EQ(*ParseAgoMs("30s"), 30'000u);
  EXPECT_EQ(*ParseAgoMs("-30s"), 30'000u);
  for (const char* text : {"", "-", "--30s", "30", "-0s"})
    EXPECT_FALSE(ParseAgoMs(text).ok()) << text;
}

TEST(ParsePairTest, NameAndValue) {
  EXPECT_EQ(*ParsePair("a=b=c"), (std::pair<std::string, std::string>{"a", "b=c"}));
  EXPECT_EQ(*ParsePair("a="), (std::pair<std::string, std::string>{"a", ""}));
  for (const char* text : {"", "a", "=b"}) EXPECT_FALSE(ParsePair(text).ok()) << text;
}

}  // namespace
}  // namespace profd::client
