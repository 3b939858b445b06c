// What verify makes of files: damaged, missing, strange, or still being written.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <sstream>

#include "dump/slice_journal.h"
#include "dump/verify_test_support.h"

namespace profd {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(VerifyTest, AChangedByteIsFound) {
  WriteAll(200);
  Flip("device_0/data/hbm.data.0.slice_2", 30);
  VerifyReport report = Verify();
  EXPECT_THAT(Texts(report), Contains(HasSubstr("checksums: device_0/data/hbm.data.0.slice_2")));
}

TEST_F(VerifyTest, AMissingSliceAShortOneAndAStrangeFileAreFound) {
  WriteAll(200);
  fs::remove(path_ + "/device_0/data/hbm.data.0.slice_1");
  fs::resize_file(path_ + "/device_0/data/hbm.data.0.slice_2", 100);
  std::ofstream(path_ + "/device_0/data/hbm.data.0.slice_99") << "x";
  std::vector<std::string> texts = Texts(Verify());
  EXPECT_THAT(texts, Contains(HasSubstr("hbm.data.0.slice_1: is in the manifest and not in")));
  EXPECT_THAT(texts, Contains(testing::AllOf(HasSubstr("slice_2: is 100 bytes long, the manifest has"),
                                             HasSubstr("; ends inside of a record, 4 bytes of it"))));
  EXPECT_THAT(texts, Contains(HasSubstr("slice_99: is in the dump and not in the manifest")));
}

// Its size, its check sum, its last record and what is missing with it: all of that is one slice.
TEST_F(VerifyTest, ABrokenSliceIsOneProblem) {
  WriteAll(200);
  fs::resize_file(path_ + "/device_0/data/hbm.data.0.slice_2", 100);
  EXPECT_THAT(Texts(Verify()),
              ElementsAre(testing::AllOf(
                  HasSubstr("sizes: device_0/data/hbm.data.0.slice_2: is 100 bytes long"),
                  HasSubstr("; ends inside of a record"), HasSubstr("records are missing"))));
}

TEST_F(VerifyTest, AMissingSliceIsOneProblem) {
  WriteAll(200);
  fs::remove(path_ + "/device_0/data/hbm.data.0.slice_1");
  EXPECT_THAT(Texts(Verify()),
              ElementsAre(testing::AllOf(HasSubstr("hbm.data.0.slice_1: is in the manifest and not"),
                                         HasSubstr("records are missing"))));
}

// A copy by `cp -al`: what is not read is not valid.
TEST_F(VerifyTest, HardLinksAreOneProblem) {
  WriteAll(200);
  fs::create_hard_link(path_ + "/host/info.json", path_ + "/host/data/linked");
  EXPECT_THAT(Texts(Verify()), Contains(std::string("sizes: host/data/linked: 2 files are hard links or belong to ") +
                                        "another user: not read"));
}

TEST_F(VerifyTest, AFileThatWasAddedWhileTheSessionRanIsFound) {
  Write(0, 200);
  WriteText(path_ + "/host/notes.txt", "x");
  Finish(200);
  EXPECT_THAT(Texts(Verify()), ElementsAre("sizes: host/notes.txt: was in the dump when its session ended, and profd did not write it"));
}

// They are not read, and a dump has none: whatever they lead to, it is not the dump's.
TEST_F(VerifyTest, WhatIsNoFileOfADumpIsFound) {
  WriteAll(200);
  fs::create_symlink("/etc/passwd", path_ + "/device_0/data/nic.data.0.slice_0");
  fs::create_directory_symlink("/etc", path_ + "/device_7");
  ASSERT_EQ(::mkfifo((path_ + "/host/pipe").c_str(), 0600), 0);
  WriteText(path_ + "/host/my notes.txt", "x");
  fs::create_directories(path_ + "/results/csv");
  EXPECT_THAT(Texts(Verify()),
              testing::UnorderedElementsAre(
                  "sizes: device_0/data/nic.data.0.slice_0: is a symbolic link, pipe, socket or device: not read",
                  "sizes: device_7: is a symbolic link, pipe, socket or device: not read",
                  "sizes: host/pipe: is a symbolic link, pipe, socket or device: not read",
                  "sizes: host/my notes.txt: is in the dump and not in the manifest",
                  "sizes: results: is a folder that no dump has; the vendor's analyser may export nothing with it"));
  // A dump of the vendor's collector may have more files than profd knows; what is not read is reported all the same.
  fs::remove(path_ + "/profd_manifest.json");
  EXPECT_THAT(Texts(Verify()), testing::Each(HasSubstr("is a symbolic link, pipe, socket or device: not read")));
  EXPECT_EQ(Verify().problem_count, 3u);
}

// Neither the journal nor the manifest knows that there was one: the numbers of the others do.
TEST_F(VerifyTest, AMissingSliceThatIsNotListedIsFound) {
  WriteAll(200);
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
  manifest.files.push_back({.path = std::string(kJournalFile), .bytes = kept.size(), .state = "closed"});
  WriteText(path_ + "/profd_manifest.json", Serialize(manifest));
  EXPECT_THAT(Texts(Verify()), ElementsAre(HasSubstr("sizes: " + slice + ": is not there, and no limit")));
}

// It is not a slice, so the journal does not know it.
TEST_F(VerifyTest, AChangedByteOfOurOwnFilesIsFound) {
  Write(0, 20);
  ASSERT_TRUE(dump_->AppendOwn("marks.tsv", "5000000000000\t2\t\t2\tmark\ta\t0\n").ok());
  Finish(20);
  Flip("host/profd/marks.tsv", 60);
  EXPECT_THAT(Texts(Verify()), ElementsAre(testing::AllOf(
                                   HasSubstr("checksums: host/profd/marks.tsv: CRC-32C is"),
                                   HasSubstr("by the manifest"))));
}

TEST_F(VerifyTest, FilesOfTheAnalyserAreNotAProblem) {
  WriteAll(20);
  for (const char* dir : {"/mindstudio_profiler_output", "/device_0/sqlite"}) {
    fs::create_directory(path_ + dir);
    std::ofstream(path_ + dir + "/x.csv") << "x\n";
    std::ofstream(path_ + dir + "/x (1).csv") << "x\n";
  }
  std::ofstream(path_ + "/device_0/data/all_file.complete") << "";
  EXPECT_THAT(Texts(Verify()), testing::IsEmpty());
}

TEST_F(VerifyTest, FilesThatOthersMadeArePartOfTheDump) {
  Write(0, 200);
  auto begin = [this](const std::string& folder) {
    ManifestProcessFiles facts;
    facts.directory = folder;
    return dump_->BeginProcessFiles(std::move(facts)).ok();
  };
  EXPECT_FALSE(begin("../out"));
  ASSERT_TRUE(begin("aclprof_7_1"));
  EXPECT_FALSE(begin("aclprof_7_1")) << "a new one";
  const std::string data = "host/profd/aclprof_7_1/PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP/host/data/";
  fs::create_directories(path_ + "/" + data);
  WriteText(path_ + "/" + data + "aging.api_event.data.slice_0", "0123456789");
  Finish(200);
  EXPECT_TRUE(Verify().ok()) << testing::PrintToString(Texts(Verify()));
  fs::remove(path_ + "/" + data + "aging.api_event.data.slice_0");
  EXPECT_THAT(Texts(Verify()), Contains(HasSubstr("is in the manifest and not in the dump")));
}

TEST_F(VerifyTest, ADumpWithoutAManifestIsCheckedAsFarAsItCanBe) {
  WriteAll(200);
  fs::remove(path_ + "/profd_manifest.json");
  VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << testing::PrintToString(Texts(report));
  EXPECT_FALSE(report.ran[static_cast<size_t>(VerifyCheck::kAccounting)]);
  EXPECT_THAT(report.notes, Contains(HasSubstr("its manifest is missing")));
  fs::remove_all(path_ + "/host/profd");
  EXPECT_THAT(Verify().notes, Contains(HasSubstr("not written by profd")));
}

// Of the vendor's collector: a limit of it removes the first slices, but never those of "unaging" files (operator-data a.1).
TEST_F(VerifyTest, SlicesMissingBetweenOthersAreFoundWithoutAManifest) {
  WriteAll(200);
  fs::remove(path_ + "/profd_manifest.json");
  fs::remove_all(path_ + "/host/profd");
  fs::remove(path_ + "/device_0/data/hbm.data.0.slice_0");
  EXPECT_TRUE(Verify().ok()) << testing::PrintToString(Texts(Verify()));
  WriteText(path_ + "/device_0/data/hbm.data.0.slice_20", "");
  fs::create_directories(path_ + "/host/data");
  WriteText(path_ + "/host/data/unaging.additional.hash_dic.slice_1", "1:a\n");
  const std::vector<std::string> texts = Texts(Verify());
  EXPECT_THAT(texts, Contains(HasSubstr("device_0/data/hbm.data.0.slice_19: is not there, and no limit removed it")));
  EXPECT_THAT(texts, Contains(HasSubstr("host/data/unaging.additional.hash_dic.slice_0: is not there, and no limit removed it")));
}

TEST_F(VerifyTest, FilesWithHistoricalNamesAreReadToo) {
  WriteAll(200);
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
                                   HasSubstr("hbm.data.0.slice_4: file is missing")));
}

