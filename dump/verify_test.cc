#include "dump/verify.h"

#include <gmock/gmock.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "dump/session_dump.h"
#include "dump/test_util.h"

namespace profd {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kStartNs = 5000 * kNsPerSecond;  // host clock
constexpr int64_t kPeriodNs = 10 * kNsPerMs;

// A dump of one device with HBM and HCCS at 100 Hz for two seconds.
class VerifyTest : public testing::Test {
 protected:
  void SetUp() override {
    root_.emplace(DumpRoot::Open(temp_.path() + "/root").value());
    SessionDumpOptions options;
    options.session.start_wall_ns = 1'767'225'600'000'000'000;
    options.session.start_raw_ns = kStartNs;
    options.owner = {::getuid(), ::getgid()};
    options.slice_bytes = 4096;
    SessionDumpOptions::Device device;
    device.facts.id = 0;
    device.facts.chip_id = 5;
    device.facts.counter_hz = 50e6;
    device.clocks = DumpClocks{kStartNs, 1000, 77 * kNsPerSecond, 5000, 100};
    options.devices.push_back(device);
    options.host_clocks = {kStartNs, 1000, 0, 0, 0};
    dump_ = SessionDump::Create(*root_, std::move(options)).value();
    path_ = dump_->path();
    hbm_ = dump_->OpenChannel(0, 1).value();
    hccs_ = dump_->OpenChannel(0, 9).value();
  }

