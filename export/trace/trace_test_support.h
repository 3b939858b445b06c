// What the tests of both timelines share: a dump, sinks, rows.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/temp_dir.h"
#include "export/formats.h"

namespace profd::exporting {

inline constexpr int64_t kBeginNs = 1767225600'000'000'000;  // of the collection

class TraceFixture : public testing::Test {
 protected:
  explicit TraceFixture(std::unique_ptr<Format> format) : format_(std::move(format)) {
    AddDump("PROF_1", "node-1", 4242, 5);
  }

  void AddDump(const std::string& name, const std::string& host, int64_t pid, int chip) {
    DumpInfo& dump = *dumps_.emplace_back(std::make_unique<DumpInfo>());
    dump.name = name;
    dump.hostname = host;
    dump.pid = pid;
    dump.chip = chip;
    for (int device = -1; device < 2; ++device) {
      Place place;
      place.kind = device < 0 ? Place::Kind::kHost : Place::Kind::kDevice;
      place.device = device;
      place.chip = chip;
      place.clock.begin_us = kBeginNs / 1000;
      place.aicore_mhz = 1800;
      dump.places.push_back(place);
    }
  }

  // What has not begun the first Open begins: make all dumps before.
  void Begin(bool gzip = false, bool legacy_names = false) {
    ExportPlan plan;
    for (auto& dump : dumps_) plan.dumps.push_back(dump.get());
    plan.out_dir = dir_.path();
    plan.timestamp = "20260101000000";
    plan.strings = &strings_;
    plan.gzip = gzip;
    plan.legacy_names = legacy_names;
    plan.go_on = [this] { return !interrupted_; };
    begun_ = true;
    Status begun = format_->Begin(plan);
    ASSERT_TRUE(begun.ok()) << begun.ToString();
  }

  std::unique_ptr<FormatSink> Open(size_t dump = 0, int device = 0) {
    if (!begun_) Begin();
    DumpInfo& info = *dumps_[dump];
    const Place& place = info.places[static_cast<size_t>(device + 1)];
    Result<std::unique_ptr<FormatSink>> sink = format_->Open({dump, &place, &file_});
    EXPECT_TRUE(sink.ok());
    return std::move(sink).value();
  }

  // A row at `micros` after the begin.
  template <typename... Cells>
  static void Put(FormatSink* sink, TableId id, int device, int64_t micros, Cells... cells) {
    TimeWindow window;
    BatchBuilder builder(TableOf(id), device, window, *sink);
    builder.Add(kBeginNs + micros * 1000, cells...);
    builder.Flush();
  }

  // Rows by so many threads at once, each with a sink of its own.
  void PutByThreads(int count, int rows) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([i, rows, sink = Open(0, i % 2)] {
        TimeWindow window;
        BatchBuilder builder(TableOf(TableId::kHbm), i % 2, window, *sink);
        for (int row = 0; row < rows; ++row) builder.Add(kBeginNs + row, row % 4, row % 2, row / 3.0);
        builder.Flush();
        EXPECT_TRUE(sink->Finish().ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void ExpectAnInterruptEndsTheNextWrite() {
    const auto sink = Open();
    Put(sink.get(), TableId::kHbm, 0, 20, 3, 1, 1.0);
    interrupted_ = true;
    EXPECT_EQ(sink->Finish().code(), StatusCode::kCancelled);
  }

  std::vector<OutputFile> End(bool complete = true) {
    std::vector<OutputFile> files;
    Status ended = format_->End(complete, &files);
    EXPECT_TRUE(ended.ok()) << ended.ToString();
    return files;
  }

  TempDir dir_;
  std::unique_ptr<Format> format_;
  bool begun_ = false;
  bool interrupted_ = false;
  std::vector<std::unique_ptr<DumpInfo>> dumps_;
  Strings strings_;
  DataFile file_;
};

}  // namespace profd::exporting
