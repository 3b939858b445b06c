// Input: which file of a FRAMEWORK directory, then its bytes in pieces. However they are cut, the same is found; what
// is found is in order, and a launch is tied to an operator that there is.
#include <array>

#include "export/operators/framework.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::exporting::operators {
namespace {

constexpr std::array<std::string_view, 8> kNames = {
    "torch.op_range",           "torch.op_mark",            "mindspore.op_range", "op_range_0",
    "torch.python_tracer_func", "torch.python_tracer_hash", "torch.memory_usage", "torch.gc_record"};

// Several files of one directory: name, length, pieces.
void Read(fuzz::Input input, bool in_pieces, FrameworkData* data) {
  while (!input.empty()) {
    data->Begin(kNames[input.TakeIndex(kNames.size())]);
    const std::string_view bytes = input.TakePiece(input.Take<uint16_t>());
    const size_t piece = in_pieces ? input.Take<uint8_t>() + 1u : (input.Take<uint8_t>(), bytes.size() + 1);
    for (size_t at = 0; at < bytes.size(); at += piece) {
      const std::string_view part = bytes.substr(at, piece);
      data->Feed(std::as_bytes(std::span(part.data(), part.size())));
    }
    data->End();
  }
  data->Finish([](int64_t timestamp) { return static_cast<int64_t>(static_cast<uint64_t>(timestamp) + 1000); });
}

void CheckOperators(const FrameworkData& data) {
  const auto count = static_cast<int32_t>(data.operators.size());
  for (int32_t i = 0; i < count; ++i) {
    const FrameworkOperator& op = data.operators[static_cast<size_t>(i)];
    FUZZ_EXPECT(op.begin >= 0 && op.begin <= op.end);
    FUZZ_EXPECT(op.parent >= -1 && op.parent < i);
    for (const int32_t text : {op.name, op.types, op.shapes, op.stack, op.modules}) {
      FUZZ_EXPECT(text >= -1 && text < static_cast<int32_t>(data.texts.size()));
    }
    if (op.parent >= 0) {
      const FrameworkOperator& around = data.operators[static_cast<size_t>(op.parent)];
      FUZZ_EXPECT(around.thread == op.thread && around.begin <= op.begin && around.end >= op.end);
    }
    for (const int64_t t : {op.begin, op.end}) {
      const int32_t found = data.Innermost(op.thread, t);
      FUZZ_EXPECT(found >= 0 && found < count);
      const FrameworkOperator& inner = data.operators[static_cast<size_t>(found)];
      FUZZ_EXPECT(inner.begin <= t && inner.end >= t);
    }
  }
}

void CheckOthers(const FrameworkData& data) {
  for (const PythonCall& call : data.python.calls) {
    FUZZ_EXPECT(call.begin >= 0 && call.begin <= call.end);
    FUZZ_EXPECT(!data.NameOf(call).empty() || call.name >= 0);
  }
  for (const GarbageCollection& collection : data.collections) {
    FUZZ_EXPECT(collection.begin >= 0 && collection.begin <= collection.end);
  }
  for (const FrameworkAllocation& allocation : data.memory.Allocations()) {
    for (const FrameworkMemory* end : {allocation.released, allocation.inactive}) {
      if (end != nullptr) FUZZ_EXPECT(end->time >= allocation.taken->time && end->address == allocation.taken->address);
    }
    const int32_t taker = data.TakerAt(allocation.taken->thread, allocation.taken->time);
    FUZZ_EXPECT(taker < static_cast<int32_t>(data.operators.size()));
  }
}

void Run(fuzz::Input input) {
  FrameworkData whole;
  Read(input, false, &whole);
  FrameworkData cut;
  Read(input, true, &cut);
  FUZZ_EXPECT(whole.records == cut.records && whole.bad_records == cut.bad_records && whole.bad_bytes == cut.bad_bytes);
  FUZZ_EXPECT(whole.operators.size() == cut.operators.size() && whole.queue.size() == cut.queue.size());
  FUZZ_EXPECT(whole.python.calls.size() == cut.python.calls.size());
  FUZZ_EXPECT(whole.memory.records.size() == cut.memory.records.size());
  CheckOperators(whole);
  CheckOthers(whole);
  for (const QueueTask& task : whole.queue) {
    FUZZ_EXPECT(task.put.known || task.taken.known);
    for (const QueueTask::Half& half : {task.put, task.taken}) FUZZ_EXPECT(half.begin >= 0 && half.begin <= half.end);
    const int32_t found = whole.LauncherAt(task.taken.thread, task.taken.begin);
    FUZZ_EXPECT(found >= -1 && found < static_cast<int32_t>(whole.operators.size()));
  }
}

}  // namespace
}  // namespace profd::exporting::operators

void profd::fuzz::Run(Input input) { exporting::operators::Run(input); }
