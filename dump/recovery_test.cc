#include "dump/recovery.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "dump/activity_files.h"
#include "dump/mark_files.h"
#include "dump/reader.h"
#include "dump/session_dump.h"
#include "dump/slice_journal.h"
#include "dump/test_support.h"
#include "dump/verify.h"

namespace profd {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kRaw = 876'117'208'663'770;
constexpr uint32_t kHbm = 1;
constexpr uint32_t kHccs = 9;

class RecoveryTest : public testing::Test {
 protected:
  RecoveryTest() : root_(std::move(DumpRoot::Open(tmp_ / "root")).value()) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    wall_ = now.tv_sec * kNsPerSecond + now.tv_nsec - 60 * kNsPerSecond;
  }

  // A dump of one device, as a killed daemon leaves it: flushed, not finished.
  void Make(bool clocks_later = false) {
    SessionDumpOptions options;
    options.session.session_id = "s-1";
    options.session.start_wall_ns = wall_;
    options.session.start_raw_ns = kRaw;
    options.devices.push_back({.facts = {.id = 0, .chip_id = 5}, .clocks = {}});
    if (!clocks_later) options.devices[0].clocks = DumpClocks{kRaw, 87, 176, 88, 9};
    options.clocks_later = clocks_later;
    options.owner = Myself();
    options.sync_at_end = false;
    options.slice_bytes = 240;
    for (uint32_t channel : {kHbm, kHccs}) {
      ManifestChannel entry{.collector = channel == kHbm ? "hbm" : "hccs", .device = 0, .channel = channel,
                            .file = channel == kHbm ? "hbm.data" : "hccs.data", .state = "running"};
      options.manifest.channels.push_back(entry);
    }
    auto dump = SessionDump::Create(root_, std::move(options));
    ASSERT_TRUE(dump.ok()) << dump.status().ToString();
    auto hbm = (*dump)->OpenChannel(0, kHbm, "");
    auto hccs = (*dump)->OpenChannel(0, kHccs, "");
    ASSERT_TRUE(hbm.ok() && hccs.ok());
    // One closed slice of ten records, and three records in the open one.
    ASSERT_TRUE((*dump)->Append(*hbm, AsBytes(std::string(240, 'x')), 10).ok());
    ASSERT_TRUE((*dump)->Append(*hbm, AsBytes(std::string(72, 'y')), 3).ok());
    ASSERT_TRUE((*dump)->Append(*hccs, AsBytes(std::string("1:000000002 3 4\n")), 1).ok());
    ASSERT_TRUE((*dump)->AppendHostFile("host_sys_cpu.data",
                                        "TimeStamp:5\nIndex:0\nDataLen:3\ncpu\n\n", 1).ok());
    ASSERT_TRUE((*dump)->AppendOwn("marks.tsv", "1\t2\t\t2\tmark\ta\t0\n").ok());
    name_ = (*dump)->name();
    path_ = (*dump)->path();
  }
  std::string At(const std::string& file) const { return path_ + "/" + file; }
  void Append(const std::string& file, const std::string& text) {
    std::ofstream(At(file), std::ios::binary | std::ios::app) << text;
  }
  Manifest Stored() const { return ParseManifest(ReadText(At("profd_manifest.json"))).value(); }
  void Store(const Manifest& manifest) { WriteText(At("profd_manifest.json"), Serialize(manifest)); }
  // It was written to so many seconds after the start.
  void SetWritten(const std::string& slice, int64_t second) {
    const timespec time = {wall_ / kNsPerSecond + second, wall_ % kNsPerSecond};
    const timespec times[] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, slice.c_str(), times, 0), 0);
  }
  RecoveryOptions Options() const {
    return {.now_wall_ns = wall_ + 100 * kNsPerSecond, .now_raw_ns = kRaw + 100 * kNsPerSecond};
  }
  RecoveredDump Recover() { return Recover(Options()); }
  RecoveredDump Recover(const RecoveryOptions& options) {
    Result<RecoveredDump> recovered = RecoverDump(root_, name_, options);
    EXPECT_TRUE(recovered.ok()) << recovered.status().ToString();
    return recovered.ok() ? *recovered : RecoveredDump();
  }
  static const ManifestChannel& ChannelOf(const RecoveredDump& dump, uint32_t channel) {
    for (const ManifestChannel& one : dump.manifest.channels) {
      if (one.channel == channel) return one;
    }
    ADD_FAILURE() << "no channel " << channel;
    return dump.manifest.channels.front();
  }
  std::string Journal() const { return ReadText(At("host/profd/slices.tsv")); }

  TempDir tmp_;
  DumpRoot root_;
  int64_t wall_ = 0;
  std::string name_;
  std::string path_;
};

