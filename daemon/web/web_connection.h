// One client of the web server. Everything here runs on the serving thread; private to daemon/web.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "daemon/web/connection_limits.h"
#include "daemon/web/credentials.h"
#include "daemon/web/gzip.h"
#include "daemon/web/web_server.h"
#include "daemon/web/web_state.h"

namespace profd {

// Memory of an answer that has been sent, for the next one: a scraper requests every few seconds the
// same half a megabyte. One piece, whatever the number of connections.
class AnswerBuffer {
 public:
  static constexpr size_t kMaxBytes = 1024 * 1024;

  std::string Take() { return std::move(kept_); }
  void Give(std::string text) {
    if (text.capacity() > kMaxBytes || text.capacity() <= kept_.capacity()) return;
    kept_ = std::move(text);
    kept_.clear();
  }
  size_t bytes() const { return kept_.capacity(); }

 private:
  std::string kept_;
};

// What all connections share; outlives them.
struct WebCore {
  WebCore(std::map<std::string, WebServer::Handler> table, const WebServer::Options& options,
          PasswordChecker::Post post)
      : handlers(table.begin(), table.end()),
        open_paths(options.open_paths.begin(), options.open_paths.end()),
        limits(static_cast<size_t>(options.max_connections),
               static_cast<size_t>(options.max_connections_per_address)),
        passwords(std::move(post)) {}

  std::map<std::string, WebServer::Handler, std::less<>> handlers;
  std::set<std::string, std::less<>> open_paths;
  ConnectionLimits limits;
  PasswordChecker passwords;
  GzipCompressor gzip;
  AnswerBuffer text_buffer;    // of bodies
  AnswerBuffer packed_buffer;  // of compressed ones
  std::unique_ptr<WebStateKeeper> state;

  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> refused_total{0};
  std::atomic<uint64_t> refused_address{0};
  std::atomic<uint64_t> unauthorized{0};
  std::atomic<uint64_t> busy{0};
  std::atomic<uint64_t> bad_requests{0};
  std::atomic<uint64_t> handshakes_failed{0};
  std::atomic<uint64_t> timeouts{0};
  std::atomic<int64_t> connections{0};
};

// Serves the client until it goes or is sent away; Leaves the limits then.
void ServeWebConnection(WebCore& core, boost::asio::ip::tcp::socket socket, std::string address,
                        Admission admission);

}  // namespace profd
