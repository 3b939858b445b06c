// Findings as a workbook: a sheet of all problems, and one of each finding with its table in full.
#pragma once

#include <cstddef>
#include <string>

#include "analysis/checks/check.h"
#include "base/status.h"

namespace profd::analysis {

// What a sheet holds; the format's own limits.
struct SheetLimits {
  size_t rows = 1'048'576;  // with the header
  size_t text = 32'767;     // characters of a cell
};

// `findings` as Advise() returns them, in this language. Writes the file, which is replaced where
// it is there. What does not fit is noted in its place and on the first sheet.
Status WriteXlsx(const Json& findings, Language language, const std::string& path,
                 const SheetLimits& limits = {});

}  // namespace profd::analysis
