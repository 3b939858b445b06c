// Collects from this process through the vendor's aclprof while a session requests it (plugin_collector.h). What it records
// are files in a directory, handed over as a descriptor when the session has ended; a stop may take half a minute.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/libprofd/aclprof/aclprof_library.h"
#include "client/libprofd/aclprof/result_directory.h"
#include "client/libprofd/plugin_collector.h"

namespace profd::lib::aclprof {

class Collector final : public PluginCollector {
 public:
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
  int files() const { return files_fd_.load(std::memory_order_acquire); }
  void FilesTaken();

  void AtExit() override;

 private:
  struct Request {
    std::string session;
    uint64_t bits = 0;
    uint32_t metrics = 0xFF;
    std::map<std::string, std::string> items;
  };

  void Run() override;
  // Tries to begin; how long until it is tried again.
  Milliseconds TryToBegin();
  bool Prepare();
  void Configure(State* state);
  void ApplyItem(const std::string& name, const std::string& value, State* state);
  // The state it leads to. What was begun is taken back where the rest of it fails.
  State Begin(std::vector<uint32_t> devices);
  State TakeBack(const char* call, const Called& called);
  static bool MayBeForADevice(const State& state);
  static State Refusal(const char* call, const Called& called);
  void WatchMspti();
  void EndAndHandOver();

  const Pauses pauses_;
  std::atomic<int> files_fd_{-1};

  bool taken_ GUARDED_BY(mutex_) = false;
  Request request_ GUARDED_BY(mutex_);

  // Of the thread.
  AclprofLibrary library_;
  ResultDirectory directory_;
  Request carried_out_;
  bool loaded_ = false;
  bool collecting_ = false;
  State begun_;  // with what has been refused
  bool gave_up_ = false;  // unsupported or failed: until the next start
  bool exit_handler_ = false;
};

}  // namespace profd::lib::aclprof
