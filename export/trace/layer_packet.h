// Events of operator-level records in Perfetto's trace.
#pragma once

#include <cstddef>
#include <string>

#include "export/trace/operator_layers.h"

namespace perfetto::protos {
class TrackEvent;
}

namespace profd::exporting {

// Of an arrow, for FlowId: each kind has ids of its own.
std::string FlowText(const LayerFlow& flow);
// Name, category, args and arrows.
void FillTrackEvent(const LayerEvent& event, size_t dump, ::perfetto::protos::TrackEvent* made);

}  // namespace profd::exporting
