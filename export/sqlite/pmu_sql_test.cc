// SAMPLE_PMU_TIMELINE: the usage of a core.
#include "export/sqlite/test_support.h"

namespace profd::exporting {
namespace {

void ExpectUsageOfCores(bool compat_msprof, const SqlCell& first, const SqlCell& other_first, const SqlCell& back) {
  MadeExport made(1, 1);
  made.Begin(compat_msprof);
  auto sink = made.Open(0, 0);
  auto row = [](int64_t core, int64_t type, int64_t cycles) {
    std::vector<uint64_t> cells(14);
    cells[0] = static_cast<uint64_t>(core);
    cells[1] = static_cast<uint64_t>(type);
    cells[12] = static_cast<uint64_t>(cycles);
    return cells;
  };
  {
    BatchBuilder builder(TableOf(TableId::kAicorePmu), 0, TimeWindow(), *sink);
    builder.AddCells(kMadeBegin, row(0, 0, 1));
    builder.AddCells(kMadeBegin, row(1, 1, 2));
    builder.AddCells(kMadeBegin + 1000, row(0, 0, 500));  // 500 of 1000 cycles of 1 GHz
    builder.AddCells(kMadeBegin + 1000, row(0, 0, 500));  // the same instant again
    builder.AddCells(kMadeBegin + 2000, row(1, 1, 500));
    builder.AddCells(kMadeBegin + 1000, row(1, 1, 500));  // an earlier instant
    builder.Flush();
  }
  ASSERT_TRUE(sink->Finish().ok());
  made.End();
  auto aic = made.strings().Intern("AIC");
  auto aiv = made.strings().Intern("AIV");
  EXPECT_EQ(made.Query("SELECT * FROM SAMPLE_PMU_TIMELINE"),
            (SqlRows{{0, kMadeBegin, 1, first, 1000, 0, aic},
                     {0, kMadeBegin, 2, other_first, 1000, 1, aiv},
                     {0, kMadeBegin + 1000, 500, 50, 1000, 0, aic},
                     {0, kMadeBegin + 2000, 500, 25, 1000, 1, aiv},
                     {0, kMadeBegin + 1000, 500, back, 1000, 1, aiv}}));
  EXPECT_EQ(made.Query("SELECT count(*) FROM PROFD_AICORE_PMU"), (SqlRows{{6}}));
}

TEST(PmuSql, UsageOfACoreIsOfTheTimeSinceItsLastSample) {
  ExpectUsageOfCores(false, SqlCell(), SqlCell(), SqlCell());
  ExpectUsageOfCores(true, 100, 200, -50);  // of 1 ns, which is one cycle
}

}  // namespace
}  // namespace profd::exporting
