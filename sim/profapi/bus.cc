#include "sim/profapi/bus.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>

#include "sim/profapi/hash.h"

namespace profd::sim::prof {

int32_t Bus::SetSlot(int32_t type, void* callback) {
  if (type < 0 || type >= kSlotTypes) return -1;
  slots_[static_cast<size_t>(type)].store(callback, std::memory_order_release);
  if (type != kSlotDeviceState || callback == nullptr) return 0;
  for (SetDevice device : KnownDevices()) {
    reinterpret_cast<DeviceStateSlot>(callback)(&device, sizeof device);
  }
  return 0;
}

std::vector<SetDevice> Bus::KnownDevices() {
  MutexLock lock(mutex_);
  std::vector<SetDevice> known;
  for (const auto& [id, device] : devices_) known.push_back(device);
  return known;
}

void Bus::SetMsprof(const Msprof* msprof) {
  const std::vector<SetDevice> known = KnownDevices();
  msprof_.store(msprof, std::memory_order_release);
  for (const SetDevice& device : known) msprof->device(device);
}

std::vector<ModuleHandler> Bus::Handlers(bool reversed) {
  std::vector<ModuleHandler> handlers;
  const auto add = [&](const std::set<ModuleHandler>& of) {
    handlers.insert(handlers.end(), of.begin(), of.end());
  };
  constexpr std::array<uint32_t, 3> kFirst = {kModuleRuntime, kModuleAcl, kModuleGe};
  for (uint32_t module : kFirst) {
    if (const auto it = modules_.find(module); it != modules_.end()) add(it->second);
  }
  for (const auto& entry : modules_) {
    if (std::ranges::find(kFirst, entry.first) == kFirst.end()) add(entry.second);
  }
  if (reversed) std::ranges::reverse(handlers);
  return handlers;
}

int32_t Bus::RegisterModule(uint32_t module, ModuleHandler handler) {
  if (handler == nullptr) return -1;
  MutexLock lock(mutex_);
  if (!modules_[module].insert(handler).second || running_ == 0) return 0;
  std::thread([handler, command = std::make_unique<Command>(started_)] {
    command->type = kInit;
    handler(kControlSwitch, command.get(), sizeof *command);
    command->type = kStart;
    handler(kControlSwitch, command.get(), sizeof *command);
  }).detach();
  return 0;
}

int32_t Bus::SendCommand(void* data, uint32_t size) {
  if (data == nullptr || size != sizeof(Command)) return -1;
  const auto command = std::make_unique<Command>();
  std::memcpy(command.get(), data, sizeof *command);
  std::vector<ModuleHandler> handlers;
  {
    MutexLock lock(mutex_);
    handlers = Handlers(command->type == kStop || command->type == kFinalize);
    if (command->type == kStart) {
      running_ |= command->switches;
      started_ = *command;
      started_.switches = running_;
    } else if (command->type == kStop) {
      running_ &= ~command->switches;
    }
  }
  // Without the lock: a module answers START with names and devices.
  for (const ModuleHandler handler : handlers) {
    handler(kControlSwitch, command.get(), sizeof *command);
  }
  return 0;
}

int32_t Bus::NotifyDevice(const SetDevice& device) {
  {
    MutexLock lock(mutex_);
    if (device.is_open) {
      devices_[device.device] = device;
    } else {
      devices_.erase(device.device);
    }
  }
  SetDevice copy = device;
  if (const Msprof* msprof = msprof_.load(std::memory_order_acquire)) msprof->device(copy);
  const auto receive = Slot<DeviceStateSlot>(kSlotDeviceState);
  return receive == nullptr ? 0 : receive(&copy, sizeof copy);
}

int32_t Bus::Count(Reported what, bool received) {
  auto& counter = received ? to_receiver_ : to_msprof_;
  counter[what].fetch_add(1, std::memory_order_relaxed);
  return 0;
}

int32_t Bus::ReportApi(uint32_t aging, const Api* api) {
  if (api == nullptr) return -1;
  const auto receive = Slot<ApiSlot>(kSlotApi);
  Count(kApis, receive != nullptr);
  if (receive != nullptr) return receive(aging, api);
  if (const Msprof* msprof = msprof_.load(std::memory_order_acquire)) msprof->api(aging, *api);
  return 0;
}

int32_t Bus::ReportEvent(uint32_t aging, const Event* event) {
  if (event == nullptr) return -1;
  const auto receive = Slot<EventSlot>(kSlotEvent);
  Count(kEvents, receive != nullptr);
  if (receive != nullptr) return receive(aging, event);
  if (const Msprof* msprof = msprof_.load(std::memory_order_acquire)) msprof->event(aging, *event);
  return 0;
}

int32_t Bus::ReportData(Reported what, uint32_t aging, void* data, uint32_t size) {
  if (data == nullptr) return -1;
  const auto receive = Slot<DataSlot>(what == kCompacts ? kSlotCompact : kSlotAdditional);
  Count(what, receive != nullptr);
  if (receive != nullptr) return receive(aging, data, size);
  const Msprof* const msprof = msprof_.load(std::memory_order_acquire);
  if (msprof == nullptr) return 0;
  if (what == kCompacts && size == sizeof(Compact)) msprof->compact(aging, *static_cast<Compact*>(data));
  if (what == kAdditionals && size == sizeof(Additional)) msprof->additional(aging, *static_cast<Additional*>(data));
  return 0;
}

int32_t Bus::RegisterType(uint16_t level, uint32_t type, std::string_view name) {
  if (const Msprof* msprof = msprof_.load(std::memory_order_acquire)) {
    msprof->type_name(level, type, name.data(), name.size());
  }
  const auto receive = Slot<TypeNameSlot>(kSlotTypeName);
  if (receive == nullptr) return 0;
  // By contract the text does not end with a NUL: a receiver that looks for one finds this.
  const std::string unended = std::string(name) + "<size ignored>";
  return receive(level, type, unended.data(), name.size());
}

uint64_t Bus::Hash(std::string_view text) {
  const uint64_t id = HashText(text);
  {
    MutexLock lock(mutex_);
    texts_.try_emplace(id, text);
  }
  if (const Msprof* msprof = msprof_.load(std::memory_order_acquire)) msprof->name(id, text.data(), text.size());
  const auto receive = Slot<HashSlot>(kSlotHash);
  if (receive != nullptr) {
    const std::string unended = std::string(text) + "<size ignored>";
    receive(unended.data(), text.size());
  }
  return id;
}

std::string Bus::TextOf(uint64_t id) {
  MutexLock lock(mutex_);
  const auto it = texts_.find(id);
  return it == texts_.end() ? "" : it->second;
}

Counts Bus::counts() const {
  Counts counts{};
  for (size_t i = 0; i < kReportedKinds; ++i) {
    counts.to_receiver[i] = to_receiver_[i].load(std::memory_order_relaxed);
    counts.to_msprof[i] = to_msprof_[i].load(std::memory_order_relaxed);
  }
  return counts;
}

}  // namespace profd::sim::prof
