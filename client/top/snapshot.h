// The model for scripts: one plain text, or one JSON object.
#pragma once

#include <cstdint>
#include <ostream>

#include "client/json.h"
#include "client/top/model.h"
#include "client/top/view.h"

namespace profd::client::top {

// Devices, processes and sessions as selected and sorted by `view`. What is not known is null.
Json SnapshotJson(const Model& model, const View& view, int64_t wall_ns);
void PrintSnapshot(const Model& model, const View& view, bool color, std::ostream& out);

}  // namespace profd::client::top
