// Limits, ageing, check sums, compression and broken volumes of whole dumps.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <map>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "driver/abi/channels.h"
#include "dump/reader.h"
#include "dump/session_dump.h"
#include "dump/slice_source.h"
#include "dump/test_support.h"

namespace profd {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int64_t kRaw = 876'117'208'663'770;
constexpr uint32_t kHbm = 1, kHccs = 9, kRoce = 129;

uint64_t SizeBelow(const std::string& path) {
  uint64_t sum = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    std::error_code gone;
    if (entry.is_regular_file(gone)) sum += entry.file_size(gone);
  }
  return sum;
}

class DumpSpaceTest : public testing::Test {
 protected:
  DumpSpaceTest() : root_(std::move(DumpRoot::Open(tmp_ / "root")).value()) {}

  SessionDumpOptions Options(int chip = 5) {
    SessionDumpOptions options;
    options.session.session_id = "s-1";
    options.session.start_raw_ns = kRaw;
    for (int id : {0, 1}) {
      options.devices.push_back({.facts = {.id = id, .chip_id = chip, .counter_hz = 50e6},
                                 .clocks = DumpClocks{kRaw, 87, 176, 88, 9}});
    }
    options.owner = Myself();
    options.sync_at_end = false;
    options.clock = &clock_;
    options.slice_bytes = 16 << 10;
    for (uint32_t channel : {kHbm, kHccs, kRoce}) {
      ManifestChannel entry{.device = channel == kHbm ? 0 : 1, .channel = channel};
      options.manifest.channels.push_back(entry);
    }
    return options;
  }
  void Make(SessionDumpOptions options, DumpIo& io = SystemDumpIo()) {
    auto made = SessionDump::Create(root_, std::move(options), io);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    dump_ = std::move(made).value();
    path_ = dump_->path();
    hbm_ = dump_->OpenChannel(0, kHbm).value();
    hccs_ = dump_->OpenChannel(1, kHccs).value();
    roce_ = dump_->OpenChannel(1, kRoce).value();
  }
  // One round of everything: records of all kinds, numbered by `i`.
  Status Round(int i) {
    clock_.Advance(10 * kNsPerMs);
    const int64_t now = clock_.raw_ns;
    std::string block;
    for (int k = 0; k < 40; ++k) block += Record(i * 40 + k);
    Status first = dump_->Append(hbm_, AsBytes(block), 40, now);
    auto keep = [&first](Status next) {
      if (first.ok()) first = std::move(next);
    };
    const std::string line = "17:" + std::to_string(100'000'000 + i) + " 3 4\n";
    keep(dump_->Append(hccs_, AsBytes(line), 1, now));
    keep(dump_->Append(roce_, AsBytes(std::string(400, 'r') + "\n"), 1, now));
    SessionDump::Batch batch{1, now, "host_cpu"};
    keep(dump_->AppendHostFile("4242-CpuUsage.data", std::string(200, 'c') + "\n", batch));
    return first;
  }
  static void Check(const Status& status) { EXPECT_TRUE(status.ok()) << status.ToString(); }
  static std::string Record(int number) {
    std::string record(24, '\0');
    std::memcpy(record.data(), &number, sizeof number);
    return record;
  }
  Status Finish() {
    EndFacts end{.wall_ns = clock_.wall_ns, .raw_ns = clock_.raw_ns};
    Status status = dump_->Finish(end);
    auto manifest = ParseManifest(ReadText(path_ + "/profd_manifest.json"));
    EXPECT_TRUE(manifest.ok());
    manifest_ = std::move(manifest).value_or({});
    return status;
  }
  const ManifestChannel& Channel(uint32_t channel) {
    for (const ManifestChannel& one : manifest_.channels) {
      if (one.channel == channel) return one;
    }
    ADD_FAILURE() << "no channel " << channel;
    static const ManifestChannel kNone;
    return kNone;
  }
  uint64_t RecordsInFiles(std::string_view of) {
    uint64_t sum = 0;
    for (const ManifestFile& file : manifest_.files) {
      if (file.path.find(of) != std::string::npos) sum += file.records.value_or(0);
    }
    return sum;
  }
  // Sizes and check sums of manifest and journal are those of the files, and nothing is left out.
  void ExpectFilesAreAsListed();

