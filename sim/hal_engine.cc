#include "sim/hal_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "driver/abi/channels.h"
#include "sim/stream_factory.h"

namespace profd::sim {
namespace {

std::string ChannelName(unsigned channel) {
  if (const abi::ChannelFormat* format = abi::FindChannelFormat(channel)) {
    return std::string(format->name);
  }
  return fmt::format("channel_{}", channel);
}

// driver-abi 1.8: the channels halProfDataFlush knows.
bool Flushable(unsigned channel) {
  constexpr unsigned kSet[] = {43, 44, 45, 47, 50, 53, 130, 131, 142, 143, 144, 145};
  return std::ranges::find(kSet, channel) != std::end(kSet);
}

// Sleeping lasts at most this long at a time, whatever was computed.
constexpr int64_t kLongestSleepNs = 3'600 * kNsPerSecond;

}  // namespace

HalEngine::HalEngine(const Node& node)
    : node_(node), channels_(static_cast<size_t>(node.devices()) * abi::kMaxChannels) {}

void HalEngine::SleepUntilScenario(MutexLock& lock, int64_t scenario_ns, int64_t at_most_ns) {
  const int64_t left = scenario_ns == kForever
                           ? kLongestSleepNs
                           : node_.played().WaitFor(scenario_ns - node_.ScenarioNow());
  const int64_t ns = std::clamp<int64_t>(std::min(left, at_most_ns), 0, kLongestSleepNs);
  changed_.WaitFor(lock, std::chrono::nanoseconds(ns));
}

// A call that hangs holds nothing: others go on while it waits for the fault to end.
template <class Active>
void HalEngine::WaitWhile(MutexLock& lock, Active active) {
  while (active(node_.ScenarioNow())) {
    SleepUntilScenario(lock, node_.faults().NextEdge(node_.ScenarioNow()), kLongestSleepNs);
  }
}

int HalEngine::CheckDevice(MutexLock& lock, unsigned device) {
  if (!node_.HasDevice(device)) return abi::kProfError;
  const int id = static_cast<int>(device);
  WaitWhile(lock,
            [&](int64_t t) { return node_.faults().Drop(DropMode::kHang, t, id) != nullptr; });
  const bool missing = node_.faults().Drop(DropMode::kMissing, node_.ScenarioNow(), id) != nullptr;
  return missing ? abi::kProfError : abi::kProfOk;
}

int HalEngine::CheckChannel(MutexLock& lock, unsigned device, unsigned channel) {
  if (channel >= abi::kMaxChannels) return abi::kProfError;
  if (const int code = CheckDevice(lock, device); code != abi::kProfOk) return code;
  return ChipHasChannel(node_.chip(), channel) ? abi::kProfOk : abi::kProfError;
}

int HalEngine::GetChannels(unsigned device, abi::ChannelList* out) {
  if (out == nullptr) return abi::kProfError;
  MutexLock lock(mutex_);
  if (const int code = CheckDevice(lock, device); code != abi::kProfOk) return code;
  std::memset(out, 0, sizeof *out);
  out->chip_type = node_.chip().chip_id;
  for (const ChannelRange& range : node_.chip().channels) {
    for (unsigned id = range.first; id <= range.last; ++id) {
      abi::ChannelInfo& info = out->channel[out->channel_num++];
      const std::string name = ChannelName(id);
      std::memcpy(info.channel_name, name.data(),
                  std::min<size_t>(name.size(), abi::kChannelNameLength));
      info.channel_type = 1;
      info.channel_id = id;
    }
  }
  return abi::kProfOk;
}

int HalEngine::Start(unsigned device, unsigned channel, const abi::ProfStartPara* para) {
  if (para == nullptr) return abi::kProfError;
  MutexLock lock(mutex_);
  if (const int code = CheckChannel(lock, device, channel); code != abi::kProfOk) return code;
  std::unique_ptr<Channel>& slot = Slot(device, channel);
  if (slot != nullptr && slot->started) return abi::kProfStartedAlready;
  const int64_t now = node_.ScenarioNow();
  const int id = static_cast<int>(device);
  if (node_.faults().Find(FaultKind::kChannelBusy, now, id, channel) != nullptr) {
    return abi::kProfNotEnoughSubChannel;
  }
  if (const Fault* fault = node_.faults().Find(FaultKind::kStartError, now, id, channel)) {
    return fault->code;
  }
  std::unique_ptr<RecordStream> stream = MakeStream(node_, device, channel, *para);
  if (stream == nullptr) return abi::kProfError;
  if (slot != nullptr) {  // what was left of the last run goes
    Forget(slot.get());
    if (slot->ledger != nullptr) slot->ledger->left_bytes += slot->ring.size();
  }
  const size_t record_size = stream->record_size();
  slot = std::make_unique<Channel>(
      Channel{device, channel, true, false, std::move(stream), RecordRing(record_size)});
  slot->stream->Begin(node_.device_clock(device).FromHost(node_.RawNow()), &slot->ring);
  active_.push_back(slot.get());
  slot->ledger = LedgerRowOf(device, channel);
  if (slot->ledger != nullptr) {
    ++slot->ledger->runs;
    slot->ledger->earlier_records = slot->ledger->records.load();
    slot->ledger->earlier_bytes = slot->ledger->bytes.load();
  }
  Book(*slot);
  changed_.NotifyAll();
  return abi::kProfOk;
}

void HalEngine::Generate(Channel& channel) {
  if (!channel.started) return;
  channel.stream->GenerateUntil(node_.device_clock(channel.device).FromHost(node_.RawNow()),
                                &channel.ring);
  Book(channel);
}

// Brings the ledger up to date.
void HalEngine::Book(Channel& channel) {
  if (channel.ledger == nullptr) return;
  const Produced& made = channel.stream->made();
  channel.ledger->records += made.records - channel.booked.records;
  channel.ledger->bytes += made.bytes - channel.booked.bytes;
  channel.ledger->dropped_bytes += channel.ring.dropped_bytes() - channel.booked_dropped;
  channel.booked = made;
  channel.booked_dropped = channel.ring.dropped_bytes();
}

void HalEngine::Forget(const Channel* channel) {
  const auto at = std::ranges::find(active_, channel);
  if (at == active_.end()) return;
  const auto index = static_cast<size_t>(at - active_.begin());
  active_.erase(at);
  if (next_ > index) --next_;
}

int HalEngine::Stop(unsigned device, unsigned channel) {
  MutexLock lock(mutex_);
  if (const int code = CheckChannel(lock, device, channel); code != abi::kProfOk) return code;
  if (Slot(device, channel) == nullptr || !Slot(device, channel)->started) {
    return abi::kProfStoppedAlready;
  }
  WaitWhile(lock, [&](int64_t t) {
    return node_.faults().Find(FaultKind::kStopHang, t, static_cast<int>(device), channel) !=
           nullptr;
  });
  Channel* const state = Slot(device, channel).get();
  if (state == nullptr || !state->started) return abi::kProfStoppedAlready;  // another was faster
  Generate(*state);
  state->started = false;
  state->announce = state->ring.size() > 0;
  if (!state->announce) Forget(state);
  changed_.NotifyAll();
  return abi::kProfOk;
}

int HalEngine::Read(unsigned device, unsigned channel, char* out, unsigned size) {
  if (out == nullptr || size == 0 || size > INT32_MAX) return abi::kProfError;
  MutexLock lock(mutex_);
  if (const int code = CheckChannel(lock, device, channel); code != abi::kProfOk) return code;
  Channel* const state = Slot(device, channel).get();
  if (state == nullptr) return abi::kProfStoppedAlready;
  Generate(*state);
  size_t wanted = size;
  if (const Fault* fault = node_.faults().Find(FaultKind::kShortRead, node_.ScenarioNow(),
                                               static_cast<int>(device), channel)) {
    wanted = std::min<size_t>(wanted, fault->bytes);
  }
  const size_t count = state->ring.Read(out, wanted);
  if (state->ledger != nullptr) state->ledger->read_bytes += count;
  if (count == 0 && !state->started) return abi::kProfStoppedAlready;
  return static_cast<int>(count);
}

bool HalEngine::Ready(const Channel& channel, int64_t raw_ns) const {
  const int64_t t = node_.ToScenario(raw_ns);
  const int id = static_cast<int>(channel.device);
  if (node_.faults().Drop(DropMode::kMissing, t, id) != nullptr) return false;
  if (node_.faults().Drop(DropMode::kHang, t, id) != nullptr) return false;
  if (!channel.started) return channel.announce;
  return channel.ring.size() > 0 ||
         channel.stream->NextDue() <= node_.device_clock(channel.device).FromHost(raw_ns);
}

// Fair: each poll begins to look behind the channel the last one ended with.
int HalEngine::CollectReady(abi::ProfPollInfo* out, int num, bool* any_started) {
  const int64_t now = node_.RawNow();
  int found = 0;
  const size_t count = active_.size();
  const size_t begin = next_;
  std::vector<Channel*> announced;
  for (size_t i = 0; i < count; ++i) {
    Channel* const channel = active_[(begin + i) % count];
    *any_started = *any_started || channel->started || channel->announce;
    if (found == num || !Ready(*channel, now)) continue;
    out[found++] = {channel->device, channel->id};
    next_ = (begin + i + 1) % count;
    if (!channel->started) announced.push_back(channel);
  }
  for (Channel* channel : announced) {
    channel->announce = false;
    Forget(channel);
  }
  return found;
}

// When the next record is due, leaving out what is already overdue: no reader found it ready, so its
// card is gone.
int64_t HalEngine::NextDueRaw() const {
  const int64_t now = node_.RawNow();
  int64_t next = kForever;
  for (const Channel* channel : active_) {
    if (!channel->started || channel->stream->NextDue() == kForever) continue;
    const DeviceClock& clock = node_.device_clock(channel->device);
    if (channel->stream->NextDue() <= clock.FromHost(now) && !Ready(*channel, now)) continue;
    next = std::min(next, clock.ToHost(channel->stream->NextDue()) + 2);
  }
  return next;
}

// 0, or what an active poll_error makes poll answer. A faked timeout takes its time, like a real
// one.
int HalEngine::PollFault(MutexLock& lock, int64_t deadline_ns) {
  const Fault* fault = node_.faults().Find(FaultKind::kPollError, node_.ScenarioNow(), kAllDevices);
  if (fault == nullptr) return 0;
  while (fault->code == abi::kProfTimeout && node_.clock().SteadyNs() < deadline_ns &&
         fault->Covers(node_.ScenarioNow())) {
    SleepUntilScenario(lock, fault->end_ns, deadline_ns - node_.clock().SteadyNs());
  }
  return fault->code;
}

int HalEngine::Poll(abi::ProfPollInfo* out, int num, int timeout_s) {
  if (out == nullptr || num <= 0) return abi::kProfError;
  MutexLock lock(mutex_);
  const int64_t deadline =
      node_.clock().SteadyNs() + int64_t{std::max(0, timeout_s)} * kNsPerSecond;
  while (true) {
    if (const int code = PollFault(lock, deadline); code != 0) return code;
    bool any_started = false;
    const int found = CollectReady(out, num, &any_started);
    if (found > 0) return found;
    if (!any_started) return abi::kProfStoppedAlready;
    const int64_t left = deadline - node_.clock().SteadyNs();
    if (left <= 0) return 0;
    const int64_t due = NextDueRaw();
    int64_t wake = node_.faults().NextEdge(node_.ScenarioNow());
    if (due != kForever) wake = std::min(wake, node_.ToScenario(due));
    SleepUntilScenario(lock, wake, left);
  }
}

int HalEngine::Flush(unsigned device, unsigned channel, unsigned* data_len) {
  if (data_len == nullptr) return abi::kProfError;
  MutexLock lock(mutex_);
  if (const int code = CheckChannel(lock, device, channel); code != abi::kProfOk) return code;
  if (!Flushable(channel)) return abi::kDrvErrorNotSupport;
  Channel* const state = Slot(device, channel).get();
  if (state == nullptr || !state->started) return abi::kProfStoppedAlready;
  Generate(*state);
  *data_len = static_cast<unsigned>(state->ring.size());
  changed_.NotifyAll();
  return abi::kProfOk;
}

uint64_t HalEngine::DroppedBytesForTest(unsigned device, unsigned channel) {
  MutexLock lock(mutex_);
  const Channel* const state = Slot(device, channel).get();
  return state == nullptr ? 0 : state->ring.dropped_bytes();
}

}  // namespace profd::sim
