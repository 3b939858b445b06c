#include "export/formats.h"

namespace profd::exporting {

std::unique_ptr<Format> MakeCsvFormat() { return nullptr; }

}  // namespace profd::exporting
