// What libprofapi.so does between those who report (runtime, ACL, GE, HCCL) and the one who
// receives.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "sim/profapi/profapi.h"

namespace profd::sim::prof {

class Bus {
 public:
  // One pointer for each type: the last writer wins, nullptr clears. Types without effect are 0,
  // too.
  int32_t SetSlot(int32_t type, void* callback);
  // Never taken back.
  void SetMsprof(const Msprof* msprof);
  // While a profiler runs, a late module is given INIT and START from a thread of its own.
  int32_t RegisterModule(uint32_t module, ModuleHandler handler);
  // START reaches RUNTIME, ASCENDCL, GE and then the others; STOP in the reverse order.
  int32_t SendCommand(void* command, uint32_t size);
  int32_t NotifyDevice(const SetDevice& device);

  int32_t ReportApi(uint32_t aging, const Api* api);
  int32_t ReportEvent(uint32_t aging, const Event* event);
  int32_t ReportData(Reported what, uint32_t aging, void* data, uint32_t size);

  int32_t RegisterType(uint16_t level, uint32_t type, std::string_view name);
  uint64_t Hash(std::string_view text);
  std::string TextOf(uint64_t id);  // "" = unknown
  Counts counts() const;

 private:
  template <class Fn>
  Fn Slot(int32_t type) const {
    return reinterpret_cast<Fn>(slots_[static_cast<size_t>(type)].load(std::memory_order_acquire));
  }
  int32_t Count(Reported what, bool received);
  std::vector<SetDevice> KnownDevices();
  std::vector<ModuleHandler> Handlers(bool reversed) REQUIRES(mutex_);

  // The vendor's are plain pointers; atomic here only so that tools can check the clients.
  std::array<std::atomic<void*>, kSlotTypes> slots_{};
  std::array<std::atomic<uint64_t>, kReportedKinds> to_receiver_{};
  std::array<std::atomic<uint64_t>, kReportedKinds> to_msprof_{};
  std::atomic<const Msprof*> msprof_{nullptr};
  Mutex mutex_;
  std::map<uint32_t, std::set<ModuleHandler>> modules_ GUARDED_BY(mutex_);
  std::map<uint32_t, SetDevice> devices_ GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, std::string> texts_ GUARDED_BY(mutex_);
  Command started_ GUARDED_BY(mutex_);
  uint64_t running_ GUARDED_BY(mutex_) = 0;  // switches
};

}  // namespace profd::sim::prof
