#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dump/mark_files.h"
#include "export/decode/text_parts.h"
#include "export/dump_info.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

// host/profd/marks.tsv (docs/dumps.md): time_ns, pid, rank, thread, kind, name, value, domain (dumps of before have
// none). A range or step whose other end lies outside of the session is clipped there, one that was open when its process
// attached at that instant. A step's end in the middle without its
// begin, or its begin without its end, lost the other half: it is left out and counted. Steps of a process that reports no
// end at all end where the next one begins, as in `profctl jobs`; repeats of a step while it runs are none, nor are those by
// other threads.
class MarksDecoder final : public EventDecoder {
 public:
  explicit MarksDecoder(const DecodeContext& context) : EventDecoder(context) {
    const ClockFacts& facts = clock_.facts();
    begin_ns_ = clock_.HostNs(facts.begin_raw_ns);
    if (facts.end_us > 0) end_ns_ = clock_.HostNs(facts.RecordedToRawNs());
    if (context.dump == nullptr || !context.dump->manifest) return;
    for (const ManifestProcess& process : context.dump->manifest->processes) {
      if (process.joined_raw_ns != 0) joined_ns_[process.pid] = clock_.HostNs(process.joined_raw_ns);
    }
  }

  void Feed(std::span<const std::byte> bytes, bool) override {
    ForEachOwnLine(bytes, &stats_, [this](std::string_view line) { return Line(line); });
  }

  void Finish() override {
    // Without an end of the session: its last mark.
    end_ns_ = std::max(end_ns_, last_ns_);
    for (auto& [thread, open] : ranges_) {
      while (!open.empty()) EndRange(thread, &open, end_ns_, true);
    }
    for (const auto& [pid, step] : steps_) {
      if (step.open) SendStep(step, end_ns_, true);
    }
    for (auto& [id, range] : started_) SendStarted(&range, end_ns_, true);
  }

 private:
  using Thread = std::pair<int64_t, int64_t>;  // pid, thread
  using Rank = std::optional<int>;
  static constexpr size_t kMaxThreads = 65536;
  static constexpr size_t kMaxDepth = 512;
  static constexpr size_t kMaxStarted = 65536;
  struct Range {
    int64_t t_ns = 0;
    std::string name;
    Rank rank;
    std::string domain = {};
  };
  // Between its start and its end, by an id.
  struct Started {
    Thread thread;
    Range range;
    int lane = 0;
  };
  using OpenById = std::map<std::pair<int64_t, int64_t>, Started>;  // by pid and id
  // The lowest free one, and those given back. A file may have any number of ranges open at a time.
  struct Lanes {
    std::set<int> free;
    int next = 0;
    int Take() {
      if (free.empty()) return next++;
      return free.extract(free.begin()).value();
    }
    bool AllFree() const { return free.size() == static_cast<size_t>(next); }
  };
  struct Mark {
    Thread thread;
    int64_t t_ns = 0;
    Rank rank;
    std::string_view name;
    int64_t value = 0;
    std::string_view domain = {};
  };
  struct Step {
    bool open = false;
    Thread thread;
    int64_t t_ns = 0;
    Rank rank;
    int64_t value = 0;
    bool ends = false;  // its process reports where steps end
  };

  bool Line(std::string_view line) {
    TextScan scan(line);
    OwnLine head;
    if (!head.Scan(&scan)) return false;
    Mark mark{head.thread, clock_.HostNs(head.ns), head.rank, scan.Field('\t')};
    TextScan value(scan.Field('\t'));
    if (!value.Int(&mark.value)) return false;
    mark.domain = scan.Field('\t');
    last_ns_ = std::max(last_ns_, mark.t_ns);
    if (head.kind == "mark") return Instant(mark);
    if (head.kind == "push") return Push(mark);
    if (head.kind == "pop") return Pop(mark);
    if (head.kind == "step_begin") return BeginStep(mark);
    if (head.kind == "step_end") return EndStep(mark);
    if (head.kind == "range_start") return StartRange(mark);
    if (head.kind == "range_end") return EndStarted(mark);
    return false;
  }

  bool Instant(const Mark& mark) {
    Event event = EventOf(EventKind::kMark, mark.thread, mark.rank);
    event.t_ns = mark.t_ns;
    event.name = mark.name;
    event.value = mark.value;
    event.domain = mark.domain;
    Send(event);
    return true;
  }

  bool Push(const Mark& mark) {
    if (ranges_.size() >= kMaxThreads && !ranges_.contains(mark.thread)) return false;
    std::vector<Range>& open = ranges_[mark.thread];
    if (open.size() >= kMaxDepth) return false;
    open.push_back({mark.t_ns, std::string(mark.name), mark.rank, std::string(mark.domain)});
    return true;
  }
  bool Pop(const Mark& mark) {
    if (ranges_.size() >= kMaxThreads && !ranges_.contains(mark.thread)) return false;
    std::vector<Range>& open = ranges_[mark.thread];
    // Its name was given when it began.
    const bool before = open.empty();
    if (before) {
      const int64_t begin_ns = BeginOf(mark);
      open.push_back({begin_ns, begin_ns == begin_ns_ ? "range from before the session" : "range from before the process attached", mark.rank});
    }
    EndRange(mark.thread, &open, mark.t_ns, before);
    return true;
  }
  void EndRange(const Thread& thread, std::vector<Range>* open, int64_t end_ns, bool clipped) {
    Range range = std::move(open->back());
    open->pop_back();
    Event event = EventOf(EventKind::kRange, thread, range.rank);
    event.name = std::move(range.name);
    event.domain = std::move(range.domain);
    SendSpan(&event, range.t_ns, end_ns, clipped);
  }

