#include "export/engine.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/text.h"
#include "dump/test_support.h"
#include "export/export_run.h"
#include "export/file_feeder.h"

namespace profd::exporting {
namespace {

// Records of 8 bytes: a timestamp and a value. 0xFFFFFFFF as value makes no sense.
class NumberDecoder : public Decoder {
 public:
  explicit NumberDecoder(const DecodeContext& context)
      : context_(context),
        builder_(TableOf(TableId::kHostMem), context.place->device, context.window, *context.rows) {
  }
  void Feed(std::span<const std::byte> bytes, bool) override {
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
      uint32_t cell[2];
      std::memcpy(cell, bytes.data(), 8);
      if (cell[1] == UINT32_MAX) {
        ++stats_.bad_records;
        stats_.bad_bytes += 8;
        continue;
      }
      ++stats_.records;
      builder_.Add(context_.clock.HostNs(cell[0]), static_cast<double>(cell[1]));
    }
    EXPECT_TRUE(bytes.empty());
  }
  void Finish() override { builder_.Flush(); }

 private:
  DecodeContext context_;
  BatchBuilder builder_;
};

// Lines with a number; every line is a mark, and slice starts follow from the name.
class MarkDecoder : public Decoder {
 public:
  explicit MarkDecoder(const DecodeContext& context) : context_(context) {}
  void Feed(std::span<const std::byte> bytes, bool slice_start) override {
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::string_view line;
    while (NextLine(&text, &line)) {
      Event event;
      event.name = (slice_start ? "*" : "") + std::string(line);
      slice_start = false;
      ++stats_.records;
      context_.event(event);
    }
  }
  void Finish() override {}

 private:
  DecodeContext context_;
};

constexpr TableId kNumberTables[] = {TableId::kHostMem};
constexpr TableId kCallTables[] = {TableId::kApi};

const DecoderSpec* Find(std::string_view base, Place::Kind, int) {
  static const DecoderSpec kNumbers = {"n.data",
                                       Place::Kind::kDevice,
                                       ~0u,
                                       8,
                                       0,
                                       kNumberTables,
                                       [](const DecodeContext& c) -> std::unique_ptr<Decoder> {
                                         return std::make_unique<NumberDecoder>(c);
                                       }};
  static const DecoderSpec kMarks = {"m.data",
                                     Place::Kind::kOwn,
                                     ~0u,
                                     0,
                                     0,
                                     {},
                                     [](const DecodeContext& c) -> std::unique_ptr<Decoder> {
                                       return std::make_unique<MarkDecoder>(c);
                                     }};
  static const DecoderSpec kCounters = [] {
    DecoderSpec spec = kNumbers;
    spec.base = "aiVectorCore.data";
    spec.record_size_task = 16;
    return spec;
  }();
  static const DecoderSpec kCalls = [] {
    DecoderSpec spec = kNumbers;
    spec.base = "calls.data";
    spec.tables = kCallTables;
    return spec;
  }();
  if (base == kCounters.base) return &kCounters;
  if (base == kCalls.base) return &kCalls;
  if (base == "n.data") return &kNumbers;
  return base == "m.data" ? &kMarks : nullptr;
}

struct Gathered {
  std::mutex mutex;
  std::map<int, std::vector<std::pair<int64_t, double>>> rows;  // by device
  std::vector<Event> events;
  std::optional<bool> ended;
  Status open, finish, begin;
};

class GatherSink : public FormatSink {
 public:
  explicit GatherSink(Gathered* out) : out_(*out) {}
  void Take(const Batch& batch) override {
    std::lock_guard lock(out_.mutex);
    for (size_t i = 0; i < batch.rows(); ++i) {
      out_.rows[batch.device].emplace_back(batch.t_ns[i], batch.Reals(0)[i]);
    }
  }
  void TakeEvent(const Event& event) override {
    std::lock_guard lock(out_.mutex);
    out_.events.push_back(event);
  }
  Status Finish() override { return out_.finish; }

