// The one subscription: what it registers in libprofapi, what it starts on each device, and the
// threads that read the devices' logs.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "sim/mspti/mspti.h"

namespace profd::sim::mspti {

class Session {
 public:
  static Session& The();
  // What loading the library alone does: hashes, type names and the functions of mstx.
  static void RegisterAtLoad();

  int Subscribe(Subscriber** subscriber, Callback callback, void* user);
  int Unsubscribe(Subscriber* subscriber);
  int Enable(uint32_t kind);
  int Disable(uint32_t kind);

  int EnableCallback(bool on, int domain, uint32_t id);
  int EnableDomain(bool on, int domain);
  void Call(int domain, uint32_t id, uint32_t site, const char* function);

  void DeviceSet(uint32_t device);

 private:
  struct Reader {
    std::atomic<bool> stop{false};
    std::thread thread;
  };

  // What Unsubscribe has to stop.
  struct Running {
    std::map<uint32_t, std::unique_ptr<Reader>> readers;
    std::vector<std::unique_ptr<Reader>> rates;
    uint64_t switches = 0;  // over the life of the process, never cleared
  };

  void StartDevice(uint32_t device) REQUIRES(mutex_);
  // Without the lock: the readers record, and STOP returns through libprofapi.
  static void Stop(const Running& running);
  void StartRate() REQUIRES(mutex_);
  static void Read(uint32_t device, const std::atomic<bool>& stop);
  static void SetReceivers(bool on);
  static void Send(prof::CommandType type, uint64_t switches);

  Mutex mutex_;
  Subscriber* subscriber_ GUARDED_BY(mutex_) = nullptr;
  uintptr_t subscriptions_ GUARDED_BY(mutex_) = 0;
  Running running_ GUARDED_BY(mutex_);
  std::map<uint32_t, bool> devices_ GUARDED_BY(mutex_);
  std::atomic<Callback> callback_{nullptr};
  std::atomic<void*> user_{nullptr};
  std::array<std::array<std::atomic<bool>, kCallbackIds>, kDomains> called_{};
};

}  // namespace profd::sim::mspti
