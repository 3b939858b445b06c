// A session as the manifest of its dump has it.
#pragma once

#include <string>
#include <vector>

#include "dump/manifest.h"
#include "profd/v1/profd.pb.h"

namespace profd {

// Of a dump that is not being written.
v1::Session::State StateOf(DumpState state);

void FillProcesses(const std::vector<ManifestProcess>& processes, v1::SessionStatus* session);

v1::Session SessionFromManifest(const Manifest& manifest, const std::string& dump_path,
                                uint64_t bytes);

}  // namespace profd
