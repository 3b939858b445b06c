#include "export/sqlite/page_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/testing/temp_dir.h"
#include "export/sqlite/record.h"
#include "export/sqlite/sqlite_database.h"

namespace profd::exporting {
namespace {

using Rows = std::vector<std::vector<SqlCell>>;

class PageWriterTest : public ::testing::Test {
 protected:
  SqliteDatabase Database() { return std::move(SqliteDatabase::Open(path_)).value(); }
  Rows Query(const std::string& sql) {
    auto rows = Database().Query(sql);
    EXPECT_TRUE(rows.ok()) << rows.status().ToString();
    return rows.ok() ? *rows : Rows();
  }
  int64_t Number(const std::string& sql) {
    Rows rows = Query(sql);
    return rows.size() == 1 ? std::get<int64_t>(rows[0][0]) : -1;
  }
  void Make(const std::string& schema, uint32_t page_size) {
    ASSERT_TRUE(Database().Run(fmt::format("PRAGMA page_size={};{}", page_size, schema)).ok());
  }
  uint32_t Root(const std::string& table) {
    return static_cast<uint32_t>(
        Number(fmt::format("SELECT rootpage FROM sqlite_schema WHERE name = '{}'", table)));
  }
  PageFile Pages(uint32_t page_size, uint64_t lock_byte = kSqliteLockByte) {
    auto pages = static_cast<uint32_t>(std::filesystem::file_size(path_) / page_size);
    return PageFile(UniqueFd(::open(path_.c_str(), O_RDWR | O_CLOEXEC)), page_size, pages, lock_byte);
  }
  // Table t, its rows by `fill`; the file is sound then. How many pages it has.
  uint64_t WriteTable(const std::string& columns, uint32_t page_size, const std::function<void(TableTree&)>& fill,
                      uint64_t lock_byte = kSqliteLockByte) {
    Make(fmt::format("CREATE TABLE t ({})", columns), page_size);
    const uint32_t root = Root("t");
    PageFile file = Pages(page_size, lock_byte);
    TableTree tree(file);
    fill(tree);
    EXPECT_TRUE(tree.Finish(file, root).ok());
    EXPECT_TRUE(file.PatchHeader().ok());
    ExpectSound();
    return file.pages();
  }
  void ExpectSound() {
    Rows rows = Query("PRAGMA integrity_check");
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(std::get<std::string>(rows[0][0]), "ok");
    EXPECT_EQ(Number("PRAGMA freelist_count"), 0);
  }

