// The HTTP endpoint: what each path answers, and from what.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include "base/log.h"
#include "collectors/metric_table.h"
#include "daemon/app_impl.h"
#include "daemon/metrics/npu_exporter_names.h"
#include "daemon/metrics/scrape.h"
#include "daemon/web/http_text.h"
#include "daemon/web/status_board.h"
#include "daemon/web/web_server.h"

namespace profd {
namespace {

constexpr std::string_view kAtlas = "atlas";
constexpr std::string_view kNpuExporter = "npu-exporter";

bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address.starts_with("[::1]") ||
         address.starts_with("localhost:");
}

bool Speaks(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "atlas,npu-exporter", once or several times; nothing when a name is none of ours.
std::optional<std::vector<std::string>> AskedNames(std::string_view query) {
  std::optional<std::vector<std::string>> values = QueryValues(query, "names");
  if (!values) return std::nullopt;
  std::vector<std::string> names;
  for (const std::string& value : *values) {
    for (size_t begin = 0; begin <= value.size();) {
      size_t end = std::min(value.find(',', begin), value.size());
      std::string name = value.substr(begin, end - begin);
      if (name != kAtlas && name != kNpuExporter) return std::nullopt;
      names.push_back(std::move(name));
      begin = end + 1;
    }
  }
  return names;
}

}  // namespace

// What the server's thread keeps between two scrapes.
struct MetricsEndpoint {
  StatusBoard board;
  ScraperTable scrapers;
  NpuExporterRates rates;
  std::vector<std::string> names;  // metrics.names
  std::unique_ptr<WebServer> server;  // goes first: its handlers use the others
};

void MetricsEndpointDeleter::operator()(MetricsEndpoint* endpoint) const { delete endpoint; }

void App::Impl::BuildWeb() { web.reset(new MetricsEndpoint); }

WebResponse App::Impl::AnswerMetrics(const WebRequest& request) {
  std::optional<std::vector<std::string>> asked = AskedNames(request.query);
  if (!asked) {
    return {400, "text/plain; charset=utf-8",
            "names must be atlas or npu-exporter, or both: /metrics?names=atlas,npu-exporter\n"};
  }
  const std::vector<std::string>& names = asked->empty() ? web->names : *asked;
  int64_t now = clock.MonotonicRawNs();
  std::ostringstream text(request.TakeBuffer());
  const prometheus::TextSerializer serializer;
  if (Speaks(names, kAtlas)) {
    StoreFamilies(store, now, web->scrapers.Window(request.peer, request.agent, now)).Write(text);
    serializer.Serialize(text, self->Collect());
  }
  if (Speaks(names, kNpuExporter)) {
    serializer.Serialize(text, NpuExporterFamilies(store, now, PROFD_VERSION, &web->rates));
  }
  return {200, "text/plain; version=0.0.4; charset=utf-8", std::move(text).str()};
}

WebResponse App::Impl::AnswerPage() {
  std::shared_ptr<const NodeView> view = web->board.view();
  if (view == nullptr) return web->board.Health(clock.SteadyNs());
  return {200, "text/html; charset=utf-8",
          RenderPage(*view, ReadPageFacts(store, clock.MonotonicRawNs()),
                     {std::string(kAtlas), std::string(kNpuExporter)})};
}

Status App::Impl::ServeWeb() {
  const DaemonConfig& config = options.config;
  if (!config.metrics_enabled) return Status::Ok();
  web->names = config.metrics_names;
  WebServer::Options serve;
  serve.address = config.metrics_listen;
  serve.web_config = config.metrics_web_config;
  serve.max_connections = config.metrics_max_connections;
  serve.max_connections_per_address = config.metrics_max_connections_per_address;
  Result<std::unique_ptr<WebServer>> listening = WebServer::Listen(
      std::move(serve),
      {{"/", [this](const WebRequest&) { return AnswerPage(); }},
       {"/metrics", [this](const WebRequest& request) { return AnswerMetrics(request); }},
       {"/healthz", [this](const WebRequest&) { return web->board.Health(clock.SteadyNs()); }},
       {"/readyz", [this](const WebRequest&) { return web->board.Readiness(clock.SteadyNs()); }}});
  if (!listening.ok()) return listening.status();
  web->server = std::move(listening).value();
  const WebServer& server = *web->server;
  metrics_address = config.metrics_listen.substr(0, config.metrics_listen.rfind(':')) + ":" +
                    std::to_string(server.port());
  metrics_tls = server.tls();
  log::Info("metrics", {{"address", metrics_address},
                        {"tls", server.tls()},
                        {"authentication", server.authenticates()},
                        {"names", fmt::format("{}", fmt::join(config.metrics_names, ","))}});
  if (IsLoopback(config.metrics_listen) || server.tls()) return Status::Ok();
  log::Warning(server.authenticates() ? "passwords for metrics travel in plain text"
                                      : "metrics are served in plain text to other machines",
               {{"address", metrics_address}});
  return Status::Ok();
}

// The server stays: its counters are read until the control strand has ended.
void App::Impl::EndWeb() {
  if (web->server != nullptr) web->server->Stop();
}

void App::Impl::WebListens() { web->board.SetListening(); }
void App::Impl::WebSawDumps() { web->board.SetDumpsSeen(); }

// Every second: a picture for the page and the probes.
void App::Impl::UpdateWeb() {
  if (web->server == nullptr) return;
  if (const int64_t now = clock.SteadyNs(); !web_outdated && !web->board.WantsPicture(now)) {
    web->board.Touch(now);
    return;
  }
  web_outdated = false;
  NodeView view;
  view.version = PROFD_VERSION;
  view.hostname = node->facts().hostname;
  view.simulated = options.simulated;
  const DriverReport& report = node->report();
  view.driver_problem = report.hal_error.empty() ? "no devices" : report.hal_error;
  for (const DeviceInfo& device : node->host().devices) {
    const DeviceRecord* record = health.Of(device.id);
    const DeviceHealth state = record == nullptr ? DeviceHealth() : record->health;
    view.devices.push_back({device.id, std::to_string(device.physical_id), device.chip_name,
                            std::string(VerdictName(state.verdict)), state.flags, state.reasons});
  }
  std::span<const CollectorEntry> collectors = Collectors();
  for (CollectorIndex index : always_on_collectors) {
    const CollectorStats& one = stats[index];
    bool ok = one.last_ok.load(std::memory_order_relaxed);
    view.collectors.push_back({std::string(collectors[index].spec->name),
                               one.readings.load(std::memory_order_relaxed) > 0,
                               ok ? std::string() : one.LastError()});
  }
  view.sessions = sessions->active();
  ShowAdvice(&view);
  view.flight_recorder = recorder != nullptr ? "on" : "off";
  web->board.Pin(std::move(view), clock.SteadyNs());
}

void App::Impl::UpdateWebMetrics() {
  if (web->server == nullptr) return;
  const WebServer::Counters http = web->server->counters();
  auto set = [this](MetricId metric, auto value, std::string_view label = {}) {
    self->Set(metric, static_cast<double>(value), label);
  };
  constexpr MetricId kRefused = MetricByName("profd_http_refused_total");
  constexpr MetricId kReloads = MetricByName("profd_http_config_reloads_total");
  set(MetricByName("profd_http_requests_total"), http.requests);
  set(MetricByName("profd_http_connections"), http.connections);
  set(kRefused, http.refused_total, "connections");
  set(kRefused, http.refused_address, "connections_of_address");
  set(kRefused, http.unauthorized, "unauthorized");
  set(kRefused, http.busy, "passwords_waiting");
  set(kRefused, http.bad_requests, "bad_request");
  set(kRefused, http.handshakes_failed, "tls_handshake");
  set(MetricByName("profd_http_timeouts_total"), http.timeouts);
  set(kReloads, http.config_reloads, "ok");
  set(kReloads, http.config_errors, "failed");
  if (http.certificate_expires_s == 0) return;
  set(MetricByName("profd_http_certificate_expiry_timestamp_seconds"), http.certificate_expires_s);
}

}  // namespace profd