  bool StartRange(const Mark& mark) {
    const std::pair id(mark.thread.first, mark.value);
    // Another program left it open: that of before an exec, or one that had the process's number.
    if (const auto before = started_.find(id); before != started_.end()) End(before, mark.t_ns, true);
    if (started_.size() >= kMaxStarted) return false;
    Started started{mark.thread,
                    {mark.t_ns, std::string(mark.name), mark.rank, std::string(mark.domain)}};
    started.lane = lanes_[{mark.thread.first, started.range.domain}].Take();
    started_.emplace(id, std::move(started));
    return true;
  }
  bool EndStarted(const Mark& mark) {
    auto found = started_.find({mark.thread.first, mark.value});
    if (found == started_.end()) {
      ++stats_.unpaired;  // it started before the session, and when or what it is, is unknown
      return true;
    }
    End(found, mark.t_ns, false);
    return true;
  }
  void End(OpenById::iterator found, int64_t end_ns, bool clipped) {
    SendStarted(&found->second, end_ns, clipped);
    auto lanes = lanes_.find({found->first.first, found->second.range.domain});
    lanes->second.free.insert(found->second.lane);
    if (lanes->second.AllFree()) lanes_.erase(lanes);
    started_.erase(found);
  }
  void SendStarted(Started* started, int64_t end_ns, bool clipped) {
    Event event = EventOf(EventKind::kRange, started->thread, started->range.rank);
    event.name = started->range.name;
    event.domain = started->range.domain;
    event.lane = started->lane;
    SendSpan(&event, started->range.t_ns, end_ns, clipped);
  }

  bool BeginStep(const Mark& mark) {
    if (steps_.size() >= kMaxThreads && !steps_.contains(mark.thread.first)) return false;
    Step& step = steps_[mark.thread.first];
    // Again while it runs, as in the step trace; after its end, by another thread.
    if (step.value == mark.value && (step.open || (step.ends && step.thread != mark.thread))) return true;
    if (step.open && !step.ends) {
      SendStep(step, mark.t_ns, false);
    } else if (step.open) {
      ++stats_.unpaired;  // the one before never ended
    }
    step = {true, mark.thread, mark.t_ns, mark.rank, mark.value, step.ends};
    return true;
  }
  bool EndStep(const Mark& mark) {
    if (steps_.size() >= kMaxThreads && !steps_.contains(mark.thread.first)) return false;
    auto [it, first] = steps_.try_emplace(mark.thread.first);
    Step& step = it->second;
    step.ends = true;
    if (first) {
      step = {false, mark.thread, BeginOf(mark), mark.rank, mark.value, true};
      SendStep(step, mark.t_ns, true);
    } else if (step.open && step.value == mark.value) {
      step.open = false;
      SendStep(step, mark.t_ns, false);
    } else if (step.open || step.value != mark.value) {  // else again, by another thread
      ++stats_.unpaired;
    }
    return true;
  }
  void SendStep(const Step& step, int64_t end_ns, bool clipped) {
    Event event = EventOf(EventKind::kStep, step.thread, step.rank);
    event.name = "Step " + std::to_string(step.value);
    event.value = step.value;
    SendSpan(&event, step.t_ns, end_ns, clipped);
  }

  // Of what ended with `end`, whose begin was not recorded. A process that attached again later was there before.
  int64_t BeginOf(const Mark& end) const {
    const auto joined = joined_ns_.find(end.thread.first);
    return joined == joined_ns_.end() || joined->second > end.t_ns ? begin_ns_ : std::max(begin_ns_, joined->second);
  }

  static Event EventOf(EventKind kind, const Thread& thread, Rank rank) {
    Event event;
    event.kind = kind;
    event.pid = thread.first;
    event.tid = thread.second;
    event.rank = rank;
    return event;
  }
  void SendSpan(Event* event, int64_t begin_ns, int64_t end_ns, bool clipped) {
    event->t_ns = begin_ns;
    event->dur_ns = SpanNs(begin_ns, end_ns);
    if (clipped) {
      ++stats_.clipped;
      MarkPartial(event);
    }
    Send(*event);
  }

  int64_t begin_ns_ = 0;          // of the session
  std::map<int64_t, int64_t> joined_ns_;  // by pid, of those that attached while it ran
  int64_t end_ns_ = INT64_MIN;
  int64_t last_ns_ = INT64_MIN;   // of all marks
  std::map<Thread, std::vector<Range>> ranges_;
  std::map<int64_t, Step> steps_;  // by pid
  OpenById started_;
  std::map<std::pair<int64_t, std::string>, Lanes> lanes_;  // by pid and domain
};

}  // namespace

std::span<const DecoderSpec> MarksDecoders() {
  static constexpr std::array kSpecs = {DecoderSpec{kMarksFile, Place::Kind::kOwn, kAnyChip, 0, 0, {}, MakeDecoder<MarksDecoder>}};
  return kSpecs;
}

}  // namespace profd::exporting
