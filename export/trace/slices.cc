#include "export/trace/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "export/number_text.h"

namespace profd::exporting {
namespace {

// Thread ids of the vendor's step trace are the model id, as a signed 32-bit number, plus this.
constexpr int64_t kModelTid = 70000;
// Steps are no calls: they have a row of their own beside the thread that marked them.
constexpr int64_t kStepTid = 1 << 30;
constexpr int64_t kTidMask = kStepTid - 1;
// Nor are ranges that do not nest. Above any thread id of Linux.
constexpr int64_t kRangeTid = 1 << 29;
// Above what Linux has as thread ids.
constexpr int64_t kNextProcess = 1 << 22;

std::string Micros(int64_t t_ns) {
  char text[32];
  return {text, AppendMicros(text, t_ns)};
}

double ToMicros(int64_t ns) { return static_cast<double>(ns) / 1000.0; }

int64_t ToNs(double offset) {
  return offset > -9e15 && offset < 9e15 ? static_cast<int64_t>(offset) : 0;
}

std::optional<int64_t> Find(const Event& event, std::string_view name) {
  for (const Event::Arg& arg : event.args) {
    if (arg.name == name) return ToNs(arg.value);
  }
  return std::nullopt;
}

uint32_t NameTid(std::string_view name) {
  uint32_t hash = 2166136261U;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash & 0x3FFFFFFF;
}

// As the vendor's analyser shows them (operator-data d.6).
void AddRecordedArgs(const Event& event, Slice* slice) {
  const Event::Recorded& recorded = *event.recorded;
  if (recorded.is_ex) {
    slice->texts = {{"event_type", std::string(MarkTypeName(event))},
                    {"domain", event.domain.empty() ? "default" : event.domain}};
    return;
  }
  slice->texts = {{"Category", fmt::to_string(recorded.category)}, {"event_type", std::string(MarkTypeName(event))}};
  slice->integers.emplace_back("Payload_type", recorded.payload_type);
  slice->integers.emplace_back("Payload_value", static_cast<int64_t>(recorded.payload));
  slice->integers.emplace_back("Message_type", recorded.message_type);
}

// Numbers of threads are those of the process's own pid namespace: processes in containers have the same ones.
int64_t ThreadTid(const Event& event, const DumpInfo& dump) {
  if (!dump.manifest) return event.tid & kTidMask;
  const std::vector<ManifestProcess>& processes = dump.manifest->processes;
  const auto process = std::ranges::find(processes, event.pid, &ManifestProcess::pid);
  if (process == processes.begin() || process == processes.end()) return event.tid & kTidMask;
  return (event.tid & (kNextProcess - 1)) + (process - processes.begin()) % (kRangeTid / kNextProcess) * kNextProcess;
}

Slice OfMark(const Event& event, const DumpInfo& dump) {
  Slice slice;
  slice.kind = event.kind == EventKind::kMark ? Slice::Kind::kInstant : Slice::Kind::kSlice;
  slice.process = &kMarksProcess;
  slice.tid = ThreadTid(event, dump);
  slice.track = fmt::format("thread {}", event.tid);
  slice.track_order = 1;
  slice.name = event.name;
  slice.category = event.domain;
  if (event.lane) {
    const std::string& domain = event.domain;
    slice.track = domain.empty() ? "Ranges" : "Ranges: " + domain;
    if (*event.lane > 0) slice.track += fmt::format(" ({})", *event.lane + 1);
    slice.tid = kRangeTid | ((kRangeTid - 1) & NameTid(fmt::format("{} {}", event.pid, slice.track)));
    slice.integers.emplace_back("thread", event.tid);
  }
  if (event.kind == EventKind::kFrame) {
    slice.track = fmt::format("call stack of thread {}", event.tid);
    slice.tid = kRangeTid | ((kRangeTid - 1) & NameTid(fmt::format("{} {}", event.pid, slice.track)));
  }
  if (event.kind == EventKind::kStep) {
    slice.tid = kStepTid | (event.pid & kTidMask);
    slice.track = "Steps";
    slice.track_order = 0;
    if (slice.name.empty()) slice.name = fmt::format("Step {}", event.value);
    slice.integers.emplace_back("Step", event.value);
  }
  slice.thread = fmt::format("{}: {}", dump.ProcessName(event.pid, event.rank),
                             event.kind == EventKind::kStep ? "steps" : slice.track);
  if (event.rank) slice.integers.emplace_back("rank", *event.rank);
  if (event.recorded) AddRecordedArgs(event, &slice);
  if (event.recorded && event.recorded->on_device) slice.mark = MarkConnection(event.recorded->mark);
  slice.t_ns = event.t_ns;
  slice.dur_ns = event.dur_ns;
  for (const Event::Arg& arg : event.args) slice.numbers.emplace_back(arg.name, arg.value);
  return slice;
}

Slice OfLoss(const Event& event) {
  Slice slice;
  slice.kind = event.dur_ns > 0 ? Slice::Kind::kSlice : Slice::Kind::kInstant;
  slice.process = &kLossProcess;
  slice.tid = NameTid(event.name);
  slice.thread = event.name;
  slice.track = event.name;
  slice.name = "Lost " + event.name;
  slice.t_ns = event.t_ns;
  slice.dur_ns = event.dur_ns;
  if (event.value > 0) slice.integers.emplace_back("Records", event.value);
  for (const Event::Arg& arg : event.args) slice.numbers.emplace_back(arg.name, arg.value);
  return slice;
}

// The step trace of one iteration, dump-format 4.
class Iteration {
 public:
  explicit Iteration(const Event& event)
      : event_(event),
        end_ns_(event.t_ns + event.dur_ns),
        fp_(Absolute("FP Start")),
        bp_(Absolute("BP End")) {}

