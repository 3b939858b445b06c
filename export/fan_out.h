// From one decoder to the sinks of every format that wants its rows.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "export/event.h"
#include "export/format.h"
#include "export/step_spans.h"

namespace profd::exporting {

// A format of a running export. Its first error ends it; the others go on.
class RunningFormat {
 public:
  explicit RunningFormat(std::unique_ptr<Format> format);

  Format& format() { return *format_; }
  // Tables it wants, a bit each.
  uint64_t tables() const { return tables_; }
  bool events() const { return events_; }
  void Fail(const Status& error);
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  Status error() const;

 private:
  std::unique_ptr<Format> format_;
  uint64_t tables_ = 0;
  bool events_ = false;
  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  Status error_ GUARDED_BY(mutex_);
};

constexpr uint64_t TableBit(TableId id) { return uint64_t{1} << static_cast<unsigned>(id); }
static_assert(kTableCount <= 64);

// What is let through.
struct RowFilter {
  uint64_t tables = ~uint64_t{0};
  bool events = true;
  std::set<int> devices = {};  // empty = all
  TimeWindow window = {};
  std::set<int> ranks = {};  // of processes; empty = all
  bool HasRank(int rank) const { return ranks.empty() || ranks.contains(rank); }
  bool HasDevice(int device) const { return devices.empty() || devices.contains(device); }
};

// Of one task, on one thread.
class FanOut : public BatchSink {
 public:
  explicit FanOut(const RowFilter& filter) : filter_(filter) {}

  // Opens a sink of each format that wants any of `tables` (or events, if `events`); a format that
  // cannot give one has failed.
  void Open(std::vector<std::unique_ptr<RunningFormat>>& formats, const ExportTask& task,
            uint64_t tables, bool events);
  bool empty() const { return targets_.empty(); }

  void Take(const Batch& batch) override;
  void TakeEvent(const Event& event);
  // Finishes the sinks. Call once.
  void Finish();
  uint64_t rows() const { return rows_; }
  StepSpans TakeSteps() { return std::move(steps_); }

 private:
  struct Target {
    RunningFormat* format;
    std::unique_ptr<FormatSink> sink;
    uint64_t tables;
    bool events;
  };
  const RowFilter& filter_;
  std::vector<Target> targets_;
  uint64_t rows_ = 0;
  StepSpans steps_;
};

}  // namespace profd::exporting
