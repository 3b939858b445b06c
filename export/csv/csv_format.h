// What the CSV format lets tests choose.
#pragma once

#include <cstdint>
#include <memory>

#include "export/format.h"

namespace profd::exporting {

struct CsvLimits {
  uint64_t rows_per_file = 1'000'000;  // the vendor's
};

std::unique_ptr<Format> MakeCsvFormat(const CsvLimits& limits);

}  // namespace profd::exporting
