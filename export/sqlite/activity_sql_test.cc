// Tables and views of what training processes did.
#include "export/sqlite/test_support.h"

namespace profd::exporting {
namespace {

TEST(ActivitySql, ViewsHaveNamesRanksAndEnds) {
  for (size_t dumps : {1, 2}) {
    MadeExport made(dumps, 1);
    auto id = [&](std::string_view text) { return made.strings().Intern(text); };
    auto sink = made.Open(0, -1);
    // name, type, duration, stream, pid, rank, thread, correlation
    Feed(*sink, TableId::kKernel, 0)
        .Row(kMadeBegin + 10, id("MatMul"), id("KERNEL_AICORE"), 250, 5, 42, 7, 43, 9)
        .Row(kMadeBegin + 300, id("Add"), id("KERNEL_AIVEC"), 50, 5, 42, -1, 43, 0);
    // name, level, duration, pid, rank, thread, correlation
    Feed(*sink, TableId::kApi, -1).Row(kMadeBegin, id("launch"), 3, 8, 42, 7, 43, 9);
    // name, domain, source, kind, id, stream, pid, rank, thread
    Feed(*sink, TableId::kMarker, 0).Row(kMadeBegin, id("step"), id("default"), 1, 1, 77, 5, 42, 7, 0);
    ASSERT_TRUE(sink->Finish().ok());
    sink.reset();
    made.End();
    EXPECT_EQ(made.Query("SELECT * FROM profd_kernels ORDER BY start_ns"),
              (SqlRows{{kMadeBegin + 10, kMadeBegin + 260, std::string("node0"), std::string("job7"), int64_t{7},
                        int64_t{0}, int64_t{42}, int64_t{5}, std::string("MatMul"),
                        std::string("KERNEL_AICORE"), int64_t{43}, int64_t{9}},
                       {kMadeBegin + 300, kMadeBegin + 350, std::string("node0"), std::string("job7"),
                        int64_t{0}, int64_t{0}, int64_t{42}, int64_t{5}, std::string("Add"),
                        std::string("KERNEL_AIVEC"), int64_t{43}, int64_t{0}}}));
    EXPECT_EQ(made.Query("SELECT a.level, a.name, k.name FROM profd_api a JOIN profd_kernels k "
                         "ON k.pid = a.pid AND k.correlation = a.correlation"),
              (SqlRows{{std::string("runtime"), std::string("launch"), std::string("MatMul")}}));
    EXPECT_EQ(made.Query("SELECT source, kind, id, name, domain, end_ns - start_ns FROM profd_markers"),
              (SqlRows{{std::string("device"), std::string("start"), int64_t{77}, std::string("step"),
                        std::string("default"), int64_t{0}}}));
    EXPECT_TRUE(made.Query("SELECT name FROM sqlite_schema WHERE name = 'PROFD_MEMORY_ROWS'").empty());
    EXPECT_TRUE(made.Query("SELECT sum(bytes), detail, correlation FROM profd_memory GROUP BY rank").empty());
  }
}

}  // namespace
}  // namespace profd::exporting
