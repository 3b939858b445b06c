// A database made through the format, row by row, without dumps on disk.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/testing/temp_dir.h"
#include "export/batch.h"
#include "export/formats.h"
#include "export/sqlite/sqlite_database.h"

namespace profd::exporting {

using SqlRows = std::vector<std::vector<SqlCell>>;

// ns since the epoch when the made sessions begin.
inline constexpr int64_t kMadeBegin = 1767225600000000000;
inline constexpr int64_t kMs = 1'000'000;

class MadeExport {
 public:
  // Each dump: rank = its number, `devices` devices with 1000 MHz, and a host.
  MadeExport(size_t dumps, int devices) {
    for (size_t i = 0; i < dumps; ++i) AddDump(i, devices);
  }
  MadeExport(const MadeExport&) = delete;
  MadeExport& operator=(const MadeExport&) = delete;

  DumpInfo& dump(size_t index) { return dumps_[index]; }
  Strings& strings() { return strings_; }
  Format& format() { return *format_; }
  const std::string& dir() const { return dir_.path(); }
  std::string path() const { return dir_ / "msprof_20260101000000.db"; }

  // What has not begun the first Open begins.
  void Begin(bool compat_msprof = false) {
    begun_ = true;
    ExportPlan plan;
    plan.compat_msprof = compat_msprof;
    for (const DumpInfo& dump : dumps_) plan.dumps.push_back(&dump);
    plan.out_dir = dir_.path();
    plan.timestamp = "20260101000000";
    plan.strings = &strings_;
    ASSERT_TRUE(format_->Begin(plan).ok());
  }
  std::unique_ptr<FormatSink> Open(size_t dump, int device) {
    if (!begun_) Begin();
    ExportTask task;
    task.dump = dump;
    auto kind = device < 0 ? Place::Kind::kHost : Place::Kind::kDevice;
    task.place = dumps_[dump].Find(kind, device);
    return std::move(format_->Open(task)).value();
  }
  std::vector<OutputFile> End() {
    std::vector<OutputFile> files;
    Status status = format_->End(true, &files);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return files;
  }
  SqlRows Query(const std::string& sql) {
    auto database = SqliteDatabase::Open(path());
    if (!database.ok()) return {};
    auto rows = database->Query(sql);
    EXPECT_TRUE(rows.ok()) << rows.status().ToString() << "\n" << sql;
    return rows.ok() ? *rows : SqlRows();
  }

 private:
  void AddDump(size_t number, int devices) {
    DumpInfo& dump = dumps_.emplace_back();
    dump.name = fmt::format("PROF_00000{}_20260101000000000_ABCDEFGHIJKLMNOP", number);
    dump.path = "run1/" + dump.name;
    dump.hostname = fmt::format("node{}", number);
    dump.job_id = "job7";
    dump.rank = static_cast<int>(number);
    dump.chip = 5;
    for (int device = -1; device < devices; ++device) {
      Place place;
      place.kind = device < 0 ? Place::Kind::kHost : Place::Kind::kDevice;
      place.device = device;
      place.chip = 5;
      place.aicore_mhz = 1000;
      place.clock.begin_us = kMadeBegin / 1000;
      place.clock.end_us = kMadeBegin / 1000 + 1'000'000;
      dump.places.push_back(place);
    }
  }

  TempDir dir_;
  std::deque<DumpInfo> dumps_;
  Strings strings_;
  std::unique_ptr<Format> format_ = MakeSqliteFormat();
  bool begun_ = false;
};

// Rows of one table of one device on their way into a sink.
class Feed {
 public:
  Feed(FormatSink& sink, TableId table, int device)
      : builder_(TableOf(table), device, TimeWindow(), sink) {}
  ~Feed() { builder_.Flush(); }
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  template <typename... Cells>
  Feed& Row(int64_t t_ns, Cells... cells) {
    builder_.Add(t_ns, cells...);
    return *this;
  }

 private:
  BatchBuilder builder_;
};

}  // namespace profd::exporting
