// Operators that the documented queries are answered from: three launches, their executions, a copy and a collective.
#pragma once

#include <memory>

#include "export/operators/model.h"

namespace profd::exporting {

// Of device 0. `rank` 1 is slower in its second multiplication.
std::unique_ptr<operators::Model> MadeOperators(int64_t begin_ns, int rank);

}  // namespace profd::exporting
