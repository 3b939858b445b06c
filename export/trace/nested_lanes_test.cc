#include "export/trace/nested_lanes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace profd::exporting {
namespace {

using ::testing::ElementsAre;

class NestedLanesTest : public ::testing::Test, protected NestedLanes::Events {
 protected:
  struct Row {
    std::vector<int64_t> open;
    int64_t last_ns = 0;
  };
  void Begin(const Slice& slice, size_t lane, size_t row) override {
    Row& to = rows_[{lane, row}];
    EXPECT_GE(slice.t_ns, to.last_ns) << "in the order of time";
    to.last_ns = slice.t_ns;
    to.open.push_back(slice.t_ns + slice.dur_ns);
    seen_.push_back(fmt::format("{}.{} begin {}", lane, row, slice.t_ns));
  }
  void End(int64_t t_ns, size_t lane, size_t row) override {
    Row& to = rows_[{lane, row}];
    EXPECT_GE(t_ns, to.last_ns) << "in the order of time";
    to.last_ns = t_ns;
    ASSERT_FALSE(to.open.empty());
    EXPECT_EQ(to.open.back(), t_ns) << "the end of the slice that began last";
    to.open.pop_back();
    seen_.push_back(fmt::format("{}.{} end {}", lane, row, t_ns));
  }
  void Crowded(const Slice& slice, size_t lane) override {
    seen_.push_back(fmt::format("{} crowded {}", lane, slice.t_ns));
  }

  void Add(size_t lane, int64_t begin, int64_t end) {
    Slice slice;
    slice.t_ns = begin;
    slice.dur_ns = end - begin;
    nested_.Add(lane, std::move(slice));
  }

  std::vector<std::string> seen_;
  std::map<std::pair<size_t, size_t>, Row> rows_;
  NestedLanes nested_{*this};
};

TEST_F(NestedLanesTest, NeighboursAndSlicesWithinAreOneRow) {
  Add(0, 20, 30);
  Add(0, 12, 20);  // comes late
  Add(0, 5, 8);    // an inner call ends, and is known, first
  Add(0, 0, 10);
  nested_.Finish();
  EXPECT_THAT(seen_, ElementsAre("0.0 begin 0", "0.0 begin 5", "0.0 end 8", "0.0 end 10", "0.0 begin 12", "0.0 end 20",
                                 "0.0 begin 20", "0.0 end 30"));
}

TEST_F(NestedLanesTest, OneTimestampForMany) {
  Add(0, 5, 5);
  Add(0, 5, 9);
  Add(0, 5, 5);
  Add(0, 9, 9);
  nested_.Finish();
  EXPECT_THAT(seen_, ElementsAre("0.0 begin 5", "0.0 begin 5", "0.0 end 5", "0.0 begin 5", "0.0 end 5", "0.0 end 9",
                                 "0.0 begin 9", "0.0 end 9"));
}

TEST_F(NestedLanesTest, OverlappingSlicesAreOnTheNextRow) {
  Add(0, 0, 10);
  Add(0, 5, 15);
  Add(1, 5, 15);
  Add(0, 12, 13);
  nested_.Finish();
  EXPECT_THAT(seen_, ElementsAre("0.0 begin 0", "0.1 begin 5", "0.0 end 10", "0.0 begin 12", "0.0 end 13", "0.1 end 15",
                                 "1.0 begin 5", "1.0 end 15"));
}

TEST_F(NestedLanesTest, LaterThanItCanWaitIsOnTheNextRow) {
  for (int64_t i = 0; i <= static_cast<int64_t>(NestedLanes::kWaiting); ++i) Add(0, 10 + i, 11 + i);
  Add(0, 1, 2);  // before the one that was written
  nested_.Finish();
  EXPECT_EQ(seen_.front(), "0.0 begin 10");
  EXPECT_EQ(seen_[1], "0.1 begin 1");
  EXPECT_EQ(seen_.size(), 2 * (NestedLanes::kWaiting + 2));
}

TEST_F(NestedLanesTest, RowsAreBounded) {
  const auto rows = static_cast<int64_t>(NestedLanes::kRows);
  for (int64_t i = 0; i < rows + 2; ++i) Add(0, i, 1000 + i);
  nested_.Finish();
  EXPECT_EQ(seen_[static_cast<size_t>(rows)], "0 crowded 64");
  EXPECT_EQ(seen_.size(), 2 * NestedLanes::kRows + 2);
}

TEST_F(NestedLanesTest, DepthIsBounded) {
  for (int64_t i = 0; i < 300; ++i) Add(0, i, 1000 - i);
  nested_.Finish();
  EXPECT_EQ(seen_[255], "0.0 begin 255");
  EXPECT_EQ(seen_[256], "0.1 begin 256");
}

TEST_F(NestedLanesTest, ManyLanesDoNotWaitForever) {
  for (size_t lane = 0; lane <= NestedLanes::kAllWaiting; ++lane) Add(lane, 1, 2);
  EXPECT_EQ(seen_.size(), 1U);
  nested_.Finish();
  EXPECT_EQ(seen_.size(), 2 * (NestedLanes::kAllWaiting + 1));
}

}  // namespace
}  // namespace profd::exporting
