// Between the contract's messages and the options; v1.ProfilingOptions by descriptor, so that a new field needs a line in
// the table only.
#pragma once

#include <vector>

#include "proto/options/options.h"

namespace profd {
namespace v1 {
class EffectiveOption;
class OptionInfo;
class ProfilingOptions;
}
namespace options {

// The fields that are set.
std::vector<OptionInput> FromMessage(const v1::ProfilingOptions& message);
// Sets the field of `key` from text; false when there is no such key or the text does not fit its
// type.
bool SetField(std::string_view key, std::string_view value, v1::ProfilingOptions* message);

void ToWire(const Effective& effective, v1::EffectiveOption* out);
// The option as it is on a node; null: whatever the chip.
void ToWire(const Option& option, const NodeSupport* node, v1::OptionInfo* out);

}  // namespace options
}  // namespace profd
