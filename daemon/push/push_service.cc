#include "daemon/push/push_service.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "daemon/metrics/npu_exporter_names.h"
#include "daemon/metrics/scrape.h"
#include "daemon/push/push_config.h"
#include "daemon/web/gzip.h"

namespace profd {
namespace {

std::string HostName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// What a sink keeps from one interval to the next; its thread's own.
struct Page {
  NpuExporterRates rates;
  GzipCompressor gzip;
};

PushLabels About(std::string_view sink, const std::string& host, const PushLabels& more) {
  PushLabels about = more;
  if (sink == kOtlpSink) {
    about.insert(about.end(), {{"service.name", "profd"},
                               {"service.version", PROFD_VERSION},
                               {"service.instance.id", host},
                               {"host.name", host}});
  } else {
    about.insert(about.end(), {{"job", "profd"}, {"instance", host}});
  }
  return about;
}

std::vector<PushMessage> TakePush(const MetricStore& store, const prometheus::Collectable& self,
                                  const std::vector<std::string>& names, const PushSinkOptions& sink, PushFacts facts,
                                  Page* page) {
  auto speaks = [&names](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  const SystemClock clock;
  facts.wall_ns = clock.WallNs();
  const int64_t now = clock.MonotonicRawNs();
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&families](std::vector<prometheus::MetricFamily> more) {
    std::move(more.begin(), more.end(), std::back_inserter(families));
  };
  if (speaks("atlas")) {
    add(StoreFamilies(store, now, sink.interval_ns).Collect());
    add(self.Collect());
  }
  if (speaks("npu-exporter")) add(NpuExporterFamilies(store, now, PROFD_VERSION, &page->rates));
  if (sink.name == kRemoteWriteSink) return RemoteWriteMessages(families, facts);
  std::vector<PushMessage> messages = OtlpMessages(families, facts);
  for (PushMessage& message : messages) {
    std::string packed;
    if (!page->gzip.Compress(message.body, &packed)) packed.clear();
    message.body = std::move(packed);
  }
  return messages;
}

}  // namespace

Status PushService::Start(const DaemonConfig& config) {
  std::vector<std::string> problems;
  PushConfig push = MakePushConfig(config, &problems);
  if (!problems.empty()) return FailedPrecondition(problems.front());
  const std::string host = HostName();
  for (PushSinkOptions& sink : push.sinks) {
    PushFacts facts{.start_wall_ns = SystemClock().WallNs(), .version = PROFD_VERSION,
                    .about = About(sink.name, host, push.labels)};
    log::Info("metrics are pushed", {{"sink", sink.name},
                                     {"to", sink.url.Authority()},
                                     {"tls", sink.url.tls},
                                     {"interval_s", sink.interval_ns / kNsPerSecond}});
    sinks_.emplace_back(sink.name, std::make_unique<PushSink>(
        sink, [this, names = config.metrics_names, sink, facts, page = std::make_shared<Page>()] {
          return TakePush(store_, self_, names, sink, facts, page.get());
        }));
    sinks_.back().second->Start();
  }
  return Status::Ok();
}

void PushService::UpdateMetrics(SelfMetrics* self) const {
  for (const auto& [name, sink] : sinks_) {
    const PushStats now = sink->stats();
    auto set = [self, name = name](MetricId metric, auto value, std::string_view reason = {}) {
      self->Set(metric, value, name, reason);
    };
    set(MetricByName("profd_push_messages_total"), now.messages);
    set(MetricByName("profd_push_samples_total"), now.samples);
    set(MetricByName("profd_push_queue_bytes"), now.queued_bytes);
    if (now.last_success_s > 0) set(MetricByName("profd_push_last_success_timestamp_seconds"), now.last_success_s);
    for (const auto& [reason, count] : now.failures) set(MetricByName("profd_push_failures_total"), count, reason);
    for (const auto& [reason, count] : now.dropped_samples) set(MetricByName("profd_push_dropped_samples_total"), count, reason);
  }
}

}  // namespace profd
