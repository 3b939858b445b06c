#include "daemon/web/metrics_endpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "base/log.h"
#include "collectors/metric_table.h"
#include "daemon/web/http_text.h"

namespace profd {
namespace {

constexpr std::string_view kAtlas = "atlas";
constexpr std::string_view kNpuExporter = "npu-exporter";

bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address.starts_with("[::1]") || address.starts_with("localhost:");
}

bool Speaks(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
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

WebResponse MetricsEndpoint::AnswerMetrics(const WebRequest& request) {
  std::optional<std::vector<std::string>> asked = AskedNames(request.query);
  if (!asked) {
    return {400, "text/plain; charset=utf-8",
            "names must be atlas or npu-exporter, or both: /metrics?names=atlas,npu-exporter\n"};
  }
  const std::vector<std::string>& names = asked->empty() ? names_ : *asked;
  int64_t now = clock_.MonotonicRawNs();
  std::ostringstream text(request.TakeBuffer());
  const prometheus::TextSerializer serializer;
  if (Speaks(names, kAtlas)) {
    StoreFamilies(store_, now, scrapers_.Window(request.peer, request.agent, now)).Write(text);
    serializer.Serialize(text, self_.Collect());
  }
  if (Speaks(names, kNpuExporter)) {
    serializer.Serialize(text, NpuExporterFamilies(store_, now, PROFD_VERSION, &rates_));
  }
  return {200, "text/plain; version=0.0.4; charset=utf-8", std::move(text).str()};
}

WebResponse MetricsEndpoint::AnswerPage() {
  std::shared_ptr<const NodeView> view = board_.view();
  if (view == nullptr) return board_.Health(clock_.SteadyNs());
  return {200, "text/html; charset=utf-8",
          RenderPage(*view, ReadPageFacts(store_, clock_.MonotonicRawNs()),
                     {std::string(kAtlas), std::string(kNpuExporter)})};
}

Status MetricsEndpoint::Listen(const DaemonConfig& config) {
  if (!config.metrics_enabled) return Status::Ok();
  names_ = config.metrics_names;
  WebServer::Options serve{.address = config.metrics_listen, .web_config = config.metrics_web_config,
                           .max_connections = config.metrics_max_connections,
                           .max_connections_per_address = config.metrics_max_connections_per_address};
  Result<std::unique_ptr<WebServer>> listening = WebServer::Listen(
      std::move(serve),
      {{"/", [this](const WebRequest&) { return AnswerPage(); }},
       {"/metrics", [this](const WebRequest& request) { return AnswerMetrics(request); }},
       {"/healthz", [this](const WebRequest&) { return board_.Health(clock_.SteadyNs()); }},
       {"/readyz", [this](const WebRequest&) { return board_.Readiness(clock_.SteadyNs()); }}});
  if (!listening.ok()) return listening.status();
  server_ = std::move(listening).value();
  const WebServer& server = *server_;
  address_ = config.metrics_listen.substr(0, config.metrics_listen.rfind(':')) + ":" + std::to_string(server.port());
  log::Info("metrics", {{"address", address_},
                        {"tls", server.tls()},
                        {"authentication", server.authenticates()},
                        {"names", fmt::format("{}", fmt::join(config.metrics_names, ","))}});
  if (IsLoopback(config.metrics_listen) || server.tls()) return Status::Ok();
  log::Warning(server.authenticates() ? "passwords for metrics travel in plain text"
                                      : "metrics are served in plain text to other machines",
               {{"address", address_}});
  return Status::Ok();
}

void MetricsEndpoint::Stop() {
  if (server_ != nullptr) server_->Stop();
}

bool MetricsEndpoint::WantsView() {
  if (server_ == nullptr) return false;
  if (const int64_t now = clock_.SteadyNs(); !outdated_ && !board_.WantsPicture(now)) {
    board_.Touch(now);
    return false;
  }
  outdated_ = false;
  return true;
}

void MetricsEndpoint::UpdateMetrics(SelfMetrics* self) const {
  if (server_ == nullptr) return;
  const WebServer::Counters http = server_->counters();
  constexpr MetricId kRefused = MetricByName("profd_http_refused_total");
  constexpr MetricId kReloads = MetricByName("profd_http_config_reloads_total");
  self->Set(MetricByName("profd_http_requests_total"), http.requests);
  self->Set(MetricByName("profd_http_connections"), http.connections);
  self->Set(kRefused, http.refused_total, "connections");
  self->Set(kRefused, http.refused_address, "connections_of_address");
  self->Set(kRefused, http.unauthorized, "unauthorized");
  self->Set(kRefused, http.busy, "passwords_waiting");
  self->Set(kRefused, http.bad_requests, "bad_request");
  self->Set(kRefused, http.handshakes_failed, "tls_handshake");
  self->Set(MetricByName("profd_http_timeouts_total"), http.timeouts);
  self->Set(kReloads, http.config_reloads, "ok");
  self->Set(kReloads, http.config_errors, "failed");
  if (http.certificate_expires_s == 0) return;
  self->Set(MetricByName("profd_http_certificate_expiry_timestamp_seconds"), http.certificate_expires_s);
}

}  // namespace profd
