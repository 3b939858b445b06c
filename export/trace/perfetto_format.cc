#include "export/formats.h"

namespace profd::exporting {

std::unique_ptr<Format> MakePerfettoFormat() { return nullptr; }

}  // namespace profd::exporting