TEST_F(RecoveryTest, CutsToCompleteRecordsAndEndsEverything) {
  Make();
  Append("device_0/data/hbm.data.0.slice_1", std::string(23, 'z'));
  Append("device_0/data/hccs.data.0.slice_0", "1:000000");
  Append("host/data/host_sys_cpu.data.slice_0", "TimeStamp:6\nIndex:1\nDataLen:300\ncpu 1\n");
  RecoveredDump dump = Recover();
  EXPECT_EQ(dump.outcome, RecoveredDump::Outcome::kRecovered);
  EXPECT_EQ(dump.cut_bytes, 23u + 8u + 38u);
  EXPECT_EQ(fs::file_size(At("device_0/data/hbm.data.0.slice_1")), 72u);
  EXPECT_EQ(ReadText(At("device_0/data/hbm.data.0.slice_1.done")).substr(0, 12), "filesize:72\n");
  EXPECT_THAT(ReadText(At("device_0/data/hccs.data.0.slice_0")), testing::EndsWith(" 3 4\n"));
  EXPECT_THAT(ReadText(At("host/data/host_sys_cpu.data.slice_0")), testing::EndsWith("cpu\n\n"));
  EXPECT_THAT(FilesBelow(path_), testing::IsSupersetOf({"host/end_info", "host/end_info.done",
                                                        "device_0/end_info.0",
                                                        "device_0/end_info.0.done"}));
  const Manifest written = Stored();
  EXPECT_EQ(written.state, DumpState::kInterrupted);
  EXPECT_EQ(written.reason, "profd ended before the session did");
  EXPECT_EQ(ChannelOf(dump, kHbm).records, 13u);
  EXPECT_EQ(ChannelOf(dump, kHccs).records, 1u);
  EXPECT_EQ(dump.manifest.marks, 1u);
}

// What was counted had been taken, not written.
TEST_F(RecoveryTest, AFileThatWasNeverWrittenHasNoRecords) {
  Make();
  Manifest manifest = Stored();
  for (ManifestChannel& channel : manifest.channels) channel.records = channel.bytes = 999;
  Store(manifest);
  fs::remove(At("device_0/data/hccs.data.0.slice_0"));
  RecoveredDump dump = Recover();
  EXPECT_EQ(ChannelOf(dump, kHbm).records, 13u);
  EXPECT_EQ(ChannelOf(dump, kHccs).records, 0u);
  EXPECT_EQ(ChannelOf(dump, kHccs).bytes, 0u);
}

TEST_F(RecoveryTest, ReportsWhatIsMissingFromWhenToWhen) {
  Make();
  RecoveredDump dump = Recover();
  const ManifestChannel& hbm = ChannelOf(dump, kHbm);
  EXPECT_EQ(hbm.state, "interrupted");
  ASSERT_EQ(hbm.gaps.size(), 1u);
  EXPECT_EQ(hbm.gaps[0].reason, LossReason::kDaemonEnded);
  EXPECT_EQ(hbm.gaps[0].host_ns, Options().now_raw_ns);
  EXPECT_GE(hbm.gaps[0].from_ns, kRaw);
  EXPECT_LE(hbm.gaps[0].from_ns, hbm.gaps[0].host_ns);
  EXPECT_GE(dump.manifest.end_raw_ns, kRaw);
  EXPECT_LE(dump.manifest.end_wall_ns, Options().now_wall_ns);
}

// Of files that have times of their own, whether or not the manifest has them already.
TEST_F(RecoveryTest, MarksAreMissingFromTheLastOneOn) {
  for (const bool known : {false, true}) {
    SCOPED_TRACE(known);
    Make();
    if (known) {
      Manifest manifest = Stored();
      ManifestChannel& marks = manifest.channels.emplace_back();
      marks.collector = "marks";
      marks.file = "marks.tsv";
      marks.state = "running";
      Store(manifest);
    }
    for (const int second : {7, 9, 8}) {
      Append("host/profd/marks.tsv", fmt::format("{}\t2\t\t2\tmark\ta\t0\t\n", kRaw + second * kNsPerSecond));
    }
    const RecoveredDump dump = Recover();
    EXPECT_EQ(std::ranges::count(dump.manifest.channels, "marks", &ManifestChannel::collector), 1);
    const ManifestChannel& marks = dump.manifest.channels.back();
    EXPECT_EQ(marks.collector, "marks");
    EXPECT_EQ(marks.file, "marks.tsv");
    EXPECT_EQ(marks.state, "interrupted");
    EXPECT_EQ(marks.records, 4u);
    ASSERT_EQ(marks.gaps.size(), 1u);
    EXPECT_EQ(marks.gaps[0].reason, LossReason::kDaemonEnded);
    EXPECT_EQ(marks.gaps[0].from_ns, kRaw + 9 * kNsPerSecond);
    EXPECT_EQ(marks.gaps[0].host_ns, Options().now_raw_ns);
  }
}

