#include "export/formats.h"

namespace profd::exporting {

std::unique_ptr<Format> MakeTraceFormat() { return nullptr; }

}  // namespace profd::exporting
