#pragma once

#include <optional>
#include <string>

#include "client/context.h"

namespace profd::client {

struct TopOptions {
  std::optional<std::string> interval;
  std::optional<std::string> sort;
  std::optional<std::string> devices;
  std::string job;
  bool once = false;
  bool ascii = false;
  bool no_color = false;
};

// A live view of the node on the terminal until q or Ctrl-C; with --once a snapshot as text; with
// --json an object per refresh, or one.
int RunTop(const Context& context, const TopOptions& options);

}  // namespace profd::client