// The manifest is replaced every ten seconds; the journal has what was lost since.
TEST_F(RecoveryTest, LossesSinceTheLastManifestAreInTheJournal) {
  Make();
  Manifest manifest = Stored();
  // Known already: changes nothing.
  manifest.channels[0].AddGap({kRaw + 500, 4, LossReason::kDriver, kRaw + 100});
  manifest.channels[0].AddLoss(LossReason::kDriver, 4, 96, kRaw + 500);
  Store(manifest);
  const std::string journal = "host/profd/slices.tsv";
  Append(journal, LostLine({0, kHbm, "hbm", LossReason::kDriver, 4, 96, kRaw + 100, kRaw + 500, 4}));
  Append(journal, LostLine({0, kHbm, "hbm", LossReason::kDriver, 9, 216, kRaw + 900, kRaw + 950, 5}));
  Append(journal, LostLine({0, kHccs, "hccs", LossReason::kQueueFull, 2, 60, kRaw + 10, kRaw + 20, 2}));
  RecoveredDump dump = Recover();
  const ManifestChannel& hbm = ChannelOf(dump, kHbm);
  ASSERT_EQ(hbm.dropped.size(), 1u);
  EXPECT_EQ(hbm.dropped[0].records, 9u);
  EXPECT_EQ(hbm.dropped[0].bytes, 216u);
  ASSERT_EQ(hbm.gaps.size(), 3u);  // the last is the end of the daemon
  EXPECT_EQ(hbm.gaps[0].lost_records, 4u);
  EXPECT_EQ(hbm.gaps[1], (ManifestGap{kRaw + 950, 5, LossReason::kDriver, kRaw + 900}));
  const ManifestChannel& hccs = ChannelOf(dump, kHccs);
  ASSERT_EQ(hccs.dropped.size(), 1u);
  EXPECT_EQ(hccs.dropped[0].reason, LossReason::kQueueFull);
}

// What was lost in the last moment was not reported: its records' timestamps show it.
TEST_F(RecoveryTest, GapsWithoutANoteAreFound) {
  Make();
  Manifest manifest = Stored();
  ManifestChannel& listed = manifest.channels[1];
  ASSERT_EQ(listed.channel, kHccs);
  listed.hz_effective = 10;
  Store(manifest);
  std::string lines;
  for (int i = 1; i < 40; ++i) {
    if (i < 20 || i > 22) lines += fmt::format("{}:{}00000002 3 4\n", 1 + i / 10, i % 10);
  }
  Append("device_0/data/hccs.data.0.slice_0", lines);
  RecoveredDump dump = Recover();
  const ManifestChannel& hccs = ChannelOf(dump, kHccs);
  ASSERT_EQ(hccs.dropped.size(), 1u);
  EXPECT_EQ(hccs.dropped[0].reason, LossReason::kNotNoted);
  EXPECT_EQ(hccs.dropped[0].records, 3u);
  EXPECT_EQ(hccs.gaps.back().lost_records, 3u);
  EXPECT_EQ(hccs.gaps.back().host_ns - hccs.gaps.back().from_ns, 400 * kNsPerMs);
}

TEST_F(RecoveryTest, AClockThatWasSetBackPutsNoEndAheadOfNow) {
  Make();
  RecoveryOptions options = Options();
  options.same_boot = true;
  options.now_wall_ns = wall_ - 600 * kNsPerSecond;
  RecoveredDump dump = Recover(options);
  EXPECT_GE(dump.manifest.end_raw_ns, kRaw);
  EXPECT_LE(dump.manifest.end_raw_ns, options.now_raw_ns);
  for (const ManifestGap& gap : ChannelOf(dump, kHbm).gaps) EXPECT_LE(gap.host_ns, options.now_raw_ns);
}

