#include "export/formats.h"

namespace profd::exporting {

std::unique_ptr<Format> MakeJsonLinesFormat() { return nullptr; }

}  // namespace profd::exporting
