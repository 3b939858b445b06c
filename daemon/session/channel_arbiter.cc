#include "daemon/session/channel_arbiter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "collectors/channel_options.h"
#include "driver/abi/hal_abi.h"
#include "driver/chips.h"

namespace profd {
namespace {

constexpr int64_t kFirstBackoffNs = kNsPerSecond;
constexpr int64_t kMaxBackoffNs = 60 * kNsPerSecond;

v1::Outcome::Result StateOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kResourceExhausted:
      return v1::Outcome::RESULT_BUSY;
    case StatusCode::kUnimplemented:
      return v1::Outcome::RESULT_UNSUPPORTED;
    case StatusCode::kPermissionDenied:
      return v1::Outcome::RESULT_DENIED;
    default:
      return v1::Outcome::RESULT_FAILED;
  }
}

bool SameRequest(const ChannelRequest& a, const ChannelRequest& b) {
  return a.sample_period_ms == b.sample_period_ms && a.user_data == b.user_data &&
         a.task_scheduler_owned == b.task_scheduler_owned;
}

const CollectorSpec& SpecOf(CollectorIndex collector) { return *Collectors()[collector].spec; }

// What a session does that another, which wants `theirs`, cannot share.
std::string ConflictText(CollectorIndex collector, const ChannelOptions& ours,
                         const ChannelOptions& theirs) {
  const CollectorSpec& spec = SpecOf(collector);
  const CollectorOption* option = DifferingOption(spec, ours, theirs);
  return option->busy(ValueOf(spec, *option, ours));
}

}  // namespace

ChannelArbiter::ChannelArbiter(const Deps& deps, std::vector<Device> devices)
    : deps_(deps), devices_(std::move(devices)) {}

const ChannelArbiter::Device& ChannelArbiter::DeviceOf(int device) const {
  return *std::ranges::find_if(devices_, [device](const Device& d) { return d.info->id == device; });
}

ChannelArbiter::Slot& ChannelArbiter::SlotOf(int device, uint32_t channel,
                                             CollectorIndex collector) {
  std::unique_ptr<Slot>& slot = slots_[{device, channel}];
  if (slot == nullptr) {
    slot = std::make_unique<Slot>();
    slot->device = device;
    slot->channel = channel;
    slot->collector = collector;
  }
  return *slot;
}

std::vector<ChannelRequest> ChannelArbiter::PlanFor(int device, CollectorIndex collector,
                                                    ChannelOptions options) const {
  const Device& target = DeviceOf(device);
  options.host_counter_hz = deps_.host.host_counter_hz;
  return Collectors()[collector].plan(*target.info, options);
}

bool ChannelArbiter::RequestFor(const Slot& slot, const ChannelOptions& options,
                                ChannelRequest* out) const {
  for (ChannelRequest& request : PlanFor(slot.device, slot.collector, options)) {
    if (request.channel != slot.channel) continue;
    *out = std::move(request);
    return true;
  }
  return false;
}

ChannelOptions ChannelArbiter::MergedOf(const Slot& slot) const {
  ChannelOptions merged = slot.parts.front().options;
  for (const Participant& part : slot.parts) {
    merged = MergeOptions(SpecOf(slot.collector), merged, part.options);
  }
  return merged;
}

// Options that cannot be reconciled show in the driver's parameters whichever side is followed. A session before the
// flight recorder: where a session is in the way, the recorder need not give way.
const ChannelArbiter::Participant* ChannelArbiter::Conflict(const Slot& slot,
                                                     const ChannelOptions& options) const {
  const CollectorSpec& spec = SpecOf(slot.collector);
  const Participant* found = nullptr;
  for (const Participant& part : slot.parts) {
    if (DifferingOption(spec, part.options, options) == nullptr) continue;
    ChannelRequest ours;
    ChannelRequest theirs;
    if (RequestFor(slot, MergeOptions(spec, options, part.options), &ours) &&
        RequestFor(slot, MergeOptions(spec, part.options, options), &theirs) &&
        !SameRequest(ours, theirs)) {
      if (!part.resident) return &part;
      found = &part;
    }
  }
  return found;
}