// The monotonic clock of another boot says nothing about the end.
TEST_F(RecoveryTest, ARebootIsSaidAndClocksAreNotMixed) {
  Make();
  RecoveryOptions options = Options();
  options.now_raw_ns = 5 * kNsPerSecond;
  RecoveredDump dump = Recover(options);
  EXPECT_THAT(dump.manifest.warnings, Contains(HasSubstr("was rebooted")));
  EXPECT_GE(dump.manifest.end_raw_ns, kRaw);
  EXPECT_EQ(ChannelOf(dump, kHbm).gaps.at(0).host_ns, dump.manifest.end_raw_ns);
}

TEST_F(RecoveryTest, ASecondTimeChangesNothing) {
  Make();
  Append("device_0/data/hbm.data.0.slice_1", "torn");
  Recover();
  const std::string before = ReadText(At("profd_manifest.json"));
  std::set<std::string> files = FilesBelow(path_);
  EXPECT_EQ(Recover().outcome, RecoveredDump::Outcome::kWasComplete);
  EXPECT_EQ(ReadText(At("profd_manifest.json")), before);
  EXPECT_EQ(FilesBelow(path_), files);
}

// As a recovery that was itself killed before its last step leaves it.
TEST_F(RecoveryTest, ContinuesWhereAnEarlierOneEnded) {
  Make();
  const std::string running = ReadText(At("profd_manifest.json"));
  Append("device_0/data/hbm.data.0.slice_1", "torn");
  RecoveredDump first = Recover();
  WriteText(At("profd_manifest.json"), running);
  WriteText(At(".profd_manifest.json.tmp"), "half");
  WriteText(At("device_0/data/hbm.data.0.slice_1.done"), "files");
  RecoveredDump second = Recover();
  EXPECT_EQ(second.outcome, RecoveredDump::Outcome::kRecovered);
  EXPECT_EQ(second.manifest.end_wall_ns, first.manifest.end_wall_ns);
  EXPECT_EQ(ChannelOf(second, kHbm).records, 13u);
  EXPECT_EQ(ReadText(At("device_0/data/hbm.data.0.slice_1.done")).substr(0, 12), "filesize:72\n");
  EXPECT_THAT(FilesBelow(path_), Not(Contains(".profd_manifest.json.tmp")));
}

TEST_F(RecoveryTest, WithoutManifestAndDataThereIsNothingToKeep) {
  auto made = root_.CreateDump(Myself(), wall_);
  ASSERT_TRUE(made.ok());
  name_ = made->name;
  EXPECT_EQ(Recover().outcome, RecoveredDump::Outcome::kEmpty);
}

TEST_F(RecoveryTest, ALostManifestIsMadeAnew) {
  Make();
  WriteText(At("profd_manifest.json"), "{\"profd_mani");
  RecoveryOptions options = Options();
  options.session_id = "s-1";
  RecoveredDump dump = Recover(options);
  EXPECT_EQ(dump.outcome, RecoveredDump::Outcome::kRecovered);
  EXPECT_EQ(dump.manifest.session_id, "s-1");
  EXPECT_EQ(dump.manifest.start_raw_ns, kRaw);
  EXPECT_EQ(ChannelOf(dump, kHbm).records, 13u);
  EXPECT_THAT(dump.manifest.warnings, Contains(HasSubstr("could not be read")));
}

// The crash came before the devices' clocks were read; without the files the analyser gives up.
TEST_F(RecoveryTest, MissingClockFilesAreWritten) {
  Make(/*clocks_later=*/true);
  Recover();
  EXPECT_THAT(ReadText(At("device_0/host_start.log.0")), HasSubstr("[Device0]"));
  EXPECT_THAT(ReadText(At("device_0/dev_start.log.0")), HasSubstr("cntvct"));
}

// A device that did not answer at the start, and did 2 s later: 100,000,000 cycles of its 50 MHz.
TEST_F(RecoveryTest, ClocksAreCountedBack) {
  Make();
  Manifest manifest = Stored();
  manifest.devices[0].counter_hz = 50e6;
  manifest.clocks = {{-1, "start", {kRaw, 87}}, {0, "periodic", {kRaw + 2 * kNsPerSecond, 99, 10 * kNsPerSecond, 500'000'000, 9}}};
  manifest.warnings = {"the clocks of device 0 could not be read; its timestamps are off by an unknown amount"};
  Store(manifest);
  RecoveredDump dump = Recover();
  EXPECT_EQ(ReadText(At("device_0/dev_start.log.0")), "clock_monotonic_raw: 8000000000\ncntvct: 400000000\n");
  EXPECT_THAT(dump.manifest.warnings, Not(Contains(HasSubstr("unknown amount"))));
}

