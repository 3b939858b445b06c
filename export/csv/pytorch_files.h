// The files of PyTorch's profiler that are made of the operators' model, under its names: step_trace_time.csv,
// communication.json, communication_matrix.json.
#pragma once

#include <functional>

#include "base/status.h"
#include "export/csv/csv_file.h"
#include "export/operators/model.h"
#include "export/step_spans.h"

namespace profd::exporting::csv {

// Those that have something in them. `rank_of`: -1 = not known.
Status WritePytorchFiles(const operators::Model& model, const StepSpans& steps,
                         const std::function<int(int device)>& rank_of, const CsvTarget& target);

}  // namespace profd::exporting::csv
