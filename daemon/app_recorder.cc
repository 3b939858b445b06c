// The flight recorder: wiring to sessions, RPC and metrics.
#include "base/log.h"
#include "collectors/metric_table.h"
#include "daemon/app_impl.h"
#include "daemon/node/rights.h"
#include "profd/v1/profd.pb.h"

namespace profd {

void App::Impl::BuildRecorder(SessionManager::Deps* deps) {
  if (!options.config.recorder_enabled) return;
  Result<std::unique_ptr<FlightRecorder>> made = FlightRecorder::Create(
      FlightRecorder::Deps{deps->session, *router, *self, deps->may_use, deps->remove_dump},
      options.config);
  if (!made.ok()) {
    log::Error("no flight recorder", {{"why", made.status().ToString()}});
    return;
  }
  recorder = std::move(made).value();
  deps->session.history_or_null = recorder.get();
}

void App::Impl::AnswerRecorder(RpcDeps* deps) {
  deps->dump_recorder = [this](const Peer& peer, const v1::DumpRecorderRequest& request,
                               v1::Session* out,
                               const std::function<void(const Status&)>& finish) {
    if (recorder == nullptr) {
      finish(FailedPrecondition("the flight recorder is off here (recorder.enabled)"));
      return;
    }
    if (Status given = Rights::OfThisProcess().MayGiveDump(peer.uid); !given.ok()) {
      finish(given);
      return;
    }
    recorder->Dump(peer, request, [out, finish](const Result<v1::Session>& session) {
      if (session.ok()) *out = *session;
      finish(session.status());
    });
  };
}

void App::Impl::DescribeRecorder(v1::Node* out) {
  if (recorder != nullptr) {
    recorder->Describe(out->mutable_recorder());
    return;
  }
  out->mutable_recorder()->set_limit_ms(static_cast<uint64_t>(options.config.recorder_seconds) * 1000);
  out->mutable_recorder()->set_limit_bytes(
      static_cast<uint64_t>(options.config.recorder_memory_mb) << 20);
}

void App::Impl::UpdateRecorderMetrics() {
  auto set = [this](MetricId metric, auto value, std::string_view label = {}) {
    self->Set(metric, static_cast<double>(value), label);
  };
  set(MetricByName("profd_recorder_enabled"), recorder != nullptr ? 1 : 0);
  if (recorder == nullptr) return;
  FlightRecorder::Stats held = recorder->stats();
  set(MetricByName("profd_recorder_seconds"), static_cast<double>(held.held_ns) / 1e9);
  set(MetricByName("profd_recorder_bytes"), held.ring.bytes);
  set(MetricByName("profd_recorder_limit_bytes"), held.ring.max_bytes);
  set(MetricByName("profd_recorder_blocks"), held.ring.blocks);
  set(MetricByName("profd_recorder_blocks_total"), held.ring.appended);
  set(MetricByName("profd_recorder_evicted_total"), held.ring.expired, "age");
  set(MetricByName("profd_recorder_evicted_total"), held.ring.evicted_early, "memory");
  set(MetricByName("profd_recorder_dropped_total"), held.ring.dropped);
  set(MetricByName("profd_recorder_sources"), held.recording, "recording");
  set(MetricByName("profd_recorder_sources"), held.failing, "failing");
  for (std::string_view reason : {"request", "threshold", "error_code", "crash", "slow_step", "advice"}) {
    auto found = held.dumps.find(std::string(reason));
    set(MetricByName("profd_recorder_dumps_total"),
        found == held.dumps.end() ? 0 : found->second, reason);
  }
  set(MetricByName("profd_recorder_suppressed_total"), held.suppressed);
}

}  // namespace profd
