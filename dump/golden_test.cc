// Dumps of earlier versions stay readable. Those in testdata/golden are never made anew: when the
// format moves on, another one is added.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dump/reader.h"
#include "dump/slice_journal.h"
#include "dump/slice_source.h"
#include "dump/test_support.h"
#include "dump/verify.h"

namespace profd {
namespace {

const std::string kGolden = "dump/testdata/golden/";
// 0.2: manifests without check sums, no journal.
const std::string kWithoutSums = "PROF_000001_20260101000000000_AAAAAAAAAAAAAAAA";
// 0.4: journal, compressed slices, one aged.
const std::string kWithSums = "PROF_000002_20260101000000000_BBBBBBBBBBBBBBBB";
// Our own files in host/profd/; before, in profd/.
const std::string kOwnInHost = "PROF_000003_20260101000000000_CCCCCCCCCCCCCCCC";

std::string ProblemsOf(const VerifyReport& report) {
  std::string all;
  for (const VerifyProblem& one : report.problems) all += one.where + ": " + one.what + "\n";
  return all;
}

SliceJournal JournalOf(const DumpReader& reader) {
  Result<UniqueFd> fd = reader.OpenFile(kJournalFile);
  EXPECT_TRUE(fd.ok());
  return ParseSliceJournal(fd.ok() ? ReadWhole(fd->get(), kMaxJournalBytes).value_or("") : "");
}

TEST(GoldenDumpTest, BeforeCheckSums) {
  Result<DumpReader> reader = DumpReader::OpenPath(kGolden + kWithoutSums);
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  Result<Manifest> manifest = reader->ReadManifest();
  ASSERT_TRUE(manifest.ok()) << manifest.status().ToString();
  EXPECT_EQ(manifest->state, DumpState::kDone);
  EXPECT_EQ(manifest->session_id, "golden");
  EXPECT_EQ(manifest->rank, 3);
  EXPECT_EQ(manifest->segment, 1);
  EXPECT_EQ(manifest->limit_bytes, 0u);
  ASSERT_EQ(manifest->channels.size(), 3u);
  EXPECT_EQ(manifest->channels[0].records, 960u);
  EXPECT_EQ(manifest->channels[0].aged.slices, 0u);
  ASSERT_EQ(manifest->channels[1].dropped.size(), 1u);
  EXPECT_EQ(manifest->channels[1].dropped[0].from_ns, 0);
  ASSERT_EQ(manifest->files.size(), 20u);
  for (const ManifestFile& file : manifest->files) {
    EXPECT_FALSE(file.crc32c || file.records) << file.path;
    Result<UniqueFd> fd = reader->OpenFile(file.path);
    ASSERT_TRUE(fd.ok()) << file.path;
    EXPECT_EQ(ReadWhole(fd->get(), 1 << 20).value_or("").size(), file.bytes) << file.path;
  }
  Result<VerifyReport> report = VerifyDump(*reader, kWithoutSums);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->ok()) << ProblemsOf(*report);
}

TEST(GoldenDumpTest, WithCheckSumsCompressedAndAgedSlices) {
  Result<DumpReader> reader = DumpReader::OpenPath(kGolden + kWithSums);
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  Result<Manifest> manifest = reader->ReadManifest();
  ASSERT_TRUE(manifest.ok()) << manifest.status().ToString();
  EXPECT_EQ(manifest->limit_action, "age");
  EXPECT_EQ(manifest->channels.at(0).records, 784u);
  EXPECT_EQ(manifest->channels[0].aged.records, 176u);
  SliceJournal journal = JournalOf(*reader);
  EXPECT_EQ(journal.bad_lines, 0u);
  EXPECT_EQ(journal.slices.size(), 8u);
  uint64_t slices = 0;
  for (const ManifestFile& file : manifest->files) {
    Result<UniqueFd> fd = reader->OpenFile(file.path);
    ASSERT_TRUE(fd.ok()) << file.path;
    SliceSource source(std::move(*fd), file.path);
    std::vector<std::byte> bytes(64 << 10);
    Result<size_t> got = source.Read(bytes);
    ASSERT_TRUE(got.ok()) << file.path;
    EXPECT_EQ(source.stored_bytes(), file.bytes) << file.path;
    EXPECT_EQ(source.stored_crc32c(), file.crc32c) << file.path;
    if (!source.compressed()) continue;
    ++slices;
    EXPECT_EQ(*got, file.raw_bytes);
    EXPECT_EQ(source.crc32c(), file.raw_crc32c);
  }
  EXPECT_EQ(slices, 7u);
  Result<VerifyReport> report = VerifyDump(*reader, kWithSums);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->ok()) << ProblemsOf(*report);
}

// Whichever of the two places our files are in, they have the same paths.
TEST(GoldenDumpTest, OurOwnFilesAreFoundInBothPlaces) {
  for (const std::string& name : {kWithSums, kOwnInHost}) {
    Result<DumpReader> reader = DumpReader::OpenPath(kGolden + name);
    ASSERT_TRUE(reader.ok()) << reader.status().ToString();
    std::vector<std::string> paths;
    for (const DumpReader::File& file : reader->Files().value_or({})) paths.push_back(file.path);
    EXPECT_THAT(paths, testing::IsSupersetOf({"host/profd/samples.tsv", "host/profd/slices.tsv"}));
    EXPECT_GT(JournalOf(*reader).slices.size(), 0u);
    Result<VerifyReport> report = VerifyDump(*reader, name);
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report->ok()) << ProblemsOf(*report);
    EXPECT_EQ(std::ranges::count(report->channels, "profd/samples.tsv", &VerifyChannel::file), 1)
        << name;
  }
}

// Every field that is written is in the schema (what types and values it has is checked by tests/harness/prof_reader.py).
TEST(GoldenDumpTest, TheSchemaNamesEveryField) {
  auto schema = nlohmann::json::parse(ReadText("docs/manifest.schema.json"));
  auto manifest =
      nlohmann::json::parse(ReadText(kGolden + kWithSums + "/" + std::string(kManifestFile)));
  auto expect_known = [](const nlohmann::json& object, const nlohmann::json& of) {
    for (const auto& [key, value] : object.items()) {
      EXPECT_TRUE(of["properties"].contains(key)) << key;
    }
  };
  expect_known(manifest, schema);
  for (const char* part : {"session", "node", "versions"}) {
    expect_known(manifest[part], schema["properties"][part]);
  }
  for (const auto& channel : manifest["channels"]) {
    expect_known(channel, schema["$defs"]["channel"]);
    for (const char* list : {"dropped", "gaps"}) {
      for (const auto& item : channel[list]) {
        expect_known(item, schema["$defs"]["channel"]["properties"][list]["items"]);
      }
    }
    expect_known(channel["aged"], schema["$defs"]["channel"]["properties"]["aged"]);
  }
  for (const auto& file : manifest["files"]) expect_known(file, schema["$defs"]["file"]);
  for (const auto& clock : manifest["clocks"]) {
    expect_known(clock, schema["properties"]["clocks"]["items"]);
  }
}

}  // namespace
}  // namespace profd
