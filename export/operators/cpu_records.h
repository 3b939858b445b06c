// What the AI CPU reports of its nodes, the data pipeline and its waits: `aicpu.data` (operator-data a.4; type 0, 1, 3).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/operators/records.h"

namespace profd::exporting::operators {

inline constexpr size_t kCpuRecordBytes = 256;

// Ticks are counts of the device.
struct CpuNode {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t submitted = 0;
  uint64_t after_run = 0;
  uint64_t compute_us = 0;  // from compute start to copy start
  uint64_t copy_us = 0;
  uint32_t dispatch_us = 0;
  uint16_t stream = 0;
  uint16_t task = 0;
  int32_t host = -1;  // index of HostTasks::tasks, by Model::KeepOnly; -1: not known
};

struct PipelineRecord {
  uint64_t time_ns = 0;  // host's monotonic clock
  uint64_t buffered = 0;
  std::string action;
  std::string source;
};

struct QueueWait {
  uint64_t start_us = 0;
  uint64_t end_us = 0;
  uint64_t queued = 0;
  uint32_t node = 0;  // 1: GetNext_dequeue_wait
  std::string name;   // of the older form; empty: by `node`
};

struct CpuRecords {
  void Feed(std::span<const std::byte> bytes);
  // The older form of waits, `DATA_PREPROCESS.AICPUMI`: texts that end with a zero byte. In any pieces; then the end.
  void FeedWaits(std::string_view text);
  void EndWaits();

  std::vector<CpuNode> nodes;
  std::vector<PipelineRecord> pipeline;
  std::vector<QueueWait> waits;
  uint64_t records = 0;
  uint64_t bad_records = 0;

 private:
  void AddWait(std::string_view text);

  std::string rest_;  // of a text that has no end yet
};

}  // namespace profd::exporting::operators
