// The tables of operators in `profctl show DUMP`; expected values by hand.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "client/commands/show_dump.h"

namespace profd::client {
namespace {

using exporting::DumpSummary;

constexpr int64_t kMs = 1'000'000;

std::string Printed(const DumpSummary& summary, bool all = false) {
  std::ostringstream out;
  PictureStyle style;
  style.all = all;
  PrintOperators(out, summary, style);
  return out.str();
}

// The words of each line.
std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string joined;
    for (std::string word; words >> word;) joined += joined.empty() ? word : " " + word;
    lines.push_back(joined);
  }
  return lines;
}

TEST(ShowOperators, NothingWithoutOperators) { EXPECT_EQ(Printed({}), ""); }

TEST(ShowOperators, LongestFirstOfAllAndOfEachRank) {
  DumpSummary summary;
  for (int64_t ms : {1, 2}) summary.kernels.Add({0, "Add"}, ms * kMs);
  summary.kernels.Add({0, "MatMul"}, 6 * kMs);
  summary.kernels.Add({1, "Add"}, 7 * kMs);
  summary.communication.Add({0, "allReduce"}, 4 * kMs);
  EXPECT_EQ(Lines(Printed(summary)),
            (std::vector<std::string>{"", "RANK OPERATOR COUNT TOTAL MEAN MAX OF KERNELS",
                                      "all Add 3 10 ms 3.33 ms 7 ms 62.5 %", "all MatMul 1 6 ms 6 ms 6 ms 37.5 %",
                                      "0 MatMul 1 6 ms 6 ms 6 ms 66.7 %", "0 Add 2 3 ms 1.5 ms 2 ms 33.3 %",
                                      "1 Add 1 7 ms 7 ms 7 ms 100.0 %", "",
                                      "RANK COMMUNICATION COUNT TOTAL MEAN MAX OF IT ALL",
                                      "0 allReduce 1 4 ms 4 ms 4 ms 100.0 %"}));
}

TEST(ShowOperators, TenNamesOfEightRanksUnlessAllAreAskedFor) {
  DumpSummary summary;
  for (int rank = 0; rank < 9; ++rank) {
    for (int name = 0; name < 11; ++name) summary.kernels.Add({rank, "k" + std::to_string(name)}, (name + 1) * kMs);
  }
  const std::vector<std::string> few = Lines(Printed(summary));
  ASSERT_EQ(few.size(), 2u + 9 * 10 + 1);
  EXPECT_EQ(few[2], "all k10 9 99 ms 11 ms 11 ms 16.7 %") << "9 of 9 * (1 + ... + 11) ms";
  EXPECT_EQ(few.back(), "the 10 longest of 11 names, of 8 of 9 ranks (--all, --json, profctl export)");
  EXPECT_EQ(Lines(Printed(summary, true)).size(), 2u + 10 * 11);
}

TEST(ShowOperators, NamesAreUntrusted) {
  DumpSummary summary;
  summary.kernels.Add({-1, ""}, kMs);
  summary.kernels.Add({-1, "a\x1b[31m"}, 2 * kMs);
  // 45 bytes, then a character of three whose end is cut off.
  summary.kernels.Add({-1, std::string(45, 'x') + "\xE2\x98\x83snow"}, 3 * kMs);
  const std::vector<std::string> lines = Lines(Printed(summary));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[2], "- " + std::string(45, 'x') + ".. 1 3 ms 3 ms 3 ms 50.0 %");
  EXPECT_EQ(lines[3], "- a\\x1b[31m 1 2 ms 2 ms 2 ms 33.3 %");
  EXPECT_EQ(lines[4], "- (no name) 1 1 ms 1 ms 1 ms 16.7 %");
}

TEST(ShowOperators, AsJson) {
  DumpSummary summary;
  summary.kernels.Add({-1, "Add"}, 10);
  summary.kernels.Add({-1, "Add"}, 30);
  const Json json = OperatorsJson(summary);
  EXPECT_EQ(json["kernels"], Json::array({{{"rank", nullptr},
                                           {"name", "Add"},
                                           {"count", 2},
                                           {"total_ns", 40},
                                           {"mean_ns", 20.0},
                                           {"min_ns", 10},
                                           {"max_ns", 30}}}));
  EXPECT_EQ(json["communication"], Json::array());
}

}  // namespace
}  // namespace profd::client
