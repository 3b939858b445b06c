#include "export/csv/parallel_rows.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace profd::exporting::csv {
namespace {

TEST(ParallelRowsTest, LinesAreInTheOrderOfTheirRows) {
  const std::string dir = ::testing::TempDir() + "/rows_" + std::to_string(::getpid());
  std::filesystem::create_directories(dir);
  for (const unsigned threads : {0u, 1u, 2u, 5u}) {
    for (const size_t rows : {size_t{1}, size_t{8192}, size_t{8193}, size_t{50'000}}) {
      std::vector<OutputFile> files;
      CsvFile file({dir, "rows", "1", "Row", rows, 1'000'000, false}, &files);
      const auto add = [](size_t row, std::string* out) { *out += std::to_string(row) + "\n"; };
      ASSERT_TRUE(WriteRows(rows, threads, add, &file).ok());
      ASSERT_TRUE(file.Close().ok());
      std::string expected = "Device_id,Row\n";
      for (size_t row = 0; row < rows; ++row) expected += std::to_string(row) + "\n";
      std::ifstream written(files.at(0).path);
      const std::string text{std::istreambuf_iterator<char>(written), {}};
      EXPECT_EQ(text, expected) << rows << " rows, " << threads << " threads";
      EXPECT_EQ(files.at(0).rows, rows);
    }
  }
  std::filesystem::remove_all(dir);
}

// Cells with lines of their own are not torn where a file is full.
TEST(ParallelRowsTest, QuotedLinesStayInTheirRow) {
  const std::string dir = ::testing::TempDir() + "/quoted_" + std::to_string(::getpid());
  std::filesystem::create_directories(dir);
  std::vector<OutputFile> files;
  CsvFile file({dir, "rows", "1", "Row", 3, 2, false, false}, &files);
  const auto add = [](size_t row, std::string* out) { *out += std::to_string(row) + ",\"a\"\";\r\nb\"\n"; };
  ASSERT_TRUE(WriteRows(3, 1, add, &file).ok());
  ASSERT_TRUE(file.Close().ok());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].rows, 2u);
  std::ifstream written(files[1].path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(written), {}};
  EXPECT_EQ(text, "Row\n2,\"a\"\";\r\nb\"\n");
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace profd::exporting::csv
