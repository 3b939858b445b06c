// trace_view.json and msprof_<timestamp>.json (analysis 2.3): the layers of the timeline that no table has. Read as a
// stream: memory does not depend on the file's size, only on what is kept.
#include <fmt/format.h>
// Its empty stack adds to a null pointer, which UBSan takes for an error.
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#include <rapidjson/reader.h>
#ifdef __clang__
#pragma clang attribute pop
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>
#include <unordered_map>

#include "analysis/read/csv_file.h"
#include "analysis/read/json_stream.h"
#include "analysis/read/readers.h"
#include "analysis/read/recorded.h"
#include "analysis/read/trace_counters.h"
#include "base/count_text.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

// What matters of an event, as it is written.
struct TraceEvent {
  std::string phase, name, category, id, tid, ts, dur;
  std::string label;  // args.name
  std::string core;   // args."Task Type"; of a kernel that profd recorded, its args.type
  std::string call;   // args.id
  std::string stack;  // args."Call stack"
  std::string transport;  // args."transport type", of a task of a collective
  std::string link;       // args."link type"
  std::string mark;       // args.event_type, of a mark of the application
  std::string domain;     // args.domain
  uint64_t bytes = 0;     // args."size(Byte)"
  int64_t pid = 0;
  bool has_pid = false;
  std::vector<std::pair<std::string, double>> numbers;  // of args

  void Clear() {
    for (std::string* text : {&phase, &name, &category, &id, &tid, &ts, &dur, &label, &core, &call, &stack, &transport, &link, &mark, &domain}) text->clear();
    bytes = 0;
    has_pid = false;
    numbers.clear();
  }
};

constexpr size_t kMaxNumbers = 64;  // of one event's args

// Hands on each object with a phase that lies in an array.
template <class Take>
class EventHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, EventHandler<Take>> {
 public:
  explicit EventHandler(const Take& take) : take_(take) {}

  bool StartObject() {
    if (++depth_ == event_depth_ + 1 && in_array_) {
      event_.Clear();
      in_event_ = true;
    }
    in_args_ = in_args_ || (in_event_ && depth_ == event_depth_ + 2 && key_ == "args");
    return depth_ < kDeepest;
  }
  bool EndObject(rapidjson::SizeType) {
    if (in_args_ && depth_ == event_depth_ + 2) in_args_ = false;
    if (in_event_ && depth_ == event_depth_ + 1) {
      in_event_ = false;
      if (!event_.phase.empty()) take_(event_);
    }
    --depth_;
    return true;
  }
  bool StartArray() {
    if (!in_array_ && !in_event_) {
      in_array_ = true;
      event_depth_ = depth_ + 1;
    }
    return ++depth_ < kDeepest;
  }
  bool EndArray(rapidjson::SizeType) {
    if (depth_-- == event_depth_) in_array_ = false;
    return true;
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    key_.assign(text, length);
    return true;
  }
  bool String(const char* text, rapidjson::SizeType length, bool) { return Value({text, length}, false); }
  // Numbers, as they are written.
  bool RawNumber(const char* text, rapidjson::SizeType length, bool) { return Value({text, length}, true); }

 private:
  static constexpr int kDeepest = 256;
  using Field = std::pair<std::string_view, std::string TraceEvent::*>;

