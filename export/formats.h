// What MakeFormat makes, one function per format's folder.
#pragma once

#include <memory>

#include "export/format.h"

namespace profd::exporting {

std::unique_ptr<Format> MakeCsvFormat();
std::unique_ptr<Format> MakeTraceFormat();
std::unique_ptr<Format> MakePerfettoFormat();
std::unique_ptr<Format> MakeSqliteFormat();
std::unique_ptr<Format> MakeJsonLinesFormat();
std::unique_ptr<Format> MakeSamplesFormat();
std::unique_ptr<Format> MakeOpenMetricsFormat();
std::unique_ptr<Format> MakeFoldedFormat();

}  // namespace profd::exporting
