#include "daemon/web/web_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "daemon/rpc/accept.h"
#include "daemon/rpc/tcp_listener.h"
#include "daemon/web/web_connection.h"

namespace profd {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// How long no connection is accepted when no descriptor is left.
constexpr auto kPause = std::chrono::milliseconds(200);

// As one writes it: without the IPv6 clothes that an IPv4 client of a "[::]" socket wears.
std::string ClientAddress(const sockaddr_storage& from) {
  std::string text = AddressText(from, false);
  constexpr std::string_view kMapped = "::ffff:";
  if (text.starts_with(kMapped) && text.find('.') != std::string::npos) {
    text.erase(0, kMapped.size());
  }
  return text;
}

}  // namespace

// In this order: what the connections refer to, the loop that owns them, the thread that runs it.
struct WebServer::Impl {
  Impl(std::map<std::string, Handler> handlers, const Options& options)
      : core(std::move(handlers), options,
             [this](std::function<void()> task) { asio::post(*loop, std::move(task)); }),
        loop(std::make_unique<asio::io_context>(1)),
        work(loop->get_executor()),
        acceptor(*loop),
        pause(*loop) {}
  ~Impl() { Stop(); }

  void Stop() {
    loop->stop();
    if (thread.joinable()) thread.join();
    core.passwords.Stop();
    error_code ignored;
    acceptor.close(ignored);
  }

  void Accept();
  void Admit(UniqueFd fd, const sockaddr_storage& from);

  WebCore core;
  std::unique_ptr<asio::io_context> loop;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  int bound_port = 0;
  std::thread thread;
};

void WebServer::Impl::Accept() {
  acceptor.async_wait(tcp::acceptor::wait_read, [this](error_code error) {
    if (error == asio::error::operation_aborted) return;
    // Not Asio's own: it makes descriptors that a program started by the daemon would inherit.
    const auto take = [this](UniqueFd fd, const sockaddr_storage& from) { Admit(std::move(fd), from); };
    if (AcceptSome(acceptor.native_handle(), take)) return Accept();
    pause.expires_after(kPause);
    pause.async_wait([this](error_code stopped) {
      if (!stopped) Accept();
    });
  });
}

void WebServer::Impl::Admit(UniqueFd fd, const sockaddr_storage& from) {
  std::string address = ClientAddress(from);
  Admission admission = core.limits.Enter(address);
  if (admission == Admission::kRefuseTotal || admission == Admission::kDropTotal) {
    core.refused_total.fetch_add(1, std::memory_order_relaxed);
  } else if (admission != Admission::kServe) {
    core.refused_address.fetch_add(1, std::memory_order_relaxed);
  }
  if (admission == Admission::kDropTotal || admission == Admission::kDropAddress) return;
  int one = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  tcp::socket socket(*loop);
  error_code error;
  socket.assign(from.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), fd.get(), error);
  if (error) {
    core.limits.Leave(address, admission);
    return;
  }
  (void)fd.Release();
  core.state->Look(SystemClock().SteadyNs());
  ServeWebConnection(core, std::move(socket), std::move(address), admission);
}

WebServer::WebServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WebServer::~WebServer() = default;

Result<std::unique_ptr<WebServer>> WebServer::Listen(Options options,
                                                     std::map<std::string, Handler> handlers) {
  auto impl = std::make_unique<Impl>(std::move(handlers), options);
  Result<std::unique_ptr<WebStateKeeper>> state = WebStateKeeper::Open(options.web_config);
  if (!state.ok()) return state.status();
  impl->core.state = std::move(state).value();
  Result<UniqueFd> bound = BindTcp(options.address, "metrics.listen");
  if (!bound.ok()) {
    return bound.status().Annotate("cannot serve /metrics (another port: --metrics-listen)");
  }
  impl->bound_port = PortOf(bound->get());
  error_code error;
  bool v6 = options.address.starts_with('[');
  impl->acceptor.assign(v6 ? tcp::v6() : tcp::v4(), bound->get(), error);
  if (error) return Internal("cannot serve /metrics: " + error.message());
  (void)bound->Release();
  impl->Accept();
  impl->thread = std::thread([raw = impl.get()] {
    ::pthread_setname_np(::pthread_self(), "profd-web");
    raw->loop->run();
  });
  return std::unique_ptr<WebServer>(new WebServer(std::move(impl)));
}

void WebServer::Stop() { impl_->Stop(); }
int WebServer::port() const { return impl_->bound_port; }
bool WebServer::tls() const { return impl_->core.state->tls.load(); }
bool WebServer::authenticates() const { return impl_->core.state->authenticates.load(); }

WebServer::Counters WebServer::counters() const {
  const WebCore& core = impl_->core;
  auto get = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  return {.requests = get(core.requests), .refused_total = get(core.refused_total),
          .refused_address = get(core.refused_address), .unauthorized = get(core.unauthorized), .busy = get(core.busy),
          .bad_requests = get(core.bad_requests), .handshakes_failed = get(core.handshakes_failed),
          .timeouts = get(core.timeouts), .config_reloads = get(core.state->reloads),
          .config_errors = get(core.state->errors), .connections = get(core.connections),
          .certificate_expires_s = get(core.state->expires_s)};
}

void CheckWebConfig(const std::string& path, std::vector<std::string>* problems) {
  const Status opened = WebStateKeeper::Open(path).status();
  std::string_view rest = opened.message();  // "" when it is good
  for (std::string_view line; NextPart(&rest, '\n', &line);) problems->emplace_back(line);
}

}  // namespace profd