  TempDir tmp_;
  ManualClock clock_;
  DumpRoot root_;
  std::unique_ptr<SessionDump> dump_;
  std::string path_;
  SessionDump::Channel hbm_ = 0, hccs_ = 0, roce_ = 0;
  Manifest manifest_;
};

void DumpSpaceTest::ExpectFilesAreAsListed() {
  std::set<std::string> listed;
  SliceJournal journal = ParseSliceJournal(ReadText(path_ + "/host/profd/slices.tsv"));
  EXPECT_EQ(journal.bad_lines, 0u);
  for (const ManifestFile& file : manifest_.files) {
    listed.insert(file.path);
    const std::string text = ReadText(path_ + "/" + file.path);
    EXPECT_EQ(text.size(), file.bytes) << file.path;
    ASSERT_TRUE(file.crc32c.has_value()) << file.path;
    EXPECT_EQ(*file.crc32c, Crc32c(AsBytes(text))) << file.path;
    if (FileOfSlice(file.path).empty()) continue;
    EXPECT_TRUE(file.records.has_value()) << file.path;
    std::string_view path = file.path;
    if (IsCompressedSlice(path)) path.remove_suffix(kCompressedSuffix.size());
    const SliceEntry* slice = journal.Find(path);
    ASSERT_NE(slice, nullptr) << file.path;
    EXPECT_FALSE(slice->aged);
    EXPECT_EQ(slice->compressed ? slice->stored_crc32c : slice->crc32c, *file.crc32c);
    EXPECT_TRUE(fs::exists(path_ + "/" + std::string(path) + ".done")) << path;
  }
  for (const std::string& file : FilesBelow(path_)) {
    if (file.ends_with(".done") || file == "profd_manifest.json") continue;
    EXPECT_TRUE(listed.contains(file)) << file;
  }
  for (const SliceEntry& slice : journal.slices) {
    if (!slice.aged) continue;
    EXPECT_FALSE(fs::exists(path_ + "/" + slice.path)) << slice.path;
    EXPECT_FALSE(fs::exists(path_ + "/" + slice.path + ".done")) << slice.path;
  }
}

TEST_F(DumpSpaceTest, EveryFileHasItsCheckSum) {
  Make(Options());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Round(i).ok());
  ASSERT_TRUE(dump_->AppendOwn(kOwnSamplesFile, "1\tm\t0\t\t2\n").ok());
  ASSERT_TRUE(Finish().ok());
  ExpectFilesAreAsListed();
  EXPECT_EQ(RecordsInFiles("hbm.data"), 4000u);
  EXPECT_EQ(RecordsInFiles("samples.tsv"), 1u);
  EXPECT_EQ(Channel(kHbm).records, 0u + RecordsInFiles("hbm.data"));
}

