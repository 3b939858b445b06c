// /metrics over HTTP. The only place that includes prometheus-cpp; a scrape reads the metric store and
// nothing else, so it costs the same whatever the driver does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace profd {

class MetricStore;

class Exposer {
 public:
  // Listens on `address` ("127.0.0.1:9464", "[::1]:9464"; port 0 = any free one). `store` and `clock`
  // outlive the exposer.
  static Result<std::unique_ptr<Exposer>> Listen(const std::string& address,
                                                 const MetricStore& store, const Clock& clock);
  ~Exposer();

  // The port that was bound.
  int port() const;

 private:
  struct Impl;
  explicit Exposer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The store as Prometheus text (version 0.0.4), for tests and `profd --print-metrics`.
std::string MetricsAsText(const MetricStore& store, int64_t now_ns);

}  // namespace profd
