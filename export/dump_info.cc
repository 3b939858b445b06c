#include "export/dump_info.h"

namespace profd::exporting {

const Place* DumpInfo::Find(Place::Kind kind, int device) const {
  for (const Place& place : places) {
    if (place.kind == kind && (kind != Place::Kind::kDevice || place.device == device)) {
      return &place;
    }
  }
  return nullptr;
}

Result<Dump> Dump::Open(const std::string& path) {
  return Unimplemented(path + ": not yet");
}

}  // namespace profd::exporting
