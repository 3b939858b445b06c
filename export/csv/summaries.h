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

std::unique_ptr<Summary> MakeHccsSummary(const PartContext& context);
std::unique_ptr<Summary> MakePcieSummary(const PartContext& context);
std::unique_ptr<Summary> MakeHbmSummary(const PartContext& context);
std::unique_ptr<Summary> MakeDdrSummary(const PartContext& context);
std::unique_ptr<Summary> MakeLlcSummary(const PartContext& context);
std::unique_ptr<Summary> MakeLlcBandwidthSummary(const PartContext& context);
std::unique_ptr<Summary> MakeNetworkSummary(const PartContext& context);  // NIC and RoCE
std::unique_ptr<Summary> MakeDvppSummary(const PartContext& context);
std::unique_ptr<Summary> MakeAicoreSummary(const PartContext& context);
std::unique_ptr<Summary> MakeVectorCoreSummary(const PartContext& context);
std::unique_ptr<Summary> MakeCpuUsageSummary(const PartContext& context);
std::unique_ptr<Summary> MakeProcessCpuSummary(const PartContext& context);
std::unique_ptr<Summary> MakeSysMemSummary(const PartContext& context);
std::unique_ptr<Summary> MakeProcessMemSummary(const PartContext& context);
std::unique_ptr<Summary> MakeHostCpuSummary(const PartContext& context);
std::unique_ptr<Summary> MakeHostMemSummary(const PartContext& context);
std::unique_ptr<Summary> MakeHostNetworkSummary(const PartContext& context);
std::unique_ptr<Summary> MakeHostDiskSummary(const PartContext& context);
std::unique_ptr<Summary> MakeOpSummary(const PartContext& context);
std::unique_ptr<Summary> MakeCommunicationSummary(const PartContext& context);
std::unique_ptr<Summary> MakeApiSummary(const PartContext& context);

}  // namespace profd::exporting::csv
