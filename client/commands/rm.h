#pragma once

#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

// `profctl rm ID...`: removes dumps of finished sessions.
int RunRm(const Context& context, const std::vector<std::string>& ids);

}  // namespace profd::client