  // Records of instants [from, to), as many as the manifest is told.
  void Write(int from, int to) {
    for (int i = from; i < to; ++i) {
      std::vector<std::byte> bytes(24 * 8);
      for (uint32_t k = 0; k < 8; ++k) {
        std::span<std::byte> record = std::span(bytes).subspan(24 * k, 24);
        StoreUnchecked(record, 0, static_cast<uint64_t>(i) * 10'000);
        StoreUnchecked(record, 16, k & 1);
        StoreUnchecked(record, 20, k / 2);
      }
      ASSERT_TRUE(dump_->Append(hbm_, bytes, 8).ok());
      std::string line = std::to_string(77 + i / 100) + ":" +
                         std::to_string(1'000'000'000 + i % 100 * 10'000'000).substr(1) + " 1 2\n";
      ASSERT_TRUE(dump_->Append(hccs_, AsBytes(line), 1).ok());
    }
    hbm_records_ += static_cast<uint64_t>(to - from) * 8;
    hccs_records_ += static_cast<uint64_t>(to - from);
  }

  ManifestChannel& Channel(const std::string& collector, uint32_t channel,
                           const std::string& file) {
    for (ManifestChannel& known : dump_->manifest().channels) {
      if (known.collector == collector) return known;
    }
    dump_->manifest().channels.reserve(8);  // references stay good
    ManifestChannel& made = dump_->manifest().channels.emplace_back();
    made.collector = collector;
    made.device = 0;
    made.channel = channel;
    made.file = file;
    made.hz_effective = 100;
    return made;
  }

  // host_sys_cpu.data at 100 Hz: the readings of these instants, each so many periods late. `readings`
  // is what the collector says of itself.
  void WriteHost(const std::vector<std::pair<int, double>>& late, uint64_t readings,
                 uint64_t told_late = 0) {
    for (const auto& [instant, periods] : late) {
      const auto ns = kStartNs + static_cast<int64_t>((instant + periods) * double{kPeriodNs});
      ASSERT_TRUE(dump_->AppendHostFile("host_sys_cpu.data",
                                        "TimeStamp:" + std::to_string(ns) + "\nIndex:0\n")
                      .ok());
    }
    ManifestChannel& channel = dump_->manifest().channels.emplace_back();
    channel.collector = "host_cpu";
    channel.hz_effective = 100;
    channel.readings = readings;
    if (told_late == 0) return;
    channel.AddGap({kStartNs + 1000 * kNsPerMs, told_late, std::string(kLateReason), kStartNs});
    channel.AddLoss(kLateReason, told_late, 0, kStartNs);
  }

  void Finish(int instants) {
    Channel("hbm", 1, "hbm.data").records = hbm_records_;
    Channel("hccs", 9, "hccs.data").records = hccs_records_;
    EndFacts end;
    end.wall_ns = 1'767'225'600'000'000'000 + instants * kPeriodNs;
    end.raw_ns = kStartNs + instants * kPeriodNs;
    ASSERT_TRUE(dump_->Finish(end).ok());
    dump_.reset();
  }

  VerifyReport Verify() {
    return VerifyDump(DumpReader::OpenPath(path_).value(), fs::path(path_).filename().string())
        .value();
  }
  static std::vector<std::string> Texts(const VerifyReport& report) {
    std::vector<std::string> texts;
    for (const VerifyProblem& problem : report.problems) {
      texts.push_back(std::string(ToString(problem.check)) + ": " + problem.where + ": " +
                      problem.what);
    }
    return texts;
  }
  // Changes one byte of a file in place.
  void Flip(const std::string& file, std::streamoff at) {
    std::fstream stream(path_ + "/" + file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(at);
    stream.put(byte);
  }

  TempDir temp_;
  std::optional<DumpRoot> root_;
  std::unique_ptr<SessionDump> dump_;
  std::string path_;
  SessionDump::Channel hbm_ = 0;
  SessionDump::Channel hccs_ = 0;
  uint64_t hbm_records_ = 0;
  uint64_t hccs_records_ = 0;
};

TEST_F(VerifyTest, AWholeDumpHolds) {
  Write(0, 200);
  Finish(200);
  VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << testing::PrintToString(Texts(report));
  EXPECT_TRUE(report.has_manifest);
  EXPECT_GT(report.checksums, 5u);
  ASSERT_EQ(report.channels.size(), 2u);
  for (const VerifyChannel& channel : report.channels) {
    EXPECT_EQ(channel.expected(), channel.received) << channel.file;
    EXPECT_EQ(channel.received, channel.collector == "hbm" ? 1600u : 200u);
  }
  for (VerifyCheck check :
       {VerifyCheck::kManifest, VerifyCheck::kSizes, VerifyCheck::kChecksums, VerifyCheck::kFraming,
        VerifyCheck::kOrder, VerifyCheck::kClocks, VerifyCheck::kAccounting}) {
    EXPECT_TRUE(report.ran[static_cast<size_t>(check)]) << ToString(check);
  }
}

TEST_F(VerifyTest, AChangedByteIsFound) {
  Write(0, 200);
  Finish(200);
  Flip("device_0/data/hbm.data.0.slice_2", 30);
  VerifyReport report = Verify();
  EXPECT_THAT(Texts(report), Contains(HasSubstr("checksums: device_0/data/hbm.data.0.slice_2")));
}

TEST_F(VerifyTest, AMissingSliceAShortOneAndAStrangeFileAreFound) {
  Write(0, 200);
  Finish(200);
  fs::remove(path_ + "/device_0/data/hbm.data.0.slice_1");
  fs::resize_file(path_ + "/device_0/data/hbm.data.0.slice_2", 100);
  std::ofstream(path_ + "/device_0/data/hbm.data.0.slice_99") << "x";
  std::vector<std::string> texts = Texts(Verify());
  EXPECT_THAT(texts, Contains(HasSubstr("hbm.data.0.slice_1: is in the manifest and not in")));
  EXPECT_THAT(texts, Contains(testing::AllOf(HasSubstr("slice_2: is 100 bytes long, the manifest says"),
                                             HasSubstr("; ends inside of a record, 4 bytes of it"))));
  EXPECT_THAT(texts, Contains(HasSubstr("slice_99: is in the dump and not in the manifest")));
}

// Its size, its check sum, its last record and what is missing with it: all of that is one slice.
TEST_F(VerifyTest, ABrokenSliceIsOneProblem) {
  Write(0, 200);
  Finish(200);
  fs::resize_file(path_ + "/device_0/data/hbm.data.0.slice_2", 100);
  EXPECT_THAT(Texts(Verify()),
              ElementsAre(testing::AllOf(
                  HasSubstr("sizes: device_0/data/hbm.data.0.slice_2: is 100 bytes long"),
                  HasSubstr("; ends inside of a record"), HasSubstr("records are missing"))));
}

TEST_F(VerifyTest, AMissingSliceIsOneProblem) {
  Write(0, 200);
  Finish(200);
  fs::remove(path_ + "/device_0/data/hbm.data.0.slice_1");
  EXPECT_THAT(Texts(Verify()),
              ElementsAre(testing::AllOf(HasSubstr("hbm.data.0.slice_1: is in the manifest and not"),
                                         HasSubstr("records are missing"))));
}

// Neither the journal nor the manifest knows that there was one: the numbers of the others do.
TEST_F(VerifyTest, AMissingSliceNobodyListsIsFound) {
  Write(0, 200);
  Finish(200);
  const std::string slice = "device_0/data/hbm.data.0.slice_1";
  fs::remove(path_ + "/" + slice);
  fs::remove(path_ + "/" + slice + ".done");
  std::istringstream journal(ReadText(path_ + "/host/profd/slices.tsv"));
  std::string kept;
  for (std::string line; std::getline(journal, line);) {
    if (line.find(slice + "\t") == std::string::npos) kept += line + "\n";
  }
  WriteText(path_ + "/host/profd/slices.tsv", kept);
  Manifest manifest = ParseManifest(ReadText(path_ + "/profd_manifest.json")).value();
  std::erase_if(manifest.files, [&](const ManifestFile& file) {
    return file.path == slice || file.path == kJournalFile;
  });
  manifest.files.push_back({std::string(kJournalFile), kept.size()});
  WriteText(path_ + "/profd_manifest.json", Serialize(manifest));
  EXPECT_THAT(Texts(Verify()), ElementsAre(HasSubstr("sizes: " + slice + ": is not there, and no limit")));
}

// It is no slice, so the journal does not know it.
TEST_F(VerifyTest, AChangedByteOfOurOwnFilesIsFound) {
  Write(0, 20);
  ASSERT_TRUE(dump_->AppendOwn("marks.tsv", "5000000000000\t2\t\t2\tmark\ta\t0\n", 1).ok());
  Finish(20);
  Flip("host/profd/marks.tsv", 60);
  EXPECT_THAT(Texts(Verify()), ElementsAre(testing::AllOf(
                                   HasSubstr("checksums: host/profd/marks.tsv: CRC-32C is"),
                                   HasSubstr("by the manifest"))));
}

TEST_F(VerifyTest, WhatTheAnalyserLeavesIsNoFault) {
  Write(0, 20);
  Finish(20);
  for (const char* dir : {"/mindstudio_profiler_output", "/device_0/sqlite"}) {
    fs::create_directory(path_ + dir);
    std::ofstream(path_ + dir + "/x.csv") << "x\n";
  }
  std::ofstream(path_ + "/device_0/data/all_file.complete") << "";
  EXPECT_THAT(Texts(Verify()), testing::IsEmpty());
}

TEST_F(VerifyTest, LostRecordsNobodySpeaksOfAreFound) {
  Write(0, 100);
  Write(110, 200);
  Finish(200);
  VerifyReport report = Verify();
  EXPECT_THAT(Texts(report),
              Contains(HasSubstr("accounting: hbm.data of device 0: 80 of 1600 records are missing "
                                 "and the manifest does not say so; the first 0.990 s after")));
  EXPECT_THAT(Texts(report), Contains(HasSubstr("hccs.data of device 0: 10 of 200 records")));
}

TEST_F(VerifyTest, LostRecordsTheManifestNamesAreExpected) {
  Write(0, 100);
  Write(110, 200);
  for (ManifestChannel* channel :
       {&Channel("hbm", 1, "hbm.data"), &Channel("hccs", 9, "hccs.data")}) {
    const uint64_t lost = channel->collector == "hbm" ? 80 : 10;
    channel->AddGap({kStartNs + 1100 * kNsPerMs, lost, "queue_full", kStartNs + 990 * kNsPerMs});
    channel->AddLoss("queue_full", lost, lost * 24);
  }
  Finish(200);
  VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << testing::PrintToString(Texts(report));
  ASSERT_FALSE(report.channels.empty());
  for (const VerifyChannel& channel : report.channels) {
    EXPECT_EQ(channel.missing, channel.collector == "hbm" ? 80u : 10u);
    EXPECT_EQ(channel.lost, channel.missing);
    EXPECT_EQ(channel.unexplained, 0u);
  }
}

TEST_F(VerifyTest, TooSmallALossDoesNotExplainABigHole) {
  Write(0, 50);
  Write(150, 200);
  Channel("hccs", 9, "hccs.data")
      .AddGap({kStartNs + 600 * kNsPerMs, 3, "queue_full", kStartNs + 500 * kNsPerMs});
  Channel("hccs", 9, "hccs.data").AddLoss("queue_full", 3, 100);
  Finish(200);
  EXPECT_THAT(Texts(Verify()),
              Contains(HasSubstr("hccs.data of device 0: 100 records are missing, the manifest "
                                 "knows of 3")));
}

// Late by up to a period and late from then on: every point of the grid has its reading.
TEST_F(VerifyTest, AReadingThatIsLateAndStaysLateIsNoLoss) {
  std::vector<std::pair<int, double>> readings;
  for (int i = 0; i < 200; ++i) readings.emplace_back(i, i < 100 ? 0.01 : 0.8);
  WriteHost(readings, 200);
  Finish(200);
  EXPECT_THAT(Texts(Verify()), testing::IsEmpty());
}

TEST_F(VerifyTest, AReadingThatNobodyTellsOfIsMissing) {
  std::vector<std::pair<int, double>> readings;
  for (int i = 0; i < 200; ++i) {
    if (i != 100) readings.emplace_back(i, i % 7 * 0.05);
  }
  WriteHost(readings, 199);
  Finish(200);
  EXPECT_THAT(Texts(Verify()),
              ElementsAre(HasSubstr("host_sys_cpu.data: 1 of 200 records are missing and the "
                                    "manifest does not say so; the first 0.99")));
}

TEST_F(VerifyTest, AReadingThatGotLostOnTheWayIsMissing) {
  std::vector<std::pair<int, double>> readings;
  for (int i = 0; i < 200; ++i) readings.emplace_back(i, 0.01);
  WriteHost(readings, 203);
  Finish(200);
  EXPECT_THAT(Texts(Verify()), ElementsAre(HasSubstr("200 readings are here, host_cpu was read 203")));
}

TEST_F(VerifyTest, AReadingThatWasLeftOutIsExplained) {
  std::vector<std::pair<int, double>> readings;
  for (int i = 0; i < 200; ++i) {
    if (i != 51 && i != 52) readings.emplace_back(i, i == 50 ? 2.3 : 0.01);
  }
  WriteHost(readings, 198, 2);
  Finish(200);
  VerifyReport report = Verify();
  EXPECT_THAT(Texts(report), testing::IsEmpty());
  ASSERT_FALSE(report.channels.empty());
  EXPECT_EQ(report.channels[0].missing, 2u);
}

TEST_F(VerifyTest, MoreLeftOutThanToldIsFound) {
  std::vector<std::pair<int, double>> readings;
  for (int i = 0; i < 200; ++i) {
    if (i < 50 || i > 70) readings.emplace_back(i, 0.01);
  }
  WriteHost(readings, 179, 2);
  Finish(200);
  EXPECT_THAT(Texts(Verify()), ElementsAre(HasSubstr("21 records are missing, the manifest knows of 2")));
}

TEST_F(VerifyTest, ACountThatIsWrongIsFound) {
  Write(0, 200);
  Finish(200);
  const std::string path = path_ + "/profd_manifest.json";
  std::ifstream in(path);
  std::string text(std::istreambuf_iterator<char>(in), {});
  const std::string right = "\"records\": 1600";
  ASSERT_NE(text.find(right), std::string::npos);
  text.replace(text.find(right), right.size(), "\"records\": 1605");
  std::ofstream(path) << text;
  EXPECT_THAT(Texts(Verify()),
              Contains(HasSubstr("1600 records are here, the manifest counts 1605")));
}

TEST_F(VerifyTest, AChannelThatEndsEarlyIsFound) {
  Write(0, 200);
  Finish(2000);
  EXPECT_THAT(Texts(Verify()), Contains(HasSubstr("ends 18.0 s before the session")));
}

TEST_F(VerifyTest, StampsThatGoBackAreFound) {
  Write(0, 100);
  Write(90, 100);
  Finish(100);
  EXPECT_THAT(Texts(Verify()), Contains(HasSubstr("order: hccs.data of device 0: 1 stamps")));
}

TEST_F(VerifyTest, WrongClocksAreFound) {
  Write(0, 200);
  ManifestClock late;
  late.device = 0;
  late.when = "stop";
  late.clocks = {kStartNs + 2 * kNsPerSecond, 2000, 80 * kNsPerSecond, 5000 + 100'000'000, 100};
  dump_->manifest().clocks.push_back(late);
  Finish(200);
  std::ofstream(path_ + "/device_0/start_info.0") << "{\n}\n";
  std::ofstream(path_ + "/device_0/dev_start.log.0") << "clock_monotonic_raw: 1\ncntvct: 2\n";
  std::vector<std::string> texts = Texts(Verify());
  EXPECT_THAT(texts, Contains(HasSubstr("device's clock runs at 1.500000")));
  EXPECT_THAT(texts, Contains(HasSubstr("start_info.0: is not on one line")));
  EXPECT_THAT(texts, Contains(HasSubstr("dev_start.log.0: says 1 ns, 2 cycles")));
}

TEST_F(VerifyTest, ClockPairsMayBeListedInAnyOrder) {
  Write(0, 200);
  ManifestClock later;
  later.device = 0;
  later.when = "periodic";
  later.clocks = {kStartNs + 2 * kNsPerSecond, 2000, 79 * kNsPerSecond, 5000 + 100'000'000, 100};
  auto& clocks = dump_->manifest().clocks;
  clocks.insert(clocks.begin(), later);
  Finish(200);
  EXPECT_THAT(Texts(Verify()), testing::IsEmpty());
}

TEST_F(VerifyTest, ADumpWithoutAManifestIsCheckedAsFarAsItCanBe) {
  Write(0, 200);
  Finish(200);
  fs::remove(path_ + "/profd_manifest.json");
  VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << testing::PrintToString(Texts(report));
  EXPECT_FALSE(report.ran[static_cast<size_t>(VerifyCheck::kAccounting)]);
  EXPECT_THAT(report.notes, Contains(HasSubstr("its manifest is gone")));
  fs::remove_all(path_ + "/host/profd");
  EXPECT_THAT(Verify().notes, Contains(HasSubstr("not written by profd")));
}

TEST_F(VerifyTest, FilesWithHistoricalNamesAreReadToo) {
  Write(0, 200);
  Finish(200);
  fs::remove(path_ + "/profd_manifest.json");
  const std::string data = path_ + "/device_0/data/";
  fs::rename(data + "hccs.data.0.slice_0", data + "hccs.data.7.dev.profiler_default_tag.0.slice_0");
  fs::resize_file(data + "hccs.data.7.dev.profiler_default_tag.0.slice_0", 100);
  EXPECT_THAT(Texts(Verify()), Contains(HasSubstr("slice_0: ends inside of a line")));
}

TEST_F(VerifyTest, ARunningDumpIsConsistentSoFar) {
  Write(0, 200);
  ASSERT_TRUE(dump_->Flush().ok());
  VerifyReport report = Verify();
  EXPECT_THAT(Texts(report), testing::IsEmpty());
  EXPECT_EQ(report.state, DumpState::kRunning);
  EXPECT_THAT(report.notes, Contains(HasSubstr("still runs")));
  EXPECT_FALSE(report.ran[static_cast<size_t>(VerifyCheck::kAccounting)]);
  EXPECT_GT(report.checksums, 5u);
  // What is written just now may be cut anywhere; what is closed may not.
  std::ofstream(path_ + "/device_0/data/hccs.data.0.slice_0", std::ios::app) << "79:0000";
  EXPECT_THAT(Texts(Verify()), testing::IsEmpty());
  Flip("device_0/data/hbm.data.0.slice_2", 33);
  fs::remove(path_ + "/device_0/data/hbm.data.0.slice_4");
  EXPECT_THAT(Texts(Verify()), testing::UnorderedElementsAre(
                                   HasSubstr("checksums: device_0/data/hbm.data.0.slice_2"),
                                   HasSubstr("hbm.data.0.slice_4: was closed and never removed")));
}

// The vendor's collector: what profd does not read is counted, whatever is in it.
TEST_F(VerifyTest, FilesOfUnknownKindsAreNotJudged) {
  const std::string data = temp_ / "foreign/device_0/data/";
  fs::create_directories(data);
  fs::create_directories(temp_ / "foreign/host/data");
  WriteText(temp_ / "foreign/device_0/info.json.0",
            R"({"platform_version":"5","CPU":[],"DeviceInfo":[]})");
  WriteText(temp_ / "foreign/device_0/start_info.0",
            R"({"collectionTimeBegin":"1","clockMonotonicRaw":"1"})");
  for (const char* log : {"host_start.log.0", "dev_start.log.0"}) {
    WriteText(temp_ / (std::string("foreign/device_0/") + log), "clock_monotonic_raw: 1\ncntvct: 1\n");
  }
  fs::copy(temp_ / "foreign/device_0/info.json.0", temp_ / "foreign/host/info.json");
  fs::copy(temp_ / "foreign/device_0/start_info.0", temp_ / "foreign/host/start_info");
  fs::copy(temp_ / "foreign/device_0/host_start.log.0", temp_ / "foreign/host/host_start.log");
  WriteText(data + "stars_soc.data.0.slice_0", std::string(2727, 'x'));
  WriteText(temp_ / "foreign/host/data/unaging.compact.task_track.slice_0", std::string(130, 'x'));
  auto verify = [&](const char* mode, size_t bytes) {
    const std::string sample = fmt::format(R"({{"devices":"0","ai_core_profiling_mode":"{}"}})", mode);
    WriteText(temp_ / "foreign/device_0/sample.json", sample);
    WriteText(temp_ / "foreign/host/sample.json", sample);
    WriteText(data + "ffts_profile.data.0.slice_0", std::string(bytes, 'x'));
    return VerifyDump(DumpReader::OpenPath(temp_ / "foreign").value(), "foreign").value();
  };
  // operator-data a.4: 128 bytes a task; dump-format 2.11: 96 a sample.
  VerifyReport report = verify("task-based", 1280);
  EXPECT_THAT(Texts(report), testing::IsEmpty());
  EXPECT_THAT(report.notes,
              Contains(HasSubstr("2 files of a kind that profd does not read, counted and not "
                                 "checked: stars_soc.data, unaging.compact.task_track")));
  auto row = std::ranges::find(report.channels, "stars_soc.data", &VerifyChannel::file);
  ASSERT_NE(row, report.channels.end());
  EXPECT_FALSE(row->judged);
  EXPECT_EQ(row->bytes, 2727u);
  EXPECT_THAT(Texts(verify("sample-based", 960)), testing::IsEmpty());
  EXPECT_THAT(Texts(verify("sample-based", 1280)), ElementsAre(HasSubstr("ends inside of a record, 32")));
  EXPECT_THAT(Texts(verify("task-based", 960)), ElementsAre(HasSubstr("ends inside of a record, 64")));
  EXPECT_THAT(Texts(verify("", 961)), testing::IsEmpty());
}

TEST_F(VerifyTest, SomethingElseIsNoDump) {
  fs::create_directories(temp_.path() + "/other");
  Result<VerifyReport> report =
      VerifyDump(DumpReader::OpenPath(temp_.path() + "/other").value(), "other");
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.status().message(), HasSubstr("not a profile dump"));
}

TEST_F(VerifyTest, GivingUpEndsIt) {
  Write(0, 200);
  Finish(200);
  Result<VerifyReport> report = VerifyDump(DumpReader::OpenPath(path_).value(), "x",
                                           [](uint64_t, uint64_t) { return false; });
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace profd
