#include "export/operators/sort_records.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace profd::exporting::operators {
namespace {

struct Record {
  int key = 0;
  int number = 0;
  bool operator==(const Record&) const = default;
};

bool Less(const Record& a, const Record& b) { return a.key < b.key; }

TEST(SortRecordsTest, IsAStableSort) {
  std::mt19937 random(7);
  for (const int keys : {1, 2, 10, 1000}) {
    for (size_t size = 0; size < 60; ++size) {
      std::vector<Record> records(size);
      for (size_t i = 0; i < size; ++i) records[i] = {static_cast<int>(random() % static_cast<unsigned>(keys)), static_cast<int>(i)};
      std::vector<Record> expected = records;
      std::ranges::stable_sort(expected, Less);
      SortRecords(&records, Less);
      EXPECT_EQ(records, expected) << size << " of " << keys << " keys";
    }
  }
}

TEST(SortRecordsTest, TurnsAroundWhatIsBackwards) {
  std::vector<Record> records(1000);
  for (int i = 0; i < 1000; ++i) records[static_cast<size_t>(i)] = {1000 - i, i};
  SortRecords(&records, Less);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(records[static_cast<size_t>(i)], (Record{i + 1, 999 - i}));
}

}  // namespace
}  // namespace profd::exporting::operators
