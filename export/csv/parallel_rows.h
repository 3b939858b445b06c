// Lines of many rows, made by several threads, in the rows' order.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/status.h"
#include "export/csv/csv_file.h"

namespace profd::exporting::csv {

// `add`: appends the line of one row; any thread. Memory: a piece of text per thread.
Status WriteRows(size_t rows, unsigned threads, const std::function<void(size_t row, std::string* out)>& add,
                 CsvFile* file);

}  // namespace profd::exporting::csv
