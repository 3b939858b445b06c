// The profiler of the process: one mode, one lock for all calls, one result at a time.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/mutex.h"
#include "sim/msprofiler/msprofiler.h"
#include "sim/msprofiler/recording.h"

namespace profd::sim::aclprof {

struct Config {
  RecordingRequest wanted;
};

class Profiler {
 public:
  static Profiler& The();

  int Init(const char* path, size_t length);
  int Finalize();
  Config* CreateConfig(const uint32_t* devices, uint32_t count, int metrics, const void* events, uint64_t bits);
  int DestroyConfig(const Config* config);
  int SetConfig(int type, const char* value, size_t length);
  int Start(const Config* config);
  int Stop(const Config* config);

  // From libprofapi.
  void OnDevice(const prof::SetDevice& device);
  // The recording at work; null: none.
  std::shared_ptr<Recording> recording();

 private:
  enum class Mode { kOff, kCommand, kApi };

  Profiler() = default;
  int InitIn(const std::string& path) REQUIRES(mutex_);
  void End(bool* disk_full) REQUIRES(mutex_);
  static void Send(prof::CommandType type, const RecordingRequest& wanted);

  Mutex mutex_;  // of all calls, held while Stop waits
  Mode mode_ GUARDED_BY(mutex_) = Mode::kOff;
  std::string path_ GUARDED_BY(mutex_);
  uint64_t storage_limit_mb_ GUARDED_BY(mutex_) = 0;

  Mutex recording_mutex_;  // reports and devices come while a call holds the other
  std::shared_ptr<Recording> recording_ GUARDED_BY(recording_mutex_);
  std::set<uint32_t> devices_ GUARDED_BY(recording_mutex_);
};

}  // namespace profd::sim::aclprof
