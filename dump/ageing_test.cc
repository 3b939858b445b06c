#include "dump/ageing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "dump/session_dump.h"
#include "dump/test_support.h"

namespace profd {
namespace {

class AgeingTest : public testing::Test {
 protected:
  // What goes next, as "file/slice"; "-" = nothing may.
  std::string Next(std::optional<size_t> place = std::nullopt) {
    auto slice = ageing_.Oldest(place);
    if (!slice) return "-";
    ageing_.Gone(*slice);
    return std::to_string(slice->file) + "/" + std::to_string(slice->slice);
  }
  std::set<uint32_t> open_;
  Ageing ageing_{[this](Ageing::FileId file) { return open_.contains(file); }};
};

TEST(AgeingLimits, HalfOfTheOptionPerDirectoryInFullMegabytes) {
  EXPECT_EQ(PlaceLimit(200ULL << 20), 100ULL << 20);
  EXPECT_EQ(PlaceLimit(201ULL << 20), 100ULL << 20);
  EXPECT_EQ(PlaceLimit(4294967295ULL << 20), 2147483647ULL << 20);
  EXPECT_EQ(PlaceThreshold(100ULL << 20), 80ULL << 20);
  EXPECT_EQ(PlaceThreshold(10ULL << 20), 5ULL << 20);
}

TEST_F(AgeingTest, TheOldestGoesFirstAndTheLastOfAFileStays) {
  auto hbm = ageing_.AddFile(0, "hbm.data");
  auto ddr = ageing_.AddFile(0, "ddr.data");
  auto host = ageing_.AddFile(1, "host_cpu.data");
  ageing_.Closed(hbm, 0, 10);
  ageing_.Closed(host, 0, 5);
  ageing_.Closed(ddr, 0, 20);
  EXPECT_EQ(Next(), "-");  // each is its file's last
  ageing_.Closed(hbm, 1, 11);
  ageing_.Closed(ddr, 1, 21);
  ageing_.Closed(host, 1, 6);
  EXPECT_EQ(ageing_.stored(0), 62u);
  EXPECT_EQ(ageing_.stored(1), 11u);
  EXPECT_EQ(Next(1), "2/0");
  EXPECT_EQ(Next(1), "-");
  EXPECT_EQ(Next(), "0/0");
  EXPECT_EQ(Next(), "1/0");
  EXPECT_EQ(Next(), "-");
  EXPECT_EQ(ageing_.stored(0), 32u);
  // Data in an open slice are something that remains, too.
  open_ = {ddr};
  EXPECT_EQ(Next(), "1/1");
  EXPECT_EQ(Next(), "-");
  EXPECT_EQ(ageing_.stored(0), 11u);
}

TEST_F(AgeingTest, ProtectedFilesStayAndCount) {
  auto hash = ageing_.AddFile(0, "unaging.additional.hash_dic");
  auto step = ageing_.AddFile(0, "step_info.data");
  for (uint32_t i = 0; i < 3; ++i) {
    ageing_.Closed(hash, i, 100);
    ageing_.Closed(step, i, 100);
  }
  EXPECT_EQ(ageing_.stored(0), 600u);
  EXPECT_EQ(Next(), "-");
  EXPECT_FALSE(MayAge("training_trace.46.dev.profiler_default_tag"));
  EXPECT_TRUE(MayAge("ts_track.data"));
  EXPECT_TRUE(MayAge("npu_mem.app"));
}

TEST_F(AgeingTest, AicoreAndHwtsGoTogether) {
  auto hwts = ageing_.AddFile(0, "hwts.data");
  auto hbm = ageing_.AddFile(0, "hbm.data");
  auto aicore = ageing_.AddFile(0, "aicore.data");
  auto elsewhere = ageing_.AddFile(1, "hwts.data");
  for (uint32_t i = 0; i < 2; ++i) {
    ageing_.Closed(elsewhere, i, 1);
    ageing_.Closed(hbm, i, 1);
    ageing_.Closed(aicore, i, 1);
    ageing_.Closed(hwts, i, 1);
  }
  auto oldest = ageing_.Oldest(0);
  ASSERT_TRUE(oldest.has_value());
  EXPECT_EQ(oldest->file, hbm);
  EXPECT_FALSE(ageing_.PartnerOf(*oldest).has_value());
  ageing_.Gone(*oldest);
  oldest = ageing_.Oldest(0);
  ASSERT_TRUE(oldest.has_value());
  EXPECT_EQ(oldest->file, aicore);
  auto partner = ageing_.PartnerOf(*oldest);
  ASSERT_TRUE(partner.has_value());
  EXPECT_EQ(partner->file, hwts);
  EXPECT_EQ(partner->slice, 0u);
  ageing_.Gone(*oldest);
  ageing_.Gone(*partner);
  EXPECT_EQ(Next(0), "-");
  EXPECT_EQ(ageing_.stored(0), 3u);
}

TEST_F(AgeingTest, ACompressedSliceCountsWhatItTakes) {
  auto hbm = ageing_.AddFile(0, "hbm.data");
  ageing_.Closed(hbm, 0, 100);
  ageing_.Closed(hbm, 1, 100);
  ageing_.Resized(hbm, 0, 30);
  ageing_.Resized(hbm, 7, 30);  // unknown
  EXPECT_EQ(ageing_.stored(0), 130u);
  EXPECT_EQ(ageing_.Oldest()->bytes, 30u);
  EXPECT_EQ(Next(), "0/0");
  EXPECT_EQ(ageing_.stored(0), 100u);
}

// Closing what may not go makes no space, and must not keep a session alive that nothing can make space for.
TEST(Ageing, OnlyWhatMayGoIsClosedForSpace) {
  const TempDir tmp;
  DumpRoot root = DumpRoot::Open(tmp / "root").value();
  for (const int chip : {5, kChipWithoutAgeing}) {
    SessionDumpOptions options;
    options.session.session_id = "s-1";
    options.owner = Myself();
    options.sync_at_end = false;
    options.devices.resize(1);
    options.devices[0].facts.chip_id = chip;
    const std::unique_ptr<SessionDump> dump = SessionDump::Create(root, std::move(options)).value();
    const std::string block(32 << 10, 'x');
    ASSERT_TRUE(dump->AppendDeviceFile(0, "training_trace.46.dev.profiler_default_tag", block).ok());
    EXPECT_FALSE(dump->space().CutAll());
    ASSERT_TRUE(dump->AppendDeviceFile(0, "ts_track.data", block).ok());
    EXPECT_EQ(dump->space().CutAll(), chip != kChipWithoutAgeing);
    ASSERT_TRUE(dump->Flush().ok());
    const std::set<std::string> files = FilesBelow(dump->path() + "/device_0/data");
    EXPECT_EQ(std::ranges::count_if(files, [](const std::string& file) { return file.ends_with(".done"); }),
              chip == kChipWithoutAgeing ? 0 : 1);
    EXPECT_TRUE(dump->Finish({}).ok());
  }
}

}  // namespace
}  // namespace profd
