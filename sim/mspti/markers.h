// Marks of mstx as MARKER records: the host's half at once, the device's when its log reaches it.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "base/mutex.h"
#include "sim/ascendcl/ascendcl.h"
#include "sim/mspti/mspti.h"

namespace profd::sim::mspti {

class Markers {
 public:
  static constexpr size_t kLongestMessage = 254;

  static Markers& The();
  // Given to libprofapi: fills the tables of CORE and CORE_DOMAIN.
  static int Init(prof::MstxGetTable get_table);

  void Mark(const std::string& domain, const char* message, void* stream);
  uint64_t Start(const std::string& domain, const char* message, void* stream);
  void End(uint64_t id);
  int SetDomain(const char* name, bool on);

  void OnLog(uint32_t device, const acl::LogRecord& record);
  // Device halves that were held back.
  void PutDue();

 private:
  struct Range {
    std::string domain;
    void* stream;
  };
  struct DueRecord {
    int64_t due_ns;
    uint32_t device;
    acl::LogRecord record;
  };

  bool Takes(const std::string& domain, const char* message);
  void PutHost(uint32_t flag, uint64_t id, std::string_view name, std::string_view domain);
  void PutDevice(uint32_t device, const acl::LogRecord& record);

  std::atomic<uint64_t> next_id_{1};
  Mutex mutex_;
  std::set<std::string> off_ GUARDED_BY(mutex_);
  std::map<uint64_t, Range> ranges_ GUARDED_BY(mutex_);
  std::deque<DueRecord> held_ GUARDED_BY(mutex_);
};

}  // namespace profd::sim::mspti
