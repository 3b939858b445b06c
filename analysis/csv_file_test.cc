#include "analysis/read/csv_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/testing/temp_dir.h"

namespace profd::analysis {
namespace {

class CsvFileTest : public ::testing::Test {
 protected:
  std::vector<std::vector<std::string>> Rows(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    auto file = CsvFile::Open(path_);
    EXPECT_TRUE(file.ok()) << file.status().message();
    std::vector<std::vector<std::string>> rows;
    if (!file.ok()) return rows;
    while (file->Next()) {
      auto& row = rows.emplace_back();
      for (size_t i = 0; i < file->header().size(); ++i) row.emplace_back(file->Field(static_cast<int>(i)));
    }
    EXPECT_TRUE(file->status().ok());
    return rows;
  }

  TempDir dir_;
  const std::filesystem::path path_ = dir_ / "rows.csv";
};

using Rows = std::vector<std::vector<std::string>>;

TEST_F(CsvFileTest, QuotesLineBreaksAndBlanks) {
  EXPECT_EQ(Rows("a,b,c\n1, two ,\"3,\"\"x\"\"\ny\"\r\n\n4\t,5,\n"),
            (::profd::analysis::Rows{{"1", "two", "3,\"x\"\ny"}, {"4", "5", ""}}));
}

TEST_F(CsvFileTest, LastLineWithoutItsEndAndAByteOrderMark) {
  std::ofstream(path_, std::ios::binary) << "\xEF\xBB\xBFName,Size(KB)\nx,1.5";
  auto file = CsvFile::Open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->Column({"Nothing", "Name"}), 0);
  EXPECT_EQ(file->Column({"Nothing"}), -1);
  ASSERT_TRUE(file->Next());
  EXPECT_EQ(file->Number(1), 1.5);
  EXPECT_EQ(file->Number(0), std::nullopt);
  EXPECT_EQ(file->Field(7), "");
  EXPECT_FALSE(file->Next());
}

// Records cross the border of what is read at a time, at each of their bytes.
TEST_F(CsvFileTest, BordersOfReads) {
  constexpr size_t kBorder = 1 << 20;
  const std::string record = "\"q\"\"1\",2\n";
  for (size_t at = 0; at <= record.size(); ++at) {
    const std::string before(kBorder - 4 - at - 3, 'x');
    const auto rows = Rows("a,b\n" + before + ",1\n" + record + "3,4\n");
    ASSERT_EQ(rows.size(), 3u) << at;
    EXPECT_EQ(rows[0][0].size(), before.size());
    EXPECT_EQ(rows[1], (std::vector<std::string>{"q\"1", "2"})) << at;
    EXPECT_EQ(rows[2], (std::vector<std::string>{"3", "4"})) << at;
  }
}

TEST_F(CsvFileTest, LinesOfRecords) {
  std::ofstream(path_, std::ios::binary) << "a,b\n1,\"x\ny\"\n\n2,3\n";
  auto file = CsvFile::Open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->line(), 1u);
  ASSERT_TRUE(file->Next());
  EXPECT_EQ(file->line(), 2u);
  ASSERT_TRUE(file->Next());
  EXPECT_EQ(file->line(), 5u) << "one record has two lines, one line is empty";
}

// Several times what is read at a time, in records that do not end with it.
TEST_F(CsvFileTest, ManyRecords) {
  constexpr int kRecords = 400'000;
  {
    std::ofstream out(path_, std::ios::binary);
    out << "a,b\n";
    for (int i = 0; i < kRecords; ++i) out << i << ",\"" << i % 7 << "\n\"\n";
  }
  auto file = CsvFile::Open(path_);
  ASSERT_TRUE(file.ok());
  for (int i = 0; i < kRecords; ++i) {
    ASSERT_TRUE(file->Next()) << i;
    ASSERT_EQ(file->Number(0), i);
    ASSERT_EQ(file->Number(1), i % 7);
    ASSERT_EQ(file->line(), static_cast<uint64_t>(2 * i + 2));
  }
  EXPECT_FALSE(file->Next());
}

TEST_F(CsvFileTest, Integers) {
  std::ofstream(path_, std::ios::binary) << "a,b,c,d,e\n-3,2.9,1e300,x,-1e15\n";
  auto file = CsvFile::Open(path_);
  ASSERT_TRUE(file.ok() && file->Next());
  EXPECT_EQ(file->Integer(0), -3);
  EXPECT_EQ(file->Integer(1), 2);
  for (const int none : {2, 3, 4}) EXPECT_EQ(file->Integer(none), std::nullopt) << none;
}

TEST_F(CsvFileTest, RecordsWithFewerFieldsThanNames) {
  std::ofstream(path_, std::ios::binary) << "a,b,c,\n1,2,3\n4,5,\n1,2\n1,2,3,4,5\n1,\"2,3\n";
  auto file = CsvFile::Open(path_);
  ASSERT_TRUE(file.ok());
  std::vector<uint64_t> lines;
  while (file->Next()) {
    lines.push_back(file->line());
    if (file->Field(0) == "4") file->LeaveOut();
  }
  EXPECT_EQ(lines, (std::vector<uint64_t>{2, 3, 5})) << "the last name is empty";
  EXPECT_EQ(file->left_out().Text(), "3 lines make no sense: left out, the first is line 3");
  EXPECT_TRUE(file->has_records());
}

// Of ranks of two releases, the older of which does not write the third column. The end of the last line may be missing.
TEST_F(CsvFileTest, RecordsMayLackAColumn) {
  std::ofstream(path_, std::ios::binary) << "a,b,c,d\n1,2,3,4\n5,\"6\",7\r\n8,9\n1,2,\n1,2,3";
  auto file = CsvFile::Open(path_);
  ASSERT_TRUE(file.ok());
  file->MayLack(2);
  ::profd::analysis::Rows rows;
  while (file->Next()) rows.push_back({std::string(file->Field(1)), std::string(file->Field(2)), std::string(file->Field(3))});
  EXPECT_EQ(rows, (::profd::analysis::Rows{{"2", "3", "4"}, {"6", "", "7"}, {"2", "", ""}}));
  EXPECT_EQ(file->left_out().Text(), "2 lines make no sense: left out, the first is line 4");
}

TEST_F(CsvFileTest, NoHeader) {
  std::ofstream(path_).close();
  EXPECT_EQ(CsvFile::Open(path_).status().message(), "the file is empty") << "callers say which";
  EXPECT_FALSE(CsvFile::Open(path_.string() + ".none").ok());
}

TEST(MicrosAsNsTest, KeepsEveryNanosecond) {
  EXPECT_EQ(MicrosAsNs("1736408883704643.212\t"), 1736408883704643212);
  EXPECT_EQ(MicrosAsNs("12"), 12000);
  EXPECT_EQ(MicrosAsNs("-1.5"), -1500);
  EXPECT_EQ(MicrosAsNs("0.0016"), 2);
  EXPECT_EQ(MicrosAsNs("1e3"), 1000000);
  EXPECT_EQ(MicrosAsNs("1.5e3"), 1500000);
  EXPECT_EQ(MicrosAsNs("-1.736408883e+15"), -1736408883000000000);
  for (const char* bad : {"", "x", "1.2x", "nan", "inf", "99999999999999999999", "1e300", "1 2", "--9223372036854775807", "9223372036854774", "-4.7e15"}) {
    EXPECT_EQ(MicrosAsNs(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace profd::analysis
