#include "export/trace/series.h"

#include <gtest/gtest.h>

#include <vector>

namespace profd::exporting {
namespace {

class Sink : public BatchSink {
 public:
  void Take(const Batch& batch) override {
    for (size_t row = 0; row < batch.rows(); ++row) {
      int64_t hbm = batch.Ints(0)[row];
      int64_t direction = batch.Ints(1)[row];
      auto make = [&](std::span<const int64_t> keys) {
        EXPECT_EQ(keys.size(), 2U);
        ++made_;
        return std::vector<int64_t>(keys.begin(), keys.end());
      };
      std::vector<int64_t>& found = cache_.Find(batch, row, 2, make);
      ASSERT_EQ(found, (std::vector<int64_t>{hbm, direction}));
    }
  }

  SeriesCache<std::vector<int64_t>> cache_;
  int made_ = 0;
};

TEST(SeriesTest, EachIsMadeOnceAndFoundAgain) {
  Sink sink;
  TimeWindow window;
  BatchBuilder rows(TableOf(TableId::kHbm), 0, window, sink);
  for (int i = 0; i < 5000; ++i) rows.Add(i, i * 7 % 13, i % 2, 1.0);
  rows.Flush();
  EXPECT_EQ(sink.made_, 26);
}

TEST(SeriesTest, GarbageDoesNotGrowWithoutBound) {
  Sink sink;
  TimeWindow window;
  BatchBuilder rows(TableOf(TableId::kHbm), 0, window, sink);
  constexpr int kRows = 200'000;
  for (int i = 0; i < kRows; ++i) rows.Add(i, i, 0, 1.0);
  for (int i = kRows - 10; i < kRows; ++i) rows.Add(i, i, 0, 1.0);
  rows.Flush();
  EXPECT_EQ(sink.made_, kRows);
}

}  // namespace
}  // namespace profd::exporting
