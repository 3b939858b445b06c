// step_trace and msprof_tx: rows out of events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/csv/csv_file.h"
#include "export/csv/part.h"
#include "export/csv/spooled_text.h"
#include "export/event.h"

namespace profd::exporting::csv {

inline constexpr std::string_view kStepTraceColumns =
    "Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),"
    "Iteration Refresh(us),Data Aug Bound(us),Model ID";
inline constexpr std::string_view kReduceColumns = ",Reduce Start(us),Reduce Duration(us)";
inline constexpr std::string_view kDurationColumns =
    "Rank,Kind,Name,Count,Mean(us),P50(us),P99(us),Max(us)";
inline constexpr std::string_view kMsprofTxColumns =
    "pid,tid,category,event_type,payload_type,payload_value,Start_time(us),End_time(us),"
    "message_type,message,domain,Device Start_time(us),Device End_time(us)";

// Iterations of a device's step trace, and its training steps after them.
class StepTraceRows {
 public:
  explicit StepTraceRows(const PartContext& context)
      : context_(context), iterations_(*context.spool), steps_(*context.spool) {}

  // Events of other kinds are none of its business.
  void Take(const Event& event);
  Status Finish();
  const PartContext& context() const { return context_; }
  uint64_t rows() const { return iterations_.rows() + steps_.rows(); }
  // All-reduces of the iteration with the most of them.
  size_t most_reduces() const { return most_reduces_; }
  // All lines, filled up to so many all-reduces.
  Status WriteTo(size_t reduces, CsvFile* file);

 private:
  PartContext context_;
  SpooledText iterations_;
  SpooledText steps_;
  size_t most_reduces_ = 0;
};

// Marks, ranges and steps of training processes, by their start.
class MsprofTxRows {
 public:
  // So many wait to be sorted; of more, each portion is sorted for itself.
  static constexpr size_t kSorted = 100'000;

  explicit MsprofTxRows(const PartContext& context) : context_(context), lines_(*context.spool) {}

  void Take(const Event& event);
  Status Finish();
  const PartContext& context() const { return context_; }
  SpooledText& lines() { return lines_; }

 private:
  void Sort();

  PartContext context_;
  std::vector<std::pair<int64_t, std::string>> waiting_;
  size_t waiting_bytes_ = 0;
  SpooledText lines_;
};

}  // namespace profd::exporting::csv
