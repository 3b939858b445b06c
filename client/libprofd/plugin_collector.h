// What the collectors of both plug-ins are: one thread (profd-collect) in the training process, which makes every call
// into the vendor's library while sessions ask for data. Never an application thread, and never the one that keeps the
// daemon's connection, since the vendor's calls may take seconds.
//
// One collector in a process, and never destroyed: the vendor's callbacks may come while the process ends. A forked
// child has neither the thread nor a usable vendor library: the collector is dead there.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/mutex.h"
#include "client/libprofd/collect_plugin.h"

namespace profd::lib {

class PluginCollector {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // Null: none has been started. In async-signal context (fork handlers) only loads.
  static PluginCollector* Instance();

  // As in profd_collect_calls.
  int ring() const { return -1; }
  int files() const { return -1; }
  void FilesTaken() {}
  void Report(profd_collect_report* report);
  bool Stop(Milliseconds within);

  // The process ends; bounded in time.
  virtual void AtExit() = 0;
  void AfterForkInChild() { dead_.store(true, std::memory_order_relaxed); }

 protected:
  struct State {
    int32_t state = PROFD_COLLECT_OFF;
    int32_t code = 0;
    uint32_t kinds = 0;
    std::string detail;
    uint32_t left_out = 0;
    uint32_t silent = 0;
    bool operator==(const State&) const = default;
  };

  PluginCollector() = default;
  ~PluginCollector() = default;

  // Until stopping_; what it leaves is in good order.
  virtual void Run() = 0;
  virtual void AddToReport(profd_collect_report* /*report*/) REQUIRES(mutex_) {}

  // 0, or an errno: no thread. Sets running_.
  int StartThread() REQUIRES(mutex_);
  void SetState(State state);
  void CallOnChange();
  // Not cut short by a stop.
  void Rest(Milliseconds pause);
  // The vendor's objects are made late and destroyed in reverse order: AtExit has to be registered after them to run
  // before. False: no memory.
  static bool RegisterAtExit();
  bool dead() const { return dead_.load(std::memory_order_relaxed); }

  Mutex mutex_;
  CondVar changed_;
  bool running_ GUARDED_BY(mutex_) = false;  // the thread
  bool stopping_ GUARDED_BY(mutex_) = false;
  profd_collect_config config_ GUARDED_BY(mutex_) = {};
  State state_ GUARDED_BY(mutex_);

 private:
  static void* ThreadMain(void* collector);

  std::atomic<bool> dead_{false};  // in a forked child
};

// A text of a report, cut to its size.
template <size_t kSize>
void CopyText(const std::string& text, char (&to)[kSize]) {
  const size_t bytes = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), bytes);
  to[bytes] = '\0';
}

// What a plug-in exports, for its collector. Exceptions end here.
template <class Collector>
struct PluginCalls {
  static Collector& The() {
    static auto* const collector = new Collector(typename Collector::Pauses{});
    return *collector;
  }
  static int Start(const profd_collect_config* config) {
    if (config == nullptr || config->size < sizeof(size_t)) return EINVAL;
    profd_collect_config known = {};
    std::memcpy(&known, config, std::min(config->size, sizeof known));
    try {
      return The().Start(known);
    } catch (...) {
      return ENOMEM;
    }
  }
  static int Ring() { return The().ring(); }
  static void Report(profd_collect_report* report) { The().Report(report); }
  static int Stop(uint32_t deadline_ms) { return The().Stop(PluginCollector::Milliseconds(deadline_ms)) ? 1 : 0; }
  static int Files() { return The().files(); }
  static void FilesTaken() { The().FilesTaken(); }

  static constexpr profd_collect_calls kTable = {
      PROFD_COLLECT_PLUGIN_VERSION, Start, Ring, Report, Stop, Files, FilesTaken};
};

}  // namespace profd::lib
