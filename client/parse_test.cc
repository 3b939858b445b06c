#include "client/parse.h"

#include <gtest/gtest.h>

namespace profd::client {
namespace {

TEST(ParseDuration, TakesEveryUnit) {
  EXPECT_EQ(*ParseDurationMs("500ms"), 500u);
  EXPECT_EQ(*ParseDurationMs("30s"), 30'000u);
  EXPECT_EQ(*ParseDurationMs("5m"), 300'000u);
  EXPECT_EQ(*ParseDurationMs("1h"), 3'600'000u);
}

TEST(ParseDuration, RefusesOtherInputWithTheReason) {
  for (const char* text : {"", "30", "s", "1.5s", "-1s", "1 s", "1d", "ms", "99999999999999999999s",
                           "9000000000000000h", "0s", "1s "}) {
    EXPECT_FALSE(ParseDurationMs(text).ok()) << text;
  }
  EXPECT_EQ(ParseDurationMs("30").status().message(),
            "\"30\" is not a duration; write an integer and a unit: 500ms, 30s, 5m, 1h");
  EXPECT_EQ(ParseDurationMs("0s").status().message(), "\"0s\": must be above zero");
}

TEST(ParseDevices, TakesIdsAndRanges) {
  EXPECT_EQ(*ParseDevices("0"), (std::vector<uint32_t>{0}));
  EXPECT_EQ(*ParseDevices("0,1,4-7"), (std::vector<uint32_t>{0, 1, 4, 5, 6, 7}));
  EXPECT_EQ(*ParseDevices("3-3"), (std::vector<uint32_t>{3}));
}

TEST(ParseDevices, RefusesOtherInputWithTheReason) {
  for (const char* text : {"", ",", "0,", "a", "-1", "1-", "7-4", "0-4294967295", "4096", "0 ,1",
                           "1,1", "0-3,2", "0--1"}) {
    EXPECT_FALSE(ParseDevices(text).ok()) << text;
  }
  EXPECT_EQ(ParseDevices("0,x").status().message(),
            "\"0,x\": \"x\" is neither a device id (0..4095) nor a range; write 0,1,4-7");
  EXPECT_EQ(ParseDevices("0-3,2").status().message(), "\"0-3,2\": device 2 is named twice");
}

TEST(ParseNamedRate, TakesNameAndRate) {
  EXPECT_EQ(ParseNamedRate("hccs")->name, "hccs");
  EXPECT_EQ(ParseNamedRate("hccs")->hz, 0);
  EXPECT_EQ(ParseNamedRate("hccs=50")->hz, 50);
  EXPECT_EQ(ParseNamedRate("npu_state=0.5")->hz, 0.5);
}

TEST(ParseNamedRate, RefusesTheRest) {
  for (const char* text : {"", "=50", "hccs=", "hccs=x", "hccs=0", "hccs=-1", "hccs=nan",
                           "hccs=inf", "hccs=50Hz", "hccs=50=50"}) {
    EXPECT_FALSE(ParseNamedRate(text).ok()) << text;
  }
}

TEST(ParseList, SplitsAndRefusesEmptyItems) {
  EXPECT_EQ(*ParseList("a, b,c"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_FALSE(ParseList("").ok());
  EXPECT_FALSE(ParseList("a,,b").ok());
}

TEST(ParsePid, TakesOnlyProcesses) {
  EXPECT_EQ(*ParsePid("1234"), 1234);
  for (const char* text : {"0", "-5", "", "x", "99999999999"}) {
    EXPECT_FALSE(ParsePid(text).ok()) << text;
  }
}

}  // namespace
}  // namespace profd::client
