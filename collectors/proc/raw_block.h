// The blocks in which the vendor's dumps hold system and per-process CPU and memory.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "collectors/collector.h"
#include "collectors/proc/proc_text.h"

namespace profd {

// Writes "TimeStamp:<ns>\nIndex:<k>\nDataLen:<bytes of body>\n<body>\n\n" (dump-format 2.14), to where
// the sink keeps it if it can say where.
class RawBlockWriter {
 public:
  // The timestamp of the blocks that follow.
  void SetTime(int64_t raw_ns);
  // `body` in pieces; one newline at its end counts as the block's, not as the body's.
  void Write(RawSink& raw, std::string_view file, uint64_t index,
             std::initializer_list<std::string_view> body);

 private:
  std::string head_;   // up to the index
  std::string block_;  // for sinks that take it from us
};

// "ProcessName:<comm>\n", comm as a single word.
std::string ProcessNameLine(std::string_view comm_untrusted);

// Is there a job among what a session asked for, or only "all"?
inline bool HasJob(const ProcessScope& scope) {
  return !scope.pids.empty() || !scope.job_id.empty();
}

}  // namespace profd
