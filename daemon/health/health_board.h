// The health of all NPUs over time: since when it is so, and what changed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/health/judge.h"

namespace profd {

// A line of the log: `event` is a fixed phrase.
struct HealthChange {
  Verdict verdict = Verdict::kOk;  // how bad it is
  std::string event;
  std::vector<std::pair<std::string, std::string>> fields;
};

struct ActiveFault {
  FaultFact fault;
  int64_t since_ns = 0;  // wall clock; 0: there when the device was first read
};

// One NPU as it was at the last update.
struct DeviceRecord {
  HealthFacts facts;
  DeviceHealth health;
  int64_t since_ns = 0;             // of the verdict, wall clock; 0: since the device was first read
  std::vector<ActiveFault> faults;  // what facts.faults has, with their times
};

// One thread.
class HealthBoard {
 public:
  // The facts of all devices; answers what changed since the last time, each change once. What is not
  // known any more (a card that is gone) has not changed: it is compared when it is known again.
  std::vector<HealthChange> Update(std::vector<HealthFacts> facts, int64_t wall_ns);

  // Null before the first update.
  const DeviceRecord* Of(int device) const;
  const std::map<int, DeviceRecord>& devices() const { return devices_; }
  // Of all devices; kUnknown without any.
  Verdict node() const;

 private:
  // What was known last, also while the device is gone.
  struct Memory {
    bool read = false;  // its health was known once
    Verdict verdict = Verdict::kUnknown;
    std::optional<int> health_status;
    bool faults_known = false;
    std::vector<ActiveFault> faults;
  };

  void CompareVerdict(const DeviceRecord& before, DeviceRecord* now, Memory* memory,
                      int64_t wall_ns, std::vector<HealthChange>* changes);
  static void CompareFaults(DeviceRecord* now, Memory* memory, int64_t wall_ns,
                            std::vector<HealthChange>* changes);

  std::map<int, DeviceRecord> devices_;
  std::map<int, Memory> memory_;
};

}  // namespace profd
