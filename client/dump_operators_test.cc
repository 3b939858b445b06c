// The tables of operators in `profctl show DUMP`; expected values by hand.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "client/commands/show_dump.h"
#include "client/sparkline.h"

namespace profd::client {
namespace {

using exporting::DumpSummary;

constexpr int64_t kMs = 1'000'000;

std::string Printed(const DumpSummary& summary, bool all = false, size_t width = 60) {
  std::ostringstream out;
  PictureStyle style;
  style.all = all;
  style.width = width;
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

TEST(ShowOperators, TenNamesOfEightRanksUnlessAllAreRequested) {
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
  // Of 105 columns the numbers take 57: 48 are left for names. In 60 they have 20 all the same.
  EXPECT_EQ(Lines(Printed(summary))[2], "- " + std::string(18, 'x') + ".. 1 3 ms 3 ms 3 ms 50.0 %");
  const std::vector<std::string> lines = Lines(Printed(summary, false, 105));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[2], "- " + std::string(45, 'x') + ".. 1 3 ms 3 ms 3 ms 50.0 %");
  EXPECT_EQ(lines[3], "- a\\x1b[31m 1 2 ms 2 ms 2 ms 33.3 %");
  EXPECT_EQ(lines[4], "- (no name) 1 1 ms 1 ms 1 ms 16.7 %");
}

TEST(ShowOperators, BarsFillWhatIsLeftOfALine) {
  DumpSummary summary;
  summary.kernels.Add({0, "Add"}, 25 * kMs);
  summary.kernels.Add({0, "MatMul"}, 75 * kMs);
  std::ostringstream out;
  PictureStyle style;
  style.ascii = true;
  style.width = 85;  // 57 for numbers, 8 for OPERATOR
  PrintOperators(out, summary, style);
  const std::vector<std::string> lines = Lines(out.str());
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[2], "0 MatMul 1 75 ms 75 ms 75 ms 75.0 % " + std::string(15, '#'));
  EXPECT_EQ(lines[3], "0 Add 1 25 ms 25 ms 25 ms 25.0 % " + std::string(5, '#'));
  EXPECT_EQ(Bar(0.25, 10, false), "██▌");
  EXPECT_EQ(Bar(0, 10, false), "");
  EXPECT_EQ(Bar(1e-9, 10, false), "▏") << "not nothing";
}

exporting::StepTimes StepOf(int device, int64_t number, double computing, double communication, double free) {
  exporting::StepTimes step;
  step.rank = device;
  step.device = device;
  step.number = number;
  step.start_ns = number * 100 * kMs;
  step.end_ns = step.start_ns + static_cast<int64_t>((computing + communication + free) * 1e3);
  step.computing_us = computing;
  step.communication_us = communication;
  step.free_us = free;
  return step;
}

std::vector<std::string> StepLines(const exporting::StepView& view, bool all = false) {
  std::ostringstream out;
  PictureStyle style;
  style.ascii = true;
  style.all = all;
  style.width = 79 + 20;  // numbers, and a bar
  PrintSteps(out, view, style);
  return Lines(out.str());
}

TEST(ShowSteps, NothingWithoutOperators) { EXPECT_TRUE(StepLines({}).empty()); }

TEST(ShowSteps, SharesOfEachStepAndOfAll) {
  exporting::StepView view;
  view.steps = {StepOf(0, 1, 500, 300, 200), StepOf(0, 2, 3000, 0, 0)};
  EXPECT_EQ(StepLines(view),
            (std::vector<std::string>{
                "", "RANK NPU STEP TIME COMPUTING # COMMUNICATION + FREE . HIDDEN",
                "0 0 all 4 ms 87.5 % 7.5 % 5.0 % 0.0 % " + std::string(18, '#') + "+.",
                "0 0 1 1 ms 50.0 % 30.0 % 20.0 % 0.0 % " + std::string(10, '#') + "++++++....",
                "0 0 2 3 ms 100.0 % 0.0 % 0.0 % 0.0 % " + std::string(20, '#')}));
}

TEST(ShowSteps, TheLongestTenUnlessAllAreRequested) {
  exporting::StepView view;
  for (int number = 0; number < 12; ++number) view.steps.push_back(StepOf(0, number, 1000 - 10.0 * number, 0, 0));
  const std::vector<std::string> few = StepLines(view);
  ASSERT_EQ(few.size(), 3u + 10 + 1);
  EXPECT_EQ(few[3].substr(0, 6), "0 0 0 ");
  EXPECT_EQ(few[12].substr(0, 6), "0 0 9 ");
  EXPECT_EQ(few.back(), "the 10 longest of 12 steps (--all, --json, profctl export)");
  EXPECT_EQ(StepLines(view, true).size(), 3u + 12);
}

// Half of 1 ms is computing.
TEST(ShowSteps, ATimelineOfTheLongest) {
  exporting::StepView view;
  view.steps = {StepOf(0, 7, 500, 0, 500)};
  exporting::StepTimeline& timeline = view.timeline.emplace();
  timeline.step = view.steps[0];
  const int64_t start = timeline.step.start_ns;
  timeline.intervals[0] = {{start, start + kMs / 2}};
  timeline.intervals[3] = {{start + kMs / 2, start + kMs}};
  timeline.longest = {{"MatMul", start + kMs / 4, start + kMs / 2}};
  std::ostringstream out;
  PictureStyle style;
  style.ascii = true;
  style.width = 43 + 40;  // name and time, and 40 columns
  PrintSteps(out, view, style);
  const std::vector<std::string> lines = Lines(out.str());
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines[5], "step 7 on npu0 (rank 0): 1 ms");
  EXPECT_EQ(lines[6], "Computing " + std::string(20, '#') + " 500 us");
  EXPECT_EQ(lines[7], "Communication 0 s");
  EXPECT_EQ(lines[8], "Free " + std::string(20, '#') + " 500 us");
  EXPECT_EQ(lines[9], "MatMul " + std::string(10, '#') + " 250 us");
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
