// The blocks in which the vendor's dumps hold system and per-process CPU and memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collectors/proc/proc_text.h"
#include "collectors/proc/process_tracker.h"

namespace profd {

// Appends "TimeStamp:<ns>\nIndex:<k>\nDataLen:<bytes of body>\n<body>\n\n" (dump-format 2.14); one
// newline at the end of `body` counts as the block's, not as the body's.
void AppendRawBlock(int64_t raw_ns, uint64_t index, std::string_view body, std::string* out);

// Appends "ProcessName:<comm>\n", comm as a single word.
void AppendProcessName(std::string_view comm_untrusted, std::string* out);

// Is there a job among what a session asked for, or only "all"?
inline bool HasJob(const ProcessScope& scope) {
  return !scope.pids.empty() || !scope.job_id.empty();
}

}  // namespace profd
