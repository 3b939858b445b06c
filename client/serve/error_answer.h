// The one form of an answer that reports an error: profctl's own, and error_msg, which MindInsight's scripts read.
#pragma once

#include <string_view>

#include "client/json.h"
#include "client/serve/web_server.h"

namespace profd::client {

inline WebAnswer ErrorAnswer(int status, std::string_view code, std::string_view message) {
  const Json error = {{"error", {{"code", code}, {"message", message}}}, {"error_msg", message}};
  return {status, "application/json", JsonText(error, false)};
}

}  // namespace profd::client
