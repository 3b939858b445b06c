// The HTTP endpoint: /metrics, the page and the probes. On the control strand unless stated.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/config/daemon_config.h"
#include "daemon/metrics/npu_exporter_names.h"
#include "daemon/metrics/scrape.h"
#include "daemon/metrics/self_metrics.h"
#include "daemon/web/status_board.h"
#include "daemon/web/web_server.h"

namespace profd {

class MetricsEndpoint {
 public:
  MetricsEndpoint(const MetricStore& store, const SelfMetrics& self, const Clock& clock)
      : store_(store), self_(self), clock_(clock) {}

  // Before the control strand has tasks. Where metrics are off, nothing listens.
  Status Listen(const DaemonConfig& config);
  // Its counters stay. Any thread.
  void Stop();
  // For the probes: all of the daemon listens, earlier dumps have been looked at.
  void SetListening() { board_.SetListening(); }
  void SetDumpsSeen() { board_.SetDumpsSeen(); }

  // What the page shows has changed: the next picture is wanted at once.
  void Outdate() { outdated_ = true; }
  // Every second: whether a picture is to be shown.
  bool WantsView();
  void Show(NodeView view) { board_.Pin(std::move(view), clock_.SteadyNs()); }

  // Where it listens, with the real port; empty where it does not. For all threads once it listens.
  const std::string& address() const { return address_; }
  bool tls() const { return server_ != nullptr && server_->tls(); }
  void UpdateMetrics(SelfMetrics* self) const;

 private:
  // On the server's thread.
  WebResponse AnswerMetrics(const WebRequest& request);
  WebResponse AnswerPage();

  const MetricStore& store_;
  const SelfMetrics& self_;
  const Clock& clock_;
  std::string address_;
  bool outdated_ = false;
  StatusBoard board_;
  // What the server's thread keeps between two scrapes.
  ScraperTable scrapers_;
  NpuExporterRates rates_;
  std::vector<std::string> names_;     // metrics.names
  std::unique_ptr<WebServer> server_;  // goes first: its handlers use the others
};

}  // namespace profd
