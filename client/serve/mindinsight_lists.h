// Lists of operators and of the input pipeline, as MindInsight's REST paths filter, sort and cut them (analysis 4.2, 4.5).
#pragma once

#include <cmath>
#include <string>

#include "analysis/run.h"
#include "analysis/views/views.h"
#include "client/json.h"
#include "client/serve/web_server.h"

namespace profd::client::mindinsight {

struct RankQuery {
  const WebRequest& request;
  const analysis::Run& run;
  const analysis::Rank& rank;
  Json body;

  std::string Parameter(const std::string& name) const {
    const auto found = request.query.find(name);
    return found == request.query.end() ? std::string() : found->second;
  }
};

// MindInsight's four decimals.
inline double Rounded(double value) { return std::round(value * 1e4) / 1e4; }
using analysis::NumberOf;

inline std::string TextOf(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// "input_0" and so on, with format, type and shape.
Json TensorsOf(const analysis::Rank& rank, const analysis::Operator& op);

// What of the request cannot be answered, and why; empty: it can.
std::string FaultOfSearch(const RankQuery& asked);
std::string FaultOfPipelineSearch(const RankQuery& asked);
std::string FaultOfPipelineQueue(const RankQuery& asked);
Json SearchOperators(const RankQuery& asked);
Json SearchPipeline(const RankQuery& asked);
Json PipelineQueue(const RankQuery& asked);

}  // namespace profd::client::mindinsight