  bool Value(std::string_view text, bool number) {
    if (in_args_) return depth_ != event_depth_ + 2 || TakeArg(text, number);
    if (!in_event_ || depth_ != event_depth_ + 1) return true;
    if (key_ == "pid") event_.has_pid = ParseNumber(text, &event_.pid);
    static constexpr Field kFields[] = {
        {"ph", &TraceEvent::phase}, {"name", &TraceEvent::name}, {"cat", &TraceEvent::category}, {"id", &TraceEvent::id},
        {"tid", &TraceEvent::tid}, {"ts", &TraceEvent::ts}, {"dur", &TraceEvent::dur}};
    Assign(kFields, text);
    return true;
  }
  bool TakeArg(std::string_view text, bool number) {
    static constexpr Field kArgs[] = {
        {"name", &TraceEvent::label}, {"labels", &TraceEvent::label}, {"Task Type", &TraceEvent::core},
        {"id", &TraceEvent::call}, {"Call stack", &TraceEvent::stack}, {"transport type", &TraceEvent::transport},
        {"link type", &TraceEvent::link}, {"event_type", &TraceEvent::mark}, {"domain", &TraceEvent::domain}};
    Assign(kArgs, text);
    // In the export of what profd recorded.
    if (key_ == "type" && CoreNameOf(text) != text) event_.core.assign(CoreNameOf(text));
    if (key_ == "size(Byte)" && !ParseNumber(text, &event_.bytes)) event_.bytes = 0;
    double value = 0;
    // Of counters; where the phase follows, it may be one.
    const bool may_count = number && (event_.phase.empty() || event_.phase == "C") && event_.numbers.size() < kMaxNumbers;
    if (may_count && ParseNumber(text, &value) && std::isfinite(value)) event_.numbers.emplace_back(key_, value);
    return true;
  }
  void Assign(std::span<const Field> fields, std::string_view text) {
    for (const auto& [key, field] : fields) {
      if (key_ == key) (event_.*field).assign(text);
    }
  }

  const Take& take_;
  TraceEvent event_;
  std::string key_;
  int depth_ = 0;
  int event_depth_ = 0;  // of the array the events are in
  bool in_array_ = false;
  bool in_event_ = false;
  bool in_args_ = false;
};

class TraceReader {
 public:
  TraceReader(bool kernels, TraceCounters* counters, Rank* rank) : kernels_(kernels), counters_(*counters), rank_(*rank) {
    for (size_t i = 0; i < rank_.executions.size(); ++i) {
      const Execution& each = rank_.executions[i];
      execution_at_.emplace(Point(rank_.lanes[static_cast<size_t>(each.lane)].name, each.start_ns), i);
    }
  }

  // False: it makes no sense.
  bool Take(const TraceEvent& event) {
    const char phase = event.phase[0];
    if (phase == 'M') return TakeName(event);
    if (phase != 'X' && phase != 'C' && phase != 's' && phase != 'f') return true;
    const auto t_ns = MicrosAsNs(event.ts);
    if (!t_ns || !event.has_pid) return false;
    if (phase == 'C') return counters_.Take(event.pid, event.name, event.numbers, *t_ns);
    const uint32_t thread = ThreadOf(event.pid, event.tid);
    if (phase != 'X') return TakeFlow(event, thread, *t_ns);
    const auto length = MicrosAsNs(event.dur);
    int64_t end = 0;
    if (!length || *length < 0 || __builtin_add_overflow(*t_ns, *length, &end)) return false;
    const TextId core = event.core.empty() ? kNoText : rank_.Text(event.core);
    if (!event.mark.empty()) {
      rank_.AddMark({*t_ns, end, rank_.Text(event.name), event.domain.empty() ? kNoText : rank_.Text(event.domain),
                     event.mark.starts_with("marker")});
    }
    if (event.category == "GC") rank_.garbage.push_back({*t_ns, end});
    // Some writers have the operator as its name.
    constexpr std::string_view kCompile = "aclopCompileAndExecute";
    const TextId name = event.call == kCompile ? rank_.Text(fmt::format("AscendCL@{}", kCompile)) : rank_.Text(event.name);
    if (!event.stack.empty()) stacks_.emplace(events_.size(), rank_.Text(event.stack));
    events_.push_back({*t_ns, end, name, core, thread, event.category == "cpu_op"});
    if (event.bytes > 0 && !event.transport.empty()) {
      moves_.push_back({{*t_ns, end, event.bytes, name, rank_.Text(event.transport), rank_.Text(event.link)}, thread});
    }
    return true;
  }

