// Events of operator-level records in Perfetto's trace.
#pragma once

#include <cstddef>

#include "export/trace/operator_layers.h"

namespace perfetto::protos {
class TrackEvent;
}

namespace profd::exporting {

// Name, category, args and arrows.
void FillTrackEvent(const LayerEvent& event, size_t dump, ::perfetto::protos::TrackEvent* made);

}  // namespace profd::exporting