 private:
  Gathered& out_;
};

class GatherFormat : public Format {
 public:
  explicit GatherFormat(Gathered* out) : out_(*out) {}
  std::string_view name() const override { return "gather"; }
  bool Wants(TableId table) const override { return table == TableId::kHostMem; }
  FormatWants wants() const override { return {.events = true}; }
  Status Begin(const ExportPlan&) override { return out_.begin; }
  Result<std::unique_ptr<FormatSink>> Open(const ExportTask&) override {
    if (!out_.open.ok()) return out_.open;
    return std::unique_ptr<FormatSink>(std::make_unique<GatherSink>(&out_));
  }
  Status End(bool complete, std::vector<OutputFile>* files) override {
    out_.ended = complete;
    files->push_back({"out", 1, 1});
    return {};
  }

 private:
  Gathered& out_;
};

std::string Record(uint32_t t, uint32_t value) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &t, 4);
  std::memcpy(bytes.data() + 4, &value, 4);
  return bytes;
}

class EngineTest : public ::testing::Test {
 protected:
  void SetUp() override { MakeDump("PROF_1"); }

  // Wall clock = raw clock + 1000 ns.
  void MakeDump(const std::string& name) {
    for (const char* sub : {"host/data", "device_0/data", "device_1/data", "host/profd"}) {
      std::filesystem::create_directories(dir_ / (name + "/" + sub));
    }
    for (const char* place : {"host/", "device_0/", "device_1/"}) {
      WriteText(dir_ / (name + "/" + place + "start_info"),
                R"({"collectionTimeBegin":"1","clockMonotonicRaw":"0"})");
      WriteText(dir_ / (name + "/" + place + "info.json"),
                R"({"platform_version":"5","CPU":[{}],"DeviceInfo":[{"hwts_frequency":"50"}]})");
      WriteText(dir_ / (name + "/" + place + "host_start.log"),
                "clock_monotonic_raw: 1\ncntvct: 1\n");
      WriteText(dir_ / (name + "/" + place + "dev_start.log"),
                "clock_monotonic_raw: 1\ncntvct: 1\n");
    }
    options_.dumps.push_back(dir_ / name);
  }
  void Put(const std::string& path, const std::string& bytes) {
    WriteText(dir_ / ("PROF_1/" + path), bytes);
  }
  Result<ExportReport> Run(std::vector<Gathered*> outs = {}) {
    std::vector<std::unique_ptr<Format>> formats;
    if (outs.empty()) outs = {&out_};
    for (Gathered* out : outs) formats.push_back(std::make_unique<GatherFormat>(out));
    return ExportRun(options_, std::move(formats), Find, progress_).Run();
  }

  TempDir dir_;
  ExportOptions options_;
  ProgressCall progress_;
  Gathered out_;
};

using Rows = std::vector<std::pair<int64_t, double>>;

TEST_F(EngineTest, FeedsEveryDevice) {
  Put("device_0/data/n.data.0.slice_0", Record(1, 10) + Record(2, 20));
  Put("device_1/data/n.data.1.slice_0", Record(3, 30));
  Put("host/profd/m.data", "a\nb");
  auto report = Run();
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(out_.rows[0], (Rows{{1001, 10}, {1002, 20}}));
  EXPECT_EQ(out_.rows[1], (Rows{{1003, 30}}));
  ASSERT_EQ(out_.events.size(), 2u);
  EXPECT_EQ(out_.events[0].name, "*a");
  EXPECT_EQ(out_.events[1].name, "b");
  EXPECT_EQ(out_.ended, true);
  EXPECT_EQ(report->input_bytes, 27u);
  ASSERT_EQ(report->channels.size(), 3u);
  EXPECT_EQ(report->channels[1].device, 0);
  EXPECT_EQ(report->channels[1].rows, 2u);
  EXPECT_EQ(report->channels[1].records, 2u);
  EXPECT_EQ(report->outputs.size(), 1u);
}

TEST_F(EngineTest, RecordsGoAcrossSlices) {
  std::string all = Record(1, 10) + Record(2, 20) + Record(3, 30);
  Put("device_0/data/n.data.0.slice_0", all.substr(0, 5));
  Put("device_0/data/n.data.0.slice_1", all.substr(5, 9));
  Put("device_0/data/n.data.0.slice_2", all.substr(14) + "xyz");
  auto report = Run();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(out_.rows[0], (Rows{{1001, 10}, {1002, 20}, {1003, 30}}));
  EXPECT_EQ(report->channels.at(0).bad_bytes, 3u);
  EXPECT_TRUE(report->damaged);
}

