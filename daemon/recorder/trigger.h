// The language of recorder.triggers and recorder.collectors. Pure functions.
//
//   METRIC{LABEL="VALUE",...} OP NUMBER for DURATION    a series fulfils it for that long; labels and
//                                                       "for" may be left out; OP > >= < <= == !=
//   error_code      a device reports a fault it did not report before, its health gets worse, or it
//                   stops answering
//   crash           an attached process ends without having detached
//   step > Kx median   a step takes longer than K times the median of its process's last steps
//   advice [CHECK]  a live check (or this one) has found something (daemon/advice)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "collectors/collector.h"
#include "collectors/metric_spec.h"

namespace profd {

enum class TriggerKind : uint8_t { kThreshold, kErrorCode, kCrash, kSlowStep, kAdvice };
// "threshold", "error_code", "crash", "slow_step", "advice": as metrics and Node.recorder count them.
std::string_view ToString(TriggerKind kind);

enum class TriggerOp : uint8_t { kAbove, kAtLeast, kBelow, kAtMost, kEqual, kNotEqual };

struct Trigger {
  TriggerKind kind = TriggerKind::kThreshold;
  std::string text;  // as it was written
  // kThreshold:
  MetricId metric = 0;
  std::vector<std::pair<std::string, std::string>> labels;
  TriggerOp op = TriggerOp::kAbove;
  double value = 0;
  int64_t for_ns = 0;
  // kSlowStep:
  double factor = 0;
  // kAdvice: the check; empty = any.
  std::string check = {};
};

bool Holds(TriggerOp op, double left, double right);

// kInvalidArgument with what is wrong and what would be right.
Result<Trigger> ParseTrigger(std::string_view text);

struct WantedCollector {
  uint16_t collector = 0;  // index in Collectors()
  double hz = 0;
};
// "hbm" or "hbm=10".
Result<WantedCollector> ParseWantedCollector(std::string_view text);

// Everything that is wrong with the list of this key, a line each.
void ValidateCollectors(std::string_view key, const std::vector<std::string>& collectors,
                        std::vector<std::string>* problems);

// The same of the two lists of the recorder.
void ValidateRecorder(const std::vector<std::string>& collectors,
                      const std::vector<std::string>& triggers, std::vector<std::string>* problems);

}  // namespace profd