  // Names of processes and threads may stand behind what they are names of.
  void Finish() {
    std::unordered_map<uint32_t, std::vector<uint32_t>> slice_at;  // by thread
    for (size_t i = 0; i < events_.size(); ++i) {
      const Event& event = events_[i];
      if (!TakeSlice(event)) continue;
      const auto slice = static_cast<uint32_t>(rank_.slices.size() - 1);
      slice_at[event.thread].push_back(slice);
      if (const auto stack = stacks_.find(i); stack != stacks_.end()) rank_.stacks.emplace(slice, stack->second);
    }
    for (auto& [thread, slices] : slice_at) {
      std::ranges::stable_sort(slices, [this](uint32_t a, uint32_t b) { return IsBefore(rank_.slices[a], rank_.slices[b]); });
    }
    for (const auto& [id, ends] : flow_ends_) {
      const auto begin = flow_begins_.find(id);
      if (begin == flow_begins_.end()) continue;
      const std::optional<uint32_t> from = CallerAt(begin->second, slice_at);
      if (!from) continue;
      for (const auto& [thread, t_ns] : ends) {
        if (GroupOf(thread) != kHardware) continue;
        const auto to = execution_at_.find(Point(NameOf(thread), t_ns));
        if (to != execution_at_.end()) rank_.flows.push_back({*from, static_cast<uint32_t>(to->second)});
      }
    }
    for (Intervals& intervals : rank_.overlap) std::ranges::sort(intervals, {}, &Interval::start_ns);
    JoinDevices();
    FindDevice();
    AddTransfers();
    AddWaits();
    AddSteps();
    std::ranges::stable_sort(rank_.steps, {}, &Step::start_ns);
  }

 private:
  using Point = std::pair<std::string, int64_t>;  // lane and start
  struct Hash {
    size_t operator()(const Point& key) const {
      return std::hash<std::string>()(key.first) ^ (static_cast<size_t>(key.second) * 0x9E3779B97F4A7C15u);
    }
  };
  struct Event {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    TextId name = kNoText;
    TextId core = kNoText;
    uint32_t thread = 0;
    bool is_operator = false;
  };
  static constexpr std::string_view kHardware = "Ascend Hardware";
  static constexpr std::string_view kCommunication = "Communication";
  static constexpr std::string_view kNoGroup = "Process";
  static constexpr std::string_view kStepTrace = "Step Trace";
  static constexpr std::string_view kStep = "ProfilerStep#";

  uint32_t ThreadOf(int64_t pid, const std::string& tid) {
    const auto [it, is_new] = threads_.try_emplace({pid, tid}, static_cast<uint32_t>(thread_facts_.size()));
    if (is_new) thread_facts_.emplace_back(pid, "Thread " + tid);
    return it->second;
  }
  const std::string& NameOf(uint32_t thread) const { return thread_facts_[thread].second; }
  std::string_view GroupOf(uint32_t thread) const {
    const auto process = processes_.find(thread_facts_[thread].first);
    if (process == processes_.end()) return kNoGroup;
    return process->second == "HCCL" ? kCommunication : std::string_view(process->second);
  }

  // Outer slices before those within.
  static bool IsBefore(const Slice& a, const Slice& b) { return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns; }

  // The innermost slice of the thread at a time.
  std::optional<uint32_t> CallerAt(const std::pair<uint32_t, int64_t>& at, const std::unordered_map<uint32_t, std::vector<uint32_t>>& slices) const {
    constexpr int kMostTried = 1024;  // what ended before, within the same call
    const auto of_thread = slices.find(at.first);
    if (of_thread == slices.end()) return std::nullopt;
    auto it = std::ranges::upper_bound(of_thread->second, at.second, {}, [this](uint32_t slice) { return rank_.slices[slice].start_ns; });
    for (int tried = 0; it != of_thread->second.begin() && tried < kMostTried; ++tried) {
      --it;
      if (rank_.slices[*it].end_ns >= at.second) return *it;
    }
    return std::nullopt;
  }

  bool TakeName(const TraceEvent& event) {
    if (event.name == "process_name") processes_[event.pid] = event.label;
    if (event.name == "process_labels") counters_.TakeLabel(event.pid, event.label);
    if (event.name == "thread_name") thread_facts_[ThreadOf(event.pid, event.tid)].second = event.label;
    return event.has_pid;
  }

