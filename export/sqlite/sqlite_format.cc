#include "export/formats.h"

namespace profd::exporting {

std::unique_ptr<Format> MakeSqliteFormat() { return nullptr; }

}  // namespace profd::exporting
