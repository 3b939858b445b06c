// The libraries this one opens at run time, each as $ASCEND_HOME_PATH/lib64/<name> and by bare
// name. A function that is missing is thrown as std::runtime_error, through the C interface.
#pragma once

#include <cstdint>

#include "sim/ascendcl/ascendcl.h"
#include "sim/profapi/profapi.h"

namespace profd::sim::mspti {

// `library`: with its ending.
void* Symbol(const char* library, const char* function);

// The argument is a name for decltype, which takes no parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define PROFAPI(function) \
  (reinterpret_cast<decltype(&function)>(::profd::sim::mspti::Symbol("libprofapi.so", #function)))
#define ASCENDCL(function) \
  (reinterpret_cast<decltype(&function)>(::profd::sim::mspti::Symbol("libascendcl.so", #function)))
// NOLINTEND(bugprone-macro-parentheses)

// Of the chip, as libascend_hal or the settings say it; 5 where neither does.
int64_t ChipOf(uint32_t device);

}  // namespace profd::sim::mspti
