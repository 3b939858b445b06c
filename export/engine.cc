#include "export/engine.h"

#include <utility>

#include "export/export_run.h"

namespace profd::exporting {

Result<ExportReport> RunExport(const ExportOptions& options, const ProgressCall& progress) {
  std::vector<std::unique_ptr<Format>> formats;
  for (const std::string& name : options.formats) {
    std::unique_ptr<Format> format = MakeFormat(name);
    if (format == nullptr) return InvalidArgument("no format is called " + name);
    formats.push_back(std::move(format));
  }
  if (formats.empty()) return InvalidArgument("no format given");
  Result<ExportReport> report = RunExportInto(options, std::move(formats), progress);
  if (!report.ok() || !report->channels.empty()) return report;
  return NothingToExport(*report, "");
}

Result<ExportReport> RunExportInto(const ExportOptions& options,
                                   std::vector<std::unique_ptr<Format>> formats,
                                   const ProgressCall& progress) {
  return ExportRun(options, std::move(formats), FindDecoder, progress).Run();
}

}  // namespace profd::exporting
