// Where the threads of a job stand, on many nodes.
#pragma once

#include "client/commands/stacks.h"
#include "client/fleet/fleet.h"

namespace profd::client {

// Prints what all nodes say; the exit code.
int StacksOfAll(Fleet* fleet, const v1::GetStacksRequest& request, bool all_threads, bool json);

}  // namespace profd::client
