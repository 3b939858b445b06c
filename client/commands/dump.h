#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

// As typed; unset = not given.
struct DumpOptions {
  std::optional<std::string> last;
  std::optional<std::string> job;
  std::optional<std::string> devices;
  std::optional<std::string> reason;
  std::optional<std::string> label;
  // Also fetch the dump into this directory.
  std::optional<std::string> out;
};

// Every syntax problem is added to `problems`.
v1::DumpRecorderRequest BuildDumpRequest(const DumpOptions& options,
                                         std::vector<std::string>* problems);

// Writes what the flight recorder holds of the last seconds into a dump.
int RunDump(const Context& context, const DumpOptions& options);

}  // namespace profd::client
