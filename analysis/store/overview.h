// A run of any number of ranks in few figures, which the server adds up.
#pragma once

#include <string>

#include "analysis/run.h"
#include "analysis/store/server.h"
#include "analysis/views/views.h"
#include "base/status.h"

namespace profd::analysis {

inline constexpr size_t kOverviewRows = 100;      // of each list, the largest ones
inline constexpr size_t kOverviewSteps = 20'000;

Result<Json> StoreOverview(StoreServer* server, const std::string& run, const Progress& go_on);

}  // namespace profd::analysis