// The first slices are gone, and what is left begins with the rest of a record of theirs.
TEST_F(EngineTest, TheRestOfARecordOfLostSlicesIsSkipped) {
  const std::string all = Record(1, 10) + Record(2, 20) + Record(3, 30);
  Put("device_0/data/n.data.0.slice_9", all.substr(5, 9));
  Put("device_0/data/n.data.0.slice_10", all.substr(14));
  auto report = Run();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(out_.rows[0], (Rows{{1002, 20}, {1003, 30}}));
  EXPECT_EQ(report->channels.at(0).bad_bytes, all.size() / 3 - 5);
}

// Slices that end with a record have no such rest: what is too much is the end of a write that was cut.
TEST_F(EngineTest, TheLastWriteIsCutBehindLostSlices) {
  Put("device_0/data/n.data.0.slice_9", Record(1, 10) + Record(2, 20));
  Put("device_0/data/n.data.0.slice_10", Record(3, 30) + "xyz");
  auto report = Run();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(out_.rows[0], (Rows{{1001, 10}, {1002, 20}, {1003, 30}}));
  EXPECT_EQ(report->channels.at(0).bad_bytes, 3u);
}

// What is left of a record does not join with what follows a slice that is gone.
TEST_F(EngineTest, AMissingSliceEndsARecord) {
  Put("device_0/data/n.data.0.slice_0", Record(1, 10) + "xyz");
  Put("device_0/data/n.data.0.slice_2", Record(2, UINT32_MAX) + Record(3, 30));
  auto report = Run();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(out_.rows[0], (Rows{{1001, 10}, {1003, 30}}));
  EXPECT_EQ(report->channels.at(0).bad_bytes, 11u);
  EXPECT_EQ(report->channels.at(0).bad_records, 1u);
}

TEST_F(EngineTest, LinesGoAcrossSlicesAndReads) {
  Put("host/profd/m.data.slice_0", std::string(FileFeeder::kChunk - 2, '\n') + "abc");
  Put("host/profd/m.data.slice_1", "def\nlast");
  auto report = Run();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->channels.at(0).records, FileFeeder::kChunk);
  EXPECT_EQ(out_.events[FileFeeder::kChunk - 2].name, "abcdef");
  EXPECT_EQ(out_.events.back().name, "last");
}

TEST_F(EngineTest, LinesWithoutEndAreSkipped) {
  Put("host/profd/m.data", "a\n" + std::string(3 * FileFeeder::kChunk + 17, 'z') + "\nb\n");
  auto report = Run();
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(out_.events.size(), 2u);
  EXPECT_EQ(out_.events[1].name, "b");
  EXPECT_EQ(report->channels.at(0).bad_bytes, 3 * FileFeeder::kChunk + 18);
}

TEST_F(EngineTest, EverySliceReportsItsBegin) {
  Put("host/profd/m.data.slice_0", "a\nb\n");
  Put("host/profd/m.data.slice_1", "c\n");
  Put("host/profd/m.data.slice_4", "d\n");
  ASSERT_TRUE(Run().ok());
  std::string names;
  for (const Event& event : out_.events) names += event.name;
  EXPECT_EQ(names, "*ab*c*d");
}

std::string Compress(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 1));
  return out;
}

TEST_F(EngineTest, CompressedSlices) {
  std::string many;
  for (uint32_t i = 0; i < 200000; ++i) many += Record(i, i);
  Put("device_0/data/n.data.0.slice_0.zst", Compress(many));
  Put("device_0/data/n.data.0.slice_1", Record(7, 7));
  auto report = Run();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(out_.rows[0].size(), 200001u);
  EXPECT_EQ(out_.rows[0].back().second, 7);
  EXPECT_TRUE(report->problems.empty());
  EXPECT_FALSE(report->damaged);
}

TEST_F(EngineTest, ADamagedSliceCostsOnlyItself) {
  std::string packed = Compress(std::string(4096, 'a'));
  Put("device_0/data/n.data.0.slice_0.zst", packed.substr(0, packed.size() - 3));
  Put("device_0/data/n.data.0.slice_1", Record(7, 7));
  auto report = Run();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(out_.rows[0].back(), (std::pair<int64_t, double>{1007, 7}));
  ASSERT_EQ(report->problems.size(), 1u);
  EXPECT_TRUE(report->problems[0].broken);
  EXPECT_TRUE(report->damaged);
  EXPECT_EQ(report->problems[0].file, "PROF_1/device_0/data/n.data.0.slice_0.zst");
}

