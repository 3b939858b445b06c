#include "export/formats.h"

namespace profd::exporting {

std::unique_ptr<Format> MakeOpenMetricsFormat() { return nullptr; }

}  // namespace profd::exporting
