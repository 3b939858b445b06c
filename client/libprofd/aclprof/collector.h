// Collects from this process through the vendor's aclprof while a session asks for it, on one thread of its own
// (profd-collect): never on the application's, and never on the one that keeps the daemon's connection, since a stop
// may take half a minute. What comes are files in a directory, handed over as a descriptor when the session has ended.
//
// One of them in a process; never destroyed. A forked child has neither its thread nor any business with the vendor's
// library: there it is dead for good.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "base/mutex.h"
#include "client/libprofd/aclprof/aclprof_library.h"
#include "client/libprofd/aclprof/result_directory.h"
#include "client/libprofd/collect_plugin.h"

namespace profd::lib::aclprof {

class Collector {
 public:
  using Milliseconds = std::chrono::milliseconds;
  struct Pauses {
    Milliseconds waiting{1000};
    Milliseconds busy{10'000};
    Milliseconds settle{50};
    // Files that are not taken are removed after so long.
    Milliseconds untaken{300'000};
    // At the end of the process: for the vendor's stop, and for the daemon's copy.
    Milliseconds last_stop{30'000};
    Milliseconds last_copy{15'000};
  };
  explicit Collector(Pauses pauses) : pauses_(pauses) {}

  // As in profd_collect_calls.
  int Start(const profd_collect_config& config);
  void Report(profd_collect_report* report);
  bool Stop(Milliseconds within);
  int files() const { return files_fd_.load(std::memory_order_acquire); }
  void FilesTaken();

  void AtExit();
  void AfterForkInChild() { dead_.store(true, std::memory_order_relaxed); }

 private:
  struct State {
    int32_t state = PROFD_COLLECT_OFF;
    int32_t code = 0;
    std::string detail;
  };
  struct Order {
    std::string session;
    uint64_t bits = 0;
    uint32_t metrics = 0xFF;
    std::map<std::string, std::string> items;
  };

  int StartThread() REQUIRES(mutex_);
  static void* ThreadMain(void* collector);
  void Run();
  // Tries to begin; how long until it is tried again.
  Milliseconds TryToBegin();
  bool Prepare();
  void Configure(State* state);
  void ApplyItem(const std::string& name, const std::string& value, State* state);
  // After an Init that went well: takes it back.
  void GiveUp(const char* call, const Called& called);
  static State Refusal(const char* call, const Called& called);
  void EndAndHandOver();
  void SetState(State state);
  void Rest(Milliseconds pause);

  const Pauses pauses_;
  std::atomic<bool> dead_{false};  // in a forked child
  std::atomic<int> files_fd_{-1};

  Mutex mutex_;
  CondVar changed_;
  bool running_ GUARDED_BY(mutex_) = false;  // the thread
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool taken_ GUARDED_BY(mutex_) = false;
  profd_collect_config config_ GUARDED_BY(mutex_) = {};
  Order order_ GUARDED_BY(mutex_);
  State state_ GUARDED_BY(mutex_);

  // Of the thread.
  AclprofLibrary library_;
  ResultDirectory directory_;
  Order carried_out_;
  bool loaded_ = false;
  bool collecting_ = false;
  bool gave_up_ = false;  // unsupported or failed: until the next start
  bool exit_handler_ = false;
};

}  // namespace profd::lib::aclprof
