#include "daemon/metrics/exposer.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <exception>
#include <utility>
#include <vector>

#include "daemon/metrics/metric_store.h"
#include "daemon/metrics/scrape.h"

namespace profd {
namespace {

// One scrape at a time is normal; the others are for people with curl and for readers that dawdle.
constexpr size_t kThreads = 4;

class StoreCollectable final : public prometheus::Collectable {
 public:
  StoreCollectable(const MetricStore& store, const Clock& clock) : store_(store), clock_(clock) {}
  std::vector<prometheus::MetricFamily> Collect() const override {
    return AtlasFamilies(store_, clock_.MonotonicRawNs(), ScraperTable::kDefaultWindowNs);
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
  return FamiliesAsText(AtlasFamilies(store, now_ns, ScraperTable::kDefaultWindowNs));
}

}  // namespace profd
