#pragma once

#include <string>

#include "client/context.h"

namespace profd::client {

struct ListOptions {
  std::string job;
  bool active = false;
};

int RunList(const Context& context, const ListOptions& options);

}  // namespace profd::client
