// Whose life keeps a session alive that `profctl start` leaves behind.
#pragma once

#include <sys/types.h>

namespace profd::client {

// The process that called profctl: its parent, or, where that is only a shell's copy of itself (the
// pipeline in `id=$(profctl start --json | jq ...)`), the shell. 0 when no process stands for the
// caller: the parent is another user's, or the machine's first process.
pid_t StarterPid();

}  // namespace profd::client
