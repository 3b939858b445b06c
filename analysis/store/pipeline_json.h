// The input pipeline of a rank as one text, and back.
#pragma once

#include <string_view>

#include "analysis/rank.h"
#include "analysis/views/views.h"

namespace profd::analysis {

Json PipelineJson(const Pipeline& pipeline);
// An empty one where the text is none of PipelineJson().
Pipeline PipelineOf(std::string_view text);

}  // namespace profd::analysis
