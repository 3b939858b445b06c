// The inside of ChannelPump: the thread's loop and what it shares with the pump. Not for others.
//
// Locks, outermost first: PumpCore::guard_mutex, ChannelTable's, PumpWorker's, PumpCore::mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "driver/abandonable_thread.h"
#include "driver/channel_pump.h"
#include "driver/channel_table.h"
#include "driver/pump_pace.h"

namespace profd::internal {

// Slots requested when the usual ones are all filled with pairs that may not be read.
inline constexpr int kWidePollSlots = 64;

// The driver call a worker is in.
struct PumpCall {
  enum Kind { kNone, kPoll, kRead };
  Kind kind = kNone;
  uint32_t device = 0;
  uint32_t channel = 0;
  int64_t since_ns = 0;
};

class PumpWorker;

// Kept alive by the pump and by every thread, abandoned ones too.
struct PumpCore final : PumpAlarm {
  PumpCore(std::shared_ptr<const HalLibrary> library, std::shared_ptr<ChannelTable> channels,
           const PumpOptions& pump_options)
      : hal(std::move(library)), table(std::move(channels)), options(pump_options), relaxed_poll_interval_ns(pump_options.relaxed_poll_interval_ns) {}

  void HaveRead(uint32_t device, uint32_t channel) override { AddLeftovers({{device, channel}}); }
  void Wake() override;
  void Quit();
  void CountPollError(int code);
  // Pairs that were ready but could not be read; the next round reads them.
  void AddLeftovers(const std::vector<abi::ProfPollInfo>& pairs);

  const std::shared_ptr<const HalLibrary> hal;
  const std::shared_ptr<ChannelTable> table;
  const PumpOptions options;
  std::atomic<int64_t> relaxed_poll_interval_ns;  // at first as in `options`
  std::atomic<uint64_t> polls{0}, foreign_hits{0};

  CondVar wake;
  Mutex mutex;
  std::atomic<bool> quit{false};  // set under mutex, so that no wait misses it
  uint64_t wakes GUARDED_BY(mutex) = 0;
  std::vector<abi::ProfPollInfo> leftovers GUARDED_BY(mutex);
  std::map<int, uint64_t> poll_errors GUARDED_BY(mutex);

  // Serialises "this thread is stuck" and "it has come back", with their callbacks.
  Mutex guard_mutex;
  std::shared_ptr<PumpWorker> active GUARDED_BY(guard_mutex);
  AbandonableThread thread GUARDED_BY(guard_mutex);  // of `active`
  int abandoned GUARDED_BY(guard_mutex) = 0;
  uint64_t threads_started GUARDED_BY(guard_mutex) = 0;

  // `self`: this. On failure `active` stays empty.
  void StartWorker(const std::shared_ptr<PumpCore>& self) REQUIRES(guard_mutex);
};

class PumpWorker final : public CallWatch {
 public:
  explicit PumpWorker(std::shared_ptr<PumpCore> core);

  void Run();  // the thread's body

  // From other threads.
  void Abandon();
  // What it is stuck in, if it is; it is abandoned then, and the pairs it would have read next are
  // in `*unread`.
  std::optional<PumpCall> AbandonIfStuck(int64_t now_steady_ns, const PumpOptions& options,
                                         std::vector<abi::ProfPollInfo>* unread);

  void BeforeRead(uint32_t device, uint32_t channel) override;
  bool AfterRead() override;

 private:
  void Begin(PumpCall::Kind kind, uint32_t device, uint32_t channel);
  bool End();  // false: abandoned
  bool GoOn();
  void Round();
  void Dispatch(int got);
  struct Visited {
    size_t bytes = 0;
    bool any_registered = false;
  };
  Visited ReadPairs(std::span<const abi::ProfPollInfo> pairs);
  bool NextToRead(abi::ProfPollInfo* pair);
  void ReadBacklog();
  void Pause(int64_t ns);
  void PauseAfter(int64_t* backoff_ns, int64_t max_ns);
  void WaitForChannels();
  void Recover();

  const std::shared_ptr<PumpCore> core_;

  // On the worker's thread only.
  std::vector<std::byte> scratch_;
  std::vector<abi::ProfPollInfo> slots_;
  std::vector<abi::ProfPollInfo> again_;  // the backlog of the pass before
  PumpPace pace_;
  int asked_ = 0;                         // slots in this round's poll
  bool wide_ = false;
  bool wide_refused_ = false;
  int64_t error_backoff_ns_;
  int64_t idle_backoff_ns_;
  uint64_t seen_wakes_ = 0;

  Mutex mutex_;
  std::vector<abi::ProfPollInfo> to_read_ GUARDED_BY(mutex_);  // of this batch, last first
  // Pairs with more to read than one visit may take.
  std::vector<abi::ProfPollInfo> backlog_ GUARDED_BY(mutex_);
  PumpCall call_ GUARDED_BY(mutex_);
  std::atomic<bool> abandoned_{false};  // set under mutex_
  std::optional<PumpCall> stuck_in_ GUARDED_BY(mutex_);
};

}  // namespace profd::internal
