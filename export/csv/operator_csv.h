// The vendor's CSVs of operators (operator-data c) out of the joined records.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "export/csv/csv_file.h"
#include "export/operators/model.h"

namespace profd::exporting::csv {

// Writes those that have rows, straight to their files, by so many threads; returns which there are.
Status WriteOperatorCsvs(const operators::Model& model, int64_t begin_ns, unsigned threads, const CsvTarget& target,
                         std::vector<std::string_view>* names);

}  // namespace profd::exporting::csv