FeedOptions ChannelFeed(const Host& host, const DeviceInfo& device, CollectorIndex collector,
                        uint32_t channel, const ChannelOptions& options) {
  FeedOptions feed{.collector = std::string(Collectors()[collector].spec->name), .device = device.id, .channel = channel,
                   .format = abi::FindChannelFormat(channel)};
  if (feed.format != nullptr) feed.file = FileOf(*feed.format, static_cast<uint32_t>(device.chip_id));
  feed.record_parts = SpecOf(collector).record_parts;
  feed.part_hz = PartRates(SpecOf(collector), options);
  feed.chip_id = static_cast<uint32_t>(device.chip_id);
  feed.device_counter_hz = device.counter_hz;
  feed.host_counter_hz = host.host_counter_hz;
  return feed;
}

ChannelArbiter::Participant ChannelArbiter::MakePart(ClaimId id, const ClaimRequest& request,
                                              const ChannelRequest& planned) const {
  Participant part;
  part.claim = id;
  part.owner = request.owner;
  part.options = request.options;
  part.hz = planned.effective_hz;
  part.since_ns = request.since_ns;
  part.resident = request.resident;
  part.garbage_before =
      deps_.pump.Counters(static_cast<uint32_t>(request.device), planned.channel).garbage_bytes;
  const abi::ChannelFormat* format = abi::FindChannelFormat(planned.channel);
  if (request.dump == nullptr || format == nullptr) return part;
  FeedOptions feed = ChannelFeed(deps_.host, *DeviceOf(request.device).info, request.collector,
                                 planned.channel, request.options);
  feed.hz = planned.effective_hz;
  feed.session_start_ns = request.session_start_ns;
  feed.in_past = request.since_ns != 0;
  part.target = {request.dump, request.dump->AddFeed(std::move(feed))};
  return part;
}

ChannelArbiter::ClaimId ChannelArbiter::Claim(const ClaimRequest& request,
                                              std::function<void()> settled) {
  DCHECK_ON(deps_.control);
  ClaimId id = next_claim_++;
  ClaimRecord& record = claims_[id];
  record.request = request;
  record.settled = std::move(settled);
  std::vector<ChannelRequest> plan =
      PlanFor(request.device, request.collector, request.options);
  if (plan.empty()) {
    record.fixed = {v1::Outcome::RESULT_UNSUPPORTED, "the driver names nothing to measure here (QoS without streams, SoC without parts)", 0, 0};
  }
  for (const ChannelRequest& planned : plan) {
    Slot& slot = SlotOf(request.device, planned.channel, request.collector);
    if (!request.resident) PushOutResident(slot, request);
    if (const Participant* other = Conflict(slot, request.options); other != nullptr) {
      record.fixed = {v1::Outcome::RESULT_BUSY,
                      fmt::format("session {} {} on this device", other->owner,
                                  ConflictText(request.collector, other->options, request.options)),
                      0, 0, other->owner};
      continue;
    }
    slot.parts.push_back(MakePart(id, request, planned));
    record.channels.emplace_back(slot.device, slot.channel);
  }
  // Reconcile may answer at once and look at all parts of the claim: they are in place by now.
  auto channels = record.channels;
  for (const auto& key : channels) Reconcile(*slots_[key]);
  if (channels.empty()) CheckSettled(id);
  return id;
}

// A session goes before the flight recorder where both cannot be served; the recorder requests it again.
void ChannelArbiter::PushOutResident(Slot& slot, const ClaimRequest& request) {
  const Participant* other = Conflict(slot, request.options);
  if (other == nullptr || !other->resident) return;
  ClaimRecord& record = claims_[other->claim];
  std::erase(record.channels, std::make_pair(slot.device, slot.channel));
  record.fixed = {v1::Outcome::RESULT_BUSY,
                  fmt::format("session {} measures something else on this device", request.owner),
                  0, 0, request.owner};
  std::erase_if(slot.parts, [other](const Participant& part) { return &part == other; });
  // What runs is of the other kind, whatever its rate.
  slot.restart = true;
}

