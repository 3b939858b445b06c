#include "sim/msprofiler/config.h"

#include <stdexcept>

#include "sim/settings.h"

namespace profd::sim::aclprof {
namespace {

#ifdef PROFD_SIM_MSPROFILER_OLD
constexpr bool kLenient = false;
#else
constexpr bool kLenient = true;
#endif

}  // namespace

Settings& Settings::The() {
  static Settings* const the = new Settings;
  return *the;
}

Settings::Settings() : lenient(kLenient) {
  ApplySettingsOfEnvironment("aclprof", [this](auto key, auto value) { return Apply(key, value); });
}

void Settings::Control(std::string_view settings) {
  ApplySettings(settings, "aclprof", [this](auto key, auto value) { return Apply(key, value); });
}

bool Settings::Apply(std::string_view key, std::string_view value) {
  if (key == "stop_ms") return ParseSetting(value, 0, 60'000, &stop_ms);
  if (key == "slice_bytes") return ParseSetting(value, 256, 1 << 30, &slice_bytes);
  if (key == "megabyte") return ParseSetting(value, 1, 1 << 20, &megabyte);
  if (key == "disk_bytes") return ParseSetting(value, -1, INT64_MAX, &disk_bytes);
  if (key == "busy_channel_fails") return ParseSetting(value, &busy_channel_fails);
  if (key == "unset_device_fails") return ParseSetting(value, &unset_device_fails);
  if (key == "commanded") return ParseSetting(value, &commanded);
  MutexLock lock(mutex_);
  if (key == "throw") {
    throwing_ = value;
    return true;
  }
  // "aclprofStart:500005"; 0 takes it back.
  const size_t colon = value.find(':');
  int64_t code = 0;
  if (key != "fail" || colon == std::string_view::npos) return false;
  if (!ParseSetting(value.substr(colon + 1), 0, 999'999, &code)) return false;
  failing_[std::string(value.substr(0, colon))] = static_cast<int>(code);
  return true;
}

int Settings::MayFail(const char* function, int result) {
  MutexLock lock(mutex_);
  if (throwing_ == function) throw std::runtime_error("profd sim: a function was not found");
  const auto found = failing_.find(function);
  return found == failing_.end() || found->second == 0 ? result : found->second;
}

}  // namespace profd::sim::aclprof
