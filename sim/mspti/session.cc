#include "sim/mspti/session.h"

#include <chrono>
#include <cstring>

#include "sim/mspti/buffers.h"
#include "sim/mspti/collectives.h"
#include "sim/mspti/config.h"
#include "sim/mspti/join.h"
#include "sim/mspti/markers.h"
#include "sim/mspti/rate.h"
#include "sim/mspti/vendor.h"

namespace profd::sim::mspti {
namespace {

// Which switches of START each kind requests.
uint64_t SwitchesOf(uint32_t kind) {
  switch (kind) {
    case kKernel:
      return prof::kSwitchTaskTimeL0 | prof::kSwitchTaskTrack;
    case kApi:
    case kAclApi:
    case kNodeApi:
      return prof::kSwitchAclApi | prof::kSwitchTaskTimeL0;
    case kCommunication:
      return prof::kSwitchAclApi | prof::kSwitchHccl | prof::kSwitchTaskTimeL0 |
             prof::kSwitchTaskTrack;
    case kRuntimeApi:
      return prof::kSwitchRuntimeApi;
    default:
      return 0;
  }
}

bool NeedsPreload(uint32_t kind) {
  return kind == kHccl || kind == kMemory || kind == kMemset || kind == kMemcpy;
}
bool ReadsDevices(uint32_t kind) {
  return kind == kMarker || kind == kKernel || kind == kHccl || kind == kCommunication;
}

int32_t OnApi(uint32_t, const prof::Api* api) {
  Join::The().OnApi(*api);
  return 0;
}
int32_t OnEvent(uint32_t, const prof::Event*) { return 0; }
int32_t OnCompact(uint32_t aging, void* data, uint32_t size) {
  prof::Compact record;
  if (size != sizeof record) return -1;
  std::memcpy(&record, data, sizeof record);
  Join::The().OnCompact(aging, record);
  return 0;
}
int32_t OnAdditional(uint32_t, void*, uint32_t) { return 0; }
int32_t OnTypeName(uint16_t level, uint32_t type, const char* name, size_t size) {
  Join::The().AddType(level, type, {name, size});
  return 0;
}
uint64_t OnHash(const char* text, size_t size) {
  Join::The().AddName({text, size});
  return 0;
}
int32_t OnDevice(void* data, uint32_t size) {
  prof::SetDevice device;
  if (size != sizeof device) return -1;
  std::memcpy(&device, data, sizeof device);
  if (device.is_open) Session::The().DeviceSet(device.device);
  return 0;
}

template <class Fn>
void SetSlot(prof::SlotType type, Fn* function, bool on) {
  PROFAPI(MsprofRegisterProfileCallback)
  (type, on ? reinterpret_cast<void*>(function) : nullptr, sizeof(void*));
}

}  // namespace

Session& Session::The() {
  static Session* const the = new Session;
  return *the;
}

void Session::RegisterAtLoad() {
  SetSlot(prof::kSlotHash, &OnHash, true);
  SetSlot(prof::kSlotTypeName, &OnTypeName, true);
  PROFAPI(ProfRegisterMstxFunc)(&Markers::Init, prof::kMstxMspti);
}

void Session::SetReceivers(bool on) {
  SetSlot(prof::kSlotApi, &OnApi, on);
  SetSlot(prof::kSlotEvent, &OnEvent, on);
  SetSlot(prof::kSlotCompact, &OnCompact, on);
  SetSlot(prof::kSlotAdditional, &OnAdditional, on);
  SetSlot(prof::kSlotDeviceState, &OnDevice, on);
  PROFAPI(ProfEnableMstxFunc)(on ? prof::kMstxMspti : prof::kMstxMsprof);
}

void Session::Send(prof::CommandType type, uint64_t switches) {
  const auto command = std::make_unique<prof::Command>();
  command->type = type;
  command->switches = switches;
  command->device_count = 1;
  PROFAPI(profSetProfCommand)(command.get(), sizeof *command);
}

int Session::Subscribe(Subscriber** subscriber, Callback callback, void* user) {
  if (subscriber == nullptr) return kInvalidParameter;
  {
    MutexLock lock(mutex_);
    if (subscriber_ != nullptr) return kMultipleSubscribers;
    // An opaque handle; nothing follows it.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    subscriber_ = reinterpret_cast<Subscriber*>(++subscriptions_ * 16);
    *subscriber = subscriber_;
  }
  user_ = user;
  callback_ = callback;
  if (!Config::The().useless()) SetReceivers(true);
  return kOk;
}

int Session::Unsubscribe(Subscriber* subscriber) {
  Running running;
  bool wrong = false;
  {
    MutexLock lock(mutex_);
    if (subscriber_ == nullptr) return kOk;
    wrong = subscriber != subscriber_;
    running = std::exchange(running_, {});
    running_.switches = running.switches;
    if (!wrong) subscriber_ = nullptr;
  }
  Stop(running);  // also when the handle is wrong
  if (wrong) return kInvalidParameter;
  callback_ = nullptr;
  if (!Config::The().useless()) SetReceivers(false);
  if (Config::The().late_complete) Buffers::The().CompleteLate();
  return kOk;
}

void Session::DeviceSet(uint32_t device) {
  uint64_t switches = 0;
  {
    MutexLock lock(mutex_);
    devices_[device] = true;
    bool wanted = false;
    for (uint32_t kind = 1; kind < kKinds; ++kind) {
      if (!Join::The().enabled(kind)) continue;
      wanted = true;
      running_.switches |= SwitchesOf(kind);
    }
    if (!wanted || subscriber_ == nullptr) return;
    switches = running_.switches;
    StartDevice(device);
  }
  Send(prof::kStart, switches);
}

void Session::StartDevice(uint32_t device) {
  const int64_t chip = ChipOf(device);
  Join::The().set_streams_left_out(chip == 15);
  const bool known_chip = chip == 5 || chip == 7 || chip == 15;
  if (!known_chip || running_.readers.count(device) != 0) return;
  // Held by another: only the driver's log would say so.
  if (ASCENDCL(simAclOpenLog)(device) != 0) return;
  auto reader = std::make_unique<Reader>();
  reader->thread = std::thread([device, &stop = reader->stop] { Read(device, stop); });
  running_.readers[device] = std::move(reader);
}

void Session::Read(uint32_t device, const std::atomic<bool>& stop) {
  const auto read = ASCENDCL(simAclReadLog);
  std::vector<acl::LogRecord> records(4096);
  for (;;) {
    const bool last = stop.load();
    for (size_t count; (count = read(device, records.data(), records.size())) > 0;) {
      for (size_t i = 0; i < count; ++i) {
        if (records[i].kind == acl::kTaskTrace) {
          Markers::The().OnLog(device, records[i]);
          Collectives::The().OnLog(device, records[i]);
        } else {
          Join::The().OnLog(device, records[i]);
        }
      }
    }
    Markers::The().PutDue();
    if (last) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Session::Stop(const Running& running) {
  if (running.switches != 0) Send(prof::kStop, running.switches);
  for (const auto& rate : running.rates) rate->stop = true;
  for (const auto& rate : running.rates) rate->thread.join();
  for (const auto& [device, reader] : running.readers) {
    reader->stop = true;
    reader->thread.join();
    ASCENDCL(simAclCloseLog)(device);
  }
}

void Session::StartRate() {
  const int64_t rate = Config::The().rate;
  if (rate == 0 || !running_.rates.empty()) return;
  const int64_t threads = Config::The().rate_threads;
  for (int64_t i = 0; i < threads; ++i) {
    auto maker = std::make_unique<Reader>();
    maker->thread = std::thread(
        [i, rate, threads, &stop = maker->stop] { MakeKernels(rate / threads, i, stop); });
    running_.rates.push_back(std::move(maker));
  }
}

int Session::Enable(uint32_t kind) {
  const Config& config = Config::The();
  if (kind == 0 || kind > config.last_kind()) return kInvalidParameter;
  if (config.useless()) return kOk;
  if (NeedsPreload(kind) && !Config::preloaded()) return kNotPreloaded;
  Join::The().set_enabled(kind, true);
  uint64_t switches = 0;
  {
    MutexLock lock(mutex_);
    if (subscriber_ == nullptr) return kOk;
    switches = running_.switches |= SwitchesOf(kind);
    if (kind == kKernel) StartRate();
    if (ReadsDevices(kind)) {
      for (const auto& [device, known] : devices_) StartDevice(device);
    }
    if (devices_.empty()) return kOk;  // started when one is set
  }
  Send(prof::kStart, switches);
  return kOk;
}

int Session::Disable(uint32_t kind) {
  if (kind == 0 || kind > Config::The().last_kind()) return kInvalidParameter;
  // As after the flush of the driver, which waits that long: what the device has by now is read.
  if (Join::The().enabled(kind)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Join::The().set_enabled(kind, false);  // no STOP: the host continues to report
  return kOk;
}

int Session::EnableCallback(bool on, int domain, uint32_t id) {
  if (Config::The().refuses() && !Config::preloaded()) return kNotPreloaded;
  {
    MutexLock lock(mutex_);
    if (subscriber_ == nullptr) return kOk;
  }
  if (domain <= 0 || domain >= kDomains || id >= kCallbackIds) return kInvalidParameter;
  called_[static_cast<size_t>(domain)][id] = on;
  return kOk;
}

int Session::EnableDomain(bool on, int domain) {
  int result = kOk;
  for (uint32_t id = 1; id < kCallbackIds && result == kOk; ++id) {
    result = EnableCallback(on, domain, id);
  }
  return result;
}

void Session::Call(int domain, uint32_t id, uint32_t site, const char* function) {
  const Callback callback = callback_;
  if (callback == nullptr || !called_[static_cast<size_t>(domain)][id]) return;
  CallbackData data;
  std::memset(static_cast<void*>(&data), 0xA5, sizeof data);  // what was on the stack
  data.site = site;
  data.function = function;
  callback(user_, domain, id, &data);
}

}  // namespace profd::sim::mspti
