#include "client/serve/trace_server.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

#include "base/clock.h"

namespace profd::client {

Result<std::unique_ptr<TraceServer>> TraceServer::Open(const std::string& path, uint16_t port) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Status::FromErrno(errno, path);
  std::unique_ptr<TraceServer> made(new TraceServer(path));
  auto server = WebServer::Open("127.0.0.1", port, [self = made.get()](const WebRequest& request) { return self->Answer(request); });
  if (!server.ok()) return server.status();
  made->server_ = std::move(*server);
  return made;
}

std::string TraceServer::Url() const {
  return fmt::format("{}/#!/?url=http://127.0.0.1:{}/{}", kPerfettoOrigin, port(), name_);
}

WebAnswer TraceServer::Answer(const WebRequest& request) {
  // Refuses another name for this address, and pages other than Perfetto's.
  if (request.Header("host") != server_->Address() || request.Header("origin") != kPerfettoOrigin) {
    return {403, "text/plain", "for Perfetto's page only\n"};
  }
  WebAnswer answer{200, "application/octet-stream", ""};
  answer.headers = {{"Access-Control-Allow-Origin", kPerfettoOrigin},
                    {"Access-Control-Allow-Private-Network", "true"},
                    {"Vary", "Origin"}};
  if (request.path != "/" + name_) return {404, "text/plain", "there is one file here\n"};
  if (request.method == "OPTIONS") {
    answer.status = 204;
    answer.headers.emplace_back("Access-Control-Allow-Methods", "GET");
    return answer;
  }
  if (request.method != "GET") return {405, "text/plain", "GET only\n"};
  answer.file = UniqueFd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!answer.file.valid()) return {404, "text/plain", "the file is gone\n"};
  answer.sent = [this] { taken_ = true; };
  return answer;
}

bool TraceServer::Serve(int64_t lifetime_ms, const std::function<bool()>& go_on) {
  const SystemClock clock;
  const int64_t end_ns = clock.SteadyNs() + lifetime_ms * kNsPerMs;
  server_->Run([&] { return !taken_ && go_on() && clock.SteadyNs() < end_ns; });
  return taken_;
}

}  // namespace profd::client
