// Defects of the vendor's analyser that exports correct, and that --compat msprof reproduces: THE table. docs/export.md
// has it as DefectTable prints it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace profd::exporting {

enum class Defect : uint8_t { kReduceDuration, kUnknownIsZero, kModuleSize, kMissingEvent };

struct DefectRow {
  Defect id;
  std::string_view where;
  std::string_view vendor;
  std::string_view ours;
  std::string_view why;
};

std::span<const DefectRow> Defects();
// Its rows as the document has them.
std::string DefectTable();

}  // namespace profd::exporting
