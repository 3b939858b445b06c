// A small web server of profctl, for pages and scripts of this machine: one answer per connection. Every connection
// has a deadline and bounded memory; one beyond kMaxConnections is closed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace profd::client {

struct WebRequest {
  std::string method;
  std::string path;  // decoded, without the query
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;  // names in lower case; the last of several
  std::string body;

  // "/path?name=value&...", as it stands in the first line of a request.
  void SetTarget(std::string_view target);
  // Empty where there is none.
  std::string_view Query(const std::string& name) const;
  std::string_view Header(const std::string& name) const;
};

struct WebAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  UniqueFd file = {};                // sent in place of the body; its offset is at its begin
  std::function<void()> sent = {};   // called when all of it went out
};

class WebServer {
 public:
  static constexpr int kMaxConnections = 64;
  static constexpr int kThreads = 4;
  static constexpr size_t kMaxHeader = 16 << 10;
  static constexpr size_t kMaxBody = 64 << 10;
  static constexpr int kSeconds = 30;  // for a request to come, and for each piece of an answer to be taken

  // Called by several threads at once.
  using Handler = std::function<WebAnswer(const WebRequest&)>;

  // `address`: an IP address of this machine. Port 0: any that is free.
  static Result<std::unique_ptr<WebServer>> Open(const std::string& address, uint16_t port, Handler handler);
  virtual ~WebServer() = default;

  virtual uint16_t port() const = 0;
  // "127.0.0.1:9466", "[::1]:9466"
  virtual std::string Address() const = 0;
  // Until `go_on`, asked about ten times a second, is false.
  virtual void Run(const std::function<bool()>& go_on) = 0;
};

// "%41+b" as "A b" (in a path, '+' stays); what is no such escape stays as it is.
std::string DecodedUrl(std::string_view text, bool plus_is_blank);

}  // namespace profd::client
