// The daemon's HTTP endpoint: /metrics, /healthz, /readyz and a plain page. One thread of its own; what a
// handler answers from is ready beforehand, so that no scrape waits for a device, a disk or another
// client. Plain HTTP or TLS with basic authentication, as a web.yml in the format of Prometheus's
// exporter-toolkit says.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace profd {

struct WebRequest {
  std::string_view path;     // decoded, without the query
  std::string_view query;    // as sent, without '?'
  std::string_view peer;     // address without port
  std::string_view agent;    // User-Agent, cut to 128 bytes
  // What an earlier answer was in, emptied; for a handler whose answers are long.
  std::string* buffer_or_null = nullptr;

  std::string TakeBuffer() const {
    return buffer_or_null == nullptr ? std::string() : std::move(*buffer_or_null);
  }
};

struct WebResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;  // compressed by the server where the client takes gzip
};

class WebServer {
 public:
  // Runs on the server's thread; must not wait.
  using Handler = std::function<WebResponse(const WebRequest&)>;

  struct Options {
    std::string address = {};     // "127.0.0.1:9464", "[::1]:9464"; port 0 = any free one
    std::string web_config = {};  // path of web.yml; empty = plain HTTP without login
    int64_t max_connections = 64;
    int64_t max_connections_per_address = 16;
    // Answered without a password: probes of a supervisor have none.
    std::vector<std::string> open_paths = {"/healthz", "/readyz"};
  };
  struct Counters {
    uint64_t requests = 0;         // answered, whatever the status
    uint64_t refused_total = 0;    // max_connections
    uint64_t refused_address = 0;  // max_connections_per_address
    uint64_t unauthorized = 0;     // wrong password or none
    uint64_t busy = 0;             // too many passwords to check at once
    uint64_t bad_requests = 0;     // that were no HTTP we speak, or too long
    uint64_t handshakes_failed = 0;
    uint64_t timeouts = 0;      // of clients that did not send or read in time
    uint64_t config_reloads = 0;
    uint64_t config_errors = 0;  // a changed web.yml or certificate that was not taken
    int64_t connections = 0;     // open now
    int64_t certificate_expires_s = 0;  // seconds since the epoch; 0 without TLS
  };

  // `handlers` by path; other paths are 404, other methods than GET and HEAD 405. A web.yml that is
  // wrong, or a key others can read, is an error that lists every problem.
  static Result<std::unique_ptr<WebServer>> Listen(Options options,
                                                   std::map<std::string, Handler> handlers);
  ~WebServer();

  // Ends the thread and all connections; no handler runs afterwards. Idempotent.
  void Stop();

  // The port that was bound.
  int port() const;
  bool tls() const;
  // Whether a stranger is turned away: users, or certificates that are verified.
  bool authenticates() const;
  // Any thread.
  Counters counters() const;

 private:
  struct Impl;
  explicit WebServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// For `profd --check-config`: what Listen would say about web.yml.
void CheckWebConfig(const std::string& path, std::vector<std::string>* problems);

}  // namespace profd
