// Events of operator-level records in Chrome's JSON.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "export/trace/operator_layers.h"

namespace profd::exporting {

// What stands between the braces of an event's args.
void AppendLayerArgs(std::span<const LayerArg> args, std::string* out);

// As the vendor names flows.
struct FlowNames {
  std::string_view name;
  std::string_view category;
};
const FlowNames& FlowNamesOf(LayerFlow::Kind kind);

}  // namespace profd::exporting
