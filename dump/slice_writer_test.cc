#include "dump/slice_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "base/bytes.h"
#include "driver/abi/channels.h"
#include "dump/test_support.h"

namespace profd {
namespace {

class SliceWriterTest : public testing::Test {
 protected:
  SliceWriterTest() { dir_ = UniqueFd(::open(tmp_.path().c_str(), O_RDONLY | O_DIRECTORY)); }

  SliceWriter& Make(SliceOptions options, DumpIo& io = SystemDumpIo()) {
    return writer_.emplace(io, dir_.get(), Myself(), std::move(options));
  }
  static SliceOptions Hbm() {
    return {.base = "hbm.data", .device = 3};
  }
  static SliceOptions Hccs() {
    return {.base = "hccs.data", .device = 0, .header = std::string(abi::kHccsHeader), .header_token = "time_stamp"};
  }
  static Status Put(SliceWriter& writer, const std::string& text, uint64_t records = 1) {
    return writer.Append(AsBytes(text), records);
  }
  std::string Text(const std::string& name) { return ReadText(tmp_ / name); }

  TempDir tmp_;
  UniqueFd dir_;
  std::optional<SliceWriter> writer_;
};

TEST_F(SliceWriterTest, AnEmptyChannelLeavesNoFile) {
  Make(Hccs());
  EXPECT_TRUE(writer_->Append({}, 0).ok());
  EXPECT_TRUE(Put(*writer_, std::string(abi::kHccsHeader), 0).ok());
  EXPECT_TRUE(writer_->Flush().ok());
  EXPECT_TRUE(writer_->Close().ok());
  EXPECT_TRUE(FilesBelow(tmp_.path()).empty());
  EXPECT_EQ(writer_->slices(), 0u);
}

TEST_F(SliceWriterTest, OpensTheFileOnlyToWrite) {
  Make(Hbm());
  ASSERT_TRUE(Put(*writer_, "abc").ok());
  EXPECT_FALSE(writer_->holds_fd());
  EXPECT_TRUE(FilesBelow(tmp_.path()).empty());
  ASSERT_TRUE(writer_->Flush().ok());
  EXPECT_TRUE(writer_->holds_fd());
  EXPECT_EQ(Text("hbm.data.3.slice_0"), "abc");
  ASSERT_TRUE(writer_->Close().ok());
  EXPECT_EQ(Text("hbm.data.3.slice_0.done"), "filesize:3\nstarttime:0\nendtime  :0\n");
  EXPECT_FALSE(Put(*writer_, "x").ok());
}

TEST_F(SliceWriterTest, CutsAtRecordBoundariesOnceFull) {
  SliceOptions options = Hbm();
  options.slice_bytes = 240;
  options.buffer_bytes = 100;
  Make(options);
  std::string all;
  // 24-byte records in blocks of 1 to 5: no slice may end inside a record or a block.
  for (int i = 0; i < 60; ++i) {
    std::string block(static_cast<size_t>(i % 5 + 1) * 24, static_cast<char>('A' + i % 26));
    all += block;
    ASSERT_TRUE(Put(*writer_, block, static_cast<uint64_t>(i % 5 + 1)).ok());
  }
  ASSERT_TRUE(writer_->Close().ok());
  EXPECT_EQ(writer_->records(), 180u);
  EXPECT_EQ(writer_->bytes(), all.size());
  std::string joined;
  for (uint32_t k = 0; k < writer_->slices(); ++k) {
    std::string slice = Text(writer_->SliceName(k));
    EXPECT_EQ(slice.size() % 24, 0u);
    if (k + 1 < writer_->slices()) {
      EXPECT_GE(slice.size(), 240u);
      EXPECT_LT(slice.size(), 240u + 5 * 24u);
    }
    EXPECT_THAT(Text(writer_->SliceName(k) + ".done"),
                testing::StartsWith("filesize:" + std::to_string(slice.size()) + "\n"));
    joined += slice;
  }
  EXPECT_GT(writer_->slices(), 10u);
  EXPECT_EQ(joined, all);
}

TEST_F(SliceWriterTest, ASliceOfExactlyTheLimitIsClosed) {
  SliceOptions options = Hbm();
  options.slice_bytes = 48;
  Make(options);
  ASSERT_TRUE(Put(*writer_, std::string(47, 'a')).ok());
  EXPECT_TRUE(FilesBelow(tmp_.path()).empty());
  ASSERT_TRUE(Put(*writer_, "b").ok());
  EXPECT_THAT(FilesBelow(tmp_.path()),
              testing::ElementsAre("hbm.data.3.slice_0", "hbm.data.3.slice_0.done"));
  ASSERT_TRUE(writer_->Close().ok());
  EXPECT_EQ(FilesBelow(tmp_.path()).size(), 2u);  // no empty second slice
}

TEST_F(SliceWriterTest, EveryHccsSliceBeginsWithTheOneHeader) {
  SliceOptions options = Hccs();
  options.slice_bytes = 300;
  Make(options);
  std::string header(abi::kHccsHeader);
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    std::string line =
        "17:0000000" + std::to_string(10 + i) + " " + std::to_string(i * 1000) + " 7\n";
    lines += line;
    // The driver's own header, at the start and (a channel begun anew) in the middle of a block.
    std::string block = i == 0 ? header + line : i == 20 ? line.substr(0, 0) + header + line : line;
    ASSERT_TRUE(Put(*writer_, block).ok());
  }
  ASSERT_TRUE(writer_->Close().ok());
  ASSERT_GT(writer_->slices(), 2u);
  std::string joined;
  for (uint32_t k = 0; k < writer_->slices(); ++k) {
    std::string slice = Text(writer_->SliceName(k));
    ASSERT_TRUE(slice.starts_with(header)) << k;
    EXPECT_EQ(slice.find("time_stamp", header.size()), std::string::npos) << k;
    EXPECT_EQ(slice.back(), '\n');
    joined += slice.substr(header.size());
  }
  EXPECT_EQ(joined, lines);
}

TEST_F(SliceWriterTest, SingleSlicesNeverRotate) {
  SliceOptions options = Hbm();
  options.base = "roce.data";
  options.single_slice = true;
  options.slice_bytes = 10;
  Make(options);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Put(*writer_, "line of text\n").ok());
  ASSERT_TRUE(writer_->Close().ok());
  EXPECT_THAT(FilesBelow(tmp_.path()),
              testing::ElementsAre("roce.data.3.slice_0", "roce.data.3.slice_0.done"));
}

