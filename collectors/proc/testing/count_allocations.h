// Counts calls of operator new in a test binary that links profd_collector_testing.
#pragma once

#include <cstdint>

namespace profd::testing {

// Allocations of this thread so far.
uint64_t Allocations();

}  // namespace profd::testing
