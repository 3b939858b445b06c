// What one Start to Stop writes: the host's reports as they come through libprofapi, and of each device what its log
// says, in the vendor's records.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "sim/ascendcl/ascendcl.h"
#include "sim/msprofiler/result_files.h"

namespace profd::sim::aclprof {

struct RecordingRequest {
  std::set<uint32_t> devices;
  uint64_t bits = 0;
  int metrics = 0xFF;
  uint64_t storage_limit_mb = 0;
};

class Recording {
 public:
  // In a new directory below `path`. An error: nothing was begun.
  static Result<std::unique_ptr<Recording>> Begin(const std::string& path, const RecordingRequest& wanted);
  ~Recording();

  // kOk, or why the device's data cannot be had.
  int AddDevice(uint32_t device);
  void RemoveDevice(uint32_t device);

  void OnApi(uint32_t aging, const prof::Api& api);
  void OnEvent(uint32_t aging, const prof::Event& event);
  void OnCompact(uint32_t aging, const prof::Compact& record);
  void OnAdditional(uint32_t aging, const prof::Additional& record);
  void OnTypeName(uint16_t level, uint32_t type, std::string_view name);
  void OnName(uint64_t id, std::string_view text);

  // Writes the rest. False: the disk was full.
  bool End();
  const RecordingRequest& wanted() const { return wanted_; }

 private:
  struct DeviceFiles {
    explicit DeviceFiles(ResultFiles made) : files(std::move(made)) {}
    ResultFiles files;
    bool reading = false;                        // its log is ours
    uint32_t count = 0;                          // running number of the STARS log
    std::map<uint32_t, uint32_t> batches;        // by stream
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> begun;  // stream, task: counter
  };

  Recording(std::string folder, const RecordingRequest& wanted, ResultFiles host);
  void Run();
  void ReadLog(uint32_t device, DeviceFiles& to) REQUIRES(mutex_);
  void OnLog(uint32_t device, DeviceFiles& to, const acl::LogRecord& record) REQUIRES(mutex_);
  void PutTask(DeviceFiles& to, const acl::LogRecord& record, uint64_t count);
  void PutPmu(DeviceFiles& to, const acl::LogRecord& record, uint64_t begin, uint64_t end);
  void PutAicpu(uint32_t device, DeviceFiles& to, const acl::LogRecord& record, uint64_t begin, uint64_t end);
  void PutFlip(DeviceFiles& to, const acl::LogRecord& record, uint64_t count);
  void PutHostFlip(const prof::Compact& track) REQUIRES(mutex_);
  void PutControl(ResultFiles& to, int device);
  void EndDevice(uint32_t device, DeviceFiles& files) REQUIRES(mutex_);

  const std::string folder_;
  const RecordingRequest wanted_;
  const SystemClock clock_;
  double host_mhz_ = 0;
  Mutex mutex_;
  ResultFiles host_ GUARDED_BY(mutex_);
  std::map<uint32_t, DeviceFiles> devices_ GUARDED_BY(mutex_);
  std::map<uint64_t, std::string> names_ GUARDED_BY(mutex_);
  std::map<std::pair<uint16_t, uint32_t>, std::string> types_ GUARDED_BY(mutex_);
  std::map<std::pair<uint16_t, uint16_t>, uint32_t> host_batches_ GUARDED_BY(mutex_);  // by device, stream
  bool disk_full_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> stop_{false};
  std::thread reader_;
};

}  // namespace profd::sim::aclprof