void ChannelArbiter::Release(ClaimId id, std::function<void(const GarbageBytes&)> done) {
  DCHECK_ON(deps_.control);
  auto found = claims_.find(id);
  if (found == claims_.end()) {
    done({});
    return;
  }
  ClaimRecord& record = found->second;
  record.settled = nullptr;
  record.released = std::move(done);
  record.waiting = record.channels.size();
  auto channels = record.channels;
  for (const auto& key : channels) {
    Slot& slot = *slots_[key];
    auto part = std::ranges::find(slot.parts, id, &Participant::claim);
    slot.pending_detaches.push_back({part->target, id, part->garbage_before});
    slot.parts.erase(part);
    // A stop, which may be under way, reads all there is; nothing has come yet of a start.
    const bool stops = slot.phase == Phase::kStopping ||
                       (slot.parts.empty() && slot.phase != Phase::kIdle);
    if (!stops) FetchFor(slot, id);
    Reconcile(slot);
  }
  if (channels.empty()) {
    auto released = std::move(record.released);
    claims_.erase(found);
    released({});
  }
}

void ChannelArbiter::FetchFor(Slot& slot, ClaimId claim) {
  const bool wanted = slot.pending_detaches.back().target.feed != nullptr && slot.phase == Phase::kRunning;
  if (!wanted) {
    OnFetched(slot, claim, Status::Ok());
    return;
  }
  // Slots are never destroyed while the arbiter lives.
  DeviceOf(slot.device).control->FetchChannel(slot.channel, [this, key = &slot, claim](const Status& status) {
    deps_.control.Post([this, key, claim, status] { OnFetched(*key, claim, status); });
  });
}

void ChannelArbiter::OnFetched(Slot& slot, ClaimId claim, const Status& status) {
  DCHECK_ON(deps_.control);
  const auto found = std::ranges::find(slot.pending_detaches, claim, &PendingDetach::claim);
  if (found == slot.pending_detaches.end()) return;  // a stop was first, and detached it
  const PendingDetach detach = *found;
  slot.pending_detaches.erase(found);
  if (!status.ok() && detach.target.feed != nullptr) {
    detach.target.session->NoteUnfetched(detach.target.feed);
  }
  Detach(slot, detach);
}

void ChannelArbiter::DetachPending(Slot& slot) {
  for (const PendingDetach& detach : std::exchange(slot.pending_detaches, {})) Detach(slot, detach);
}

void ChannelArbiter::Detach(Slot& slot, const PendingDetach& detach) {
  if (detach.target.feed != nullptr) {
    deps_.router.Detach(static_cast<uint32_t>(slot.device), slot.channel, detach.target.feed);
  }
  auto found = claims_.find(detach.claim);
  if (found == claims_.end()) return;
  ClaimRecord& record = found->second;
  const uint64_t garbage = deps_.pump.Counters(static_cast<uint32_t>(slot.device), slot.channel).garbage_bytes;
  record.garbage[slot.channel] = garbage - std::min(garbage, detach.garbage_before);
  if (--record.waiting > 0) return;
  const auto released = std::move(record.released);
  const GarbageBytes all = std::move(record.garbage);
  claims_.erase(found);
  if (released) released(all);
}

void ChannelArbiter::Reconcile(Slot& slot) {
  if (slot.phase == Phase::kStarting || slot.phase == Phase::kStopping) return;
  if (auto away = handed_over_.find({slot.device, slot.channel}); away != handed_over_.end()) {
    StayAway(slot, away->second);
    return;
  }
  if (slot.parts.empty()) {
    if (slot.phase == Phase::kRunning) {
      Stop(slot);
    } else {
      DetachPending(slot);
    }
    return;
  }
  ChannelOptions merged = MergedOf(slot);
  ChannelRequest want;
  if (slot.phase == Phase::kIdle) {
    if (deps_.host.clock.SteadyNs() < slot.retry_at_ns) {
      AnswerFailure(slot);
    } else if (slot.unstopped) {
      Stop(slot);
    } else if (RequestFor(slot, merged, &want)) {
      Start(slot, want, merged);
    }
    return;
  }
  // Never slower than it runs already: compare with what would serve both. The flight recorder alone
  // is not a reason to go on at a rate that a session once wanted.
  bool resident = std::ranges::all_of(slot.parts, [](const Participant& part) { return part.resident; });
  if (!resident) merged = MergeOptions(SpecOf(slot.collector), slot.running, merged);
  bool covered = RequestFor(slot, merged, &want) && SameRequest(want, slot.request);
  if (slot.restart || !covered) {
    Stop(slot);
    return;
  }
  auto problem = problems_.find(slot.device);
  for (Participant& part : slot.parts) {
    if (part.attached) continue;
    if (problem == problems_.end()) {
      PushEpoch(slot, part);  // it joins a channel that already runs
      SetRunning(part);
    } else {
      Answer(part, v1::Outcome::RESULT_FAILED, problem->second);
    }
  }
}

