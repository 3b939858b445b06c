#include <map>
#include <string>
#include <utility>
#include <vector>

#include "export/decode/own_parts.h"
#include "export/decode/text_parts.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

// host/profd/marks.tsv (docs/manifest.md): time_ns, pid, rank, thread, kind, name, value. A push without
// a pop ends with the last line of its process; a pop without a push, and a step without its begin
// or end, is left out and counted as bad.
class MarksDecoder : public Decoder {
 public:
  explicit MarksDecoder(const DecodeContext& context)
      : clock_(context.clock), window_(context.window), event_(context.event) {}

  void Feed(std::span<const std::byte> bytes, bool) override {
    ForEachLine(bytes, [this](std::string_view line) {
      if (line.empty() || line.starts_with("time_ns\t")) return;
      if (Line(line)) {
        ++stats_.records;
      } else {
        CountBad(line, &stats_);
      }
    });
  }

  void Finish() override {
    for (auto& [thread, open] : ranges_) {
      int64_t end_ns = last_ns_[thread.first];
      while (!open.empty()) EndRange(thread, &open, end_ns);
    }
    for (const auto& [pid, step] : steps_) {
      if (step.open) ++stats_.bad_records;
    }
  }

 private:
  using Thread = std::pair<int64_t, int64_t>;  // pid, thread
  static constexpr size_t kMaxThreads = 65536;
  static constexpr size_t kMaxDepth = 512;
  struct Range {
    int64_t t_ns = 0;
    std::string name;
    int64_t rank = -1;
  };
  struct Step {
    bool open = false;
    int64_t t_ns = 0;
    int64_t value = 0;
  };
  struct Mark {
    Thread thread;
    int64_t t_ns = 0;
    int64_t rank = -1;
    std::string_view name;
    int64_t value = 0;
  };

  bool Line(std::string_view line) {
    TextScan scan(line);
    Mark mark;
    int64_t ns = 0;
    TextScan time(scan.Field('\t'));
    TextScan pid(scan.Field('\t'));
    std::string_view rank = scan.Field('\t');
    TextScan thread(scan.Field('\t'));
    std::string_view kind = scan.Field('\t');
    mark.name = scan.Field('\t');
    if (!time.Int(&ns) || !pid.Int(&mark.thread.first) || !thread.Int(&mark.thread.second) ||
        (!rank.empty() && !TextScan(rank).Int(&mark.rank)) || !scan.Int(&mark.value)) {
      return false;
    }
    mark.t_ns = clock_.HostNs(ns);
    if (last_ns_.size() >= kMaxThreads && !last_ns_.contains(mark.thread.first)) return false;
    int64_t& last = last_ns_.try_emplace(mark.thread.first, mark.t_ns).first->second;
    if (mark.t_ns > last) last = mark.t_ns;
    if (kind == "mark") return Instant(mark);
    if (kind == "push") return Push(mark);
    if (kind == "pop") return Pop(mark);
    if (kind == "step_begin") return BeginStep(mark);
    if (kind == "step_end") return EndStep(mark);
    return false;
  }

  bool Instant(const Mark& mark) {
    Event event = EventOf(EventKind::kMark, mark.thread, mark.rank);
    event.t_ns = mark.t_ns;
    event.name = mark.name;
    event.value = mark.value;
    Send(event);
    return true;
  }

  bool Push(const Mark& mark) {
    if (ranges_.size() >= kMaxThreads && !ranges_.contains(mark.thread)) return false;
    std::vector<Range>& open = ranges_[mark.thread];
    if (open.size() >= kMaxDepth) return false;
    open.push_back({mark.t_ns, std::string(mark.name), mark.rank});
    return true;
  }
  bool Pop(const Mark& mark) {
    auto it = ranges_.find(mark.thread);
    if (it == ranges_.end() || it->second.empty()) return false;
    EndRange(mark.thread, &it->second, mark.t_ns);
    return true;
  }
  void EndRange(const Thread& thread, std::vector<Range>* open, int64_t end_ns) {
    Range range = std::move(open->back());
    open->pop_back();
    Event event = EventOf(EventKind::kRange, thread, range.rank);
    event.t_ns = range.t_ns;
    event.dur_ns = SpanNs(range.t_ns, end_ns);
    event.name = std::move(range.name);
    Send(event);
  }

  bool BeginStep(const Mark& mark) {
    if (steps_.size() >= kMaxThreads && !steps_.contains(mark.thread.first)) return false;
    Step& step = steps_[mark.thread.first];
    if (step.open) ++stats_.bad_records;  // the one before never ended
    step = {true, mark.t_ns, mark.value};
    return true;
  }
  bool EndStep(const Mark& mark) {
    auto it = steps_.find(mark.thread.first);
    if (it == steps_.end() || !it->second.open || it->second.value != mark.value) return false;
    Step& step = it->second;
    step.open = false;
    Event event = EventOf(EventKind::kStep, mark.thread, mark.rank);
    event.t_ns = step.t_ns;
    event.dur_ns = SpanNs(step.t_ns, mark.t_ns);
    event.name = "Step " + std::to_string(mark.value);
    event.value = mark.value;
    Send(event);
    return true;
  }

  static Event EventOf(EventKind kind, const Thread& thread, int64_t rank) {
    Event event;
    event.kind = kind;
    event.pid = thread.first;
    event.tid = thread.second;
    if (rank >= 0) event.args.push_back({"rank", static_cast<double>(rank)});
    return event;
  }
  void Send(const Event& event) {
    if (event_ && Touches(window_, event)) event_(event);
  }

  ClockMap clock_;
  TimeWindow window_;
  std::function<void(const Event&)> event_;
  std::map<Thread, std::vector<Range>> ranges_;
  std::map<int64_t, Step> steps_;       // by pid
  std::map<int64_t, int64_t> last_ns_;  // by pid
};

}  // namespace

std::unique_ptr<Decoder> MakeMarksDecoder(const DecodeContext& context) {
  return std::make_unique<MarksDecoder>(context);
}

}  // namespace profd::exporting
