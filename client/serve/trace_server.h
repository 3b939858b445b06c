// Serves one file to Perfetto's UI, which opens traces from http://127.0.0.1:9001 and from no other
// address of this machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "client/serve/web_server.h"

namespace profd::client {

inline constexpr uint16_t kPerfettoPort = 9001;
inline constexpr const char* kPerfettoOrigin = "https://ui.perfetto.dev";

class TraceServer {
 public:
  // On the loopback address only. Port 0: any that is free.
  static Result<std::unique_ptr<TraceServer>> Open(const std::string& path, uint16_t port);

  // What to open in a browser.
  std::string Url() const;
  uint16_t port() const { return server_->port(); }
  // Answers until the file was taken once, `go_on` (asked about ten times a second) is false or
  // `lifetime_ms` are over. True: it was taken. Only requests for the file, by its address and from
  // Perfetto's origin, get it.
  bool Serve(int64_t lifetime_ms, const std::function<bool()>& go_on);

 private:
  explicit TraceServer(std::string path) : path_(std::move(path)), name_(path_.substr(path_.rfind('/') + 1)) {}
  WebAnswer Answer(const WebRequest& request);

  const std::string path_;
  const std::string name_;
  std::unique_ptr<WebServer> server_;
  std::atomic<bool> taken_{false};
};

}  // namespace profd::client
