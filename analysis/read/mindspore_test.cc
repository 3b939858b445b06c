#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/read/readers.h"
#include "dump/test_support.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

// analysis 4.1: a step without its end or start is left out; the others keep their numbers.
TEST(MindSporeTrace, ALostEndOfAStepCostsItAndTheNext) {
  const TempDir dir;
  std::string bytes;
  const auto add = [&bytes](uint64_t tag, uint16_t stream, uint64_t count) {
    const uint16_t task = 0;
    bytes.append(reinterpret_cast<const char*>(&tag), sizeof tag).append(reinterpret_cast<const char*>(&task), sizeof task);
    bytes.append(reinterpret_cast<const char*>(&stream), sizeof stream).append(reinterpret_cast<const char*>(&count), sizeof count);
  };
  for (const uint64_t number : {1, 2, 3, 4}) {
    const uint64_t at = number * 1000;
    add(0, 0, at);
    add(1, 0, at + 100);
    add(2, 0, at + 500);
    add(3, 20, at + 200);
    add(4, 20, at + 300);
    if (number != 2) add(255, 0, at + 900);
  }
  WriteText(dir / "training_trace.46.dev.profiler_default_tag.3.slice_0", bytes);
  const auto run = LoadRun({dir.path()}, {}, {});
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  ASSERT_EQ(run->ranks.size(), 1u);
  const std::vector<Step>& steps = run->ranks[0]->steps;
  ASSERT_EQ(steps.size(), 2u);
  // Counts are of 10 ns.
  EXPECT_EQ(steps[0].number, 1);
  EXPECT_EQ(steps[0].end_ns, 19'000);
  EXPECT_EQ(steps[1].number, 4);
  EXPECT_EQ(steps[1].start_ns, 39'000);
  EXPECT_EQ(steps[1].fp_ns, 41'000);
  EXPECT_EQ(steps[1].bp_ns, 45'000);
  EXPECT_EQ(steps[1].end_ns, 49'000);
  EXPECT_EQ(steps[1].reduces.size(), 1u);
  ASSERT_EQ(run->problems.size(), 1u);
  EXPECT_EQ(run->problems[0].what, "1 step lacks its end, and so that behind it its start (the first are steps 2 and 3): left out");
}

class MindSporeSlices : public ::testing::Test {
 protected:
  static std::string Record(uint64_t tag, uint64_t count) {
    std::string bytes(20, '\0');
    std::memcpy(bytes.data(), &tag, sizeof tag);
    std::memcpy(bytes.data() + 12, &count, sizeof count);
    return bytes;
  }
  // It begins at number * 1000 and ends at number * 1000 + 900.
  static std::string StepOf(uint64_t number) {
    const uint64_t at = number * 1000;
    return Record(10010, at) + Record(1, at + 100) + Record(2, at + 500) + Record(255, at + 900);
  }
  void Write(int slice, const std::string& bytes) { WriteText(dir_ / ("training_trace.46.dev.profiler_default_tag.3.slice_" + std::to_string(slice)), bytes); }
  void Read() {
    auto run = LoadRun({dir_.path()}, {}, {});
    ASSERT_TRUE(run.ok()) << run.status().ToString();
    run_ = std::move(*run);
    ends_.clear();
    for (const Step& step : run_.ranks.at(0)->steps) ends_.push_back(step.end_ns / 10);
    texts_.clear();
    for (const Problem& each : run_.problems) texts_.push_back(each.what);
  }

  TempDir dir_;
  profd::analysis::Run run_;
  std::vector<int64_t> ends_;  // of steps
  std::vector<std::string> texts_;
};

// The third step begins in slice 0, and the sixth ends in slice 2; of the seventh, the start is known.
TEST_F(MindSporeSlices, NoStepIsMadeAcrossAMissingSlice) {
  Write(0, StepOf(1) + StepOf(2) + Record(10010, 3000) + Record(1, 3100) + "cut");
  Write(2, Record(2, 6500) + Record(255, 6900) + StepOf(7));
  Read();
  EXPECT_THAT(ends_, ::testing::ElementsAre(1900, 2900, 7900));
  EXPECT_EQ(run_.ranks[0]->steps.back().start_ns, 69'000);
  EXPECT_THAT(texts_, ::testing::ElementsAre("slice 1 before it is missing", "steps of which records are missing are left out; numbers from 3 on may have been higher"));
  EXPECT_EQ(fs::path(run_.problems[0].where).filename(), "training_trace.46.dev.profiler_default_tag.3.slice_2");
  fs::remove(dir_ / "training_trace.46.dev.profiler_default_tag.3.slice_0");
  Read();
  EXPECT_THAT(ends_, ::testing::ElementsAre(7900));
  EXPECT_THAT(texts_, ::testing::ElementsAre("slices 0 to 1 before it are missing", "steps of which records are missing are left out; numbers from 1 on may have been higher"));
}

// analysis 4.1: the id of another job is an error.
TEST_F(MindSporeSlices, RecordsOfNoTraceAreAProblem) {
  Write(0, StepOf(1) + StepOf(2));
  Write(1, std::string(60, '\xEE'));
  Write(2, StepOf(6) + StepOf(7));
  Read();
  EXPECT_THAT(ends_, ::testing::ElementsAre(1900, 2900, 7900));
  EXPECT_THAT(texts_, ::testing::ElementsAre("3 records have the id of another job, or are damaged: left out",
                                             "steps of which records are missing are left out; numbers from 3 on may have been higher"));
}

}  // namespace
}  // namespace profd::analysis
