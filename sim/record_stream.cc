#include "sim/record_stream.h"

#include <algorithm>

namespace profd::sim {

RecordStream::RecordStream(const Node& node, unsigned device, unsigned channel, size_t record_size)
    : node_(node), device_(device), channel_(channel), record_size_(record_size) {}

void RecordStream::AddTicker(int64_t period_ns, Emitter emitter) {
  tickers_.push_back({period_ns, 1, std::move(emitter)});
}

void RecordStream::Begin(int64_t device_now_ns, RecordRing* ring) {
  start_ns_ = device_now_ns;
  ring->Append(prologue_);
  made_.bytes += prologue_.size();
  for (Ticker& ticker : tickers_) ticker.next = ticker.emitter.next_tick(1, start_ns_);
  UpdateNextDue();
}

void RecordStream::UpdateNextDue() {
  next_due_ns_ = kForever;
  for (const Ticker& ticker : tickers_) next_due_ns_ = std::min(next_due_ns_, DueOf(ticker));
}

// After a long silence only the newest records would still be in the ring: the older ones are
// counted, not made.
void RecordStream::SkipWhatCannotSurvive(Ticker& ticker, int64_t device_now_ns,
                                         RecordRing* ring) {
  const int64_t last = (device_now_ns - start_ns_) / ticker.period_ns;
  const size_t per_tick = std::max<size_t>(1, ticker.emitter.bytes_per_tick);
  const auto fit = static_cast<int64_t>(RecordRing::kCapacity / per_tick) + 2;
  const int64_t skipped = last - fit - ticker.next;
  if (skipped <= 0) return;
  ring->CountNeverGenerated(static_cast<uint64_t>(skipped) * per_tick);
  made_.bytes += static_cast<uint64_t>(skipped) * per_tick;
  ticker.next = ticker.emitter.next_tick(ticker.next + skipped, start_ns_);
}

void RecordStream::GenerateUntil(int64_t device_now_ns, RecordRing* ring) {
  if (next_due_ns_ > device_now_ns) return;
  for (Ticker& ticker : tickers_) SkipWhatCannotSurvive(ticker, device_now_ns, ring);
  UpdateNextDue();
  const DeviceClock& clock = node_.device_clock(device_);
  while (next_due_ns_ <= device_now_ns) {
    for (Ticker& ticker : tickers_) {
      if (DueOf(ticker) != next_due_ns_) continue;
      const Tick tick{.index = ticker.next,
                      .start_ns = start_ns_,
                      .now_ns = next_due_ns_,
                      .scenario_ns = node_.ToScenario(clock.ToHost(next_due_ns_)),
                      .before_ns = node_.ToScenario(clock.ToHost(next_due_ns_ - ticker.period_ns))};
      scratch_.clear();
      // The emitter sees every tick, so that what it remembers stays right.
      ticker.emitter.emit(tick, &scratch_);
      if (!CardIsGone(tick)) Put(tick, ring);
      ticker.next = ticker.emitter.next_tick(ticker.next + 1, start_ns_);
    }
    UpdateNextDue();
  }
}

// What has just been emitted.
void RecordStream::Put(const Tick& tick, RecordRing* ring) {
  made_.records += record_size_ != 0 ? scratch_.size() / record_size_
                                     : static_cast<uint64_t>(std::ranges::count(scratch_, '\n'));
  Corrupt(tick, &scratch_);
  made_.bytes += scratch_.size();
  ring->Append(scratch_);
}

bool RecordStream::CardIsGone(const Tick& tick) const {
  return node_.faults().Drop(DropMode::kMissing, tick.scenario_ns, static_cast<int>(device_)) !=
         nullptr;
}

void RecordStream::Corrupt(const Tick& tick, std::string* bytes) const {
  const Fault* fault = node_.faults().Find(FaultKind::kGarbage, tick.scenario_ns,
                                           static_cast<int>(device_), channel_);
  if (fault == nullptr || bytes->empty() || tick.index % fault->every != 0) return;
  const uint64_t where = (static_cast<uint64_t>(device_) << 32) | channel_;
  const auto index = static_cast<uint64_t>(tick.index);
  const uint64_t seed = node_.scenario().seed;
  if (fault->garbage == GarbageMode::kFlip) {
    for (uint64_t i = 0; i < 1 + bytes->size() / 32; ++i) {
      const uint64_t h = Hash(seed, kNoiseGarbage + i, where, index);
      (*bytes)[h % bytes->size()] ^= static_cast<char>(1 + (h >> 32) % 255);
    }
    return;
  }
  const uint64_t length = 1 + Hash(seed, kNoiseGarbage, where, index) % 40;
  for (uint64_t i = 0; i < length; ++i) {
    bytes->push_back(static_cast<char>(Hash(seed, kNoiseGarbage + 1 + i, where, index) & 0xff));
  }
}

}  // namespace profd::sim
