// A process of its own that copies the dump of the session that PROFILING_OPTIONS started to its `output` when the session
// has ended: the session ends with this process, and also when it is killed. `profctl fetch --background` is that process;
// where there is no profctl, as in most containers, the dump stays on the node.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace profd::lib {

// Where the options, or ASCEND_WORK_PATH (its profiling_data), want results: absolute; empty = nowhere, or PROFD_FETCH is 0.
std::string OutputFolder(std::string_view options_json);

// Returns when profctl has gone to the background, after two seconds at the latest.
Status LeaveDumpFetcher(const std::string& session_id, const std::string& folder);

}  // namespace profd::lib