  // Whether it became one of the rank's slices.
  bool TakeSlice(const Event& event) {
    const std::string_view group = GroupOf(event.thread);
    const std::string_view name = rank_.TextOf(event.name);
    // A cut file may have lost the names of its processes; no other layer has such a name.
    const bool free = group == kNoGroup && name == exporting::operators::OverlapName(OverlapKind::kFree);
    if (group == "Overlap Analysis" || free) {
      for (size_t kind = 0; kind < exporting::operators::kOverlapKinds; ++kind) {
        if (name != exporting::operators::OverlapName(static_cast<OverlapKind>(kind))) continue;
        rank_.overlap[kind].push_back({event.start_ns, event.end_ns});
        overlap_of_.insert(thread_facts_[event.thread].first);
      }
      return false;
    }
    if (group == kStepTrace || (group == kHardware && NameOf(event.thread).starts_with(kStepTrace))) {
      TakePart(event, name);
      return false;
    }
    if (group == kHardware) {
      if (kernels_) TakeExecution(event);
      const auto execution = event.core == kNoText ? execution_at_.end() : execution_at_.find(Point(NameOf(event.thread), event.start_ns));
      if (execution != execution_at_.end()) rank_.executions[execution->second].task = event.core;
      if (std::ranges::find(kCopyTasks, rank_.TextOf(event.core)) != std::end(kCopyTasks)) {
        rank_.copies.push_back({event.start_ns, event.end_ns, rank_.LaneOf(kHardware, NameOf(event.thread))});
      }
      return false;
    }
    int64_t number = 0;
    if (name.starts_with(kStep) && ParseNumber(name.substr(kStep.size()), &number)) {
      rank_.steps.push_back({number, event.start_ns, event.end_ns, {}, {}, {}});
    }
    rank_.slices.push_back({event.start_ns, event.end_ns, event.name, rank_.LaneOf(group, NameOf(event.thread)), event.is_operator});
    return true;
  }

  // Each device has its own analysis: the rank's times are those in which any of them computed or communicated.
  void JoinDevices() {
    if (overlap_of_.size() < 2) return;
    const std::optional<Interval> all = exporting::operators::ExtentOf(rank_.overlap);
    Intervals computing = std::move(rank_.overlap[OverlapKind::kComputing]);
    Intervals communication = std::move(rank_.overlap[OverlapKind::kCommunication]);
    rank_.overlap = exporting::operators::MakeOverlap(std::move(computing), std::move(communication), all);
  }

  // Tables have it only with several devices, or with memory.
  void FindDevice() {
    if (rank_.device) return;
    for (const auto& [process, name] : processes_) {
      if (name != kHardware && name != kCommunication && name != "HCCL") continue;
      const std::optional<int> device = counters_.DeviceOf(process);
      if (device && device < rank_.device.value_or(*device + 1)) rank_.device = device;
    }
  }

  // "Iteration 7", "FP_BP Time 7", "Reduce_7_0"; of one that has no such end, nothing.
  void TakePart(const Event& event, std::string_view name) {
    const auto number_behind = [name](std::string_view begin, int64_t* number) {
      return name.starts_with(begin) && ParseNumber(name.substr(begin.size()), number);
    };
    int64_t number = 0;
    if (number_behind("Iteration ", &number)) {
      Step& step = parts_[{event.thread, number}];
      step.number = number;
      step.start_ns = event.start_ns;
      step.end_ns = event.end_ns;
    } else if (number_behind("FP_BP Time ", &number)) {
      Step& step = parts_[{event.thread, number}];
      step.fp_ns = event.start_ns;
      step.bp_ns = event.end_ns;
    } else if (name.starts_with("Reduce_")) {
      const std::string_view both = name.substr(name.find('_') + 1);
      const size_t between = both.find('_');
      if (between == std::string_view::npos || !ParseNumber(both.substr(0, between), &number)) return;
      parts_[{event.thread, number}].reduces.push_back({rank_.Text(fmt::format("reduce_{}", both.substr(between + 1))), event.start_ns, event.end_ns});
    }
  }

