#pragma once

#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

// Does the user mean a dump by its name ("PROF_000001_...", as `profctl list --dumps` shows it)?
bool NamesDump(const std::string& id);

// `profctl pin ID|DUMP...` and `unpin`: dumps that are not evicted.
int RunPin(const Context& context, const std::vector<std::string>& ids, bool unpin);

// `profctl list --dumps`.
int RunListDumps(const Context& context);

}  // namespace profd::client
