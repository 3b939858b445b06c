// The channel half of libascend_hal.so: who has started what, what is readable, who waits for it
// (driver-abi 1.2, 1.4, 1.8, 9). All members may be called from any thread at any time. Returns are
// the vendor's codes.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

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
  using Lock = std::unique_lock<std::mutex>;

  // 0, or the code a call for this device must answer. Waits out a hanging card first.
  int CheckDevice(Lock& lock, unsigned device);
  int CheckChannel(Lock& lock, unsigned device, unsigned channel);
  template <class Active>
  void WaitWhile(Lock& lock, Active active);
  void SleepUntilScenario(Lock& lock, int64_t scenario_ns, int64_t at_most_ns);
  int PollFault(Lock& lock, int64_t deadline_ns);
  int CollectReady(abi::ProfPollInfo* out, int num, bool* any_started);
  bool Ready(const Channel& channel, int64_t raw_ns) const;
  int64_t NextDueRaw() const;
  void Generate(Channel& channel);
  void Book(Channel& channel);
  void Forget(const Channel* channel);
  std::unique_ptr<Channel>& Slot(unsigned device, unsigned channel) {
    return channels_[device * abi::kMaxChannels + channel];
  }

  const Node& node_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Channel*> active_;  // started or with something to announce
  size_t next_ = 0;               // where the next poll begins to look
};

}  // namespace profd::sim