  // Of some by start the one that began last of those around a time; null: none is.
  static const Event* Around(const std::vector<const Event*>& collectives, int64_t t_ns) {
    constexpr int kMostAround = 64;  // at a time
    auto it = std::ranges::upper_bound(collectives, t_ns, {}, &Event::start_ns);
    for (int tried = 0; it != collectives.begin() && tried < kMostAround; ++tried) {
      if ((*--it)->end_ns >= t_ns) return *it;
    }
    return nullptr;
  }

  // Each belongs to a collective of its group around it, else to one of any group; where none is, to the last one before it.
  void AddTransfers() {
    if (moves_.empty()) return;
    std::unordered_map<uint32_t, uint64_t> groups = CommunicationGroups();
    std::map<uint64_t, std::vector<const Event*>> of_group;
    std::vector<const Event*> all;
    for (const Event& event : events_) {
      if (GroupOf(event.thread) == kCommunication && rank_.TextOf(event.name).starts_with("hcom")) all.push_back(&event);
    }
    std::ranges::stable_sort(all, {}, &Event::start_ns);
    for (const Event* each : all) of_group[groups[each->thread]].push_back(each);
    for (auto& [transfer, thread] : moves_) {
      const std::string_view kind = rank_.TextOf(transfer.name);
      if (GroupOf(thread) != kCommunication || (!kind.starts_with("Memcpy") && !kind.starts_with("Reduce"))) continue;
      const Event* of = Around(of_group[groups[thread]], transfer.start_ns);
      if (of == nullptr) of = Around(all, transfer.start_ns);
      const auto after = std::ranges::upper_bound(all, transfer.start_ns, {}, &Event::start_ns);
      if (of == nullptr && after == all.begin()) continue;
      transfer.name = (of == nullptr ? *std::prev(after) : of)->name;
      rank_.transfers.push_back(transfer);
    }
  }

  // Of each thread of communication, by process and number: a thread with the operations of a group is before its planes.
  std::unordered_map<uint32_t, uint64_t> CommunicationGroups() const {
    std::map<std::pair<int64_t, int64_t>, uint32_t> threads;
    for (const auto& [key, thread] : threads_) {
      int64_t number = 0;
      if (GroupOf(thread) == kCommunication && ParseNumber(key.second, &number)) threads.emplace(std::pair(key.first, number), thread);
    }
    std::unordered_map<uint32_t, uint64_t> groups;
    uint64_t group = 0;
    for (const auto& [key, thread] : threads) groups[thread] = NameOf(thread).find(kCommunication) == std::string::npos ? group : ++group;
    return groups;
  }

  void AddWaits() {
    std::unordered_map<uint32_t, uint64_t> groups = CommunicationGroups();
    std::vector<PlaneTask> tasks;
    for (const Event& event : events_) {
      const std::string_view name = GroupOf(event.thread) == kCommunication ? rank_.TextOf(event.name) : std::string_view();
      if (name.empty() || name.starts_with("hcom")) continue;
      tasks.push_back({event.start_ns, event.end_ns, PlaneNumber(groups[event.thread], event.thread), name});
    }
    // As the vendor's advisor does over text only.
    rank_.AddWaits(std::move(tasks), true);
  }

  // Each file of a run in pieces may have the steps of all. Of steps that the framework marked they are the parts.
  void AddSteps() {
    const bool marked = std::ranges::any_of(rank_.slices, [this](const Slice& each) { return rank_.TextOf(each.name).starts_with(kStep); });
    for (auto& [key, step] : parts_) {
      std::ranges::stable_sort(step.reduces, {}, &Reduce::start_ns);
      const auto known = std::ranges::find_if(rank_.steps, [marked, &made = step](const Step& each) {
        return marked ? each.start_ns <= made.start_ns && made.end_ns <= each.end_ns : each.number == made.number && each.start_ns == made.start_ns;
      });
      if (!marked) {
        if (known == rank_.steps.end() && step.end_ns != 0) rank_.steps.push_back(std::move(step));
      } else if (known != rank_.steps.end() && !known->fp_ns) {
        known->fp_ns = step.fp_ns;
        known->bp_ns = step.bp_ns;
        known->reduces = std::move(step.reduces);
      }
    }
  }

