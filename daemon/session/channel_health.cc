// The arbiter's watch over what it started: retries, lost and stuck devices, silent channels; how
// things stand.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/session/channel_arbiter.h"
#include "driver/abi/channels.h"
#include "driver/abi/hal_abi.h"
#include "driver/device_clock.h"

namespace profd {
namespace {

// A running periodic channel that delivers nothing for this long is pointed out.
// Within what `profctl verify` lets pass without an explanation (dump/verify_channels.cc, kEdgeNs).
constexpr int64_t kSilenceNs = 4 * kNsPerSecond;
constexpr int kSilencePeriods = 2;
// Who delivered so short a time ago is there. Below a tick's second, so that a card that is away for two
// seconds is noticed.
constexpr int64_t kTrustNs = 500 * kNsPerMs;

}  // namespace

void ChannelArbiter::Tick() {
  DCHECK_ON(deps_.control);
  int64_t steady = deps_.host.clock.SteadyNs();
  int64_t raw = deps_.host.clock.MonotonicRawNs();
  for (auto& [key, slot] : slots_) {
    if (slot->phase == Phase::kIdle && steady >= slot->retry_at_ns) {
      if (!slot->parts.empty()) {
        Reconcile(*slot);
      } else if (slot->unstopped && !problems_.contains(slot->device)) {
        Stop(*slot);
      }
    } else if (slot->phase == Phase::kRunning) {
      CheckSilence(*slot, raw);
    }
  }
  for (const Device& device : devices_) {
    if (IsInDoubt(device.info->id, raw)) CheckDevice(device.info->id);
  }
}

// A device whose blocks arrive is present.
bool ChannelArbiter::IsInDoubt(int device, int64_t now_ns) const {
  bool used = false;
  int64_t newest = 0;
  for (const auto& [key, slot] : slots_) {
    if (slot->device != device || (slot->parts.empty() && !slot->unstopped)) continue;
    used = true;
    if (slot->phase != Phase::kRunning || slot->unstopped) return true;
    newest = std::max(newest, deps_.router.ProgressOf(static_cast<uint32_t>(device), slot->channel)
                                  .last_block_ns);
  }
  return used && (problems_.contains(device) || now_ns - newest > kTrustNs);
}

void ChannelArbiter::CheckSilence(Slot& slot, int64_t now_ns) {
  if (slot.epoch->hz <= 0 || problems_.contains(slot.device)) return;
  ChannelRouter::Progress progress =
      deps_.router.ProgressOf(static_cast<uint32_t>(slot.device), slot.channel);
  int64_t since = now_ns - std::max(progress.last_block_ns, slot.epoch->start_ns.load());
  auto patience = kSilenceNs + static_cast<int64_t>(kSilencePeriods * 1e9 / slot.epoch->hz);
  std::string detail;
  if (since > patience) {
    detail = fmt::format("channel {} has delivered nothing for {} s", slot.channel,
                         since / kNsPerSecond);
  }
  for (Participant& part : slot.parts) {
    if (part.state != v1::Outcome::RESULT_RUNNING) continue;
    if (part.target.feed != nullptr && detail.empty() != part.detail.empty()) {
      part.target.session->NoteOutage(part.target.feed, detail.empty());
    }
    part.detail = detail;
  }
}

// Queries the driver whether it still reaches the device; a device that is back gets its channels
// started anew, as the driver has forgotten them.
void ChannelArbiter::CheckDevice(int device) {
  if (querying_[device]) return;
  querying_[device] = true;
  DeviceOf(device).control->QueryStatus([this, device](const Result<int>& result) {
    int code = result.ok() ? *result : -1;
    std::string error = result.ok() ? "" : result.status().message();
    deps_.control.Post([this, device, code, error] {
      querying_[device] = false;
      if (!error.empty()) {
        OnDeviceStuck(static_cast<uint32_t>(device), error);
      } else if (code == abi::kDrvStatusCommunicationLost) {
        OnDeviceStuck(static_cast<uint32_t>(device),
                      fmt::format("the driver has lost communication with device {}", device));
      } else if (problems_.contains(device)) {
        OnDeviceRecovered(static_cast<uint32_t>(device));
      }
    });
  });
}

void ChannelArbiter::OnDeviceStuck(uint32_t device, const std::string& why) {
  DCHECK_ON(deps_.control);
  problems_.insert_or_assign(static_cast<int>(device), why);
  for (auto& [key, slot] : slots_) {
    if (slot->device != static_cast<int>(device) || slot->phase != Phase::kRunning) continue;
    slot->doubtful = true;
    for (Participant& part : slot->parts) {
      part.state = v1::Outcome::RESULT_FAILED;
      part.detail = why;
      if (part.target.feed != nullptr) part.target.session->NoteOutage(part.target.feed);
    }
  }
}

void ChannelArbiter::OnDeviceRecovered(uint32_t device) {
  DCHECK_ON(deps_.control);
  problems_.erase(static_cast<int>(device));
  for (auto& [key, slot] : slots_) {
    bool concerned = !slot->parts.empty() || slot->unstopped;
    if (slot->device != static_cast<int>(device) || !concerned) continue;
    slot->retry_at_ns = 0;
    // What was started since the device was last heard to be away, it has not forgotten.
    if (slot->phase == Phase::kRunning && slot->doubtful) slot->restart = true;
    Reconcile(*slot);
  }
}

TimeBase ChannelArbiter::TimeBaseOf(int device) const {
  TimeBase time{.device_counter_hz = DeviceOf(device).info->counter_hz, .host_counter_hz = deps_.host.host_counter_hz};
  auto found = clocks_.find(device);
  if (found == clocks_.end()) return time;
  time.host_ns = found->second.host_ns;
  time.device_ns = found->second.device_ns;
  time.device_count = found->second.device_count;
  time.host_count = found->second.host_count;
  return time;
}

void ChannelArbiter::SetClock(int device, const ClockPair& pair) {
  DCHECK_ON(deps_.control);
  if (const ClockPair* before = ClockOf(device); before != nullptr) MoveStarts(device, *before, pair);
  clocks_[device] = pair;
  deps_.router.SetClock(static_cast<uint32_t>(device), TimeBaseOf(device));
}

// Of channels whose timestamps count from it. Those of sessions that have joined already stay as they are.
void ChannelArbiter::MoveStarts(int device, const ClockPair& before, const ClockPair& now) {
  for (auto& [key, slot] : slots_) {
    const abi::ChannelFormat* format = abi::FindChannelFormat(slot->channel);
    const bool counts = format != nullptr && format->time == abi::TimeKind::kMicrosSinceStart;
    if (slot->device != device || slot->phase != Phase::kRunning || !counts) continue;
    const int64_t start_ns = DriftedStart(slot->epoch->start_ns, before, now);
    slot->epoch->start_ns = start_ns;
    deps_.router.SetStart(static_cast<uint32_t>(device), slot->channel, start_ns);
  }
}

std::vector<ChannelArbiter::ChannelStatus> ChannelArbiter::Channels(int device) const {
  DCHECK_ON(deps_.control);
  std::vector<ChannelStatus> all;
  for (const auto& [key, slot] : slots_) {
    if (slot->device != device) continue;
    ChannelStatus status;
    status.device = device;
    status.channel = slot->channel;
    status.users = static_cast<uint32_t>(slot->parts.size());
    if (slot->phase == Phase::kRunning) {
      status.state = v1::Channel::STATE_RUNNING;
      status.hz = slot->epoch->hz;
    } else if (!slot->parts.empty() && !slot->last_error.ok()) {
      status.state = slot->last_error.code() == StatusCode::kResourceExhausted ? v1::Channel::STATE_BUSY : v1::Channel::STATE_FAILED;
      status.detail = slot->last_error.message();
    }
    if (auto away = handed_over_.find(key); away != handed_over_.end()) {
      status.state = v1::Channel::STATE_RELEASED;
      status.detail = away->second.why;
    }
    all.push_back(std::move(status));
  }
  for (const auto& [key, away] : handed_over_) {
    if (key.first != device || slots_.contains(key)) continue;
    all.push_back({device, key.second, v1::Channel::STATE_RELEASED, away.why, 0, 0});
  }
  return all;
}

// What runs is stopped; a session that requests it waits as for a busy driver.
void ChannelArbiter::StayAway(Slot& slot, HandedOver& away) {
  const bool again = slot.unstopped && deps_.host.clock.SteadyNs() >= slot.retry_at_ns;
  if (slot.phase == Phase::kRunning || (again && away.waiting.empty())) {
    Stop(slot);
    return;
  }
  DetachPending(slot);
  for (Participant& part : slot.parts) {
    if (part.target.feed != nullptr) part.target.session->NoteReleased(part.target.feed);
    Answer(part, v1::Outcome::RESULT_BUSY, away.why);
  }
  const Status stopped = slot.unstopped ? slot.last_error : Status::Ok();
  for (auto& done : std::exchange(away.waiting, {})) done(stopped);
}

void ChannelArbiter::HandOver(int device, uint32_t channel, std::string why,
                              std::function<void(const Status&)> done) {
  DCHECK_ON(deps_.control);
  HandedOver& away = handed_over_[{device, channel}];
  away.why = std::move(why);
  auto slot = slots_.find({device, channel});
  if (slot == slots_.end()) {
    done(Status::Ok());
    return;
  }
  away.waiting.push_back(std::move(done));
  if (slot->second->phase == Phase::kIdle && slot->second->unstopped) {
    Stop(*slot->second);
  } else {
    Reconcile(*slot->second);
  }
}

void ChannelArbiter::TakeBack(int device, uint32_t channel) {
  DCHECK_ON(deps_.control);
  if (handed_over_.erase({device, channel}) == 0) return;
  auto slot = slots_.find({device, channel});
  if (slot == slots_.end()) return;
  slot->second->retry_at_ns = 0;
  if (!slot->second->parts.empty()) Reconcile(*slot->second);
}

std::vector<std::string> ChannelArbiter::SessionsOn(int device, uint32_t channel) const {
  DCHECK_ON(deps_.control);
  std::vector<std::string> sessions;
  auto slot = slots_.find({device, channel});
  if (slot == slots_.end()) return sessions;
  for (const Participant& part : slot->second->parts) {
    if (!part.resident) sessions.push_back(part.owner);
  }
  return sessions;
}

std::string ChannelArbiter::ProblemOf(int device) const {
  DCHECK_ON(deps_.control);
  auto found = problems_.find(device);
  return found == problems_.end() ? std::string() : found->second;
}

ClaimAnswer ChannelArbiter::AnswerOf(ClaimId id) const {
  DCHECK_ON(deps_.control);
  auto found = claims_.find(id);
  if (found == claims_.end()) return {v1::Outcome::RESULT_FINISHED, "", 0, 0};
  const ClaimRecord& record = found->second;
  ClaimAnswer answer = record.fixed;
  bool any_running = false;
  std::string problems;
  for (const auto& key : record.channels) {
    const Slot& slot = *slots_.at(key);
    auto part = std::ranges::find(slot.parts, id, &Participant::claim);
    if (part == slot.parts.end()) continue;
    if (part->state == v1::Outcome::RESULT_UNSPECIFIED) return {v1::Outcome::RESULT_UNSPECIFIED, "", 0, 0};
    uint64_t garbage = deps_.pump.Counters(static_cast<uint32_t>(key.first), key.second)
                           .garbage_bytes;
    garbage -= std::min(garbage, part->garbage_before);
    answer.garbage_bytes += garbage;
    answer.channels[key.second] = {part->state, part->detail, garbage};
    answer.hz = std::max(answer.hz, part->hz);
    if (part->state == v1::Outcome::RESULT_RUNNING) any_running = true;
    if (answer.state == v1::Outcome::RESULT_UNSPECIFIED || !any_running) answer.state = part->state;
    if (!part->detail.empty() && problems.find(part->detail) == std::string::npos) {
      problems += (problems.empty() ? "" : "; ") + part->detail;
    }
  }
  if (any_running) answer.state = v1::Outcome::RESULT_RUNNING;
  if (!problems.empty()) answer.detail = problems;
  return answer;
}

std::vector<const DumpFeed*> ChannelArbiter::FeedsOf(ClaimId id) const {
  DCHECK_ON(deps_.control);
  std::vector<const DumpFeed*> feeds;
  auto found = claims_.find(id);
  if (found == claims_.end()) return feeds;
  for (const auto& key : found->second.channels) {
    for (const Participant& part : slots_.at(key)->parts) {
      if (part.claim == id && part.target.feed != nullptr) feeds.push_back(part.target.feed);
    }
  }
  return feeds;
}

}  // namespace profd
