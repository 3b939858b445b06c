// Operators of a framework on the timelines (in-application 7.2, 7.3): each thread of Python with its operators, and
// where they put tasks into the queue and others take them out.
#pragma once

#include <optional>

#include "export/trace/operator_layers.h"

namespace profd::exporting {

void ShowFramework(const operators::Model& model, const TimeWindow& window, LayerSink& sink);

// The end of a flow at what an operator of a framework had put on a device; none: it is not known, or not shown.
std::optional<LayerFlow> FrameworkFlowTo(const operators::Model& model, const operators::TaskRow& row,
                                         const TimeWindow& window);
std::optional<LayerFlow> FrameworkFlowTo(const operators::Model& model, const operators::CommunicationOp& op,
                                         const TimeWindow& window);

}  // namespace profd::exporting