// Their counts are in no manifest that was written before they began to write.
TEST_F(RecoveryTest, CountsRecordsOfHostCollectors) {
  Make();
  Manifest manifest = Stored();
  for (const char* collector : {"host_cpu", "npu_state"}) {
    ManifestChannel channel{.collector = collector, .state = "running"};
    manifest.channels.push_back(channel);
  }
  Store(manifest);
  WriteText(At("host/profd/samples.tsv"),
            std::string(kOwnSamplesHeading) + "1\tm\t0\t\t2\n2\tm\t1\t\t3\n3\tm\t0\t\t");
  RecoveredDump dump = Recover();
  auto records_of = [&dump](const std::string& collector) {
    auto found = std::ranges::find(dump.manifest.channels, collector, &ManifestChannel::collector);
    return found == dump.manifest.channels.end() ? 0 : found->records;
  };
  EXPECT_EQ(records_of("host_cpu"), 1u);
  EXPECT_EQ(records_of("npu_state"), 2u);
}

// A process's first records may be younger than the manifest; their gap begins where they end.
TEST_F(RecoveryTest, ActivityHasAChannelAndAGapFromItsLastRecord) {
  Make();
  const ActivityFile& kernels = FileOf(ActivityFileId::kKernel);
  const std::string slice = At("host/data/" + std::string(kernels.file) + ".slice_0");
  WriteText(slice, std::string(3 * kernels.record_bytes, 'x'));
  SetWritten(slice, 40);  // of 100
  const RecoveredDump dump = Recover();
  const auto found = std::ranges::find(dump.manifest.channels, kernels.collector, &ManifestChannel::collector);
  ASSERT_NE(found, dump.manifest.channels.end());
  EXPECT_EQ(found->records, 3u);
  EXPECT_EQ(found->state, "interrupted");
  ASSERT_EQ(found->gaps.size(), 1u);
  EXPECT_EQ(found->gaps[0].reason, LossReason::kDaemonEnded);
  EXPECT_EQ(found->gaps[0].from_ns, kRaw + 40 * kNsPerSecond);
}

// Processes hand over what they recorded some time later.
TEST_F(RecoveryTest, TheGapOfActivityBeginsAtItsLastRecordNotWhereThatWasWritten) {
  Make();
  const std::string slice = At("host/data/" + std::string(FileOf(ActivityFileId::kKernel).file) + ".slice_0");
  std::array<StoredKernel, 2> kernels{};
  kernels[0].start_ns = kRaw + 39 * kNsPerSecond;
  kernels[1].start_ns = kRaw + 38 * kNsPerSecond;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(kernels));
  WriteText(slice, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  SetWritten(slice, 40);
  const RecoveredDump dump = Recover();
  const ManifestChannel& channel = *std::ranges::find(dump.manifest.channels, "activity_kernel", &ManifestChannel::collector);
  ASSERT_EQ(channel.gaps.size(), 1u);
  EXPECT_EQ(channel.gaps[0].from_ns, kRaw + 39 * kNsPerSecond);
}

// One an earlier version began.
TEST_F(RecoveryTest, OurFolderIsMovedWhereItIsToday) {
  Make();
  fs::rename(At("host/profd"), At("profd"));
  Append("profd/marks.tsv", "2\t2\t\t2\tmark");
  RecoveredDump dump = Recover();
  EXPECT_EQ(dump.manifest.marks, 1u);
  EXPECT_FALSE(fs::exists(At("profd")));
  EXPECT_THAT(ReadText(At("host/profd/marks.tsv")), testing::EndsWith("mark\ta\t0\n"));
  EXPECT_EQ(ParseSliceJournal(Journal()).slices.size(), 1u);
  Result<DumpReader> reader = DumpReader::Open(root_, name_);
  ASSERT_TRUE(reader.ok());
  Result<VerifyReport> report = VerifyDump(*reader, name_);
  ASSERT_TRUE(report.ok());
  for (const VerifyProblem& problem : report->problems) {
    EXPECT_NE(problem.check, VerifyCheck::kSizes) << problem.where << ": " << problem.what;
  }
}