  void TakeExecution(const Event& event) {
    const std::string_view core = rank_.TextOf(event.core);
    if (core.find("AI_") == std::string_view::npos && core.find("MIX_") == std::string_view::npos) return;
    const int32_t op = rank_.OperatorOf(event.name, kNoText, event.core);
    execution_at_.emplace(Point(NameOf(event.thread), event.start_ns), rank_.executions.size());
    rank_.executions.push_back({event.start_ns, event.end_ns, op, rank_.LaneOf(kHardware, NameOf(event.thread))});
  }

  bool TakeFlow(const TraceEvent& event, uint32_t thread, int64_t t_ns) {
    if (event.category != "HostToDevice" && event.category != "async_npu") return true;
    const std::string id = event.category + event.id;
    if (event.phase == "s") {
      flow_begins_.emplace(id, std::pair(thread, t_ns));
    } else {
      flow_ends_[id].emplace_back(thread, t_ns);
    }
    return true;
  }

  bool kernels_;
  TraceCounters& counters_;
  Rank& rank_;
  std::vector<Event> events_;
  std::unordered_map<size_t, TextId> stacks_;         // of events_
  std::vector<std::pair<Transfer, uint32_t>> moves_;  // and thread
  std::unordered_map<int64_t, std::string> processes_;
  std::set<int64_t> overlap_of_;  // processes
  std::map<std::pair<int64_t, std::string>, uint32_t> threads_;
  std::vector<std::pair<int64_t, std::string>> thread_facts_;  // process and name
  std::map<std::pair<uint32_t, int64_t>, Step> parts_;         // by thread (a model) and number
  std::unordered_map<Point, size_t, Hash> execution_at_;  // by stream and start
  std::unordered_map<std::string, std::pair<uint32_t, int64_t>> flow_begins_;
  std::map<std::string, std::vector<std::pair<uint32_t, int64_t>>> flow_ends_;
};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

void ReadTrace(const std::filesystem::path& path, bool kernels, const ReadContext& context, TraceCounters* counters, Rank* rank) {
  Result<UniqueFd> fd = OpenPlain(path);
  const std::unique_ptr<std::FILE, CloseFile> file(fd.ok() ? ::fdopen(fd->get(), "r") : nullptr);
  if (file == nullptr) {
    return context.AddProblem(path, fd.ok() ? Status::FromErrno(errno, "open") : fd.status());
  }
  (void)fd->Release();
  TraceReader reader(kernels, counters, rank);
  std::array<char, kByteOrderMark.size()> begin{};
  const size_t read = std::fread(begin.data(), 1, begin.size(), file.get());
  const size_t skipped = std::string_view(begin.data(), read) == kByteOrderMark ? read : 0;
  if (skipped == 0) std::rewind(file.get());
  constexpr size_t kBlock = 256 << 10;
  WithoutLoneSurrogates stream([&file](char* to, size_t bytes) { return std::fread(to, 1, bytes, file.get()); }, kBlock);
  uint64_t bad = 0;
  size_t first_bad = 0;
  const auto take = [&](const TraceEvent& event) {
    if (!reader.Take(event) && ++bad == 1) first_bad = stream.Tell() + skipped;
  };
  EventHandler<decltype(take)> handler(take);
  rapidjson::Reader parser;
  // Python writes NaN and Infinity: such an event makes no sense, but those behind it do.
  constexpr unsigned kFlags = rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag;
  const rapidjson::ParseResult parsed = parser.Parse<kFlags>(stream, handler);
  reader.Finish();
  if (parsed.IsError()) {
    context.AddProblem(path, fmt::format("the JSON is damaged at byte {}: events from there on are missing", parsed.Offset() + skipped));
  }
  if (bad > 0) {
    context.AddProblem(path, fmt::format("{} no sense: left out, the first ends at byte {}", CountText(bad, "event makes", "events make"), first_bad));
  }
}

}  // namespace profd::analysis
