// A process that outlives the one that started it: `profctl fetch --background`.
#pragma once

#include <optional>

#include "client/context.h"

namespace profd::client {

// Continues in a child in a session of its own, without a terminal and without descriptors of the process that started it (but for
// stderr). In the caller's process, and where it failed: the exit code. Only one thread may run.
std::optional<int> GoToBackground(const Io& io);

}  // namespace profd::client
