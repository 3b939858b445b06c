#include "dump/data_name.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

struct Case {
  const char* name;
  const char* base;
  int device;
  uint64_t slice;
  bool compressed;
};

// dump-format, "How profd writes" 1.
TEST(DumpFolders, OnlyWhatTheVendorsAnalyserPassesOverOrTakesForAPlace) {
  for (const char* name : {"host", "device_0", "device_63", "log", ".profiler", "query"}) {
    EXPECT_TRUE(IsTopFolder(name)) << name;
  }
  for (const char* name : {"profd", "host2", "device_", "device_x", "device_1a", "data", "", "logs",
                           "sqlite", "timeline"}) {
    EXPECT_FALSE(IsTopFolder(name)) << name;
  }
}

TEST(DumpFolders, OurFilesHaveOnePathInDumpsOfEveryVersion) {
  EXPECT_EQ(TodaysPath("profd/marks.tsv"), "host/profd/marks.tsv");
  for (const char* path : {"host/profd/marks.tsv", "profd_manifest.json", "host/data/profd/x"}) {
    EXPECT_EQ(TodaysPath(path), path);
  }
  EXPECT_EQ(OwnFileName("host/profd/marks.tsv"), "marks.tsv");
  EXPECT_EQ(OwnFileName("host/profd"), "");
  EXPECT_EQ(OwnFileName("host/data/host_cpu.data.slice_0"), "");
}

TEST(DataName, KnowsEveryStyle) {
  for (const Case& c : {
           Case{"hbm.data.3.slice_0", "hbm.data", 3, 0, false},
           Case{"hbm.data.3.slice_17.zst", "hbm.data", 3, 17, true},
           Case{"host_cpu.data.slice_2", "host_cpu.data", -1, 2, false},
           Case{"4242-CpuUsage.data.0.slice_1", "4242-CpuUsage.data", 0, 1, false},
           Case{"npu_mem.app.1.slice_0", "npu_mem.app", 1, 0, false},
           Case{"hbm.data.5.2.9", "hbm.data", 2, 9, false},
           Case{"hbm.data.5.dev.profiler_default_tag.2.slice_9", "hbm.data", 2, 9, false},
           Case{"aging.compact.task_track.slice_0", "aging.compact.task_track", -1, 0, false},
       }) {
    auto name = ParseDataName(c.name);
    ASSERT_TRUE(name) << c.name;
    EXPECT_EQ(name->base, c.base);
    EXPECT_EQ(name->device, c.device) << c.name;
    EXPECT_EQ(name->slice, c.slice) << c.name;
    EXPECT_EQ(name->compressed, c.compressed) << c.name;
  }
}

TEST(DataName, RefusesTheRest) {
  for (const char* name : {"", "hbm.data", "hbm.data.3", "hbm.data.3.slice_", "hbm.data.3.slice_x",
                           "hbm.data.3.slice_99999999999999999999", ".slice_1", "1.2.3",
                           "x.dev.profiler_default_tag.2.slice_9", "hbm.data.-1.2.3"}) {
    EXPECT_FALSE(ParseDataName(name)) << name;
  }
}

TEST(DataName, KnowsNotes) {
  EXPECT_TRUE(IsNoteName("hbm.data.3.slice_0.done"));
  EXPECT_TRUE(IsNoteName("all_file.complete"));
  EXPECT_FALSE(IsNoteName("hbm.data.3.slice_0"));
}

TEST(FormatOfFile, ByBaseName) {
  ASSERT_NE(FormatOfFile("hbm.data"), nullptr);
  EXPECT_EQ(FormatOfFile("hbm.data")->id, 1u);
  // One channel, two names.
  ASSERT_NE(FormatOfFile("lpmInfoConv.data"), nullptr);
  EXPECT_EQ(FormatOfFile("lpmInfoConv.data"), FormatOfFile("lpmFreqConv.data"));
  EXPECT_EQ(FormatOfFile("host_cpu.data"), nullptr);
  EXPECT_EQ(FormatOfFile(""), nullptr);
}

}  // namespace
}  // namespace profd