// Of task-based counters nothing is made, and that is said; of another mode than that of the AI Cores, too.
TEST_F(EngineTest, CountersOfTasksAreReported) {
  for (const char* mode : {"", "task-based", "sample-based"}) {
    Put("device_0/sample.json", std::string(R"({"ai_core_profiling_mode":"","aiv_profiling_mode":")") + mode + "\"}");
    Put("device_0/data/aiVectorCore.data.0.slice_0", Record(1, 10));
    out_.rows.clear();
    auto report = Run();
    ASSERT_TRUE(report.ok());
    const bool samples = mode == std::string("sample-based");
    EXPECT_EQ(out_.rows[0].size(), samples ? 1u : 0u);
    ASSERT_EQ(report->problems.size(), samples ? 0u : 1u);
    if (samples) continue;
    EXPECT_EQ(report->problems[0].what, "has counters of tasks that nothing here joins with them: skipped");
    EXPECT_FALSE(report->damaged);
  }
}

// Earlier releases of the vendor's analyser knew no MSPTI: that there are no files in their manner is an answer, not silence.
TEST_F(EngineTest, CallsWithoutFilesOfEarlierReleasesAreReported) {
  Put("device_0/data/n.data.0.slice_0", Record(1, 10));
  Put("device_0/data/calls.data.0.slice_0", Record(1, 10));
  EXPECT_TRUE(Run()->problems.empty());
  options_.legacy_names = true;
  auto report = Run();
  ASSERT_EQ(report->problems.size(), 1u);
  EXPECT_NE(report->problems[0].what.find("--names legacy makes no files"), std::string::npos) << report->problems[0].what;
}

TEST_F(EngineTest, FiltersDevicesChannelsAndTime) {
  Put("device_0/data/n.data.0.slice_0", Record(1, 10) + Record(2, 20));
  Put("device_1/data/n.data.1.slice_0", Record(3, 30));
  Put("host/profd/m.data", "a\n");
  options_.devices = {0};
  options_.window = {1002, 1002};
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(out_.rows.size(), 1u);
  EXPECT_EQ(out_.rows[0], (Rows{{1002, 20}}));
  EXPECT_TRUE(out_.events.empty());  // at 0
  options_ = {};
  options_.dumps = {dir_ / "PROF_1"};
  options_.channels = {"events"};
  options_.threads = 1;
  out_.rows.clear();
  ASSERT_TRUE(Run().ok());
  EXPECT_TRUE(out_.rows.empty());
  EXPECT_EQ(out_.events.size(), 1u);
  options_.channels = {"nothing"};
  EXPECT_EQ(Run().status().code(), StatusCode::kInvalidArgument);
}

TEST_F(EngineTest, AChannelThatOnlyTheSelectionLacks) {
  Put("device_0/data/n.data.0.slice_0", Record(1, 10));
  options_.out_dir = dir_ / "out";
  options_.channels = {"host_mem"};
  options_.devices = {1};
  const Status nothing = Run().status();
  EXPECT_EQ(nothing.code(), StatusCode::kNotFound);
  EXPECT_NE(nothing.message().find("nothing to export; what --devices and --rank choose has no host_mem"), std::string::npos) << nothing.message();
}

TEST_F(EngineTest, ReportsWhatItSkips) {
  Put("device_0/data/other.data.0.slice_0", "x");
  auto report = Run();
  ASSERT_EQ(report->problems.size(), 1u);
  EXPECT_FALSE(report->problems[0].broken);
  EXPECT_EQ(report->problems[0].file, "PROF_1/device_0/data/other.data.0.slice_0");
}

TEST_F(EngineTest, LossesOfTheManifestAreEvents) {
  Put("device_0/data/n.data.0.slice_0", Record(1, 10));
  Manifest manifest;
  manifest.start_wall_ns = 1000;
  ManifestChannel channel;
  channel.collector = "numbers";
  channel.device = 0;
  channel.file = "n.data";
  channel.gaps.push_back({500, 3, LossReason::kQueueFull, 400});
  ManifestChannel gone = channel;
  gone.file = "gone.data";
  gone.gaps = {{700, 0, LossReason::kAged, 0}};
  manifest.channels = {channel, gone};
  Put("profd_manifest.json", Serialize(manifest));
  ASSERT_TRUE(Run().ok());
  ASSERT_EQ(out_.events.size(), 2u);
  EXPECT_EQ(out_.events[0].kind, EventKind::kLoss);
  EXPECT_EQ(out_.events[0].t_ns, 1400);
  EXPECT_EQ(out_.events[0].dur_ns, 100);
  EXPECT_EQ(out_.events[0].value, 3);
  EXPECT_EQ(out_.events[0].name, "numbers: queue_full");
  EXPECT_EQ(out_.events[1].t_ns, 1700);
}

