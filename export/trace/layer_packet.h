// Events of operator-level records in Perfetto's trace, as bytes: they are many, and messages of the library take most
// of the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "export/trace/operator_layers.h"

namespace profd::exporting {

// Of a flow, for FlowId: each kind has ids of its own.
std::string FlowText(const LayerFlow& flow);
// A TrackEvent with name, category, args and flows, at the end of `out`. `type`: as TrackEvent::Type.
void AppendTrackEvent(const LayerEvent& event, size_t dump, int type, uint64_t track, std::string* out);
// One without: the end of a slice.
void AppendTrackEvent(int type, uint64_t track, std::string* out);

}  // namespace profd::exporting
