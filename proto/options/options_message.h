// Between v1.ProfilingOptions and the option table; by descriptor, so that a new field needs a line
// in the table only.
#pragma once

#include <vector>

#include "proto/options/options.h"

namespace profd {
namespace v1 {
class ProfilingOptions;
}
namespace options {

// The fields that are set.
std::vector<OptionInput> FromMessage(const v1::ProfilingOptions& message);
// Sets the field of `key` from text; false when there is no such key or the text does not fit its
// type.
bool SetField(std::string_view key, std::string_view value, v1::ProfilingOptions* message);

}  // namespace options
}  // namespace profd
