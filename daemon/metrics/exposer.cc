#include "daemon/metrics/exposer.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <exception>
#include <utility>
#include <vector>

#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"

namespace profd {
namespace {

// One scrape at a time is normal; the others are for people with curl and for readers that dawdle.
constexpr size_t kThreads = 4;

prometheus::MetricFamily FamilyOf(MetricId id) {
  const MetricSpec& spec = kMetrics[id];
  prometheus::MetricFamily family;
  family.name = spec.name;
  family.help = spec.help;
  family.type = spec.type == MetricType::kCounter ? prometheus::MetricType::Counter
                                                  : prometheus::MetricType::Gauge;
  return family;
}

std::vector<prometheus::MetricFamily> Families(const MetricStore& store, int64_t now_ns) {
  std::vector<prometheus::MetricFamily> families;
  int current = -1;
  store.VisitFresh(now_ns, [&](const SeriesValue& series) {
    const MetricSpec& spec = kMetrics[series.metric];
    if (spec.visibility != MetricVisibility::kEverywhere) return;
    if (series.metric != current) {
      current = series.metric;
      families.push_back(FamilyOf(series.metric));
    }
    prometheus::ClientMetric metric;
    metric.label.reserve(series.labels->size());
    for (const auto& [name, value] : *series.labels) metric.label.push_back({name, value});
    if (spec.type == MetricType::kCounter) {
      metric.counter.value = series.value;
    } else {
      metric.gauge.value = series.value;
    }
    families.back().metric.push_back(std::move(metric));
  });
  return families;
}

class StoreCollectable final : public prometheus::Collectable {
 public:
  StoreCollectable(const MetricStore& store, const Clock& clock) : store_(store), clock_(clock) {}
  std::vector<prometheus::MetricFamily> Collect() const override {
    return Families(store_, clock_.MonotonicRawNs());
  }

 private:
  const MetricStore& store_;
  const Clock& clock_;
};

}  // namespace

struct Exposer::Impl {
  std::shared_ptr<StoreCollectable> collectable;
  std::unique_ptr<prometheus::Exposer> server;
};

Exposer::Exposer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Exposer::~Exposer() = default;

Result<std::unique_ptr<Exposer>> Exposer::Listen(const std::string& address,
                                                 const MetricStore& store, const Clock& clock) {
  auto impl = std::make_unique<Impl>();
  impl->collectable = std::make_shared<StoreCollectable>(store, clock);
  try {
    impl->server = std::make_unique<prometheus::Exposer>(address, kThreads);
    impl->server->RegisterCollectable(impl->collectable, "/metrics");
  } catch (const std::exception& error) {
    return Unavailable("cannot serve /metrics on " + address + ": " + error.what() +
                       "; is the port taken? Choose another with --metrics-listen");
  }
  return std::unique_ptr<Exposer>(new Exposer(std::move(impl)));
}

int Exposer::port() const {
  std::vector<int> ports = impl_->server->GetListeningPorts();
  return ports.empty() ? 0 : ports.front();
}

std::string MetricsAsText(const MetricStore& store, int64_t now_ns) {
  return prometheus::TextSerializer().Serialize(Families(store, now_ns));
}

}  // namespace profd
