// What profctl serve answers: the page, its data, and MindInsight's REST paths.
#pragma once

#include <string>

#include "client/json.h"
#include "client/serve/run_store.h"
#include "client/serve/web_server.h"

namespace profd::client {

// Thread-safe.
class Site {
 public:
  // `token`: what a browser or script must show; empty: none is needed, and only requests by a name of the loopback
  // interface are answered, so that no page of another site can ask under a name of its own.
  Site(RunStore* runs, std::string token) : runs_(*runs), token_(std::move(token)) {}

  WebAnswer Answer(const WebRequest& request);

  // The name of the cookie that holds the token; ports have cookies in common.
  void SetPort(uint16_t port) { cookie_ = "profd_" + std::to_string(port); }

 private:
  bool Allowed(const WebRequest& request) const;
  WebAnswer Page(const WebRequest& request) const;
  WebAnswer Runs();
  WebAnswer Data(const std::string& id, const WebRequest& request);
  WebAnswer MindInsight(const WebRequest& request);

  RunStore& runs_;
  const std::string token_;
  std::string cookie_;
};

}  // namespace profd::client
