#include "dump/mark_files.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace profd {
namespace {

TEST(MarkFiles, LinesHaveTheirColumnsWhateverTheName) {
  std::string text(kMarksHeading);
  AppendMarkLine({12, 34, 5, 56, "mark", "load\tdata\n\x7f", 0}, &text);
  AppendMarkLine({13, 34, std::nullopt, 56, "step_begin", "", 7}, &text);
  AppendMarkLine({14, 34, 5, 56, "range_start", "all\treduce", 9, "a\tdomain"}, &text);
  EXPECT_EQ(text,
            "time_ns\tpid\trank\tthread\tkind\tname\tvalue\tdomain\n"
            "12\t34\t5\t56\tmark\tload data  \t0\t\n"
            "13\t34\t\t56\tstep_begin\t\t7\t\n"
            "14\t34\t5\t56\trange_start\tall reduce\t9\ta domain\n");
}

TEST(MarkFiles, HeadingsOfOwnFilesOnly) {
  EXPECT_EQ(OwnFileHeading("samples.tsv"), kOwnSamplesHeading);
  EXPECT_EQ(OwnFileHeading("marks.tsv"), kMarksHeading);
  EXPECT_EQ(OwnFileHeading("../passwd"), "");
}

// dump-format 2.12: BBHLQQQHHHH, tag 10 in byte 1.
TEST(MarkFiles, StepRecordHasTheVendorsLayout) {
  auto record = StepRecord(5, 0x1122334455667788, 41, true);
  EXPECT_EQ(record[1], std::byte{10});
  EXPECT_EQ(LoadUnchecked<uint64_t>(record, 8), 0x1122334455667788u);
  EXPECT_EQ(LoadUnchecked<uint64_t>(record, 16), 41u);
  EXPECT_EQ(LoadUnchecked<uint64_t>(record, 24), 4294967295u);
  EXPECT_EQ(LoadUnchecked<uint16_t>(record, 32), 0);
  EXPECT_EQ(LoadUnchecked<uint16_t>(record, 36), 60000);
  EXPECT_EQ(LoadUnchecked<uint16_t>(StepRecord(5, 1, 41, false), 36), 60001);
}

TEST(MarkFiles, NewestChipsHaveTheTagFirst) {
  for (uint32_t chip : {15u, 16u}) {
    auto record = StepRecord(chip, 9, 2, false);
    EXPECT_EQ(LoadUnchecked<uint16_t>(record, 32), 60001);
    EXPECT_EQ(LoadUnchecked<uint16_t>(record, 36), 0);
  }
}

}  // namespace
}  // namespace profd