  TempDir dir_;
  const std::string path_ = dir_ / "pages.db";
};

constexpr char kColumns[] = "v INTEGER, d INTEGER";

// Rows (rowid, rowid * 3, device) from `first` on.
void Fill(TableTree& tree, int64_t first, int64_t count, uint64_t device) {
  LeafBuilder leaf(tree);
  CellEncoder encoder;
  uint64_t value = 0;
  std::array<CellColumn, 2> columns{{{&value, 0, CellKind::kInt}, {&device, 0, CellKind::kInt}}};
  for (int64_t row = first; row < first + count; ++row) {
    value = static_cast<uint64_t>(row * 3);
    ASSERT_TRUE(leaf.Commit(row, encoder.Encode(leaf.cell(), row, columns, 0)).ok());
  }
  ASSERT_TRUE(leaf.Flush().ok());
}

TEST_F(PageWriterTest, TableOfOneLeafIsItsRoot) {
  const uint64_t pages = WriteTable(kColumns, 4096, [](TableTree& tree) { Fill(tree, 1, 3, 7); });
  EXPECT_EQ(pages, 2u);  // the schema's and the table's
  Rows rows = Query("SELECT rowid, v, d FROM t");
  EXPECT_EQ(rows, (Rows{{int64_t{1}, int64_t{3}, int64_t{7}},
                        {int64_t{2}, int64_t{6}, int64_t{7}},
                        {int64_t{3}, int64_t{9}, int64_t{7}}}));
}

TEST_F(PageWriterTest, AnInterruptEndsTheNextPage) {
  Make("CREATE TABLE t (v)", 4096);
  bool interrupted = false;
  PageFile file(UniqueFd(::open(path_.c_str(), O_RDWR | O_CLOEXEC)), 4096, 2, kSqliteLockByte,
                [&interrupted] { return !interrupted; });
  const std::vector<std::byte> page(4096);
  EXPECT_TRUE(file.Append({page}).ok());
  interrupted = true;
  EXPECT_EQ(file.Append({page}).status().code(), StatusCode::kCancelled);
}

TEST_F(PageWriterTest, EmptyTableStaysEmpty) {
  WriteTable("v", 4096, [](TableTree& tree) { EXPECT_TRUE(tree.empty()); });
  EXPECT_EQ(Number("SELECT count(*) FROM t"), 0);
}

// 512 bytes a page: 33 children at most in one, so that a few thousand leaves are four levels.
TEST_F(PageWriterTest, TreeOfManyLevelsIsSoundAtEverySize) {
  for (int64_t count : {1, 40, 41, 45, 90, 1300, 1500, 60000}) {
    SCOPED_TRACE(count);
    std::filesystem::remove(path_);
    WriteTable(kColumns, 512, [count](TableTree& tree) { Fill(tree, 1, count, 1); });
    EXPECT_EQ(Number("SELECT count(*) FROM t"), count);
    EXPECT_EQ(Number("SELECT sum(v) FROM t"), count * (count + 1) / 2 * 3);
    EXPECT_EQ(Number(fmt::format("SELECT v FROM t WHERE rowid = {}", count)), count * 3);
    EXPECT_EQ(Number("SELECT count(*) FROM t WHERE v <> rowid * 3"), 0);
  }
}

TEST_F(PageWriterTest, EverySerialType) {
  std::vector<int64_t> integers{0, 1, 2, -1, -2};
  for (int bits : {7, 8, 15, 16, 23, 24, 31, 32, 47, 48, 62}) {
    int64_t edge = int64_t{1} << bits;
    for (int64_t value : {edge - 1, edge, -edge, -edge - 1}) integers.push_back(value);
  }
  integers.push_back(std::numeric_limits<int64_t>::max());
  integers.push_back(std::numeric_limits<int64_t>::min());
  std::vector<double> reals{0.0,   -0.0, 1.0,    0.5,  -3.0, 1e300, 9007199254740993.0, 1.25e18,
                            -0.25, 1e19, -1e-30, NAN,  std::numeric_limits<double>::infinity()};
  WriteTable("i INTEGER, n NUMERIC, r REAL", 4096, [&](TableTree& tree) {
    LeafBuilder leaf(tree);
    CellEncoder encoder;
    int64_t row = 0;
    for (int64_t integer : integers) {
      auto cell = static_cast<uint64_t>(integer);
      auto real = std::bit_cast<uint64_t>(reals[static_cast<size_t>(row) % reals.size()]);
      std::array<CellColumn, 3> columns{{{&cell, 0, CellKind::kInt},
                                         {&real, 0, CellKind::kNumeric},
                                         {&real, 0, CellKind::kReal}}};
      ++row;
      ASSERT_TRUE(leaf.Commit(row, encoder.Encode(leaf.cell(), row, columns, 0)).ok());
    }
    ASSERT_TRUE(leaf.Flush().ok());
  });
  Rows rows = Query("SELECT i, n, r, typeof(n), typeof(r) FROM t ORDER BY rowid");
  ASSERT_EQ(rows.size(), integers.size());
  // What the library itself makes of the same values.
  const std::string other_path = path_ + ".reference";
  SqliteDatabase other = std::move(SqliteDatabase::Open(other_path)).value();
  std::filesystem::remove(other_path);  // stays readable until it is closed
  ASSERT_TRUE(other.Run("CREATE TABLE t (i INTEGER, n NUMERIC, r REAL)").ok());
  Rows given;
  for (size_t i = 0; i < integers.size(); ++i) {
    double real = reals[i % reals.size()];
    given.push_back({integers[i], real, real});
  }
  ASSERT_TRUE(other.Insert("t", given).ok());
  auto expected = other.Query("SELECT i, n, r, typeof(n), typeof(r) FROM t ORDER BY rowid");
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ(rows, *expected);
}

TEST_F(PageWriterTest, VarintsOfAllLengths) {
  WriteTable(kColumns, 1024, [](TableTree& tree) {
    for (int bits = 0; bits < 63; ++bits) {
      int64_t rowid = int64_t{1} << bits;
      LeafBuilder leaf(tree);
      CellEncoder encoder;
      uint64_t value = static_cast<uint64_t>(rowid);
      std::array<CellColumn, 2> columns{{{&value, 0, CellKind::kInt}, {&value, 0, CellKind::kInt}}};
      ASSERT_TRUE(leaf.Commit(rowid, encoder.Encode(leaf.cell(), rowid, columns, 0)).ok());
      ASSERT_TRUE(leaf.Flush().ok());
    }
  });
  EXPECT_EQ(Number("SELECT count(*) FROM t WHERE v = rowid AND d = rowid"), 63);
}

TEST_F(PageWriterTest, ManyTablesFromManyThreads) {
  constexpr int kTables = 30;
  std::string schema;
  for (int i = 0; i < kTables; ++i) schema += fmt::format("CREATE TABLE t{} (v INTEGER, d INTEGER);", i);
  Make(schema, 4096);
  std::vector<uint32_t> roots;
  for (int i = 0; i < kTables; ++i) roots.push_back(Root(fmt::format("t{}", i)));
  PageFile file = Pages(4096);
  std::deque<TableTree> trees;
  for (int i = 0; i < kTables; ++i) trees.emplace_back(file);
  std::vector<std::thread> threads;
  for (int64_t place = 3; place >= 0; --place) {
    threads.emplace_back([&trees, place] {
      for (int64_t i = 0; i < kTables; ++i) {
        Fill(trees[static_cast<size_t>(i)], place * 100000 + 1, i * 37, static_cast<uint64_t>(place));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kTables; ++i) ASSERT_TRUE(trees[i].Finish(file, roots[i]).ok());
  ASSERT_TRUE(file.PatchHeader().ok());
  ExpectSound();
  for (int i = 0; i < kTables; ++i) {
    EXPECT_EQ(Number(fmt::format("SELECT count(*) FROM t{} WHERE v = rowid * 3", i)), i * 37 * 4);
    EXPECT_EQ(Number(fmt::format("SELECT count(*) FROM t{} WHERE d <> rowid / 100000", i)), 0);
  }
}

TEST_F(PageWriterTest, MillionsOfRowsOnLargePagesSurviveVacuum) {
  constexpr int64_t kRows = 3'000'000;
  WriteTable(kColumns, 65536, [](TableTree& tree) { Fill(tree, 1, kRows, 5); });
  EXPECT_EQ(Number("SELECT count(*) FROM t"), kRows);
  ASSERT_TRUE(Database().Run("DELETE FROM t WHERE rowid % 1000 = 0; INSERT INTO t VALUES (1, 2);"
                             "CREATE INDEX i ON t (v); VACUUM")
                  .ok());
  ExpectSound();
  EXPECT_EQ(Number("SELECT count(*) FROM t"), kRows - kRows / 1000 + 1);
}

// The library knows where its locks are; here they are brought nearer than 1 GiB.
TEST_F(PageWriterTest, PageOfTheLocksIsLeftOut) {
  constexpr unsigned kLockByte = 512 * 100;
  const auto usual = static_cast<unsigned>(sqlite3_test_control(SQLITE_TESTCTRL_PENDING_BYTE, 0));
  sqlite3_test_control(SQLITE_TESTCTRL_PENDING_BYTE, kLockByte);
  WriteTable(kColumns, 512, [](TableTree& tree) { Fill(tree, 1, 20000, 1); }, kLockByte);
  EXPECT_EQ(Number("SELECT count(*) FROM t"), 20000);
  sqlite3_test_control(SQLITE_TESTCTRL_PENDING_BYTE, usual);
}

TEST_F(PageWriterTest, WriteErrorIsReported) {
  int fd = ::open("/dev/full", O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  PageFile file(UniqueFd(fd), 4096, 1);
  std::vector<std::byte> page(4096);
  EXPECT_EQ(file.Append({page}).status().code(), StatusCode::kResourceExhausted);
}

TEST(RowidBlocks, AscendByPlaceAndContinueBehindAllWhenFull) {
  RowidBlocks blocks(2);
  EXPECT_EQ(blocks.Next(0), 1);
  EXPECT_EQ(blocks.Next(1), 256 * RowidBlocks::kBlock + 1);
  for (int64_t i = 1; i < 256; ++i) EXPECT_EQ(blocks.Next(0), i * RowidBlocks::kBlock + 1);
  EXPECT_EQ(blocks.Next(0), 512 * RowidBlocks::kBlock + 1);
  EXPECT_EQ(blocks.Next(1), 257 * RowidBlocks::kBlock + 1);
  EXPECT_EQ(blocks.Next(0), 513 * RowidBlocks::kBlock + 1);
}

}  // namespace
}  // namespace profd::exporting
