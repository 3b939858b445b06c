// A dump that only exists in memory, its rows given by hand, and the CSVs that come out.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/temp_dir.h"
#include "export/csv/csv_format.h"
#include "export/table.h"

namespace profd::exporting {

inline constexpr int64_t kStartNs = 1'767'225'600'000'000'000;

class CsvTest : public ::testing::Test {
 protected:
  // Rows go through `add`, which calls Add(t_ns, cells...) of the builder.
  using Rows = std::function<void(BatchBuilder& rows)>;

  void SetUp() override { AddDump("PROF_000001_20260101000000000_AAAAAAAAAAAAAAAA"); }

  DumpInfo& AddDump(std::string name) {
    auto dump = std::make_unique<DumpInfo>();
    dump->name = std::move(name);
    dump->chip = chip_;
    dump->places.reserve(32);
    return *dumps_.emplace_back(std::move(dump));
  }
  DumpInfo& dump(size_t number = 0) { return *dumps_[number]; }
  // A device's folder, or the host's for -1.
  Place& PlaceOf(int device, size_t dump_number = 0) {
    auto kind = device < 0 ? Place::Kind::kHost : Place::Kind::kDevice;
    DumpInfo& info = dump(dump_number);
    for (Place& place : info.places) {
      if (place.kind == kind && place.device == device) return place;
    }
    Place& place = info.places.emplace_back();
    place.kind = kind;
    place.device = device;
    place.dir = device < 0 ? "host" : "device_" + std::to_string(device);
    place.chip = chip_;
    place.clock.begin_us = kStartNs / 1000;
    return place;
  }
  void set_chip(int chip) { chip_ = chip; }
  int64_t Intern(std::string_view text) { return strings_.Intern(text); }

  void Begin() {
    for (auto& dump : dumps_) plan_.dumps.push_back(dump.get());
    plan_.out_dir = dir_.path();
    plan_.timestamp = "20260101080000";
    plan_.strings = &strings_;
    format_ = MakeCsvFormat(limits_);
    ASSERT_TRUE(format_->Begin(plan_).ok());
  }
  // One data file. Begins the export if it has not begun: make all places before.
  std::unique_ptr<FormatSink> Open(int device, std::string base = "x.data",
                                   size_t dump_number = 0) {
    const Place& place = PlaceOf(device, dump_number);
    if (format_ == nullptr) Begin();
    files_.push_back(std::make_unique<DataFile>(DataFile{std::move(base), {}, 0}));
    auto sink = format_->Open({dump_number, &place, files_.back().get()});
    EXPECT_TRUE(sink.ok());
    return std::move(*sink);
  }
  void Feed(int device, TableId table, const Rows& rows, std::string base = "x.data",
            size_t dump_number = 0) {
    auto sink = Open(device, std::move(base), dump_number);
    BatchBuilder builder(TableOf(table), device, {}, *sink);
    rows(builder);
    builder.Flush();
    EXPECT_TRUE(sink->Finish().ok());
  }
  void End(bool complete = true) {
    Status status = format_->End(complete, &outputs_);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  // "" if there is no such file.
  std::string Text(const std::string& name) const { return ReadText(dir_ / name); }
  // The CSV of that kind.
  std::string Csv(const std::string& name) const { return Text(name + "_20260101080000.csv"); }
  std::vector<std::string> FileNames() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  CsvLimits limits_;
  std::vector<OutputFile> outputs_;
  TempDir dir_;
  ExportPlan plan_;

 private:
  int chip_ = 5;
  Strings strings_;
  std::vector<std::unique_ptr<DumpInfo>> dumps_;
  std::vector<std::unique_ptr<DataFile>> files_;
  std::unique_ptr<Format> format_;
};

}  // namespace profd::exporting
