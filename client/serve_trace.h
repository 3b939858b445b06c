// Serves one file to Perfetto's UI, which opens traces from http://127.0.0.1:9001 and from no other
// address of this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/status.h"

namespace profd::client {

inline constexpr uint16_t kPerfettoPort = 9001;
inline constexpr const char* kPerfettoOrigin = "https://ui.perfetto.dev";

class TraceServer {
 public:
  // On the loopback address only. Port 0: any that is free.
  static Result<TraceServer> Open(const std::string& path, uint16_t port);

  // What to open in a browser.
  std::string Url() const;
  uint16_t port() const { return port_; }
  // Answers until the file was taken once, `go_on` (asked about ten times a second) is false or
  // `lifetime_ms` are over. True: it was taken. Only requests for the file, by its address and from
  // Perfetto's origin, get it.
  Result<bool> Serve(int64_t lifetime_ms, const std::function<bool()>& go_on);

 private:
  TraceServer(UniqueFd listener, UniqueFd file, std::string name, uint16_t port, uint64_t size)
      : listener_(std::move(listener)),
        file_(std::move(file)),
        name_(std::move(name)),
        port_(port),
        size_(size) {}
  // True when the file went out whole.
  bool Answer(int client) const;
  bool SendFile(int client) const;

  UniqueFd listener_;
  UniqueFd file_;
  std::string name_;
  uint16_t port_;
  uint64_t size_;
};

}  // namespace profd::client