void ChannelArbiter::PushEpoch(Slot& slot, Participant& part) {
  part.begun = true;
  if (part.resident) slot.epoch->for_sessions = false;
  if (part.target.feed == nullptr) return;
  bool late = !part.ran && part.state != v1::Outcome::RESULT_UNSPECIFIED;
  part.target.session->SetEpoch(part.target.feed, slot.epoch, late);
  if (!part.attached) {
    deps_.router.Attach(static_cast<uint32_t>(slot.device), slot.channel, part.target,
                        part.since_ns);
  }
  part.attached = true;
}

void ChannelArbiter::SetRunning(Participant& part) {
  part.attached = part.ran = true;
  if (part.target.feed != nullptr) part.target.session->NoteOutage(part.target.feed, true);
  Answer(part, v1::Outcome::RESULT_RUNNING, "");
}

void ChannelArbiter::Start(Slot& slot, const ChannelRequest& request,
                           const ChannelOptions& options) {
  const Device& device = DeviceOf(slot.device);
  auto dev = static_cast<uint32_t>(slot.device);
  slot.phase = Phase::kStarting;
  slot.restart = false;
  slot.request = request;
  slot.running = options;
  slot.epoch = std::make_shared<ChannelEpoch>();
  slot.epoch->number = ++slot.epoch_number;
  slot.epoch->start_ns = deps_.host.clock.MonotonicRawNs();
  slot.epoch->hz = request.effective_hz;
  slot.epoch->part_hz = PartRates(SpecOf(slot.collector), options);
  slot.epoch->for_sessions = std::ranges::none_of(slot.parts, &Participant::resident);
  TimeBase time = TimeBaseOf(slot.device);
  time.channel_start_ns = slot.epoch->start_ns;
  deps_.router.BeginEpoch(dev, slot.channel, slot.epoch);
  deps_.router.Begin(dev, slot.channel,
                     Collectors()[slot.collector].make_decoder(*device.info, slot.channel, deps_.store),
                     time);
  for (Participant& part : slot.parts) PushEpoch(slot, part);
  ChannelStart start;
  start.channel = slot.channel;
  start.channel_type =
      request.task_scheduler_owned ? abi::kProfTsType : abi::kProfPeripheralType;
  start.sample_period = request.sample_period_ms;
  start.user_data = request.user_data;
  // Slots are never destroyed while the arbiter lives.
  device.control->StartChannel(
      std::move(start), slot.epoch_number,
      [this, key = &slot, epoch = slot.epoch](const Status& status, int64_t start_ns) {
        // Here already: the first block must not overtake it.
        if (status.ok()) epoch->start_ns = start_ns;
        deps_.control.Post([this, key, status, start_ns] { OnStarted(*key, status, start_ns); });
      });
}

void ChannelArbiter::OnStarted(Slot& slot, const Status& status, int64_t start_ns) {
  DCHECK_ON(deps_.control);
  auto dev = static_cast<uint32_t>(slot.device);
  if (status.ok()) {
    slot.phase = Phase::kRunning;
    slot.doubtful = false;
    slot.backoff_ns = 0;
    slot.retry_at_ns = 0;
    slot.last_error = Status::Ok();
    deps_.router.SetStart(dev, slot.channel, start_ns);
    for (Participant& part : slot.parts) {
      // Parts that were added while the start was under way join in Reconcile.
      if (part.begun) SetRunning(part);
    }
    Reconcile(slot);
    return;
  }
  slot.phase = Phase::kIdle;
  RetryLater(slot, status);
  deps_.router.End(dev, slot.channel);
  DetachPending(slot);
  Reconcile(slot);
}

