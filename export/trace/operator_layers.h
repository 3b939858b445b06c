// What both timelines show of operator-level records (operator-data d): API calls of the host (CANN), tasks of each
// device by stream (Ascend Hardware), communication by group and plane, and how computing and communication overlap.
// Events are given one by one; nothing is kept of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "export/batch.h"
#include "export/operators/model.h"
#include "export/trace/layout.h"

namespace profd::exporting {

// A thread of a process; device -1: the host.
struct LayerThread {
  const ProcessSpec* process = nullptr;
  int device = -1;
  int64_t tid = 0;
  std::string_view name;
};

struct LayerArg {
  std::string_view name;
  std::variant<uint64_t, double, std::string_view> value;
};

// Views are valid during the call only.
struct LayerEvent {
  std::string_view name;
  int64_t t_ns = 0;
  int64_t dur_ns = 0;
  std::span<const LayerArg> args;
  // The arrow from a launch to what it put on a device; both ends have the launch's connection id.
  enum class Flow : uint8_t { kNone, kFrom, kTo };
  Flow flow = Flow::kNone;
  uint64_t connection = 0;
};

class LayerSink {
 public:
  virtual ~LayerSink() = default;
  // The thread of the events that follow, whole: each thread comes once, its events by begin, outer before inner.
  virtual void Enter(const LayerThread& thread) = 0;
  virtual void Take(const LayerEvent& event) = 0;
};

void ShowOperators(const operators::Model& model, const TimeWindow& window, LayerSink& sink);

}  // namespace profd::exporting
