// What torch_npu's recorder and MindSpore's leave in `FRAMEWORK` (in-application 7.2 and 7.6): operators of the
// framework, with their call stacks, and the marks of its task queue. Everything in the files is untrusted; a record
// that makes no sense costs itself only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/batch.h"
#include "export/operators/framework_memory.h"
#include "export/operators/python_calls.h"
#include "export/step_spans.h"
#include "export/strings.h"

namespace profd::exporting::operators {

// Texts are numbers of FrameworkData::texts; -1: the record has none. Times are as recorded until Finish, wall clock
// from then on.
struct FrameworkOperator {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t sequence = -1;        // ties backward to forward operators; -1: none
  uint64_t thread = 0;
  uint64_t forward_thread = 0;  // of a backward operator, the framework's number; 0: none
  int32_t name = -1;
  int32_t types = -1;
  int32_t shapes = -1;
  int32_t stack = -1;    // frames joined by `;`
  int32_t modules = -1;
  int32_t parent = -1;   // index of FrameworkData::operators, after Finish
};

struct QueueMark {
  enum class Kind : uint8_t { kEnqueueBegin, kEnqueueEnd, kDequeueBegin, kDequeueEnd };
  int64_t time = 0;
  uint64_t correlation = 0;  // the same in all four of a task; torch_npu leaves it out in the first
  uint64_t thread = 0;
  int32_t name = -1;
  Kind kind = Kind::kEnqueueBegin;
};

// A task on its way through the queue: put by the thread of an operator, taken out by the one that launches.
struct QueueTask {
  struct Half {
    int64_t begin = 0;
    int64_t end = 0;
    uint64_t thread = 0;
    int32_t name = -1;
    bool known = false;
  };
  uint64_t correlation = 0;
  Half put;
  Half taken;
};

// A collection of garbage.
struct GarbageCollection {
  int64_t begin = 0;
  int64_t end = 0;
};

// "ProfilerStep#50", an operator of its own.
struct FrameworkStep {
  int64_t number = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// A forward operator and the backward one of its sequence number, as indices.
struct BackwardPair {
  int64_t sequence = 0;
  int32_t forward = -1;   // of several the one that begins last, which is the innermost
  int32_t backward = -1;  // of several the first
};

// A list of the recorder, joined by `;`, as PyTorch's profiler shows it: each on a line.
std::string Listed(std::string_view joined);

class FrameworkData {
 public:
  // "torch.op_range", "mindspore.op_range", "op_range_0" (of an older MindSpore), ...
  static bool IsFile(std::string_view base);
  static bool HasOperators(std::string_view base) { return base.find("op_range") != std::string_view::npos; }
  // One file after the other, its bytes in pieces of any size.
  void Begin(std::string_view base);
  void Feed(std::span<const std::byte> bytes);
  void End();

  // After the last file. `clock`: timestamps to wall clock.
  void Finish(const std::function<int64_t(int64_t)>& clock);

  // After Finish. The innermost operator of the thread at that time; -1: none.
  int32_t Innermost(uint64_t thread, int64_t t_ns) const;
  // The one that put what a thread launches at that time: through the queue, or itself; -1: none.
  int32_t LauncherAt(uint64_t thread, int64_t t_ns) const;
  // The operator that took memory then, for a task of the queue the one that put it there. Those of the allocator itself
  // do not count, as with PyTorch's profiler.
  int32_t TakerAt(uint64_t thread, int64_t t_ns) const;
  // The key where the function has no name.
  std::string NameOf(const PythonCall& call) const;
  // The step that contains the time; none: between steps.
  std::optional<int64_t> StepAt(int64_t t_ns) const;
  // Those that begin in the window.
  void AddSteps(const TimeWindow& window, StepSpans* to) const;
  std::vector<BackwardPair> BackwardPairs() const;  // by sequence
  bool IsStep(const FrameworkOperator& op) const { return StepNumber(texts.Text(op.name)).has_value(); }

  Strings texts;
  std::vector<FrameworkOperator> operators;  // after Finish by thread and begin, outer before inner
  std::vector<QueueMark> marks;              // until Finish
  std::vector<QueueTask> queue;              // after Finish, by correlation
  std::vector<FrameworkStep> steps;          // after Finish, by begin
  PythonCalls python;
  FrameworkMemories memory;
  std::vector<GarbageCollection> collections;  // after Finish, by begin
  uint64_t records = 0;
  uint64_t bad_records = 0;
  uint64_t bad_bytes = 0;       // of those, and of a record that goes beyond the end of its file
  uint64_t bad_times = 0;       // records with wall clock times below 0: left out by Finish
  uint64_t unpaired_marks = 0;  // after Finish
  uint64_t left_out_texts = 0;  // beyond what is kept; they read Strings::kOther

 private:
  size_t Take(std::span<const std::byte> bytes);
  int32_t TextOf(std::span<const std::byte> field);
  bool TakeTorchRange(std::span<const std::byte> body);
  bool TakeRange(std::span<const std::byte> body, size_t fixed, std::span<const uint16_t, 5> text_types);
  bool TakeTorchMark(std::span<const std::byte> body);
  bool TakeTorchMemory(std::span<const std::byte> body);
  bool TakePythonCall(std::span<const std::byte> record) { return python.Take(record); }
  bool TakePythonName(std::span<const std::byte> body);
  bool TakeCollection(std::span<const std::byte> record);
  bool Pass(std::span<const std::byte>) { return true; }
  bool TakeMindSporeRange(std::span<const std::byte> body);
  bool TakeOldMindSporeRange(std::span<const std::byte> body);
  void PairMarks();
  void JoinHalves();
  void BuildTrees();
  void FindSteps();
  static std::optional<int64_t> StepNumber(std::string_view name);

  struct Reader {
    bool (FrameworkData::*take)(std::span<const std::byte> body) = nullptr;  // null: no file that is read
    size_t record_bytes = 0;  // 0: records have lengths
  };
  static Reader ReaderOf(std::string_view base);

  Reader reader_;                     // of the file that is read
  std::vector<std::byte> carried_;    // the begin of a record
  bool lost_ = false;                 // nothing in the file can be found any more
  uint64_t text_bytes_ = 0;
  std::vector<uint32_t> taken_;       // of queue, those that were taken out, by thread and begin
};

}  // namespace profd::exporting::operators