TEST_F(DumpSpaceTest, TheLimitHoldsAtEveryInstantAndTheOldestGoes) {
  for (int compress : {0, 1}) {
    constexpr uint64_t kLimit = 600'000;
    SessionDumpOptions options = Options();
    options.max_bytes = kLimit;
    options.age_at_limit = true;
    options.compress = compress;
    const int64_t start = clock_.raw_ns;
    Make(options);
    for (int i = 0; i < 2000; ++i) {
      ASSERT_TRUE(Round(i).ok()) << i;
      if (i % 7 == 0) Check(dump_->Flush());
      if (i % 100 == 0) Check(dump_->WriteManifestIfDue());
      ASSERT_LE(SizeBelow(path_), kLimit) << i;
    }
    ASSERT_TRUE(Finish().ok());
    const uint64_t size = SizeBelow(path_);
    EXPECT_LE(size, kLimit);
    EXPECT_GT(size, compress == 0 ? kLimit / 2 : kLimit / 20);
    ExpectFilesAreAsListed();
    const ManifestChannel& hbm = Channel(kHbm);
    EXPECT_GT(hbm.aged.records, 0u);
    EXPECT_EQ(hbm.records + hbm.aged.records, 80'000u);
    EXPECT_EQ(hbm.records, RecordsInFiles("hbm.data"));
    ASSERT_EQ(hbm.gaps.size(), 1u);
    EXPECT_EQ(hbm.gaps[0].reason, LossReason::kAged);
    EXPECT_EQ(hbm.gaps[0].lost_records, hbm.aged.records);
    EXPECT_EQ(hbm.gaps[0].from_ns, start + 10 * kNsPerMs);
    EXPECT_EQ(hbm.gaps[0].host_ns, start + static_cast<int64_t>(hbm.aged.records / 40) * 10 * kNsPerMs);
    ASSERT_EQ(hbm.dropped.size(), 1u);
    EXPECT_EQ(hbm.dropped[0].records, hbm.aged.records);
    EXPECT_EQ(Channel(kHccs).records + Channel(kHccs).aged.records, 2000u);
    // A file that should have one slice only gives way, too.
    const ManifestChannel& roce = Channel(kRoce);
    EXPECT_GT(roce.aged.records, 0u);
    EXPECT_EQ(roce.records + roce.aged.records, 2000u);
    uint64_t kept_sum = 0;
    for (const AgedCount& one : dump_->closed().TakeAged()) kept_sum += one.channel == kHbm ? one.records : 0;
    EXPECT_EQ(kept_sum, hbm.aged.records);
    EXPECT_EQ(manifest_.limit_bytes, kLimit);
    EXPECT_EQ(std::pair(manifest_.limit_action, manifest_.aged_for_space), std::pair(std::string("age"), uint64_t{0}));
  }
}

// Of each of the thousands of slices that went the journal has two lines.
TEST_F(DumpSpaceTest, TheJournalOfWhatIsGoneDoesNotFillASmallLimit) {
  constexpr uint64_t kLimit = 400'000;
  SessionDumpOptions options = Options();
  options.max_bytes = kLimit;
  options.age_at_limit = true;
  options.slice_bytes = 4096;
  Make(options);
  const std::string block(2400, 'x');
  for (int i = 0; i < 6000; ++i) {
    ASSERT_TRUE(dump_->Append(hbm_, AsBytes(block), 100, clock_.raw_ns).ok()) << i;
    Check(dump_->Flush());
    EXPECT_TRUE(i % 50 != 0 || SizeBelow(path_) <= kLimit) << i;
  }
  ASSERT_TRUE(Finish().ok());
  EXPECT_EQ(Channel(kHbm).records + Channel(kHbm).aged.records, 600'000u);
}

TEST_F(DumpSpaceTest, ADirectoryHasHalfOfTheLimit) {
  SessionDumpOptions options = Options();
  options.max_bytes = 4 << 20;
  options.age_at_limit = true;
  options.place_bytes = PlaceLimit(options.max_bytes);
  options.slice_bytes = 64 << 10;
  Make(options);
  const std::string block(16 << 10, 'x');
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE(dump_->Append(hbm_, AsBytes(block), 682, clock_.raw_ns).ok()) << i;
    ASSERT_LE(SizeBelow(path_ + "/device_0"), 2u << 20);
  }
  // Closed slices are kept below the threshold, here half of the directory's share.
  EXPECT_LE(SizeBelow(path_ + "/device_0"), (1u << 20) + 3 * (64u << 10));
  ASSERT_TRUE(Finish().ok());
  EXPECT_GT(Channel(kHbm).aged.slices, 10u);
  ExpectFilesAreAsListed();
}

TEST_F(DumpSpaceTest, WithoutAgeingTheLimitIsTheEnd) {
  for (bool old_chip : {false, true}) {
    SessionDumpOptions options = Options(old_chip ? kChipWithoutAgeing : -1);
    options.max_bytes = 400'000;
    options.age_at_limit = old_chip;  // never on Ascend310
    Make(options);
    Status status;
    int i = 0;
    for (; i < 2000 && status.ok(); ++i) status = Round(i);
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_TRUE(IsAtStorageLimit(status)) << status.ToString();
    EXPECT_EQ(dump_->closed().AgeFor(1) == 0, old_chip);
    ASSERT_TRUE(Finish().ok());
    EXPECT_LE(SizeBelow(path_), options.max_bytes);
    EXPECT_EQ(manifest_.limit_action, "end");
    ExpectFilesAreAsListed();
  }
}

TEST_F(DumpSpaceTest, AFullVolumeTakesTheOldestFirst) {
  FullDiskIo io;
  Make(Options(), io);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Round(i).ok());
  EXPECT_GT(dump_->closed().OldestNs(), 0);
  // The fake volume does not get space back by removals, so this ends; but it tried.
  io.free_bytes = 10'000;
  Status status;
  for (int i = 100; i < 200 && status.ok(); ++i) status = Round(i);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(dump_->closed().OldestNs(), 0);
  io.free_bytes = SIZE_MAX;
  ASSERT_TRUE(Finish().ok());
  EXPECT_GT(Channel(kHbm).aged.records, 0u);
  EXPECT_GE(manifest_.aged_for_space, Channel(kHbm).aged.records);
  ExpectFilesAreAsListed();
}

