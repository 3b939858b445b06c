#include "driver/channel_pump.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "driver/pump_worker.h"

namespace profd {

using internal::PumpCore;
using internal::PumpWorker;

namespace {

constexpr int64_t kJoinMarginNs = 500 * kNsPerMs;

PumpOptions Sane(PumpOptions options) {
  options.poll_slots = std::clamp(options.poll_slots, 1, internal::kWidePollSlots);
  options.scratch_bytes =
      std::clamp(options.scratch_bytes, 4 * Framer::kMaxTail, BlockPool::kMaxBlockBytes);
  return options;
}

}  // namespace

ChannelPump::ChannelPump(std::shared_ptr<const HalLibrary> hal, const Clock& clock, BlockPool& pool,
                         BlockSink& sink, const PumpOptions& options)
    : core_(std::make_shared<PumpCore>(
          hal, std::make_shared<ChannelTable>(hal, clock, pool, sink, options.channels),
          Sane(options))) {
  MutexLock lock(core_->guard_mutex);
  core_->StartWorker(core_);
}

ChannelPump::~ChannelPump() {
  core_->Quit();
  {
    MutexLock lock(core_->guard_mutex);
    int64_t patience = core_->options.poll_timeout_seconds * kNsPerSecond + kJoinMarginNs;
    if (core_->active != nullptr) {
      if (!core_->thread.JoinWithin(patience)) {
        core_->active->Abandon();
        ++core_->abandoned;
      }
      core_->active.reset();
    }
  }
  core_->table->Close();
}

ChannelCounters ChannelPump::Counters(uint32_t device, uint32_t channel) const {
  return core_->table->Counters(device, channel);
}

void ChannelPump::VisitCounters(
    const std::function<void(uint32_t, uint32_t, const ChannelCounters&)>& visit) const {
  core_->table->VisitCounters(visit);
}

std::map<int, uint64_t> ChannelPump::PollErrors() const {
  MutexLock lock(core_->mutex);
  return core_->poll_errors;
}

PumpStats ChannelPump::stats() const {
  MutexLock lock(core_->guard_mutex);
  return {.polls = core_->polls.load(std::memory_order_relaxed),
          .foreign_hits = core_->foreign_hits.load(std::memory_order_relaxed),
          .threads_started = core_->threads_started, .threads_abandoned = core_->abandoned,
          .running = core_->active != nullptr};
}

bool ChannelPump::IsDeviceStuck(uint32_t device) const { return core_->table->IsStuck(device); }

void ChannelPump::SetRelaxedPollInterval(int64_t ns) { core_->relaxed_poll_interval_ns = ns; }

void ChannelPump::CheckStuck(int64_t now_steady_ns) {
  MutexLock lock(core_->guard_mutex);
  if (core_->active != nullptr) {
    std::vector<abi::ProfPollInfo> unread;
    std::optional<internal::PumpCall> stuck =
        core_->active->AbandonIfStuck(now_steady_ns, core_->options, &unread);
    if (stuck.has_value()) {
      core_->AddLeftovers(unread);
      ++core_->abandoned;
      core_->thread.Abandon();
      core_->active.reset();
      if (stuck->kind == internal::PumpCall::kRead) {
        core_->table->SetStuck(stuck->device, true);
        std::string why =
            fmt::format("reading channel {} has not returned for {:.1f} s", stuck->channel,
                        static_cast<double>(now_steady_ns - stuck->since_ns) / kNsPerSecond);
        core_->table->WithSink([&](BlockSink& sink) { sink.OnDeviceStuck(stuck->device, why); });
      }
    }
  }
  if (core_->active == nullptr && core_->abandoned < core_->options.max_abandoned_threads) {
    core_->StartWorker(core_);
  }
}

std::shared_ptr<ChannelTable> ChannelPump::table() const { return core_->table; }

std::shared_ptr<PumpAlarm> ChannelPump::alarm() const { return core_; }

}  // namespace profd
