// How an NPU is, judged in one place: the page, /readyz, the metrics, profctl and the log all go by it.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profd/v1/profd.pb.h"

namespace profd {

class MetricStore;

// In the order of the metric atlas_npu_verdict's values.
enum class Verdict : uint8_t { kOk, kDegraded, kFaulty, kDown, kUnknown };
std::string_view VerdictName(Verdict verdict);  // "ok", "degraded", ...

struct FaultFact {
  std::string code;  // "0x80E01801"
  std::string name;  // empty: the driver has none
  std::string severity;
  auto operator<=>(const FaultFact&) const = default;
};

// What is known of one NPU now.
struct HealthFacts {
  int device = 0;       // logical id
  std::string npu = {};      // its label in metrics
  std::string problem = {};  // why it cannot be used, in the drivers' words; empty: none
  std::string unreadable = {};  // why libdcmi can tell nothing about it; empty: it can, or there is none
  std::string not_read = {};  // why its state is not read from libdcmi at all; empty: it is
  bool hangs = false;   // it answers no call any more
  std::string stuck_call = {};  // one that has not returned, while others do; empty: none
  std::optional<bool> up = {};  // answers libdcmi
  std::optional<int> health_status = {};
  bool faults_known = false;
  std::vector<FaultFact> faults = {};
  std::vector<std::string> throttle_reasons = {};  // that hold now
  double uncorrected_errors = 0;  // of memory, since the NPU started
};

struct DeviceHealth {
  Verdict verdict = Verdict::kUnknown;
  std::vector<v1::Health::Flag> flags;
  std::vector<std::string> reasons;  // one for each flag; why it is unknown
};

// Fills in what the series of the devices in `*facts` say.
void AddStoredFacts(const MetricStore& store, int64_t now_ns, std::vector<HealthFacts>* facts);

DeviceHealth Judge(const HealthFacts& facts);

// The worse of two. Unknown is worse than ok and better than anything that is known to be wrong.
Verdict Worse(Verdict a, Verdict b);

}  // namespace profd
