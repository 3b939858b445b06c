#pragma once

#include <string>

#include "client/context.h"

namespace profd::client {

int RunShow(const Context& context, const std::string& id);

}  // namespace profd::client
