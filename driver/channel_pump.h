// The one thread that waits in prof_channel_poll for all devices and channels, reads what is there
// and hands it to the sink in pooled blocks. Survives every return code, and survives calls that
// never return: the thread is written off and another one continues without that device.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "driver/channel_table.h"

namespace profd {

namespace internal {
struct PumpCore;
}

struct PumpOptions {
  int poll_slots = 6;            // pairs per prof_channel_poll, as the vendor's collector requests
  int poll_timeout_seconds = 1;  // the driver takes whole seconds
  int64_t min_poll_interval_ns = 5 * kNsPerMs;  // wake-ups closer than this are coalesced
  // The same while the sink reports no live reader, channels run on and their reads are small.
  int64_t relaxed_poll_interval_ns = 0;  // not above min_poll_interval_ns: no difference
  size_t scratch_bytes = 256 * 1024;
  ChannelTable::Options channels;
  int64_t stuck_after_ns = 5 * kNsPerSecond;
  int max_abandoned_threads = 8;
  // First and largest pause after a poll error; tests make them short.
  int64_t min_backoff_ns = kNsPerMs;
  int64_t max_backoff_ns = kNsPerSecond;
  int64_t max_idle_backoff_ns = 20 * kNsPerMs;  // after "nothing is started" (-4)
};

struct PumpStats {
  uint64_t polls = 0;
  uint64_t foreign_hits = 0;  // pairs that the driver reported and that are not registered
  uint64_t threads_started = 0;
  int threads_abandoned = 0;  // stuck right now
  bool running = false;       // false: too many threads are stuck; nothing is read
};

// Gets the pump's attention. Any thread.
class PumpAlarm {
 public:
  virtual ~PumpAlarm() = default;
  // Has the pump look at a channel that was added and started through table(): a poll that reported it
  // before may have been the only one.
  virtual void HaveRead(uint32_t device, uint32_t channel) = 0;
  // Has it poll now, and often for a while.
  virtual void Wake() = 0;
};

class ChannelPump {
 public:
  // Starts the thread "profd-pump". `clock`, `pool` and `sink` must outlive the pump.
  ChannelPump(std::shared_ptr<const HalLibrary> hal, const Clock& clock, BlockPool& pool,
              BlockSink& sink, const PumpOptions& options = {});
  // Joins the thread, which takes up to a poll timeout; one that is stuck is left behind. No call
  // into the sink after this.
  ~ChannelPump();
  ChannelPump(const ChannelPump&) = delete;
  ChannelPump& operator=(const ChannelPump&) = delete;

  // All thread-safe; none may be called from the sink except the counters.
  ChannelCounters Counters(uint32_t device, uint32_t channel) const;
  void VisitCounters(
      const std::function<void(uint32_t device, uint32_t channel, const ChannelCounters&)>&) const;
  // Failed polls by code; a result larger than the slots asked for is counted as that number.
  std::map<int, uint64_t> PollErrors() const;
  PumpStats stats() const;
  bool IsDeviceStuck(uint32_t device) const;

  // From the next round on.
  void SetRelaxedPollInterval(int64_t ns);

  // Call it about every second with Clock::SteadyNs. Calls the sink's OnDeviceStuck.
  void CheckStuck(int64_t now_steady_ns);

  // What a thread that may be written off holds instead of the pump: stays valid after the pump is
  // gone (channels then answer kUnavailable or kNotFound and nothing reaches the sink).
  std::shared_ptr<ChannelTable> table() const;
  // Stays valid likewise.
  std::shared_ptr<PumpAlarm> alarm() const;

 private:
  std::shared_ptr<internal::PumpCore> core_;
};

}  // namespace profd
