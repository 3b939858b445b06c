// The channel half of libascend_hal.so: who has started what, what is readable, who waits for it
// (driver-abi 1.2, 1.4, 1.8, 9). All members may be called from any thread at any time. Returns are
// the vendor's codes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "driver/abi/hal_abi.h"
#include "sim/ledger.h"
#include "sim/node.h"
#include "sim/record_ring.h"
#include "sim/record_stream.h"

namespace profd::sim {

class HalEngine {
 public:
  explicit HalEngine(const Node& node);
  HalEngine(const HalEngine&) = delete;
  HalEngine& operator=(const HalEngine&) = delete;

  int GetChannels(unsigned device, abi::ChannelList* out);
  int Start(unsigned device, unsigned channel, const abi::ProfStartPara* para);
  int Stop(unsigned device, unsigned channel);
  int Read(unsigned device, unsigned channel, char* out, unsigned size);
  // Waits up to `timeout_s` seconds until a started channel has data. kProfStoppedAlready at once
  // if none is started.
  int Poll(abi::ProfPollInfo* out, int num, int timeout_s);
  int Flush(unsigned device, unsigned channel, unsigned* data_len);
  // Bytes a channel lost to its ring since it was started.
  uint64_t DroppedBytesForTest(unsigned device, unsigned channel);

 private:
  struct Channel {
    unsigned device;
    unsigned id;
    bool started = true;
    bool announce = false;  // stopped, and poll has not yet reported that bytes are left
    std::unique_ptr<RecordStream> stream;
    RecordRing ring;
    LedgerRow* ledger = nullptr;  // null: not requested
    Produced booked{};
    uint64_t booked_dropped = 0;
  };

  // 0, or the code a call for this device must answer. Waits out a hanging card first.
  int CheckDevice(MutexLock& lock, unsigned device) REQUIRES(mutex_);
  int CheckChannel(MutexLock& lock, unsigned device, unsigned channel) REQUIRES(mutex_);
  template <class Active>
  void WaitWhile(MutexLock& lock, Active active) REQUIRES(mutex_);
  void SleepUntilScenario(MutexLock& lock, int64_t scenario_ns, int64_t at_most_ns)
      REQUIRES(mutex_);
  int PollFault(MutexLock& lock, int64_t deadline_ns) REQUIRES(mutex_);
  int CollectReady(abi::ProfPollInfo* out, int num, bool* any_started) REQUIRES(mutex_);
  bool Ready(const Channel& channel, int64_t raw_ns) const REQUIRES(mutex_);
  int64_t NextDueRaw() const REQUIRES(mutex_);
  void Generate(Channel& channel) REQUIRES(mutex_);
  void Book(Channel& channel) REQUIRES(mutex_);
  void Forget(const Channel* channel) REQUIRES(mutex_);
  std::unique_ptr<Channel>& Slot(unsigned device, unsigned channel) REQUIRES(mutex_) {
    return channels_[device * abi::kMaxChannels + channel];
  }

  const Node& node_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::unique_ptr<Channel>> channels_ GUARDED_BY(mutex_);
  std::vector<Channel*> active_ GUARDED_BY(mutex_);  // started or with something to announce
  size_t next_ GUARDED_BY(mutex_) = 0;               // where the next poll begins to look
};

}  // namespace profd::sim
