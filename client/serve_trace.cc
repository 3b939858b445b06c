#include "client/serve_trace.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <string_view>

#include "base/clock.h"

namespace profd::client {
namespace {

constexpr size_t kMaxRequest = 16u << 10;
constexpr int kLookMs = 100;
// Of a client that says or takes nothing.
constexpr timeval kPatience{5, 0};

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool SendAll(int client, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(client, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// Everything up to the empty line; empty when there is none in time or it is too long.
std::string ReadRequest(int client) {
  std::string request;
  char buffer[4096];
  while (request.find("\r\n\r\n") == std::string::npos) {
    if (request.size() > kMaxRequest) return "";
    const ssize_t count = recv(client, buffer, sizeof buffer, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return "";
    request.append(buffer, static_cast<size_t>(count));
  }
  return request;
}

// The value of a header; names are the same in any case.
std::string_view HeaderOf(std::string_view request, std::string_view name) {
  while (!request.empty()) {
    const size_t end = std::min(request.find("\r\n"), request.size());
    std::string_view line = request.substr(0, end);
    request.remove_prefix(std::min(end + 2, request.size()));
    const bool same =
        line.size() > name.size() && line[name.size()] == ':' &&
        std::equal(name.begin(), name.end(), line.begin(), [](unsigned char a, unsigned char b) {
          return std::tolower(a) == std::tolower(b);
        });
    if (!same) continue;
    line.remove_prefix(name.size() + 1);
    while (line.starts_with(' ')) line.remove_prefix(1);
    while (line.ends_with(' ')) line.remove_suffix(1);
    return line;
  }
  return {};
}

}  // namespace

Result<TraceServer> TraceServer::Open(const std::string& path, uint16_t port) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info = {};
  if (!file.valid() || fstat(file.get(), &info) != 0) return Status::FromErrno(errno, path);
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* where = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (!listener.valid() ||
      setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(listener.get(), where, size) != 0 || listen(listener.get(), 16) != 0 ||
      getsockname(listener.get(), where, &size) != 0) {
    return Status::FromErrno(errno, fmt::format("listening on 127.0.0.1:{}", port));
  }
  return TraceServer(std::move(listener), std::move(file), NameOf(path), ntohs(address.sin_port),
                     static_cast<uint64_t>(info.st_size));
}

std::string TraceServer::Url() const {
  return fmt::format("{}/#!/?url=http://127.0.0.1:{}/{}", kPerfettoOrigin, port_, name_);
}

bool TraceServer::SendFile(int client) const {
  off_t offset = 0;
  while (static_cast<uint64_t>(offset) < size_) {
    const ssize_t sent =
        sendfile(client, file_.get(), &offset, size_ - static_cast<uint64_t>(offset));
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
  }
  return true;
}

bool TraceServer::Answer(int client) const {
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  const std::string request = ReadRequest(client);
  auto refuse = [client](std::string_view status) {
    SendAll(client, fmt::format("HTTP/1.1 {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status));
    return false;
  };
  // Refuses another name for this address, and pages other than Perfetto's.
  if (HeaderOf(request, "Host") != fmt::format("127.0.0.1:{}", port_) ||
      HeaderOf(request, "Origin") != kPerfettoOrigin) {
    return refuse("403 Forbidden");
  }
  const std::string allow =
      fmt::format("Access-Control-Allow-Origin: {}\r\nAccess-Control-Allow-Private-Network: true\r\n"
                  "Vary: Origin\r\nCache-Control: no-store\r\nConnection: close\r\n",
                  kPerfettoOrigin);
  if (request.starts_with(fmt::format("OPTIONS /{} ", name_))) {
    SendAll(client, "HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Methods: GET\r\n" + allow + "\r\n");
    return false;
  }
  if (!request.starts_with(fmt::format("GET /{} ", name_))) return refuse("404 Not Found");
  return SendAll(client, fmt::format("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
                                     "Content-Length: {}\r\n{}\r\n",
                                     size_, allow)) &&
         SendFile(client);
}

Result<bool> TraceServer::Serve(int64_t lifetime_ms, const std::function<bool()>& go_on) {
  SystemClock clock;
  const int64_t end_ns = clock.SteadyNs() + lifetime_ms * kNsPerMs;
  while (go_on() && clock.SteadyNs() < end_ns) {
    pollfd waiting = {listener_.get(), POLLIN, 0};
    if (poll(&waiting, 1, kLookMs) < 0 && errno != EINTR) {
      return Status::FromErrno(errno, "waiting for the browser");
    }
    UniqueFd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client.valid() && Answer(client.get())) return true;
  }
  return false;
}

}  // namespace profd::client
