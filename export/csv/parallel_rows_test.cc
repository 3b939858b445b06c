#include "export/csv/parallel_rows.h"

#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"

namespace profd::exporting::csv {
namespace {

TEST(ParallelRowsTest, LinesAreInTheOrderOfTheirRows) {
  const TempDir dir;
  for (const unsigned threads : {0u, 1u, 2u, 5u}) {
    for (const size_t rows : {size_t{1}, size_t{8192}, size_t{8193}, size_t{50'000}}) {
      std::vector<OutputFile> files;
      CsvFile file({dir.path(), "rows", "1", "Row", rows, 1'000'000, false}, &files);
      const auto add = [](size_t row, std::string* out) { *out += std::to_string(row) + "\n"; };
      ASSERT_TRUE(WriteRows(rows, threads, add, &file).ok());
      ASSERT_TRUE(file.Close().ok());
      std::string expected = "Device_id,Row\n";
      for (size_t row = 0; row < rows; ++row) expected += std::to_string(row) + "\n";
      EXPECT_EQ(ReadText(files.at(0).path), expected) << rows << " rows, " << threads << " threads";
      EXPECT_EQ(files.at(0).rows, rows);
    }
  }
}

// Cells with lines of their own are not torn where a file is full.
TEST(ParallelRowsTest, QuotedLinesStayInTheirRow) {
  const TempDir dir;
  std::vector<OutputFile> files;
  CsvFile file({dir.path(), "rows", "1", "Row", 3, 2, false, false}, &files);
  const auto add = [](size_t row, std::string* out) { *out += std::to_string(row) + ",\"a\"\";\r\nb\"\n"; };
  ASSERT_TRUE(WriteRows(3, 1, add, &file).ok());
  ASSERT_TRUE(file.Close().ok());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].rows, 2u);
  EXPECT_EQ(ReadText(files[1].path), "Row\n2,\"a\"\";\r\nb\"\n");
}

TEST(ParallelRowsTest, AnInterruptEndsTheFile) {
  const TempDir dir;
  std::vector<OutputFile> files;
  bool interrupted = false;
  const GoOn go_on = [&interrupted] { return !interrupted; };
  CsvFile file({dir.path(), "rows", "1", "Row", 50'000, 1'000'000, false, true, go_on}, &files);
  size_t made = 0;
  const auto add = [&](size_t row, std::string* out) {
    *out += "1\n";
    made = row + 1;
    interrupted |= row == 20'000;
  };
  EXPECT_EQ(WriteRows(50'000, 1, add, &file).code(), StatusCode::kCancelled);
  EXPECT_LT(made, 50'000u);
}

}  // namespace
}  // namespace profd::exporting::csv
