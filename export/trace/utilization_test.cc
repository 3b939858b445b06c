#include "export/trace/utilization.h"

#include <gtest/gtest.h>


namespace profd::exporting {
namespace {

class Sink : public BatchSink {
 public:
  explicit Sink(int64_t mhz) : utilization_(mhz) {}
  void Take(const Batch& batch) override { Keep(utilization_.Convert(batch)); }
  void Keep(const Batch& rows) {
    for (size_t i = 0; i < rows.rows(); ++i) {
      rows_.push_back({rows.t_ns[i], rows.Ints(0)[i], rows.Ints(1)[i], rows.Reals(2)[i]});
    }
  }
  struct Row {
    int64_t t_ns, core, type;
    double value;
  };
  Utilization utilization_;
  std::vector<Row> rows_;
};

void Add(Sink* sink, int64_t t_ns, int core, int type, int64_t cycles) {
  TimeWindow window;
  BatchBuilder rows(TableOf(TableId::kAicorePmu), 0, window, *sink);
  rows.Add(t_ns, core, type, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, cycles, 1);
  rows.Flush();
}

TEST(UtilizationTest, OneSampleHasNone) {
  Sink sink(1000);
  Add(&sink, 0, 0, 0, 5);
  sink.Keep(sink.utilization_.Finish(0));
  EXPECT_TRUE(sink.rows_.empty());
}

TEST(UtilizationTest, DuplicateTimestampsAndNoClockAreLeftOut) {
  Sink sink(1000);
  Add(&sink, 10, 0, 0, 5);
  Add(&sink, 10, 0, 0, 5);
  EXPECT_TRUE(sink.rows_.empty());
  Sink without(0);
  Add(&without, 10, 0, 0, 5);
  Add(&without, 20, 0, 0, 5);
  EXPECT_TRUE(without.rows_.empty());
}

TEST(UtilizationTest, TheAverageIsOfTheAiCoresOnly) {
  Sink sink(1000);  // one cycle a ns
  for (int64_t t : {0, 100, 200}) {
    Add(&sink, t, 0, 0, 10);
    Add(&sink, t + 1, 1, 0, 30);
    Add(&sink, t + 1, 30, 1, 100);
  }
  sink.Keep(sink.utilization_.Finish(0));
  ASSERT_EQ(sink.rows_.size(), 8U);
  double average = 0;
  int averages = 0;
  for (const Sink::Row& row : sink.rows_) {
    if (row.type != 2) continue;
    ++averages;
    EXPECT_EQ(row.core, -1);
    average = row.value;
  }
  EXPECT_EQ(averages, 2);
  EXPECT_DOUBLE_EQ(average, 20);
}

}  // namespace
}  // namespace profd::exporting
