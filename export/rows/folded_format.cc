// Sampled call stacks as flame graph tools take them: "rank 0;thread 42;outer;inner 17", a line for each stack with
// the number of its samples.
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "base/mutex.h"
#include "export/formats.h"
#include "export/rows/text.h"
#include "export/shared_file.h"

namespace profd::exporting {
namespace {

// Different stacks of one export; more are left out of it.
constexpr size_t kMaxStacks = size_t{1} << 20;
constexpr size_t kMaxDepth = 512;

struct Stacks {
  Mutex mutex;
  std::map<std::string, uint64_t> samples GUARDED_BY(mutex);
};

// One file's: frames have numbers there, and are joined when all are known.
class FoldedSink : public FormatSink {
 public:
  FoldedSink(Stacks* stacks, const DumpInfo& dump) : stacks_(*stacks), dump_(dump) {}
  void Take(const Batch&) override {}
  void TakeEvent(const Event& event) override {
    if (event.kind != EventKind::kFrame || (frames_.size() >= kMaxStacks && !frames_.contains(KeyOf(event)))) return;
    Frame& frame = frames_[KeyOf(event)];
    frame.caller = event.caller;
    frame.rank = event.rank;
    frame.name = event.name;
    for (const Event::Arg& arg : event.args) frame.samples += static_cast<uint64_t>(arg.value);
  }
  Status Finish() override {
    const MutexLock lock(stacks_.mutex);
    for (const auto& [key, frame] : frames_) {
      if (frame.samples == 0) continue;
      const std::string stack = PathOf(key);
      if (stacks_.samples.size() < kMaxStacks || stacks_.samples.contains(stack)) {
        stacks_.samples[stack] += frame.samples;
      }
    }
    return {};
  }

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t>;  // pid, thread, frame
  struct Frame {
    int64_t caller = 0;
    std::optional<int> rank;
    std::string name;
    uint64_t samples = 0;
  };
  static Key KeyOf(const Event& event) { return {event.pid, event.tid, event.value}; }
  // The last blank of a line ends the stack; a name may have blanks and must have no ';'.
  static std::string Clean(std::string_view name) {
    std::string text = CleanUtf8(name);
    for (char& c : text) c = c == ';' ? ',' : c == '\n' || c == '\r' ? ' ' : c;
    return text;
  }
  std::string PathOf(const Key& leaf) const {
    const auto& [pid, tid, frame] = leaf;
    std::string path;
    std::optional<int> rank;
    int64_t id = frame;
    for (size_t depth = 0; id != 0 && depth < kMaxDepth; ++depth) {
      auto found = frames_.find({pid, tid, id});
      if (found == frames_.end()) break;
      path.insert(0, ';' + Clean(found->second.name));
      rank = found->second.rank;
      id = found->second.caller;
    }
    return Clean(dump_.ProcessName(pid, rank)) + ";thread " + std::to_string(tid) + path;
  }

  Stacks& stacks_;
  const DumpInfo& dump_;
  std::map<Key, Frame> frames_;
};

class FoldedFormat : public Format {
 public:
  std::string_view name() const override { return "folded"; }
  bool Wants(TableId) const override { return false; }
  FormatWants wants() const override { return {.events = true}; }
  Status Begin(const ExportPlan& plan) override {
    plan_ = &plan;
    return file_.Create(plan.out_dir + "/stacks_" + plan.timestamp + ".folded");
  }
  Result<std::unique_ptr<FormatSink>> Open(const ExportTask& task) override {
    return std::unique_ptr<FormatSink>(std::make_unique<FoldedSink>(&stacks_, *plan_->dumps[task.dump]));
  }
  Status End(bool complete, std::vector<OutputFile>* files) override {
    if (!complete) {
      file_.Discard();
      return {};
    }
    const MutexLock lock(stacks_.mutex);
    std::string text;
    for (const auto& [stack, samples] : stacks_.samples) {
      text += stack + ' ' + std::to_string(samples) + '\n';
    }
    RETURN_IF_ERROR(file_.Append(text));
    RETURN_IF_ERROR(file_.Commit());
    files->push_back({file_.path(), file_.bytes(), stacks_.samples.size()});
    return {};
  }

 private:
  const ExportPlan* plan_ = nullptr;
  SharedFile file_;
  Stacks stacks_;
};

}  // namespace

std::unique_ptr<Format> MakeFoldedFormat() { return std::make_unique<FoldedFormat>(); }

}  // namespace profd::exporting
