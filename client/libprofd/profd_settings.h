// What the environment and profd_config say, checked.
#pragma once

#include "base/status.h"
#include "client/libprofd/library.h"

namespace profd::lib {

bool IsDisabledByEnvironment();
// config may be null. Of a forked child, PROFILING_OPTIONS starts nothing: its parent's session is
// there.
Result<Settings> ReadSettings(const profd_config* config_or_null, bool forked);
// Why PROFILING_OPTIONS cannot be sent, in a packet that would have so many bytes; empty: it can.
std::string WhyUnfit(std::string_view options_json, size_t packet_bytes);
Result<attach::StartCall> ReadStartArgs(const profd_start_args& args);

}  // namespace profd::lib