  std::vector<Slice> Slices() {
    Slice& whole = Add("Iteration", "Iteration Time", event_.t_ns, event_.dur_ns);
    whole.texts = {
        {"FP Start", Text(fp_)}, {"BP End", Text(bp_)}, {"Iteration End", Micros(end_ns_)}};
    whole.numbers = {{"Iteration Time(us)", ToMicros(event_.dur_ns)}};
    if (fp_ && bp_ && *bp_ >= *fp_ && end_ns_ >= *bp_) AddParts();
    AddPairs("Reduce Start", "Reduce End");
    AddPairs("GetNext Start", "GetNext End");
    return std::move(slices_);
  }

 private:
  std::optional<int64_t> Absolute(std::string_view name) const {
    std::optional<int64_t> offset = Find(event_, name);
    if (offset) *offset += event_.t_ns;
    return offset;
  }

  static std::string Text(const std::optional<int64_t>& t_ns) {
    return t_ns ? Micros(*t_ns) : "N/A";
  }

  Slice& Add(std::string_view name, std::string_view category, int64_t t_ns, int64_t dur_ns) {
    Slice& slice = slices_.emplace_back();
    slice.process = &kStepTraceProcess;
    slice.tid = static_cast<int32_t>(static_cast<uint32_t>(event_.tid)) + kModelTid;
    slice.thread = fmt::format("Model ID:{}", event_.tid);
    // Training steps belong to no model.
    const bool step = event_.kind == EventKind::kDeviceStep;
    slice.track = step ? "Steps" : fmt::format("Model {}", event_.tid);
    slice.track_order = step ? 0 : 1;
    slice.name = fmt::format("{} {}{}", name, event_.value, event_.partial ? " (partial)" : "");
    slice.category = category;
    slice.t_ns = t_ns;
    slice.dur_ns = dur_ns;
    slice.integers.emplace_back("Iteration ID", event_.value);
    return slice;
  }

  void AddParts() {
    Slice& pass = Add("FP_BP Time", "FP_BP Time", *fp_, *bp_ - *fp_);
    pass.texts = {{"FP Start", Micros(*fp_)}, {"BP End", Micros(*bp_)}};
    pass.numbers = {{"FP_BP Time(us)", ToMicros(*bp_ - *fp_)}};
    Slice& refresh = Add("Iteration Refresh", "Iteration Refresh", *bp_, end_ns_ - *bp_);
    refresh.texts = {{"BP End", Micros(*bp_)}, {"Iteration End", Micros(end_ns_)}};
    refresh.numbers = {{"Iteration Refresh(us)", ToMicros(end_ns_ - *bp_)}};
    Slice& to = Add("Data_aug Bound", "Data_aug Bound", *fp_, 0);
    to.kind = Slice::Kind::kFlowStep;
    to.name = fmt::format("Data_aug Bound {}", event_.value - 1);
    int64_t bound = Find(event_, "Data Aug Bound").value_or(0);
    Slice& from = Add("Data_aug Bound", "Data_aug Bound", *bp_ + bound / 2, 0);
    from.kind = Slice::Kind::kFlowStart;
    from.integers.clear();
    from.numbers = {{"Data_aug Bound(us)", ToMicros(bound)}};
  }

  void AddPairs(std::string_view start_name, std::string_view end_name) {
    bool reduce = start_name.starts_with("Reduce");
    int64_t start = 0;
    bool started = false;
    int64_t count = 0;
    for (const Event::Arg& arg : event_.args) {
      if (arg.name == start_name) {
        start = event_.t_ns + ToNs(arg.value);
        started = true;
      }
      if (arg.name != end_name || !started) continue;
      AddPair(reduce, count++, start, std::max(event_.t_ns + ToNs(arg.value), start));
      started = false;
    }
  }

  void AddPair(bool reduce, int64_t count, int64_t start, int64_t end) {
    Slice& slice = Add("GetNext", reduce ? "Reduce" : "GetNext Time", start, end - start);
    slice.name = reduce ? fmt::format("Reduce_{}_{}", event_.value, count) : "GetNext";
    if (reduce) {
      slice.texts = {{fmt::format("Reduce Start {}", count), Micros(start)},
                     {fmt::format("Reduce End {}", count), Micros(end)}};
    } else {
      slice.integers.clear();
      slice.texts = {{"GetNext Start", Micros(start)}, {"GetNext End", Micros(end)}};
      slice.numbers = {{"GetNext Time(us)", ToMicros(end - start)}};
    }
  }

  const Event& event_;
  int64_t end_ns_;
  std::optional<int64_t> fp_;
  std::optional<int64_t> bp_;
  std::vector<Slice> slices_;
};

}  // namespace

std::vector<Slice> SlicesOf(const Event& event, const DumpInfo& dump) {
  switch (event.kind) {
    case EventKind::kIteration:
    case EventKind::kDeviceStep:
      return Iteration(event).Slices();
    case EventKind::kLoss:
      return {OfLoss(event)};
    default:
      return {OfMark(event, dump)};
  }
}

}  // namespace profd::exporting
