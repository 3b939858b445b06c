// The channels being read: who is registered, their framing state and counters, and the one way in
// which bytes go from the driver to the sink. Shared by the pump's threads and by draining threads;
// one channel is read by one thread at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "driver/abi/channels.h"
#include "driver/block.h"
#include "driver/channel_lock.h"
#include "driver/framer.h"
#include "driver/hal_library.h"

namespace profd {

// Notified of devices whose calls do not return. Any thread; must not block.
class DeviceWatcher {
 public:
  // A driver call for this device has not returned; nothing is read from it until it does.
  virtual void OnDeviceStuck(uint32_t device, std::string_view why) = 0;
  virtual void OnDeviceRecovered(uint32_t device) = 0;

 protected:
  ~DeviceWatcher() = default;
};

// Receives every block. Calls come from the pump's thread and from threads that drain; for one
// channel they come one at a time and in order. Must not block and must not call back into the pump
// except for counters.
class BlockSink : public DeviceWatcher {
 public:
  virtual ~BlockSink() = default;
  virtual void OnBlock(BlockRef block) = 0;
  // No block was free for the data between the channel's blocks before and after this.
  virtual void OnLoss(const BlockLoss& loss) = 0;
  // Does a live reader wait for the next block? Asked once a round; any thread.
  virtual bool Watched() const { return true; }
};

// Since the pump was made; survive Remove and Add of the channel.
struct ChannelCounters {
  uint64_t bytes = 0;    // read from the driver
  uint64_t records = 0;  // delivered
  uint64_t blocks = 0;
  uint64_t reads = 0;  // calls that gave bytes
  uint64_t read_errors = 0;
  uint64_t garbage_bytes = 0;
  uint64_t garbage_events = 0;
  uint64_t dropped_bytes = 0;  // no block was free
  uint64_t dropped_records = 0;
  uint64_t discarded_bytes = 0;  // of a run that was over: read before the next, and discarded
  int last_code = 0;  // last negative answer of prof_channel_read other than -4
};

// A CLOCK_MONOTONIC instant in ns, as Clock::SteadyNs.
struct Deadline {
  int64_t steady_ns = 0;
};

// Notified before and after each driver read; lets the pump know what it is stuck in.
class CallWatch {
 public:
  virtual ~CallWatch() = default;
  virtual void BeforeRead(uint32_t device, uint32_t channel) = 0;
  // False: what was read is still delivered, but this thread reads no more.
  virtual bool AfterRead() = 0;
};

class ChannelTable {
 public:
  struct Options {
    // Per channel and visit; the rest waits for the others. The time is for a driver that answers slowly, or
    // in pieces of a few bytes.
    size_t round_bytes = 1024 * 1024;
    int64_t round_ns = 10 * kNsPerMs;
    size_t drain_scratch_bytes = 64 * 1024;
  };
  struct Visit {
    size_t bytes = 0;         // read
    bool registered = false;  // false: not ours, not yet, or its device is stuck
    bool more = false;        // the cap ended it, not the driver
    bool refused = false;     // the driver has more than fits into the scratch
  };

  // `clock`, `pool` and `sink` must live until Close has returned.
  ChannelTable(std::shared_ptr<const HalLibrary> hal, const Clock& clock, BlockPool& pool,
               BlockSink& sink, const Options& options);

