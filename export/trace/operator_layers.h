// What both timelines show of operator-level records (operator-data d): operators of the framework (Python), API calls
// of the host (CANN), tasks of each device by stream (Ascend Hardware), communication by group and plane, and how
// computing and communication overlap. Events are given one by one; nothing is kept of them.
#pragma once

#include <cstddef>
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
  std::variant<uint64_t, int64_t, double, std::string_view> value;
};

// One end of a flow; the other one has the same kind and id.
struct LayerFlow {
  enum class Kind : uint8_t {
    kLaunch,     // from a launch to what it put on a device; id: its connection
    kFramework,  // from an operator of a framework to what it had put on a device
    kQueue,      // from where a task is put into the framework's queue to where it is taken out
    kBackward,   // from a forward operator to its backward one
    kMark,       // from a mark of the application to where a stream reached it; id: as MarkConnection
  };
  Kind kind = Kind::kLaunch;
  bool from = false;
  uint64_t id = 0;
};
// At the application's half of a mark.
inline LayerFlow MarkFlow(int64_t connection) {
  return {LayerFlow::Kind::kMark, true, static_cast<uint64_t>(connection)};
}
inline constexpr uint64_t kNoConnection = UINT64_MAX;

// Bytes of an arg's text that are shown: call stacks are long, and an event must fit into a buffer.
inline constexpr size_t kMostArgText = 12'288;

// Views are valid during the call only.
struct LayerEvent {
  std::string_view name;
  int64_t t_ns = 0;
  int64_t dur_ns = 0;
  std::span<const LayerArg> args;
  std::span<const LayerFlow> flows = {};
  std::string_view category = {};  // empty: none
  float rest_ns = 0;               // what the duration has more than dur_ns
};

class LayerSink {
 public:
  virtual ~LayerSink() = default;
  // The thread of the events that follow, complete: each thread is passed once, its events by begin, outer before inner.
  virtual void Enter(const LayerThread& thread) = 0;
  virtual void Take(const LayerEvent& event) = 0;
};

void ShowOperators(const operators::Model& model, const TimeWindow& window, LayerSink& sink);

}  // namespace profd::exporting
