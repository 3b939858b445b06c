// Starts, stops and queries one device, without ever making the caller wait for the driver: all driver
// calls run on the device's own GuardedThread, one at a time, each with a deadline from when it is made. When
// the start or stop of a channel does not return, the other channels go on on a second thread; if that gets
// stuck too, the device is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "driver/channel_pump.h"
#include "driver/device_clock.h"
#include "driver/guarded_thread.h"
#include "driver/hal_library.h"

namespace profd {

struct ChannelStart {
  uint32_t channel = 0;
  int32_t channel_type = abi::kProfPeripheralType;
  uint32_t sample_period = 0;  // ms for peripherals
  std::vector<std::byte> user_data;
};

struct StopOutcome {
  Status status;
  bool data_lost = false;  // as reported by the driver (BIU channels, 0x916)
  Status unread;           // why what the driver had before the stop could not be read
};

// Thread-safe. Every `done` is called exactly once, on the device's thread or on the one that calls
// the method, CheckDeadlines or the destructor: post from it, do not work in it.
class DeviceControl {
 public:
  static constexpr int64_t kStopDeadlineNs = 3 * kNsPerSecond;

  // `pump` and `clock` must outlive this object. `stop_deadline_ns`: what a stop or a fetch may take.
  DeviceControl(uint32_t device, std::shared_ptr<const HalLibrary> hal, ChannelPump& pump,
                const Clock& clock, int64_t stop_deadline_ns = kStopDeadlineNs);
  ~DeviceControl();  // never hangs; calls that have not come back answer kCancelled
  DeviceControl(const DeviceControl&) = delete;
  DeviceControl& operator=(const DeviceControl&) = delete;

  uint32_t device() const { return device_; }

  // `start_host_ns`: CLOCK_MONOTONIC_RAW in the middle of the call to prof_drv_start; 0 on failure.
  // A start that succeeds after its deadline is stopped again.
  void StartChannel(ChannelStart start, uint32_t epoch,
                    std::function<void(const Status&, int64_t start_host_ns)> done);
  // Flush where supported, read what is there, stop, read the rest, unregister. When `done` gets Ok
  // every byte the driver gave has gone to the sink. Success if the channel was stopped already.
  void StopChannel(uint32_t channel, std::function<void(const StopOutcome&)> done);
  // Flush where supported, then read what is there; the channel runs on. When `done` gets Ok, all the driver
  // had has gone to the sink.
  void FetchChannel(uint32_t channel, std::function<void(const Status&)> done);
  void CorrelateClock(std::function<void(const Result<ClockPair>&)> done);
  // drvDeviceStatus: abi::kDrvStatus*; -1 when the driver does not report it. An error: it has not answered.
  void QueryStatus(std::function<void(const Result<int>&)> done);

  void CheckDeadlines(int64_t now_steady_ns);
  // Ok, or kUnavailable with the call that has not returned.
  Status Health() const;

 private:
  static constexpr int kWholeDevice = -1;  // as a job's key; else the channel it is about

  GuardedJob JobOf(std::string_view verb, uint32_t channel) const;
  void Submit(GuardedJob job, int64_t run_limit_ns);
  void Enqueue(GuardedJob job);
  GuardedThread& ThreadFor(int channel) REQUIRES(mutex_);

  const uint32_t device_;
  const std::shared_ptr<const HalLibrary> hal_;
  const std::shared_ptr<ChannelTable> table_;
  const std::shared_ptr<PumpAlarm> pump_;
  const Clock& clock_;
  const int64_t stop_deadline_ns_;
  mutable Mutex mutex_;
  // A thread stays once it is there.
  std::array<std::unique_ptr<GuardedThread>, 2> threads_ GUARDED_BY(mutex_);
  size_t current_ GUARDED_BY(mutex_) = 0;
};

}  // namespace profd