  // Registers the channel; Read leaves it alone until Open: what the driver holds while it is asked to start
  // may be another process's, who has the channel. `format_or_null` null: bytes are passed on as they come.
  // kAlreadyExists if it is registered; kUnavailable while its device is stuck.
  Status Add(uint32_t device, uint32_t channel, const abi::ChannelFormat* format_or_null,
             uint32_t epoch);
  // The driver has started it for us, and the requester was notified.
  void Open(uint32_t device, uint32_t channel);
  // What the driver reports about the channel's last start. Another process's run is not for us to read.
  void SetOurs(uint32_t device, uint32_t channel, bool ours);
  // The driver may hold something for us again, until it answers a read with 0.
  void SetMayHold(uint32_t device, uint32_t channel);
  // A run of ours that was no longer wanted could not be stopped: it has to be before the next start.
  void SetUnstopped(uint32_t device, uint32_t channel, bool unstopped);
  bool IsUnstopped(uint32_t device, uint32_t channel) const;
  // The error with which the driver answers reads of the channel; 0 since it gave bytes, or had none.
  int ReadError(uint32_t device, uint32_t channel) const;
  // What the driver still holds of a run of ours that is over must not begin the next: reads until there is no
  // more, or `max_bytes`, and forgets it. Reads nothing if the driver's last word was that it holds nothing.
  // May hang with the driver. kUnavailable while another thread is reading the channel.
  Status Discard(uint32_t device, uint32_t channel, size_t max_bytes);
  // An incomplete record at the end is counted as garbage. No OnBlock for the channel after this,
  // except when its device is stuck (kUnavailable then). kNotFound if it is not registered.
  Status Remove(uint32_t device, uint32_t channel);
  // Reads on the calling thread until the driver has no more, or `max_bytes` (kResourceExhausted),
  // or the deadline. May hang with the driver.
  Status Drain(uint32_t device, uint32_t channel, size_t max_bytes, Deadline deadline);
  // Reads until the driver has no more or the cap is reached. A channel that another thread is reading
  // right now is left to them. `scratch`: at least four times Framer::kMaxTail, at most a block.
  Visit Read(uint32_t device, uint32_t channel, std::span<std::byte> scratch, CallWatch* watch);

  void SetStuck(uint32_t device, bool stuck);
  bool IsStuck(uint32_t device) const;
  // The registered channels of one device.
  std::vector<uint32_t> ChannelsOf(uint32_t device) const;
  size_t registered() const { return registered_.load(std::memory_order_acquire); }

  ChannelCounters Counters(uint32_t device, uint32_t channel) const;
  void VisitCounters(
      const std::function<void(uint32_t device, uint32_t channel, const ChannelCounters&)>&) const;

  // No call into the sink, the pool or the clock runs or begins after this returned, whatever
  // threads are still stuck in the driver. Idempotent.
  void Close();
  // Clock::SteadyNs, or 0 once the table is closed: the clock may be gone then.
  int64_t NowSteadyNs();
  // BlockSink::Watched.
  bool Watched();
  // Runs `call` with the clock unless the table is closed.
  void WithClock(const std::function<void(const Clock&)>& call);
  // Runs `call` with the sink unless the table is closed.
  void WithSink(const std::function<void(BlockSink&)>& call);

 private:
  struct Counts;
  struct Channel;
  struct Source;
  std::shared_ptr<Channel> Find(uint32_t device, uint32_t channel) const;
  Visit ReadLocked(Channel& channel, const Source& source, size_t cap);
  enum class ReadEnd { kFull, kDry, kRefused };  // kFull: the driver may have more
  size_t FillScratch(Channel& channel, const Source& source, size_t begin, ReadEnd* end);
  void Deliver(Channel& channel, std::span<const std::byte> bytes, uint64_t records);
  void DeliverPadded(Channel& channel, std::span<const std::byte> lines);
  void FrameAndDeliver(Channel& channel, std::span<std::byte> bytes, bool last);

  const std::shared_ptr<const HalLibrary> hal_;
  const Clock& clock_;
  BlockPool& pool_;
  BlockSink& sink_;
  const Options options_;
  mutable Mutex mutex_;
  // [device][channel]; grows only. What it points to has locks of its own.
  std::vector<std::vector<std::shared_ptr<Channel>>> channels_ GUARDED_BY(mutex_);
  std::array<std::atomic<bool>, abi::kMaxHalDevices> stuck_{};
  std::atomic<size_t> registered_{0};
  SharedMutex open_mutex_;  // held shared while sink, pool or clock are in use
  bool closed_ GUARDED_BY(open_mutex_) = false;
};

}  // namespace profd