TEST_F(DumpSpaceTest, CompressedSlicesReadBackTheSame) {
  SessionDumpOptions options = Options();
  options.compress = 3;
  Make(options);
  std::string all;
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(Round(i).ok());
    for (int k = 0; k < 40; ++k) all += Record(i * 40 + k);
    if (i % 50 == 0) Check(dump_->Flush());
  }
  ASSERT_TRUE(Finish().ok());
  ExpectFilesAreAsListed();
  std::map<int, std::string> slices;
  size_t packed = 0;
  for (const ManifestFile& file : manifest_.files) {
    if (file.path.find("hbm.data") == std::string::npos) continue;
    SliceSource source(UniqueFd(::open((path_ + "/" + file.path).c_str(), O_RDONLY)), file.path);
    std::vector<std::byte> bytes(64 << 10);
    Result<size_t> got = source.Read(bytes);
    ASSERT_TRUE(got.ok());
    const size_t number = file.path.find(".slice_") + 7;
    slices[std::stoi(file.path.substr(number))] = AsText(std::span(bytes).first(*got));
    if (!source.compressed()) continue;
    ++packed;
    EXPECT_EQ(file.state, "compressed");
    EXPECT_EQ(file.raw_bytes, *got);
    EXPECT_EQ(file.raw_crc32c, source.crc32c());
    EXPECT_LT(file.bytes, file.raw_bytes);
  }
  // How many is a question of time: a dump that ends waits no longer than a second for the packer.
  EXPECT_GT(packed, 0u);
  std::string joined;
  for (const auto& [number, text] : slices) joined += text;
  EXPECT_TRUE(joined == all);
}

TEST_F(DumpSpaceTest, ADumpThatIsRemovedMeanwhileReportsIt) {
  Make(Options());
  ASSERT_TRUE(Round(0).ok());
  ASSERT_TRUE(dump_->Flush().ok());
  fs::remove_all(path_);
  Round(1).Ignore();
  Status status = dump_->Flush();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("was removed"));
  EXPECT_FALSE(dump_->Finish({}).ok());
}

TEST_F(DumpSpaceTest, SyncingTakesEverythingThatWasWritten) {
  struct : DumpIo {
    int Sync(int fd) override { return ++synced, DumpIo::Sync(fd); }
    std::atomic<int> synced = 0;
  } io;
  DumpSync sync(io);
  SessionDumpOptions options = Options();
  options.sync = &sync;
  options.sync_at_end = true;
  Make(options);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Round(i).ok());
  ASSERT_TRUE(dump_->Flush().ok());
  dump_->Sync();
  dump_->manifest().warnings.push_back("changed");
  dump_->TouchManifest();
  ASSERT_TRUE(dump_->WriteManifestIfDue().ok());
  ASSERT_TRUE(Finish().ok());
  std::promise<Status> done;
  dump_->SyncAtEnd([&done](const Status& status) { done.set_value(status); });
  EXPECT_TRUE(done.get_future().get().ok());
  EXPECT_GT(io.synced, 20);
  EXPECT_EQ(manifest_.state, DumpState::kDone);
  ExpectFilesAreAsListed();
  for (const std::string& file : FilesBelow(path_)) EXPECT_NE(file.front(), '.') << file;
}

// Fails one call, or all from it on.
class FailingIo : public FullDiskIo {
 public:
  ssize_t Write(int fd, const void* data, size_t size) override {
    if (!Fails()) return FullDiskIo::Write(fd, data, size);
    // Half of it arrives, as on a volume that fills.
    if (short_writes && size > 1) return DumpIo::Write(fd, data, size / 2);
    errno = error;
    return -1;
  }
  Result<UniqueFd> Create(int dir, const std::string& name, DumpOwner owner) override {
    if (Fails()) return Status::FromErrno(error, name);
    return FullDiskIo::Create(dir, name, owner);
  }
  int Unlink(int dir, const std::string& name) override {
    if (!Fails()) return FullDiskIo::Unlink(dir, name);
    errno = error;
    return -1;
  }
  int Truncate(int fd, uint64_t size) override {
    if (!Fails()) return FullDiskIo::Truncate(fd, size);
    errno = error;
    return -1;
  }
  bool Fails() {
    ++calls;
    return calls == at || (for_good && calls > at);
  }
  int64_t calls = 0;
  int64_t at = -1;
  bool for_good = false;
  bool short_writes = false;
};

