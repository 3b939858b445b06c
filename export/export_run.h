// One export from the opened dumps to the report; what RunExport does, with the decoders injected.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "export/engine.h"
#include "export/fan_out.h"
#include "export/operators/model.h"
#include "export/step_parts.h"

namespace profd::exporting {

using DecoderFinder = const DecoderSpec* (*)(std::string_view base, Place::Kind kind, int chip);

// The reasons, and what of the dumps was skipped.
Status NothingToExport(const ExportReport& report, std::string why);

class ExportRun {
 public:
  // `progress` may be empty.
  ExportRun(const ExportOptions& options, std::vector<std::unique_ptr<Format>> formats,
            DecoderFinder find, const ProgressCall& progress);

  // Call once.
  Result<ExportReport> Run();

 private:
  struct Task {
    ExportTask task;
    const DecoderSpec* spec = nullptr;
    std::vector<Event> losses;  // of the channel, from the manifest
    bool rows = true;           // false: only the losses are wanted
  };

  Status OpenDumps();
  void AlignClocks();
  Status MakeFilter();
  void MakeFilterOf(const DumpInfo& dump);
  void MakeTasks(size_t dump);
  void LookForStepParts();
  void LoadNames();
  void AddTask(size_t dump, const Place& place, const DataFile& file);
  void AddLosses(size_t dump, size_t first_task);
  // Whether some format gets anything at all; and, where none does, the reasons, each behind "; ".
  bool HasWork() const;
  std::string WhyNothing() const;
  Status Begin();
  void Work();
  void RunTask(const Task& task, std::vector<std::byte>* buffer);
  ClockMap ClockOf(const Place& place) const;
  StepSpans StepsOfSession(const DumpInfo& dump);
  bool Progress(uint64_t bytes);
  // What loads operators, with files in the place of memory where they are many.
  void RunSpilling(const std::function<void()>& load) const;
  // Of all dumps that have operator-level records; one after the other, since each takes memory.
  void TakeOperators();
  void Add(size_t dump, ChannelReport channel);
  Result<ExportReport> End();
  void Problem(size_t dump, const std::string& file, const std::string& what, bool broken);

  const ExportOptions& options_;
  std::vector<std::unique_ptr<RunningFormat>> formats_;
  DecoderFinder find_;
  const ProgressCall& progress_;
  std::chrono::steady_clock::time_point started_;

  std::vector<Dump> dumps_;
  Strings strings_;
  ExportPlan plan_;
  RowFilter filter_;
  std::vector<RowFilter> filters_;  // by dump
  std::vector<std::unique_ptr<StepPartFinder>> step_parts_;  // by dump; null: none
  std::vector<std::shared_ptr<const operators::HostData>> names_;  // by dump, where a decoder wants them
  std::vector<std::shared_ptr<const std::vector<operators::DeviceMark>>> device_marks_;  // the same
  Mutex steps_mutex_;
  std::vector<StepSpans> steps_ GUARDED_BY(steps_mutex_);  // by dump
  std::vector<Task> tasks_;  // largest first
  uint64_t total_bytes_ = 0;
  uint64_t operator_bytes_ = 0;  // of these
  bool operators_ = false;  // some format makes something of operator-level records
  bool operator_details_ = false;  // and of their counters and shapes
  size_t began_ = 0;  // formats_ up to here have begun

  std::atomic<size_t> next_task_{0};
  std::atomic<uint64_t> bytes_done_{0};
  std::atomic<bool> cancelled_{false};
  Mutex progress_mutex_;
  std::chrono::steady_clock::time_point progress_reported_ GUARDED_BY(progress_mutex_);
  Mutex report_mutex_;
  ExportReport report_ GUARDED_BY(report_mutex_);
};

}  // namespace profd::exporting
