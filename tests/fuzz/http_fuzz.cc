// Input: a byte of flags, then what a client sends to the HTTP endpoint. Requests are answered or
// refused in HTTP, whole and with the headers every answer has; nothing hangs, nothing of a
// client's text comes back as a header.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/text.h"
#include "daemon/web/credentials.h"
#include "daemon/web/gzip.h"
#include "daemon/web/http_text.h"
#include "daemon/web/web_server.h"
#include "tests/fuzz/file_tree.h"

namespace profd {
namespace {

enum Flags : uint8_t {
  kUsers = 0x01,    // of the server with passwords
  kInTwo = 0x02,    // the request is sent in two pieces
  kHangsUp = 0x04,  // the client goes without waiting for answers
};
constexpr int kPatienceMs = 15'000;
// "secret".
constexpr std::string_view kWebConfig =
    "basic_auth_users:\n"
    "  ann: $2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n";

std::unique_ptr<WebServer> Serve(const std::string& web_config) {
  WebServer::Options options;
  options.address = "127.0.0.1:0";
  options.web_config = web_config;
  options.max_connections = options.max_connections_per_address = 4096;
  auto names = [](const WebRequest& request) {
    auto values = QueryValues(request.query, "names");
    if (!values) return WebResponse{400, "text/plain", "wrong\n"};
    std::string text = "names\n";
    for (const std::string& value : *values) text += EscapeHtml(value) + "\n";
    return WebResponse{200, "text/plain", text + std::string(2000, 'x')};
  };
  auto server = WebServer::Listen(std::move(options), {{"/metrics", names}, {"/healthz", names}});
  FUZZ_EXPECT(server.ok());
  return std::move(server).value();
}

UniqueFd Connect(const WebServer& server) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(server.port()));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  FUZZ_EXPECT(::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  return fd;
}

void Send(const UniqueFd& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // it has been refused already
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

std::string Receive(const UniqueFd& fd) {
  std::string text;
  std::array<char, 16384> piece;
  for (;;) {
    pollfd ready{fd.get(), POLLIN, 0};
    int count = 0;
    // libFuzzer's clock interrupts.
    while ((count = ::poll(&ready, 1, kPatienceMs)) < 0 && errno == EINTR) continue;
    FUZZ_EXPECT(count == 1);
    const ssize_t got = ::recv(fd.get(), piece.data(), piece.size(), 0);
    if (got <= 0) return text;
    text.append(piece.data(), static_cast<size_t>(got));
  }
}

// The first answer's head: a status line, names and values, among them those that all have.
void CheckHead(std::string_view text) {
  FUZZ_EXPECT(text.starts_with("HTTP/1.1 "));
  const size_t end = text.find("\r\n\r\n");
  FUZZ_EXPECT(end != std::string_view::npos);
  std::string_view head = text.substr(0, end + 2);
  FUZZ_EXPECT(head.find("\r\nX-Content-Type-Options: nosniff\r\n") != std::string_view::npos);
  std::string_view line;
  bool first = true;
  std::optional<size_t> length;
  while (NextLine(&head, &line)) {
    FUZZ_EXPECT(line.ends_with('\r'));
    line.remove_suffix(1);
    for (char c : line) FUZZ_EXPECT(c >= 0x20 && c < 0x7F);
    if (!std::exchange(first, false)) FUZZ_EXPECT(line.find(": ") != std::string_view::npos);
    size_t number = 0;
    if (line.starts_with("Content-Length: ") && ParseNumber(line.substr(16), &number))
      length = number;
  }
  FUZZ_EXPECT(length.has_value());
}

void CheckTexts(std::string_view text) {
  if (auto target = ParseTarget(text)) {
    FUZZ_EXPECT(target->path.starts_with('/'));
    for (char c : target->path) FUZZ_EXPECT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
    if (auto values = QueryValues(target->query, "names"))
      FUZZ_EXPECT(values->size() <= text.size());
  }
  if (auto login = ParseBasicLogin(text)) {
    FUZZ_EXPECT(login->user.find(':') == std::string::npos);
  }
  if (auto cost = BcryptCost(text)) FUZZ_EXPECT(text.size() == 60 && *cost >= 0);
  AcceptsGzip(text);
  const std::string shown = EscapeHtml(text);
  FUZZ_EXPECT(shown.find_first_of("<>\"'") == std::string::npos);
}

}  // namespace

void fuzz::Run(Input input) {
  static fuzz::TreeDirectory folder;
  static const std::string path = folder.path() + "/web.yml";
  static const auto servers = [] {
    folder.Write("web.yml", kWebConfig);
    ::chmod(path.c_str(), 0600);
    return std::array{Serve(""), Serve(path)};
  }();
  const auto flags = input.Take<uint8_t>();
  const std::string_view bytes = input.rest();
  CheckTexts(bytes);
  UniqueFd fd = Connect(*servers[(flags & kUsers) != 0 ? 1 : 0]);
  if ((flags & kInTwo) != 0) Send(fd, input.TakePiece(bytes.size() / 2));
  Send(fd, input.rest());
  if ((flags & kHangsUp) != 0) return;
  ::shutdown(fd.get(), SHUT_WR);
  const std::string answer = Receive(fd);
  if (!answer.empty()) CheckHead(answer);
}

}  // namespace profd
