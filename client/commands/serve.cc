#include "client/commands/serve.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/text.h"
#include "client/commands/report.h"
#include "client/connection.h"
#include "client/render.h"
#include "client/serve/site.h"
#include "client/signals.h"

namespace profd::client {
namespace {

constexpr uint16_t kPort = 9466;

struct ListenAt {
  std::string address;
  uint16_t port = 0;
};

// "127.0.0.1:9466", "[::1]:0"
Result<ListenAt> ParseListen(const std::string& text) {
  const size_t colon = text.rfind(':');
  ListenAt at;
  if (colon == std::string::npos || !ParseNumber(std::string_view(text).substr(colon + 1), &at.port)) {
    return InvalidArgument(fmt::format("--listen \"{}\": an IP address and a port, as 127.0.0.1:{} or [::1]:0", text, kPort));
  }
  at.address = text.substr(0, colon);
  if (at.address.starts_with('[') && at.address.ends_with(']')) at.address = at.address.substr(1, at.address.size() - 2);
  return at;
}

bool IsLoopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

Result<std::string> MakeToken() {
  std::array<uint64_t, 2> bits{};
  if (::getrandom(bits.data(), sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) return Status::FromErrno(errno, "getrandom");
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

// Paths of the dumps of a daemon on this machine; what is not available is reported once.
class DaemonDumps {
 public:
  DaemonDumps(const Io& io, std::unique_ptr<ProfdApi> api, Endpoint endpoint) : io_(io), api_(std::move(api)), endpoint_(std::move(endpoint)) {}

  std::vector<std::string> Paths() {
    const Result<v1::Node> node = api_->GetNode();
    if (!node.ok()) return ReportOnce("no daemon answers: " + Explain(node.status(), endpoint_));
    const Result<v1::ListDumpsResponse> list = api_->ListDumps();
    if (!list.ok()) return ReportOnce("the daemon lists no dumps: " + Explain(list.status(), endpoint_));
    std::vector<std::string> paths;
    for (const v1::Dump& dump : list->dumps()) paths.push_back(node->dump_root() + "/" + dump.name());
    return paths;
  }

 private:
  std::vector<std::string> ReportOnce(const std::string& what) {
    if (!reported_) io_.err << "profctl: warning: only folders are served; " << PrintableLines(what) << std::endl;
    reported_ = true;
    return {};
  }

  const Io& io_;
  std::unique_ptr<ProfdApi> api_;
  const Endpoint endpoint_;
  bool reported_ = false;
};

Result<std::unique_ptr<WebServer>> Listen(const ServeCommand& command, const WebServer::Handler& handler) {
  if (!command.listen) {
    auto server = WebServer::Open("127.0.0.1", kPort, handler);
    return server.ok() ? std::move(server) : WebServer::Open("127.0.0.1", 0, handler);
  }
  const Result<ListenAt> at = ParseListen(*command.listen);
  if (!at.ok()) return at.status();
  if (command.no_token && !IsLoopback(at->address)) {
    return InvalidArgument(fmt::format("--listen {} is reached from other machines: --no-token is for loopback addresses only",
                                       *command.listen));
  }
  return WebServer::Open(at->address, at->port, handler);
}

Status CheckFolders(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    struct stat facts {};
    if (::stat(folder.c_str(), &facts) != 0) return Status::FromErrno(errno, folder);
    if (!S_ISDIR(facts.st_mode)) return InvalidArgument(folder + ": not a directory; profctl report and analyze read one database");
  }
  return Status::Ok();
}

}  // namespace

int RunServe(const Io& io, const Clock& clock, const ServeCommand& command, std::unique_ptr<ProfdApi> daemon, const Endpoint& endpoint, bool json) {
  const auto fail = [&](const Status& status) { return FailWith(io, status, json); };
  const Result<size_t> slices = ParseSlices(command.slices);
  if (!slices.ok()) return FailWith(io, slices.status(), kExitUsage, json);
  const auto language = ParseLanguage(command.language);
  if (!language.ok()) return FailWith(io, language.status(), kExitUsage, json);
  const std::vector<std::string> folders = command.folders.empty() ? std::vector<std::string>{"."} : command.folders;
  if (Status there = CheckFolders(folders); !there.ok()) return fail(there);
  Result<std::string> token = command.no_token ? std::string() : MakeToken();
  if (!token.ok()) return fail(token.status());

  SignalWatch signals;
  std::atomic<bool> ended{false};
  RunStore::Options options;
  options.folders = folders;
  options.go_on = [&ended] { return !ended; };
  options.slices = *slices;
  options.language = *language;
  options.clock = &clock;
  DaemonDumps dumps(io, std::move(daemon), endpoint);
  if (!command.no_daemon) options.more = [&dumps] { return dumps.Paths(); };
  RunStore store(std::move(options));
  Site site(&store, *token);
  auto server = Listen(command, [&site](const WebRequest& request) { return site.Answer(request); });
  if (server.status().code() == StatusCode::kInvalidArgument) return FailWith(io, server.status(), kExitUsage, json);
  if (!server.ok()) return fail(server.status());
  site.SetPort((*server)->port());

  const size_t count = store.List().size();
  std::string url = fmt::format("http://{}/", (*server)->Address());
  if (!token->empty()) url += "?token=" + *token;
  if (json) {
    io.out << JsonText(Json{{"url", url}, {"token", *token}, {"runs", count}}, false) << std::endl;
  } else {
    io.out << fmt::format("{}; open {}\n", CountText(count, "run"), url);
    io.out << "  until Ctrl-C; from another machine: ssh -L " << fmt::format("{0}:localhost:{0}", (*server)->port()) << " HOST"
           << std::endl;
  }
  (*server)->Run([&] {
    if (signals.Poll() != 0) ended = true;
    return !ended;
  });
  return kExitOk;
}

}  // namespace profd::client
