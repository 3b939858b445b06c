// Work of one call on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace profd::exporting {

// Runs run(0) ... run(count - 1), each on a thread of its own, the first on the caller's; returns when all have. One
// for which no thread is to be had runs on the caller's, too.
void RunBeside(size_t count, const std::function<void(size_t)>& run);

}  // namespace profd::exporting