TEST_F(SliceWriterTest, HostAndPlainNames) {
  SliceOptions options;
  options.base = "host_cpu.data";
  Make(options);
  EXPECT_EQ(writer_->SliceName(7), "host_cpu.data.slice_7");
  options.base = "samples.tsv";
  options.plain = true;
  options.header = "heading\n";
  options.slice_bytes = 4;
  Make(options);
  ASSERT_TRUE(Put(*writer_, "one\n").ok());
  ASSERT_TRUE(Put(*writer_, "two\n").ok());
  ASSERT_TRUE(writer_->Close().ok());
  EXPECT_THAT(FilesBelow(tmp_.path()), testing::ElementsAre("samples.tsv"));
  EXPECT_EQ(Text("samples.tsv"), "heading\none\ntwo\n");
}

TEST_F(SliceWriterTest, AFullDiskRefusesCompleteBlocksAndLosesNothingTaken) {
  FullDiskIo io;
  io.free_bytes = 60;
  SliceOptions options = Hbm();
  options.buffer_bytes = 48;
  Make(options, io);
  ASSERT_TRUE(Put(*writer_, std::string(24, 'a')).ok());
  ASSERT_TRUE(Put(*writer_, std::string(24, 'b')).ok());
  ASSERT_TRUE(Put(*writer_, std::string(24, 'c')).ok());  // a, b on disk; c buffered
  ASSERT_TRUE(Put(*writer_, std::string(24, 'd')).ok());
  Status full = Put(*writer_, std::string(24, 'e'));  // 12 of 48 bytes fit
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), testing::HasSubstr("hbm.data.3.slice_0"));
  // What is on disk ends with a record all the same.
  EXPECT_EQ(Text("hbm.data.3.slice_0"), std::string(24, 'a') + std::string(24, 'b'));
  EXPECT_EQ(writer_->records(), 4u);
  // Space again: everything that was taken arrives.
  io.free_bytes = 1000;
  ASSERT_TRUE(Put(*writer_, std::string(24, 'f')).ok());
  ASSERT_TRUE(writer_->Close().ok());
  EXPECT_EQ(Text("hbm.data.3.slice_0"), std::string(24, 'a') + std::string(24, 'b') +
                                            std::string(24, 'c') + std::string(24, 'd') +
                                            std::string(24, 'f'));
  EXPECT_EQ(writer_->lost_bytes(), 0u);
}

TEST_F(SliceWriterTest, ABlockLargerThanTheBufferIsAllOrNothing) {
  FullDiskIo io;
  io.free_bytes = 100;
  SliceOptions options = Hbm();
  options.buffer_bytes = 48;
  Make(options, io);
  EXPECT_FALSE(Put(*writer_, std::string(240, 'x'), 10).ok());
  EXPECT_EQ(Text("hbm.data.3.slice_0"), "");
  EXPECT_EQ(writer_->records(), 0u);
  io.free_bytes = 1000;
  EXPECT_TRUE(Put(*writer_, std::string(240, 'y'), 10).ok());
  EXPECT_EQ(Text("hbm.data.3.slice_0"), std::string(240, 'y'));
}