TEST_F(EngineTest, AFormatThatFailsDoesNotHarmOthers) {
  Put("device_0/data/n.data.0.slice_0", Record(1, 10));
  for (int way = 0; way < 3; ++way) {
    Gathered bad, good;
    (way == 0 ? bad.open : way == 1 ? bad.finish : bad.begin) = Internal("broken");
    auto report = Run({&bad, &good});
    ASSERT_TRUE(report.ok()) << way;
    EXPECT_EQ(bad.ended, false);
    EXPECT_EQ(good.ended, true);
    EXPECT_EQ(good.rows[0].size(), 1u);
    ASSERT_EQ(report->failed.size(), 1u);
    EXPECT_EQ(report->failed[0].error.message(), "broken");
    EXPECT_EQ(report->outputs.size(), 1u);
  }
}

TEST_F(EngineTest, OnlyFailedFormatsAreAnError) {
  Put("device_0/data/n.data.0.slice_0", Record(1, 10));
  out_.finish = Internal("broken");
  EXPECT_EQ(Run().status().code(), StatusCode::kInternal);
  EXPECT_EQ(out_.ended, false);
}

TEST_F(EngineTest, ProgressEndsAtEverythingAndCancels) {
  std::string many;
  for (uint32_t i = 0; i < 300000; ++i) many += Record(i, i);
  Put("device_0/data/n.data.0.slice_0", many);
  Put("device_1/data/n.data.1.slice_0", many);
  ExportProgress last;
  progress_ = [&](const ExportProgress& progress) { return last = progress, true; };
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(last.bytes_done, 2 * many.size());
  EXPECT_EQ(last.bytes_total, 2 * many.size());
  EXPECT_EQ(out_.rows[1].size(), 300000u);
}

// The formats may have written for long since the last read.
TEST_F(EngineTest, AnInterruptBehindTheLastReadCounts) {
  Put("device_0/data/n.data.0.slice_0", Record(1, 10));
  progress_ = [](const ExportProgress&) { return false; };
  EXPECT_EQ(Run().status().code(), StatusCode::kCancelled);
  EXPECT_EQ(out_.ended, false);
}

TEST_F(EngineTest, DumpsThatAreNoneAreNamed) {
  options_.dumps = {dir_ / "none", dir_ / "neither", dir_ / "PROF_1"};
  Status status = Run().status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("none"), std::string::npos);
  EXPECT_NE(status.message().find("neither"), std::string::npos);
  EXPECT_FALSE(out_.ended);
}

TEST_F(EngineTest, SeveralDumpsOnceEach) {
  MakeDump("PROF_2");
  Put("device_0/data/n.data.0.slice_0", Record(1, 10));
  WriteText(dir_ / "PROF_2/device_0/data/n.data.0.slice_0", Record(2, 20));
  options_.dumps.push_back(dir_ / "PROF_1/");
  options_.threads = 1;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(out_.rows[0].size(), 2u);
}

// Each knows how far its node's clock was ahead of the one that started them all.
TEST_F(EngineTest, DumpsOfSeveralNodesAreOnOneClock) {
  MakeDump("PROF_2");
  Put("device_0/data/n.data.0.slice_0", Record(1, 10));
  WriteText(dir_ / "PROF_2/device_0/data/n.data.0.slice_0", Record(2, 20));
  Manifest manifest;
  manifest.metadata["clock_offset_ns"] = "-5000";
  WriteText(dir_ / "PROF_2/profd_manifest.json", Serialize(manifest));
  options_.threads = 1;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(out_.rows[0], (Rows{{1001, 10}, {6002, 20}}));
  options_.dumps = {dir_ / "PROF_2"};
  Gathered alone;
  ASSERT_TRUE(Run({&alone}).ok());
  EXPECT_EQ(alone.rows[0], (Rows{{1002, 20}}));
}

}  // namespace
}  // namespace profd::exporting
