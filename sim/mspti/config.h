// Which version of the library this is, and what it is to do wrong.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace profd::sim::mspti {

enum class Profile { kOld, kClosed, k2026_02, k2026_03, k2026_05, kNext };

class Config {
 public:
  static Config& The();
  void Control(std::string_view settings);

  Profile profile() const { return profile_; }
  uint32_t last_kind() const;
  // Since 2026-03 what needs the preload is refused; before, nothing was delivered or reported.
  bool refuses() const { return profile_ >= Profile::k2026_03; }
  bool useless() const { return !refuses() && !preloaded(); }
  bool frees_strings() const { return profile_ == Profile::kClosed; }
  // The text in the environment, whatever was really loaded how.
  static bool preloaded();

  // 0: ask libascend_hal.
  std::atomic<int64_t> chip{0};
  std::atomic<bool> silent{false};
  std::atomic<bool> dead_hand_over{false};
  std::atomic<bool> late_complete{false};
  std::atomic<bool> backwards{false};  // the next kernel ends before it starts
  std::atomic<bool> device_marks{true};
  std::atomic<int64_t> device_mark_delay_ms{0};
  std::atomic<int64_t> hand_over_delay_ms{0};
  std::atomic<int64_t> request_limit_ms{0};  // 0: none
  std::atomic<int64_t> time_step_ns{0};      // as after a step of NTP
  std::atomic<int64_t> rate{0};              // kernels/s made here instead of by a device
  std::atomic<int64_t> rate_threads{1};
  // Throws, through the C interface, when this is the function that the setting names.
  void MayThrow(const char* function);
  // After a fork the child has the locks as they were and none of the threads: it waits for ever.
  static void HangInChild();

 private:
  Config();
  bool Apply(std::string_view key, std::string_view value);
  bool ApplyProfile(std::string_view value);

  Profile profile_;
  Mutex mutex_;
  std::string throwing_ GUARDED_BY(mutex_);
};

// What no client may do ends the process with a line on stderr.
[[noreturn]] void Misuse(const char* what);

}  // namespace profd::sim::mspti
