#include "export/operators/device_marks.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace profd::exporting::operators {
namespace {

// A record of the step trace (dump-format 2.12).
struct Fields {
  uint64_t time = 0;
  uint64_t mark = 0;
  uint16_t stream = 0;
  uint32_t task = 0;
  uint16_t tag = 11;
};

template <typename T>
void Store(size_t offset, T value, std::vector<std::byte>* record) {
  std::memcpy(record->data() + offset, &value, sizeof value);
}

std::vector<std::byte> TsTrack(const Fields& fields, bool v6) {
  std::vector<std::byte> record(40);
  Store<uint8_t>(1, 10, &record);
  Store(8, fields.time, &record);
  Store(16, fields.mark, &record);
  Store<uint64_t>(24, 0xFFFFFFFF, &record);
  Store(v6 ? 34 : 32, fields.stream, &record);
  v6 ? Store(36, fields.task, &record) : Store(34, static_cast<uint16_t>(fields.task), &record);
  Store(v6 ? 32 : 36, fields.tag, &record);
  return record;
}

int64_t SameTime(uint64_t count) { return static_cast<int64_t>(count); }

TEST(DeviceMarksTest, OneRecordIsAPointAndTwoAreARange) {
  DeviceMarkRecords records(false);
  records.Feed(TsTrack({.time = 70, .mark = 6, .stream = 3, .task = 9}, false));
  records.Feed(TsTrack({.time = 20, .mark = 5, .stream = 2, .task = 7}, false));
  records.Feed(TsTrack({.time = 50, .mark = 6, .stream = 0x803, .task = 8}, false));
  records.Feed(TsTrack({.time = 60, .mark = 7, .tag = 4}, false));
  const std::vector<DeviceMark> marks = records.Finish(1, SameTime);
  ASSERT_EQ(marks.size(), 2u);
  EXPECT_EQ(marks[0].mark, 5u);
  EXPECT_EQ(marks[0].start_ns, 20);
  EXPECT_EQ(marks[0].end_ns, 20);
  EXPECT_EQ(marks[0].device, 1);
  EXPECT_EQ(marks[0].stream, 2);
  EXPECT_EQ(marks[0].task, 7u);
  EXPECT_EQ(marks[1].mark, 6u);
  EXPECT_EQ(marks[1].start_ns, 50);
  EXPECT_EQ(marks[1].end_ns, 70);
  EXPECT_EQ(marks[1].stream, 3);  // of 11 bits
  EXPECT_EQ(marks[1].task, 8u);
}

TEST(DeviceMarksTest, Chips15And16HaveTheTagBeforeStreamAndTask) {
  DeviceMarkRecords records(true);
  // The low half of the task is where other chips have the tag.
  records.Feed(TsTrack({.time = 20, .mark = 5, .stream = 2, .task = 0x10203}, true));
  records.Feed(TsTrack({.time = 30, .mark = 8, .stream = 2, .task = 11, .tag = 4}, true));
  const std::vector<DeviceMark> marks = records.Finish(0, SameTime);
  ASSERT_EQ(marks.size(), 1u);
  EXPECT_EQ(marks[0].mark, 5u);
  EXPECT_EQ(marks[0].start_ns, 20);
  EXPECT_EQ(marks[0].stream, 2);
  EXPECT_EQ(marks[0].task, 0x10203u);
}

}  // namespace
}  // namespace profd::exporting::operators