void ChannelArbiter::RetryLater(Slot& slot, const Status& why) const {
  slot.last_error = why;
  slot.backoff_ns = slot.backoff_ns == 0 ? kFirstBackoffNs : std::min(slot.backoff_ns * 2, kMaxBackoffNs);
  slot.retry_at_ns = deps_.host.clock.SteadyNs() + slot.backoff_ns;
}

void ChannelArbiter::AnswerFailure(Slot& slot) {
  v1::Outcome::Result state = StateOf(slot.last_error);
  for (Participant& part : slot.parts) Answer(part, state, slot.last_error.message());
}

void ChannelArbiter::Stop(Slot& slot) {
  slot.phase = Phase::kStopping;
  DeviceOf(slot.device)
      .control->StopChannel(slot.channel, [this, key = &slot](const StopOutcome& outcome) {
        deps_.control.Post([this, key, outcome] { OnStopped(*key, outcome); });
      });
}

// The driver reports it when it stops a channel, without how much: somewhere in the run that ends, for each session in it.
void ChannelArbiter::NoteDataLost(const Slot& slot) {
  const int64_t run_ns = slot.epoch == nullptr ? 0 : slot.epoch->start_ns.load();
  const int64_t now_ns = deps_.host.clock.MonotonicRawNs();
  const auto note = [&](const FeedTarget& target) {
    if (target.feed == nullptr) return;
    ManifestLoss loss{.reason = LossReason::kDriver,
                      .from_ns = std::max(run_ns, target.feed->options().session_start_ns), .to_ns = now_ns};
    target.session->NoteLostBefore(target.feed, loss);
    target.session->EditManifest([text = fmt::format("device {} channel {}: the driver has lost records of it (it does not say how many)",
                                                     slot.device, slot.channel)](Manifest& manifest) {
      manifest.AddWarning(text);
    });
  };
  for (const PendingDetach& detach : slot.pending_detaches) note(detach.target);
  for (const Participant& part : slot.parts) {
    if (part.attached && part.begun) note(part.target);
  }
}

// What the driver still held when it stopped a channel is out of reach.
void ChannelArbiter::NoteUnread(const Slot& slot, const Status& why) {
  if (why.ok()) return;
  for (const Participant& part : slot.parts) {
    if (part.begun && part.target.feed != nullptr) part.target.session->NoteOutage(part.target.feed);
  }
  for (const PendingDetach& detach : slot.pending_detaches) {
    auto found = claims_.find(detach.claim);
    if (found == claims_.end() || found->second.request.dump == nullptr) continue;
    if (detach.target.feed != nullptr) detach.target.session->NoteUnfetched(detach.target.feed);
    found->second.request.dump->EditManifest(
        [text = fmt::format("device {} channel {}: {}", slot.device, slot.channel, why.ToString())](Manifest& manifest) {
          manifest.AddWarning(text);
        });
  }
}

void ChannelArbiter::OnStopped(Slot& slot, const StopOutcome& outcome) {
  DCHECK_ON(deps_.control);
  slot.phase = Phase::kIdle;
  deps_.router.End(static_cast<uint32_t>(slot.device), slot.channel);
  slot.unstopped = !outcome.status.ok();
  if (outcome.data_lost) NoteDataLost(slot);
  if (slot.unstopped) RetryLater(slot, outcome.status);  // the next session has to wait a moment
  NoteUnread(slot, slot.unstopped ? outcome.status : outcome.unread);
  DetachPending(slot);
  Reconcile(slot);
}

void ChannelArbiter::Answer(Participant& part, v1::Outcome::Result state, std::string detail) {
  bool first = part.state == v1::Outcome::RESULT_UNSPECIFIED;
  part.state = state;
  part.detail = std::move(detail);
  if (first) CheckSettled(part.claim);
}

void ChannelArbiter::CheckSettled(ClaimId id) {
  auto found = claims_.find(id);
  if (found == claims_.end() || !found->second.settled) return;
  if (AnswerOf(id).state == v1::Outcome::RESULT_UNSPECIFIED) return;
  auto settled = std::move(found->second.settled);
  found->second.settled = nullptr;
  // Not from inside Claim: its caller does not know the id yet.
  deps_.control.Post(std::move(settled));
}

}  // namespace profd
