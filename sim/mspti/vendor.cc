#include "sim/mspti/vendor.h"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

#include "base/mutex.h"
#include "sim/mspti/config.h"

namespace profd::sim::mspti {
namespace {

void* Open(const std::string& library) {
  static Mutex mutex;
  static auto* const opened = new std::map<std::string, void*>;
  MutexLock lock(mutex);
  void*& handle = (*opened)[library];
  const char* const home = std::getenv("ASCEND_HOME_PATH");
  if (handle == nullptr && home != nullptr) {
    handle = ::dlopen((std::string(home) + "/lib64/" + library).c_str(), RTLD_NOW);
  }
  if (handle == nullptr) handle = ::dlopen(library.c_str(), RTLD_NOW);
  return handle;
}

}  // namespace

void* Symbol(const char* library, const char* function) {
  void* const handle = Open(library);
  void* const symbol = handle == nullptr ? nullptr : ::dlsym(handle, function);
  if (symbol == nullptr) {
    throw std::runtime_error(std::string(library) + ": no function " + function);
  }
  return symbol;
}

int64_t ChipOf(uint32_t device) {
  if (const int64_t chip = Config::The().chip; chip != 0) return chip;
  constexpr int32_t kSystem = 0, kVersion = 1;
  constexpr int64_t kDefaultChip = 5;
  void* const hal = Open("libascend_hal.so");
  if (hal == nullptr) return kDefaultChip;
  const auto info = reinterpret_cast<int (*)(uint32_t, int32_t, int32_t, int64_t*)>(
      ::dlsym(hal, "halGetDeviceInfo"));
  int64_t value = 0;
  if (info == nullptr || info(device, kSystem, kVersion, &value) != 0) return kDefaultChip;
  return value >> 8 & 0xff;
}

}  // namespace profd::sim::mspti
