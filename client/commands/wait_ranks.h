#pragma once

#include <string>

#include "client/context.h"

namespace profd::client {

// Returns when all ranks the request is about have attached on this node, or when `duration` (as
// typed) is over: the session is then started with those that have. kInvalidArgument: the flag is
// wrong.
Status WaitForRanks(const Context& context, const v1::SessionSpec& request,
                    const std::string& duration);

}  // namespace profd::client
