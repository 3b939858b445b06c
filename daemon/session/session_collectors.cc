// The session's claims on channels and its host pollers: what is started, and what each of them answers.
#include <algorithm>
#include <utility>

#include "daemon/session/session.h"
#include "daemon/session/session_poll_sink.h"

namespace profd {

void Session::StartCollectors() {
  pending_ = 1;  // held until all are begun, so that an early answer does not settle the session
  for (const PlannedCollector& planned : plan_.collectors) {
    if (Collectors()[planned.index].spec->source == CollectorSource::kChannel) {
      StartChannels(planned);
    } else {
      StartPoller(planned);
    }
  }
  Settle();
}

void Session::StartChannels(const PlannedCollector& planned) {
  for (int device : plan_.devices) {
    ++pending_;
    StartChannel(planned, device, [self = shared_from_this()] { self->Settle(); });
  }
}

// `settled` runs once, when the driver has answered; at once where it is not called.
void Session::StartChannel(const PlannedCollector& planned, int id, std::function<void()> settled) {
  const CollectorEntry& entry = Collectors()[planned.index];
  const DeviceInfo& device = *deps_.host.FindDevice(id);
  Row row;
  row.collector = planned.index;
  row.device = id;
  row.named = planned.named;
  Status probe = ProbeDevice(entry, deps_.host, device);
  if (!probe.ok()) {
    // Of an option's collectors the chip has some and lacks others; that it has none of them the
    // request's check would have reported. A device that cannot be read is missing where another has it.
    const bool missing = !device.usable.ok() && std::ranges::any_of(deps_.host.devices, [&](const DeviceInfo& other) {
      return ProbeDevice(entry, deps_.host, other).ok();
    });
    if (missing || (planned.named && !planned.by_option)) {
      const bool lacks = probe.code() == StatusCode::kUnimplemented;
      row.answer = {lacks ? v1::Outcome::RESULT_UNSUPPORTED : v1::Outcome::RESULT_FAILED, probe.message(), 0, 0};
      rows_.push_back(std::move(row));
    }
    settled();
    return;
  }
  ClaimRequest claim;
  claim.device = id;
  claim.collector = planned.index;
  claim.options = planned.channel;
  claim.owner = id_;
  claim.dump = dump_;
  // A device without clocks may report them later, and deliver.
  auto clock = clocks_.find(id);
  claim.session_start_ns = clock == clocks_.end() ? start_raw_ns_ : clock->second.host_ns;
  const bool from_past = spec_.schedule().has_since_ms() && !joined_.contains(id);
  claim.since_ns = from_past ? start_raw_ns_ + kPastLeadNs : 0;
  row.claim = deps_.arbiter.Claim(claim, std::move(settled));
  row.feeds = deps_.arbiter.FeedsOf(*row.claim);
  rows_.push_back(std::move(row));
}

void Session::StartPoller(const PlannedCollector& planned) {
  const CollectorEntry& entry = Collectors()[planned.index];
  Row row;
  row.collector = planned.index;
  row.named = planned.named;
  Status probe = entry.probe_host(deps_.host);
  if (!probe.ok()) {
    if (!planned.named) return;
    row.answer = {v1::Outcome::RESULT_UNSUPPORTED, probe.message(), 0, 0};
    rows_.push_back(std::move(row));
    return;
  }
  row.sink = std::make_shared<SessionPollSink>(deps_.store, dump_, *entry.spec, planned.hz);
  if (row.sink->feed() != nullptr) row.feeds.push_back(row.sink->feed());
  if (spec_.schedule().has_since_ms()) {
    RecorderHistory& past = *deps_.history_or_null;
    auto held = past.HostSince(planned.index, start_raw_ns_ + kPastLeadNs);
    row.sink->Replay(std::move(held), past.HostHz(planned.index), deps_.host.clock.MonotonicRawNs());
  }
  Result<PollEngine::Handle> handle =
      deps_.pollers.Start(planned.index, planned.poll, row.sink);
  if (handle.ok()) {
    row.poller = *handle;
    row.answer = {v1::Outcome::RESULT_RUNNING, "", planned.hz, 0};
  } else {
    row.answer = {v1::Outcome::RESULT_FAILED, handle.status().message(), 0, 0};
  }
  rows_.push_back(std::move(row));
}

}  // namespace profd
