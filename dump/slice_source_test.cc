#include "dump/slice_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "dump/slice_compressor.h"
#include "dump/test_support.h"

namespace profd {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kLong = 60'000'000'000;

class SliceSourceTest : public testing::Test {
 protected:
  SliceSourceTest() : dir_(::open(tmp_.path().c_str(), O_RDONLY | O_DIRECTORY)) {}

  static std::string Text(size_t size) {
    std::string text;
    while (text.size() < size) text += "17:" + std::to_string(text.size() * 7919) + " 3 4 5\n";
    text.resize(size);
    return text;
  }
  SliceCompressor::Job Job(const std::string& name, const std::string& text) {
    SliceCompressor::Job job;
    job.id = ++id_;
    job.dir = UniqueFd(::open(tmp_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    job.name = name;
    job.bytes = text.size();
    job.crc32c = Crc32c(AsBytes(text));
    return job;
  }
  std::vector<SliceCompressor::Done> Compress(const std::string& name, const std::string& text,
                                              DumpIo& io = SystemDumpIo()) {
    WriteText(tmp_ / name, text);
    SliceCompressor compressor(io, Myself(), 1);
    EXPECT_TRUE(compressor.Take(Job(name, text)));
    compressor.Finish(kLong);
    return compressor.TakeDone();
  }
  SliceSource Source(const std::string& name) {
    return SliceSource(UniqueFd(::open((tmp_ / name).c_str(), O_RDONLY | O_CLOEXEC)), name);
  }
  // All of it, in pieces of `piece` bytes; `*error` what ended it.
  static std::string All(SliceSource& source, size_t piece, Status* error = nullptr) {
    std::string all;
    std::vector<std::byte> buffer(piece);
    for (;;) {
      Result<size_t> got = source.Read(buffer);
      if (!got.ok()) {
        if (error != nullptr) *error = got.status();
        return all;
      }
      if (*got == 0) return all;
      all += AsText(std::span(buffer).first(*got));
    }
  }

  TempDir tmp_;
  UniqueFd dir_;
  uint64_t id_ = 0;
};

TEST_F(SliceSourceTest, ReadsAPlainSlice) {
  const std::string text = Text(100'000);
  WriteText(tmp_ / "x.slice_0", text);
  SliceSource source = Source("x.slice_0");
  EXPECT_FALSE(source.compressed());
  EXPECT_EQ(All(source, 777), text);
  EXPECT_EQ(source.bytes(), text.size());
  EXPECT_EQ(source.crc32c(), Crc32c(AsBytes(text)));
  EXPECT_EQ(source.stored_crc32c(), source.crc32c());
}

TEST_F(SliceSourceTest, ReadsACompressedSlice) {
  for (size_t size : {1'000u, 100'000u, 3'000'000u}) {
    const std::string text = Text(size);
    auto done = Compress("x.slice_0", text);
    ASSERT_EQ(done.size(), 1u);
    ASSERT_GT(done[0].bytes, 0u);
    EXPECT_EQ(FilesBelow(tmp_.path()), std::set<std::string>{"x.slice_0.zst"});
    for (size_t piece : {1'000u, 1'000'000u}) {
      SliceSource source = Source("x.slice_0.zst");
      EXPECT_TRUE(source.compressed());
      EXPECT_TRUE(All(source, piece) == text) << size << " in pieces of " << piece;
      EXPECT_EQ(source.bytes(), size);
      EXPECT_EQ(source.crc32c(), Crc32c(AsBytes(text)));
      EXPECT_EQ(source.stored_bytes(), done[0].bytes);
      EXPECT_EQ(source.stored_crc32c(), done[0].crc32c);
      EXPECT_EQ(source.stored_bytes(), fs::file_size(tmp_ / "x.slice_0.zst"));
    }
    fs::remove(tmp_ / "x.slice_0.zst");
  }
}

TEST_F(SliceSourceTest, DamageIsAnErrorAfterWhatWasGood) {
  const std::string text = Text(2'000'000);
  ASSERT_EQ(Compress("x.slice_0", text).size(), 1u);
  const std::string packed = ReadText(tmp_ / "x.slice_0.zst");
  for (size_t cut : {size_t{1}, packed.size() / 2, packed.size() - 1}) {
    WriteText(tmp_ / "cut.zst", packed.substr(0, cut));
    SliceSource source = Source("cut.zst");
    Status error;
    const std::string read = All(source, 10'000, &error);
    EXPECT_EQ(error.code(), StatusCode::kDataLoss) << cut;
    EXPECT_TRUE(text.starts_with(read)) << cut;
  }
  std::string changed = packed;
  changed[changed.size() / 2] ^= 0x10;
  WriteText(tmp_ / "changed.zst", changed);
  SliceSource source = Source("changed.zst");
  Status error;
  All(source, 10'000, &error);
  EXPECT_EQ(error.code(), StatusCode::kDataLoss);
  WriteText(tmp_ / "none.zst", "this is not zstd at all");
  SliceSource none = Source("none.zst");
  EXPECT_EQ(All(none, 100, &error), "");
  EXPECT_EQ(error.code(), StatusCode::kDataLoss);
}

// A few kilobytes that claim to be gigabytes of records.
TEST_F(SliceSourceTest, WhatGrowsBeyondAllRecordsIsDamaged) {
  constexpr size_t kMib = 1u << 20;
  ASSERT_EQ(Compress("x.slice_0", std::string(kMib, '\0')).size(), 1u);
  const std::string packed = ReadText(tmp_ / "x.slice_0.zst");
  std::string bomb;
  for (int i = 0; i < 80; ++i) bomb += packed;
  WriteText(tmp_ / "bomb.zst", bomb);
  SliceSource source = Source("bomb.zst");
  Status error;
  EXPECT_LE(All(source, kMib, &error).size(), 65 * kMib);
  EXPECT_EQ(error.message(), "compressed slice: more than 1000 times its size");
}

TEST_F(SliceSourceTest, FilesThatDoNotGetSmallerStay) {
  std::string noise;
  uint64_t x = 88172645463325252ULL;
  while (noise.size() < 50'000) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    noise.append(reinterpret_cast<const char*>(&x), sizeof x);
  }
  auto done = Compress("x.slice_0", noise);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].bytes, 0u);
  EXPECT_EQ(FilesBelow(tmp_.path()), std::set<std::string>{"x.slice_0"});
}

TEST_F(SliceSourceTest, AFullDiskOrAChangedSliceLosesNothing) {
  const std::string text = Text(200'000);
  FullDiskIo full;
  full.free_bytes = 1000;
  auto done = Compress("x.slice_0", text, full);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].bytes, 0u);
  EXPECT_EQ(FilesBelow(tmp_.path()), std::set<std::string>{"x.slice_0"});
  EXPECT_EQ(ReadText(tmp_ / "x.slice_0"), text);
  // Changed since it was written: that must stay visible.
  SliceCompressor compressor(SystemDumpIo(), Myself(), 1);
  SliceCompressor::Job job = Job("x.slice_0", text);
  job.crc32c ^= 1;
  ASSERT_TRUE(compressor.Take(std::move(job)));
  compressor.Finish(kLong);
  EXPECT_EQ(FilesBelow(tmp_.path()), std::set<std::string>{"x.slice_0"});
}

TEST_F(SliceSourceTest, AForgottenSliceIsNotTouched) {
  const std::string text = Text(100'000);
  for (int i = 0; i < 20; ++i) WriteText(tmp_ / ("x.slice_" + std::to_string(i)), text);
  SliceCompressor compressor(SystemDumpIo(), Myself(), 1);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(compressor.Take(Job("x.slice_" + std::to_string(i), text)));
  }
  std::set<uint64_t> forgotten;
  for (uint64_t id : {1u, 5u, 20u}) {
    if (compressor.Forget(id)) forgotten.insert(id);
  }
  compressor.Finish(kLong);
  std::set<uint64_t> done;
  for (const SliceCompressor::Done& one : compressor.TakeDone()) done.insert(one.id);
  EXPECT_EQ(done.size() + forgotten.size(), 20u);
  for (uint64_t id : forgotten) {
    EXPECT_FALSE(done.contains(id));
    EXPECT_TRUE(fs::exists(tmp_ / ("x.slice_" + std::to_string(id - 1))));
  }
  for (const std::string& file : FilesBelow(tmp_.path())) EXPECT_NE(file.front(), '.') << file;
}

}  // namespace
}  // namespace profd