TEST_F(SliceWriterTest, CloseWorksOnABrokenDiskAndReportsLosses) {
  for (int error : {ENOSPC, EIO, EDQUOT, EROFS}) {
    TempDir tmp;
    UniqueFd dir(::open(tmp.path().c_str(), O_RDONLY | O_DIRECTORY));
    FullDiskIo io;
    SliceWriter writer(io, dir.get(), Myself(), Hbm());
    ASSERT_TRUE(Put(writer, std::string(24, 'a')).ok());
    ASSERT_TRUE(writer.Flush().ok());
    io.free_bytes = 0;
    io.error = error;
    ASSERT_TRUE(Put(writer, std::string(48, 'b'), 2).ok());
    EXPECT_FALSE(writer.Flush().ok());
    EXPECT_FALSE(writer.Close().ok());
    EXPECT_FALSE(writer.holds_fd());
    EXPECT_EQ(writer.lost_bytes(), 48u);
    EXPECT_EQ(writer.lost_records(), 2u);
    EXPECT_EQ(ReadText(tmp / "hbm.data.3.slice_0"), std::string(24, 'a'));
    EXPECT_TRUE(writer.Close().ok());  // again: nothing left to do
  }
}

TEST_F(SliceWriterTest, AHeaderWithoutALineLeavesNoFile) {
  FullDiskIo io;
  SliceOptions options = Hccs();
  options.buffer_bytes = 64;
  Make(options, io);
  io.free_bytes = 0;
  EXPECT_FALSE(Put(*writer_, std::string(99, '1') + "\n").ok());  // longer than the buffer, which has the header
  io.free_bytes = options.header.size();
  EXPECT_TRUE(writer_->Flush().ok());
  EXPECT_EQ(Text("hccs.data.0.slice_0"), options.header);
  EXPECT_TRUE(writer_->Close().ok());
  EXPECT_TRUE(FilesBelow(tmp_.path()).empty());
  EXPECT_EQ(writer_->slices(), 0u);
  EXPECT_EQ(writer_->bytes(), 0u);
}

TEST_F(SliceWriterTest, ARealFullDeviceIsAnErrorThatNamesTheFile) {
  class DevFullIo : public DumpIo {
   public:
    Result<UniqueFd> Create(int, const std::string&, DumpOwner) override {
      return UniqueFd(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    }
  } io;
  Make(Hbm(), io);
  ASSERT_TRUE(Put(*writer_, "abc").ok());
  Status full = writer_->Flush();
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), testing::HasSubstr("hbm.data.3.slice_0"));
  EXPECT_FALSE(writer_->Close().ok());
}

TEST_F(SliceWriterTest, DoneFilesThatFailedComeLater) {
  FullDiskIo io;
  SliceOptions options = Hbm();
  options.slice_bytes = 24;
  Make(options, io);
  io.free_bytes = 24;
  ASSERT_TRUE(Put(*writer_, std::string(24, 'a')).ok());
  EXPECT_THAT(FilesBelow(tmp_.path()), testing::ElementsAre("hbm.data.3.slice_0"));
  io.free_bytes = 1000;
  ASSERT_TRUE(Put(*writer_, std::string(24, 'b')).ok());
  EXPECT_EQ(FilesBelow(tmp_.path()).size(), 4u);
  EXPECT_TRUE(writer_->Close().ok());
}

TEST_F(SliceWriterTest, ReopensItsOwnFileOnly) {
  Make(Hbm());
  ASSERT_TRUE(Put(*writer_, "one").ok());
  ASSERT_TRUE(writer_->Flush().ok());
  writer_->ReleaseFd();
  EXPECT_FALSE(writer_->holds_fd());
  ASSERT_TRUE(Put(*writer_, "two").ok());
  ASSERT_TRUE(writer_->Flush().ok());
  EXPECT_EQ(Text("hbm.data.3.slice_0"), "onetwo");
  writer_->ReleaseFd();
  // The owner puts something else in its place, by link or by name.
  WriteText(tmp_ / "victim", "precious");
  std::filesystem::remove(tmp_ / "hbm.data.3.slice_0");
  std::filesystem::create_symlink(tmp_ / "victim", tmp_ / "hbm.data.3.slice_0");
  ASSERT_TRUE(Put(*writer_, "three").ok());
  EXPECT_FALSE(writer_->Flush().ok());
  std::filesystem::remove(tmp_ / "hbm.data.3.slice_0");
  std::filesystem::create_hard_link(tmp_ / "victim", tmp_ / "hbm.data.3.slice_0");
  EXPECT_EQ(writer_->Flush().code(), StatusCode::kDataLoss);
  EXPECT_EQ(Text("victim"), "precious");
}

}  // namespace
}  // namespace profd
