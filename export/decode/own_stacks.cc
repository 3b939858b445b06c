#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "dump/mark_files.h"
#include "export/decode/text_parts.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

// host/profd/stacks.tsv (docs/dumps.md): time_ns, pid, rank, thread, kind, frame, caller, name. A frame is a slice from
// the first sample that has it to the first that has it no more, or to the last sample before a pause.
class StacksDecoder final : public EventDecoder {
 public:
  using EventDecoder::EventDecoder;

  void Feed(std::span<const std::byte> bytes, bool) override {
    ForEachOwnLine(bytes, &stats_, [this](std::string_view line) { return Line(line); });
  }

  void Finish() override {
    for (auto& [id, thread] : threads_) Close(id, &thread, 0, thread.last_ns);
  }

 private:
  using ThreadId = std::pair<int64_t, int64_t>;  // pid, thread
  static constexpr size_t kMaxThreads = 65536;
  static constexpr size_t kMaxFrames = size_t{1} << 20;
  static constexpr size_t kMaxDepth = 512;
  // Beyond those of the processes (profd.h).
  static constexpr int64_t kFirstSpare = int64_t{1} << 31;
  // A thread that was not sampled for so long was not looked at: the slowest rate is 1 Hz.
  static constexpr int64_t kPauseNs = 2 * kNsPerSecond;

  struct Frame {
    int64_t caller = 0;
    std::string name;
    bool operator==(const Frame&) const = default;
  };
  struct Open {
    int64_t id = 0;
    int64_t t_ns = 0;
    uint64_t samples = 0;  // whose innermost frame it was
  };
  struct Thread {
    std::vector<Open> open;  // outermost first
    int64_t last_ns = 0;
    std::optional<int> rank;
  };

  bool Line(std::string_view line) {
    TextScan scan(line);
    OwnLine head;
    if (!head.Scan(&scan)) return false;
    TextScan frame(scan.Field('\t'));
    TextScan of(scan.Field('\t'));
    int64_t id = 0;
    int64_t caller = 0;
    if (!frame.Int(&id) || !of.Int(&caller) || id <= 0) return false;
    if (head.kind == "frame") return Define(head.thread.first, id, caller, scan.Field('\t'));
    return head.kind == "stack" && Sample(head.thread, clock_.HostNs(head.ns), id, head.rank);
  }

  bool Define(int64_t pid, int64_t id, int64_t caller, std::string_view name) {
    if (caller < 0 || caller == id || frames_.size() >= kMaxFrames) return false;
    const Frame frame{NumberOf(pid, caller), std::string(name)};
    int64_t& number = numbers_.try_emplace({pid, id}, id).first->second;
    const auto [known, is_new] = frames_.try_emplace({pid, number}, frame);
    if (is_new || known->second == frame) return true;
    // The ids have begun anew: another program (exec), or the process has attached again.
    number = next_spare_++;
    frames_[{pid, number}] = frame;
    return true;
  }
  int64_t NumberOf(int64_t pid, int64_t id) const {
    const auto found = numbers_.find({pid, id});
    return found == numbers_.end() ? id : found->second;
  }

  // Outermost first; empty: a frame is not known.
  std::vector<int64_t> PathOf(int64_t pid, int64_t leaf) const {
    std::vector<int64_t> path;
    for (int64_t id = NumberOf(pid, leaf); id != 0;) {
      auto found = frames_.find({pid, id});
      if (found == frames_.end() || path.size() >= kMaxDepth) return {};
      path.push_back(id);
      id = found->second.caller;
    }
    std::ranges::reverse(path);
    return path;
  }

  bool Sample(const ThreadId& id, int64_t t_ns, int64_t leaf, std::optional<int> rank) {
    const std::vector<int64_t> path = PathOf(id.first, leaf);
    if (path.empty() || (threads_.size() >= kMaxThreads && !threads_.contains(id))) return false;
    Thread& thread = threads_[id];
    if (!thread.open.empty() && t_ns - thread.last_ns > kPauseNs) Close(id, &thread, 0, thread.last_ns);
    thread.rank = rank;
    size_t same = 0;
    while (same < path.size() && same < thread.open.size() && thread.open[same].id == path[same]) ++same;
    Close(id, &thread, same, t_ns);
    for (size_t depth = same; depth < path.size(); ++depth) thread.open.push_back({path[depth], t_ns});
    ++thread.open.back().samples;
    thread.last_ns = t_ns;
    return true;
  }

  // What is deeper than `depth`, innermost first.
  void Close(const ThreadId& id, Thread* thread, size_t depth, int64_t end_ns) {
    while (thread->open.size() > depth) {
      const Open open = thread->open.back();
      thread->open.pop_back();
      const Frame& frame = frames_.at({id.first, open.id});
      Event event;
      event.kind = EventKind::kFrame;
      event.t_ns = open.t_ns;
      event.dur_ns = std::max<int64_t>(0, SpanNs(open.t_ns, end_ns));
      event.pid = id.first;
      event.tid = id.second;
      event.rank = thread->rank;
      event.name = frame.name;
      event.value = open.id;
      event.caller = frame.caller;
      event.args.push_back({"samples", static_cast<double>(open.samples)});
      Send(event);
    }
  }

  std::map<std::pair<int64_t, int64_t>, int64_t> numbers_;  // of the frame that an id of a process stands for now
  std::map<std::pair<int64_t, int64_t>, Frame> frames_;     // by pid and number
  int64_t next_spare_ = kFirstSpare;
  std::map<ThreadId, Thread> threads_;
};

}  // namespace

std::span<const DecoderSpec> StacksDecoders() {
  static constexpr std::array kSpecs = {DecoderSpec{kStacksFile, Place::Kind::kOwn, kAnyChip, 0, 0, {}, MakeDecoder<StacksDecoder>}};
  return kSpecs;
}

}  // namespace profd::exporting
