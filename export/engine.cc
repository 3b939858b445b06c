#include "export/engine.h"

namespace profd::exporting {

Result<ExportReport> RunExport(const ExportOptions&, const ProgressCall&) {
  return Unimplemented("not yet");
}

Result<ExportReport> RunExportInto(const ExportOptions&, std::vector<std::unique_ptr<Format>>,
                                   const ProgressCall&) {
  return Unimplemented("not yet");
}

}  // namespace profd::exporting
