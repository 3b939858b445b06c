// The ranks of a run beside each other, as `profctl analyze --json` has them and the page shows them.
#pragma once

#include "analysis/cluster/cluster.h"
#include "analysis/views/views.h"

namespace profd::analysis {

// Null for a single rank.
Json ClusterView(const Cluster& cluster);

inline constexpr std::string_view kClusterView = "cluster";  // in the JSON of a run, and for --only

}  // namespace profd::analysis
