#include "sim/mspti/config.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "sim/mspti/mspti.h"
#include "sim/settings.h"

namespace profd::sim::mspti {
namespace {

std::atomic<bool> g_forked{false};

struct Named {
  std::string_view name;
  Profile profile;
  bool has_is_enabled;
};
constexpr std::array<Named, 6> kProfiles = {{
    {"old", Profile::kOld, false},
    {"closed", Profile::kClosed, false},
    {"2026-02", Profile::k2026_02, false},
    {"2026-03", Profile::k2026_03, false},
    {"2026-05", Profile::k2026_05, true},
    {"next", Profile::kNext, true},
}};
#ifdef PROFD_SIM_MSPTI_OLD
constexpr bool kHasIsEnabled = false;
constexpr Profile kDefault = Profile::k2026_03;
#else
constexpr bool kHasIsEnabled = true;
constexpr Profile kDefault = Profile::k2026_05;
#endif

}  // namespace

void Misuse(const char* what) {
  std::fprintf(stderr, "profd sim (mspti): %s\n", what);
  std::abort();
}

Config& Config::The() {
  static Config* const the = new Config;
  return *the;
}

void Config::HangInChild() {
  while (g_forked.load(std::memory_order_relaxed)) ::pause();
}

Config::Config() : profile_(kDefault) {
  ::pthread_atfork(nullptr, nullptr, [] { g_forked = true; });
  ApplySettingsOfEnvironment("mspti", [this](auto key, auto value) { return Apply(key, value); });
}

void Config::Control(std::string_view settings) {
  ApplySettings(settings, "mspti", [this](auto key, auto value) { return Apply(key, value); });
}

bool Config::preloaded() {
  const char* const preload = std::getenv("LD_PRELOAD");
  return preload != nullptr && std::string_view(preload).find("libmspti.so") != std::string::npos;
}

uint32_t Config::last_kind() const {
  return profile_ <= Profile::kClosed ? kCommunication : kRuntimeApi;
}

bool Config::ApplyProfile(std::string_view value) {
  for (const Named& named : kProfiles) {
    // A symbol cannot come and go: sim/mspti-old has the versions without msptiActivityIsEnabled.
    if (named.name != value || named.has_is_enabled != kHasIsEnabled) continue;
    profile_ = named.profile;
    return true;
  }
  return false;
}

bool Config::Apply(std::string_view key, std::string_view value) {
  if (key == "profile") return ApplyProfile(value);
  if (key == "chip") return ParseSetting(value, 0, 255, &chip);
  if (key == "silent") return ParseSetting(value, &silent);
  if (key == "dead_hand_over") return ParseSetting(value, &dead_hand_over);
  if (key == "late_complete") return ParseSetting(value, &late_complete);
  if (key == "backwards") return ParseSetting(value, &backwards);
  if (key == "device_marks") return ParseSetting(value, &device_marks);
  if (key == "device_mark_delay_ms") return ParseSetting(value, 0, 60'000, &device_mark_delay_ms);
  if (key == "hand_over_delay_ms") return ParseSetting(value, 0, 10'000, &hand_over_delay_ms);
  if (key == "request_limit_ms") return ParseSetting(value, 0, 60'000, &request_limit_ms);
  if (key == "time_step_ns") return ParseSetting(value, INT64_MIN, INT64_MAX, &time_step_ns);
  if (key == "rate") return ParseSetting(value, 0, 2'000'000, &rate);
  if (key == "rate_threads") return ParseSetting(value, 1, 8, &rate_threads);
  if (key != "throw") return false;
  MutexLock lock(mutex_);
  throwing_ = value;
  return true;
}

void Config::MayThrow(const char* function) {
  MutexLock lock(mutex_);
  if (throwing_ == function) throw std::runtime_error("profd sim: a function was not found");
}

}  // namespace profd::sim::mspti
