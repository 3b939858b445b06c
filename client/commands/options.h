// The profiling options: what there are, and whether some are valid.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/commands/option_source.h"
#include "client/context.h"

namespace profd::client {

struct ListOptionsOptions {
  // From the table, without a daemon.
  bool offline = false;
  // Of `offline`; unset = whatever the chip.
  std::optional<std::string> chip;
};

// The profiling options, and which of them this node's chips have something for.
int RunListOptions(const Context& context, const ListOptionsOptions& options);

struct CheckOptions {
  OptionSource options;
  std::vector<std::string> collectors;
  // The request is to name neither a job nor a process.
  bool no_job = false;
  bool offline = false;
  // Of `offline`; unset = whatever the chip.
  std::optional<std::string> chip;
  bool verbose = false;
};

// Says everything that is wrong with the options and starts nothing: 0, or 3 when something is.
int RunCheck(const Context& context, const CheckOptions& options);

}  // namespace profd::client
