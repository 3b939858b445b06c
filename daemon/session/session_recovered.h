// A session as the manifest of its dump has it.
#pragma once

#include <string>

#include "dump/manifest.h"
#include "profd/v1/profd.pb.h"

namespace profd {

v1::Session SessionFromManifest(const Manifest& manifest, const std::string& dump_path,
                                uint64_t bytes);

}  // namespace profd
