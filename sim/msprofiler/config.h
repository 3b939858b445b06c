// Which version of the library this is, and what it is to do wrong.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace profd::sim::aclprof {

class Settings {
 public:
  static Settings& The();
  void Control(std::string_view settings);

  // Start initialises by itself, and takes no config as all devices.
  std::atomic<bool> lenient{true};
  std::atomic<int64_t> stop_ms{0};
  std::atomic<int64_t> slice_bytes{2 << 20};
  std::atomic<int64_t> megabyte{1 << 20};     // of the storage limit
  std::atomic<int64_t> disk_bytes{-1};        // that can be written; -1: any number
  std::atomic<bool> busy_channel_fails{false};  // else Start does not report it
  // What the msprof command has done to this process before.
  std::atomic<bool> unset_device_fails{false};  // Start with a device that the process has not set
  std::atomic<bool> commanded{false};

  // Throws, or returns the setting's value instead of `result`.
  int MayFail(const char* function, int result);

 private:
  Settings();
  bool Apply(std::string_view key, std::string_view value);

  Mutex mutex_;
  std::string throwing_ GUARDED_BY(mutex_);
  std::map<std::string, int, std::less<>> failing_ GUARDED_BY(mutex_);
};

}  // namespace profd::sim::aclprof
