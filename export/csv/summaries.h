// The CSVs that hold a few rows per device. Rules and quirks are the vendor's (dump-format 3.2);
// where ours are not, docs/export.md has the reasons.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "export/csv/part.h"
#include "export/table.h"

namespace profd::exporting::csv {

struct SummaryKind {
  std::string_view name;  // of the CSV
  TableId table;
  std::string_view columns;  // after Device_id
  std::unique_ptr<Summary> (*make)(const PartContext& context);
};
std::span<const SummaryKind> SummaryKinds();

// Its parts, each in the file that implements them.
std::span<const SummaryKind> LinkSummaries();
std::span<const SummaryKind> NetworkSummaries();
std::span<const SummaryKind> MemorySummaries();
std::span<const SummaryKind> AicoreSummaries();
std::span<const SummaryKind> HostSummaries();
std::span<const SummaryKind> ActivitySummaries();

template <class T, auto... kArguments>
std::unique_ptr<Summary> MakeSummary(const PartContext& context) {
  return std::make_unique<T>(context, kArguments...);
}

}  // namespace profd::exporting::csv
