// MindInsight's REST paths (analysis 4.5), so that scripts written for it continue to work: the same figures in its formats.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/run.h"
#include "client/json.h"
#include "client/serve/web_server.h"

namespace profd::client {

inline constexpr std::string_view kMindInsightPrefix = "/v1/mindinsight/profile/";

// What is behind the prefix, asked of a run. None: there is no such path.
std::optional<WebAnswer> AnswerAsMindInsight(std::string_view path, const WebRequest& request, const analysis::Run& run);

}  // namespace profd::client
