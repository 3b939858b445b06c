// What is not a counter: marks, ranges and steps of training processes, the vendor's step trace, gaps in
// the data. Few beside the rows; one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace profd::exporting {

enum class EventKind : uint8_t {
  kMark,       // an instant
  kRange,      // begin to end, nested per thread; with a lane: in any order, and maybe on two threads
  kStep,       // a training step, as its process marked it
  kIteration,  // of the vendor's step trace, with its parts (dump-format 4)
  kLoss,       // records of a channel are missing here
  kDeviceStep,  // a training step, as the step trace of a device has it
  kFrame,       // a function on the sampled call stacks of a thread
};
inline constexpr size_t kEventKinds = 7;

// kIteration (dump-format 4): name "Iteration k", value = k, tid = model id, from step start to
// iteration end. args are offsets in ns from t_ns, each only when it is known: "FP Start", "BP End";
// "Data Aug Bound" is a length in ns. All-reduce and get-next pairs of the iteration follow one another
// as "Reduce Start" "Reduce End", "GetNext Start" "GetNext End", as often as there are pairs.
// kDeviceStep: as kIteration; its parts are what the recorded kernels and communication show (step_parts.h).
// kFrame: value = its number, `caller` that of the frame that called it; arg "samples": stacks that end with it.
// kLoss: name = what lacks records; value = how many, 0 = unknown.
struct Event {
  EventKind kind = EventKind::kMark;
  int64_t t_ns = 0;    // wall clock, ns since the epoch
  int64_t dur_ns = 0;  // 0 for instants
  int device = -1;     // -1 = host
  int64_t pid = 0;     // of the process; 0 = none
  int64_t tid = 0;
  std::string name;
  int64_t value = 0;  // step, iteration, model
  // Numbers that belong to it, as they are shown (but see kIteration).
  struct Arg {
    std::string name;
    double value = 0;
  };
  std::vector<Arg> args;
  std::optional<int> rank = {};  // of the process
  std::string domain = {};  // of a mark or a range; empty = none
  // Ranges that do not nest: those of one process, domain and lane do not overlap. From 0.
  std::optional<int> lane = {};
  int64_t caller = 0;  // of a frame; 0 = none
  // Of a mark or range that the vendor's in-process profiler recorded (operator-data a.2, msproftx).
  struct Recorded {
    enum Type : uint32_t { kMarker = 0, kPushPop = 1, kStartEnd = 2, kMarkerEx = 3 };
    bool is_ex = false;  // has a domain and a mark of its own; else category and payload
    Type type = kMarker;
    uint32_t category = 0;
    uint32_t payload_type = 0;
    uint64_t payload = 0;
    uint64_t mark = 0;
    uint32_t message_type = 0;
    // When a stream of a device reached it.
    struct OnDevice {
      int64_t start_ns = 0;  // wall clock
      int64_t end_ns = 0;
    };
    std::optional<OnDevice> on_device = {};
  };
  std::optional<Recorded> recorded = {};
  // It crosses the begin or the end of the session, and is clipped there; its name shows it too.
  bool partial = false;
};

// event_type of msprof_tx.
inline std::string_view MarkTypeName(const Event& event) {
  constexpr std::string_view kRecorded[] = {"marker", "push/pop", "start/end", "marker_ex"};
  if (event.recorded) return kRecorded[event.recorded->type];
  if (event.kind == EventKind::kMark) return kRecorded[Event::Recorded::kMarkerEx];
  const bool pushed = event.kind == EventKind::kRange && !event.lane;
  return kRecorded[pushed ? Event::Recorded::kPushPop : Event::Recorded::kStartEnd];
}

// The connection of a mark with a number of its own, as the vendor's analyser counts them: this and its number.
inline constexpr int64_t kFirstMarkConnection = 4'000'000'001;
inline constexpr int64_t MarkConnection(uint64_t mark) {
  return kFirstMarkConnection + static_cast<int64_t>(mark & 0xFFFFFFFF);
}

// Behind the name of what crosses the begin or the end of the session.
inline constexpr std::string_view kPartial = " (partial)";

inline void MarkPartial(Event* event) {
  event->partial = true;
  event->name += kPartial;
}

}  // namespace profd::exporting
