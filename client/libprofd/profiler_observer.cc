#include "client/libprofd/profiler_observer.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "client/libprofd/vendor_library.h"

namespace profd::lib {
namespace {

// The vendor's public headers (prof_api.h, prof_common.h): a command that all modules are notified of.
using Handler = int32_t (*)(uint32_t type, void* data, uint32_t bytes);
using RegisterFunction = int32_t (*)(uint32_t module, Handler handler);
constexpr uint32_t kControlSwitch = 1;  // type
constexpr size_t kSwitches = 0;         // u64
constexpr size_t kSwitchesHigh = 8;     // u64
constexpr size_t kDeviceCount = 16;     // u32
constexpr size_t kModel = 276;          // u32
constexpr size_t kType = 280;           // u32
constexpr size_t kNeededBytes = 284;
enum CommandType : uint32_t { kStart = 1, kStop = 2, kFinalize = 3 };
constexpr uint32_t kNoModel = 0xFFFFFFFF;
// All that MSPTI switches on, for whichever kinds. A command of its has what any client of it has asked for since the
// process began, and nothing at all for marks. The vendor's other profilers always switch on more (AICPU_MODEL).
constexpr uint64_t kMsptiSwitches = 0x1 | 0x20 | 0x100 | 0x800 | 0x4000000;
// No module of the vendor's has this number; their highest are below 100.
constexpr uint32_t kOurModule = 200;

std::atomic<bool> g_registered{false};
std::atomic<bool> g_another{false};
std::atomic<bool> g_subscribed{false};
std::atomic<bool> g_aclprof_is_ours{false};
std::atomic<bool> g_met_mspti{false};
thread_local bool t_own_calls = false;

template <class T>
T Read(const void* data, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + offset, sizeof value);
  return value;
}

// MSPTI starts one device at a time.
bool IsOfMspti(const void* command) {
  return (Read<uint64_t>(command, kSwitches) & ~kMsptiSwitches) == 0 &&
         Read<uint64_t>(command, kSwitchesHigh) == 0 &&
         Read<uint32_t>(command, kDeviceCount) == 1 && Read<uint32_t>(command, kModel) == kNoModel;
}

bool SwitchesNothing(const void* command) {
  return Read<uint64_t>(command, kSwitches) == 0 && Read<uint64_t>(command, kSwitchesHigh) == 0;
}

bool IsOurs(const void* command) {
  if (t_own_calls) return true;
  const bool of_mspti = IsOfMspti(command);
  if (g_aclprof_is_ours.load(std::memory_order_relaxed)) return !of_mspti || SwitchesNothing(command);
  return of_mspti && g_subscribed.load(std::memory_order_relaxed);
}

extern "C" int32_t ProfdOnProfilerCommand(uint32_t type, void* data, uint32_t bytes) {
  if (type != kControlSwitch || data == nullptr || bytes < kNeededBytes || IsOurs(data)) return 0;
  const auto command = Read<uint32_t>(data, kType);
  // A start of nothing is MSPTI's for marks; where it is the other plug-in's of this process, no stop may follow it.
  if (command == kStart && !SwitchesNothing(data)) {
    g_another.store(true, std::memory_order_relaxed);
    g_met_mspti.store(true, std::memory_order_relaxed);
  }
  if (command == kStop || command == kFinalize) g_another.store(false, std::memory_order_relaxed);
  return 0;
}

}  // namespace

bool ProfilerObserver::Register() {
  if (g_registered.load(std::memory_order_relaxed)) return false;
  void* handle = ::dlopen("libprofapi.so", RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  RegisterFunction function = nullptr;
  // Where there is none, or it refuses, others are noticed by the result of Subscribe only.
  const bool done = FindFunction(handle, "MsprofRegisterCallback", &function) && function(kOurModule, ProfdOnProfilerCommand) == 0;
  g_registered.store(true, std::memory_order_relaxed);
  return done;
}

bool ProfilerObserver::SeesAnother() { return g_another.load(std::memory_order_relaxed); }

std::string ProfilerObserver::Others() {
  if (::getenv("PROFILER_SAMPLECONFIG") != nullptr) {
    return "the msprof command has started this process (PROFILER_SAMPLECONFIG)";
  }
  const char* mode = ::getenv("PROFILING_MODE");
  if (mode != nullptr && std::strcmp(mode, "dynamic") == 0) {
    return "msprof --dynamic=on has started this process (PROFILING_MODE)";
  }
  if (SeesAnother()) return kAnother;
  if (IsMappedFile("libascend_kernel_hook.so")) return "libascend_kernel_hook.so is in this process";
  return {};
}

void ProfilerObserver::ExpectAclprof(bool on) {
  // One may have come since the last look for others.
  if (on) g_met_mspti.store(SeesAnother(), std::memory_order_relaxed);
  g_aclprof_is_ours.store(on, std::memory_order_relaxed);
}

bool ProfilerObserver::MetMspti() { return g_met_mspti.load(std::memory_order_relaxed); }

void ProfilerObserver::ExpectMspti(bool on) { g_subscribed.store(on, std::memory_order_relaxed); }

ProfilerObserver::OwnCalls::OwnCalls() : before_(std::exchange(t_own_calls, true)) {}
ProfilerObserver::OwnCalls::~OwnCalls() { t_own_calls = before_; }

}  // namespace profd::lib
