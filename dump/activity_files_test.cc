#include "dump/activity_files.h"

#include <gtest/gtest.h>

#include <string>

#include "dump/data_name.h"
#include "dump/mark_files.h"
#include "dump/slice_repair.h"

namespace profd {
namespace {

TEST(ActivityFiles, EveryFileIsKnownByItsNameWithItsRecordSize) {
  constexpr size_t kBytes[] = {48, 64, 40, 48, 56};  // docs/dumps.md
  size_t at = 0;
  for (const ActivityFile& file : ActivityFiles()) {
    EXPECT_EQ(file.record_bytes, kBytes[at++]) << file.file;
    EXPECT_EQ(FindActivityFile(file.file), &file);
    EXPECT_EQ(std::string(file.collector) + ".data", file.file);
    EXPECT_EQ(HostFileOf(file.file).collector, file.collector);
    EXPECT_TRUE(HasHostFiles(file.collector));
    const SliceShape shape = ShapeOf(file.file, true);
    EXPECT_EQ(shape.kind, SliceShape::Kind::kBinary);
    EXPECT_EQ(shape.record_size, file.record_bytes);
  }
  EXPECT_EQ(FindActivityFile("hbm.data"), nullptr);
  EXPECT_EQ(FileOf(ActivityFileId::kMemory).collector, "activity_memory");
}

TEST(ActivityFiles, NamesAreLinesWhateverTheyHold) {
  std::string text(OwnFileHeading(kActivityNamesFile));
  AppendActivityName(7, "MatMul\tV2\n", &text);
  EXPECT_EQ(text, "id\tname\n7\tMatMul V2 \n");
}

}  // namespace
}  // namespace profd