TEST_F(RecoveryTest, OurFolderIsNotLookedForBehindLinks) {
  Make();
  fs::create_directory(tmp_ / "elsewhere");
  fs::rename(At("host/profd"), tmp_ / "elsewhere/profd");
  WriteText(tmp_ / "elsewhere/profd/marks.tsv", "no whole line");
  fs::create_directory_symlink(tmp_ / "elsewhere/profd", At("profd"));
  RecoverDump(root_, name_, Options()).status().Ignore();
  EXPECT_EQ(ReadText(tmp_ / "elsewhere/profd/marks.tsv"), "no whole line");
  fs::remove(At("host/profd"));
  fs::remove_all(At("host"));
  fs::create_directory_symlink(tmp_ / "elsewhere", At("host"));
  WriteText(At("profd_manifest.json"), "{}");
  RecoverDump(root_, name_, Options()).status().Ignore();
  EXPECT_EQ(ReadText(tmp_ / "elsewhere/profd/marks.tsv"), "no whole line");
}

// A file with another name may be anything the owner can link.
TEST_F(RecoveryTest, FilesWithOtherNamesAreLeftAsTheyAre) {
  Make();
  WriteText(tmp_ / "victim", std::string(50, 'v'));
  const std::string slice = At("device_0/data/hbm.data.0.slice_1");
  fs::remove(slice);
  fs::create_hard_link(tmp_ / "victim", slice);
  RecoveredDump dump = Recover();
  EXPECT_EQ(fs::file_size(tmp_ / "victim"), 50u);
  EXPECT_THAT(dump.manifest.warnings, Contains(HasSubstr("hbm.data.0.slice_1 was left as it is")));
  EXPECT_EQ(ChannelOf(dump, kHbm).records, 10u);
}

// Killed after a slice was compressed and before the journal said so.
TEST_F(RecoveryTest, ACompressedSliceNotYetInTheJournalIsValid) {
  Make();
  const std::string slice = At("device_0/data/hbm.data.0.slice_0");
  const std::string plain = ReadText(slice);
  std::string packed(ZSTD_compressBound(plain.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 1));
  WriteText(slice + ".zst", packed);
  fs::remove(slice);
  RecoveredDump dump = Recover();
  auto file = std::ranges::find(dump.manifest.files, "device_0/data/hbm.data.0.slice_0.zst", &ManifestFile::path);
  ASSERT_NE(file, dump.manifest.files.end());
  EXPECT_EQ(file->state, "compressed");
  EXPECT_EQ(file->crc32c, Crc32c(AsBytes(packed)));
  EXPECT_EQ(file->raw_crc32c, Crc32c(AsBytes(plain)));
  EXPECT_EQ(ChannelOf(dump, kHbm).records, 13u);
  Result<VerifyReport> report = VerifyDump(DumpReader::Open(root_, name_).value(), name_);
  ASSERT_TRUE(report.ok());
  for (const VerifyProblem& problem : report->problems) {
    EXPECT_TRUE(problem.check != VerifyCheck::kSizes && problem.check != VerifyCheck::kChecksums)
        << problem.where << ": " << problem.what;
  }
  // What is not the slice that was closed has no check sum of ours.
  packed.back() ^= 1;
  WriteText(slice + ".zst", packed);
  WriteText(At("profd_manifest.json"), "");
  dump = Recover();
  file = std::ranges::find(dump.manifest.files, "device_0/data/hbm.data.0.slice_0.zst", &ManifestFile::path);
  ASSERT_NE(file, dump.manifest.files.end());
  EXPECT_FALSE(file->crc32c);
}

TEST_F(RecoveryTest, NothingOutsideIsTouched) {
  Make();
  WriteText(tmp_ / "victim", "precious, without a newline");
  const std::string slice = At("device_0/data/hccs.data.0.slice_0");
  fs::remove(slice);
  fs::create_symlink(tmp_ / "victim", slice);
  fs::create_hard_link(tmp_ / "victim", At("device_0/data/hbm.data.0.slice_7"));
  ASSERT_EQ(::mkfifo(At("device_0/data/nic.data.0.slice_0").c_str(), 0600), 0);
  fs::remove_all(At("host/data"));
  fs::create_directory_symlink(tmp_.path(), At("host/data"));
  Result<RecoveredDump> recovered = RecoverDump(root_, name_, Options());
  EXPECT_EQ(ReadText(tmp_ / "victim"), "precious, without a newline");
  EXPECT_FALSE(fs::exists(tmp_ / "victim.done"));
}

}  // namespace
}  // namespace profd
