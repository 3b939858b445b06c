// What the NPUs used while a session ran, from the latest values of the node's own metrics. Control
// strand.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "collectors/collector.h"

namespace profd {

struct Manifest;
class MetricStore;

namespace v1 {
class SessionStatus;
}
namespace state {
class StoredSession;
}

// The latest values of one NPU; what is not measured is absent.
struct DeviceValues {
  std::optional<double> energy_joules;  // since the daemon started
  std::optional<double> memory_bytes;
  std::optional<double> utilization;
  std::optional<double> ecc_corrected;  // over the life of the memory
  std::optional<double> ecc_uncorrected;
};
// By logical id. Goes through all series: for once a second, not for every record.
std::map<int, DeviceValues> ReadDevices(const MetricStore& store,
                                        std::span<const DeviceInfo> devices, int64_t now_ns);

class SessionStatistics {
 public:
  // A device counts from the first sample it is in.
  void Take(const std::map<int, DeviceValues>& latest, std::span<const int> devices);
  void Fill(v1::SessionStatus* out) const;  // in place of what it has
  void Describe(Manifest* out) const;
  bool empty() const { return devices_.empty(); }

  // Over the daemon's end: what was taken so far counts on. Counters are compared within one daemon only, so that the
  // time without one is not covered.
  void Save(state::StoredSession* out) const;
  static SessionStatistics Of(const state::StoredSession& stored);

 private:
  // What a counter has grown by; one that fell was cleared, and counts anew.
  struct Growth {
    std::optional<double> last;
    std::optional<double> sum;
    void Take(const std::optional<double>& value);
  };
  struct Device {
    Growth energy;
    Growth ecc_corrected;
    Growth ecc_uncorrected;
    std::optional<double> peak_memory;
    double utilization = 0;
    uint64_t utilizations = 0;
  };
  std::map<int, Device> devices_;
};

}  // namespace profd
