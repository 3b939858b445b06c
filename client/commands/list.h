#pragma once

#include <string>

#include "client/context.h"

namespace profd::client {

struct ListOptions {
  std::string job;
  bool active = false;
  bool dumps = false;  // what is on the disk instead
};

int RunList(const Context& context, const ListOptions& options);

}  // namespace profd::client