// The vendor's collector: operator files and what profd does not know are counted, whatever is in them.
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
              Contains(HasSubstr("2 files of a kind that is counted and not checked here (profctl export reads those of "
                                 "operators): stars_soc.data, unaging.compact.task_track")));
  auto row = std::ranges::find(report.channels, "stars_soc.data", &VerifyChannel::file);
  ASSERT_NE(row, report.channels.end());
  EXPECT_FALSE(row->judged);
  EXPECT_EQ(row->bytes, 2727u);
  EXPECT_THAT(Texts(verify("sample-based", 960)), testing::IsEmpty());
  EXPECT_THAT(Texts(verify("sample-based", 1280)), ElementsAre(HasSubstr("ends inside of a record, 32")));
  EXPECT_THAT(Texts(verify("task-based", 960)), ElementsAre(HasSubstr("ends inside of a record, 64")));
  EXPECT_THAT(Texts(verify("", 961)), testing::IsEmpty());
  // dump-format 2.6: 24 bytes in version 1.0, 32 in 2.0, whose first field is reserved.
  WriteText(data + "hbm.data.0.slice_0", std::string(32, '\0'));
  EXPECT_THAT(Texts(verify("", 96)), ElementsAre(HasSubstr("ends inside of a record, 8")));
  WriteText(temp_ / "foreign/device_0/info.json.0",
            R"({"platform_version":"5","version":"2.0","CPU":[],"DeviceInfo":[]})");
  EXPECT_THAT(Texts(verify("", 96)), testing::IsEmpty());
  WriteText(data + "hbm.data.0.slice_0", std::string(48, '\0'));
  EXPECT_THAT(Texts(verify("", 96)), ElementsAre(HasSubstr("ends inside of a record, 16")));
}

}  // namespace
}  // namespace profd