// dump-format 1.1: of RoCE and DVPP the vendor's reader keeps the last slice only, so under a limit
// that is not cut as small as those of the many others.
TEST_F(DumpSpaceTest, TheLastSliceOfFilesThatShouldHaveOneIsLarge) {
  SessionDumpOptions options = Options();
  options.max_bytes = 4u << 20;
  options.age_at_limit = true;
  Make(options);
  for (int i = 0; i < 4000; ++i) {
    clock_.Advance(10 * kNsPerMs);
    for (int file = 0; file < 20; ++file) {
      Check(dump_->AppendDeviceFile(0, "other" + std::to_string(file) + ".data",
                                    std::string(99, 'o') + "\n"));
    }
    Check(dump_->Append(roce_, AsBytes(std::string(400, 'r') + "\n"), 1, clock_.raw_ns));
  }
  Check(Finish());
  std::vector<uint64_t> slices;
  for (const ManifestFile& file : manifest_.files) {
    if (file.path.find("roce.data") != std::string::npos) slices.push_back(file.bytes);
  }
  // A share of all 23 files would be a 69th of the limit.
  ASSERT_FALSE(slices.empty());
  EXPECT_GT(*std::ranges::max_element(slices), options.max_bytes / 4);
  EXPECT_LE(SizeBelow(path_), options.max_bytes);
}

TEST_F(DumpSpaceTest, NoFailureOfTheVolumeCutsARecordOrALine) {
  SessionDumpOptions options = Options();
  options.slice_bytes = 4 << 10;
  options.max_bytes = 450'000;
  options.age_at_limit = true;
  auto run = [&](FailingIo& io) {
    auto made = SessionDump::Create(root_, options, io);
    if (!made.ok()) return;
    dump_ = std::move(made).value();
    path_ = dump_->path();
    auto hbm = dump_->OpenChannel(0, kHbm).value();
    for (int i = 0; i < 12; ++i) {
      clock_.Advance(kNsPerSecond);
      dump_->Append(hbm, AsBytes(std::string(24 * 200, 'h')), 200, clock_.raw_ns).Ignore();
      dump_->AppendHostFile("4242-CpuUsage.data", std::string(99, 'c') + "\n").Ignore();
      dump_->TouchManifest();
      dump_->Flush().Ignore();
      dump_->WriteManifestIfDue().Ignore();
    }
    dump_->closed().AgeFor(1);
    dump_->Finish({}).Ignore();
  };
  FailingIo counting;
  run(counting);
  ASSERT_GT(counting.calls, 100);
  const int64_t step = counting.calls / 17 + 1;
  for (int error : {ENOSPC, EIO, EDQUOT, EROFS}) {
    for (int64_t at = 1; at <= counting.calls; at += step) {
      for (int how = 0; how < 3; ++how) {
        FailingIo io;
        io.at = at;
        io.error = error;
        io.for_good = how == 1;
        io.short_writes = how == 2;
        run(io);
        if (dump_ == nullptr || !fs::exists(path_)) continue;
        for (const std::string& file : FilesBelow(path_)) {
          const std::string text = ReadText(path_ + "/" + file);
          if (file.ends_with(".done") || file.front() == '.') continue;
          // Only where cutting a torn write off failed as well may something be left of it.
          if (how == 1) continue;
          if (file.find("hbm.data") != std::string::npos) {
            EXPECT_EQ(text.size() % 24, 0u) << file << " at " << at << " of " << error;
          } else if (file.find("CpuUsage") != std::string::npos) {
            EXPECT_EQ(text.back(), '\n') << file << " at " << at << " of " << error;
          }
        }
        dump_.reset();
        fs::remove_all(path_);
      }
    }
  }
}

}  // namespace
}  // namespace profd
