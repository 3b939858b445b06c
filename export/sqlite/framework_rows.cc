#include "export/sqlite/framework_rows.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"

namespace profd::exporting {
namespace {

using operators::FrameworkData;
using operators::FrameworkOperator;
using operators::QueueTask;

// As ENUM_API_TYPE.
constexpr int64_t kOperatorType = 50001;
constexpr int64_t kQueueType = 50002;
constexpr int64_t kPythonType = 50003;

class FrameworkWriter : OperatorRowWriter {
 public:
  explicit FrameworkWriter(const OperatorTarget& to) : OperatorRowWriter(to), data_(*to.model.framework) {}

  Status Write() {
    FindConnections();
    RETURN_IF_ERROR(WriteApis());
    RETURN_IF_ERROR(WriteConnections());
    RETURN_IF_ERROR(WriteStacks());
    RETURN_IF_ERROR(WriteSteps());
    RETURN_IF_ERROR(WriteCollections());
    RETURN_IF_ERROR(WriteMemory());
    RETURN_IF_ERROR(WriteAllocations());
    ids_.framework += next_;
    ids_.stack += static_cast<int64_t>(stacks_.size());
    ids_.connection = first_backward_ + static_cast<int64_t>(backward_.size());
    return {};
  }

 private:
  // Of a text of the framework's; each is looked up once.
  int64_t TextId(int32_t text) {
    const auto [known, is_new] = texts_.try_emplace(text);
    if (is_new) known->second = Id(operators::Listed(data_.texts.Text(text)));
    return known->second;
  }
  RowCells& IntOrNull(bool there, int64_t value) { return there ? row_.Int(value) : row_.Null(); }

  // Of each operator its launches, and the flow to or from its backward one.
  void FindConnections() {
    for (size_t api = 0; api < model_.host.apis.size(); ++api) {
      const int32_t op = model_.FrameworkOf(static_cast<int32_t>(api));
      if (op >= 0) links_.emplace_back(op, ids_.connection + static_cast<int64_t>(api));
    }
    first_queue_ = ids_.connection + static_cast<int64_t>(model_.host.apis.size());
    first_backward_ = first_queue_ + static_cast<int64_t>(data_.queue.size());
    backward_ = data_.BackwardPairs();
    for (size_t i = 0; i < backward_.size(); ++i) {
      const int64_t connection = first_backward_ + static_cast<int64_t>(i);
      links_.emplace_back(backward_[i].forward, connection);
      links_.emplace_back(backward_[i].backward, connection);
    }
    std::ranges::sort(links_);
  }

  Status WriteApis() {
    CellLoader out = CellsOf(OperatorTable::kPytorchApi);
    for (const bool put : {true, false}) {
      for (size_t i = 0; i < data_.queue.size(); ++i) RETURN_IF_ERROR(AddHalf(out, i, put));
    }
    for (const operators::PythonCall& call : data_.python.calls) RETURN_IF_ERROR(AddCall(out, call));
    size_t link = 0;
    for (size_t i = 0; i < data_.operators.size(); ++i) {
      const auto op = static_cast<int32_t>(i);
      const size_t first = link;
      while (link < links_.size() && links_[link].first == op) ++link;
      RETURN_IF_ERROR(AddOperator(out, data_.operators[i], std::span(links_).subspan(first, link - first)));
    }
    return out.Finish();
  }

  Status AddHalf(CellLoader& out, size_t index, bool put) {
    const QueueTask& task = data_.queue[index];
    const QueueTask::Half& half = put ? task.put : task.taken;
    if (!half.known || !model_.window.Has(half.begin)) return {};
    const bool both = task.put.known && task.taken.known;
    if (both) connections_.emplace_back(ids_.framework + next_, first_queue_ + static_cast<int64_t>(index));
    row_.Begin().Int(half.begin).Int(half.end).Int(ThreadId(half.thread));
    IntOrNull(both, ids_.framework + next_);
    if (both) ++next_;
    row_.Int(put ? Id("Enqueue") : Id("Dequeue@" + std::string(data_.texts.Text(half.name))));
    return out.Add(row_.Null().Null().Null().Null().Null().Int(kQueueType).End(), 0);
  }

  Status AddCall(CellLoader& out, const operators::PythonCall& call) {
    if (!model_.window.Has(call.begin)) return {};
    row_.Begin().Int(call.begin).Int(call.end).Int(ThreadId(call.thread)).Null();
    row_.Int(call.name >= 0 ? TextId(call.name) : Id(data_.NameOf(call)));
    return out.Add(row_.Null().Null().Null().Null().Null().Int(kPythonType).End(), 0);
  }

  Status AddOperator(CellLoader& out, const FrameworkOperator& op, std::span<const std::pair<int32_t, int64_t>> links) {
    if (!model_.window.Has(op.begin)) return {};
    for (const auto& link : links) connections_.emplace_back(ids_.framework + next_, link.second);
    row_.Begin().Int(op.begin).Int(op.end).Int(ThreadId(op.thread));
    IntOrNull(!links.empty(), ids_.framework + next_);
    if (!links.empty()) ++next_;
    row_.Int(TextId(op.name)).Int(op.sequence).Int(static_cast<int64_t>(op.forward_thread));
    IntOrNull(op.types >= 0, op.types >= 0 ? TextId(op.types) : 0);
    IntOrNull(op.shapes >= 0, op.shapes >= 0 ? TextId(op.shapes) : 0);
    IntOrNull(op.stack >= 0, op.stack >= 0 ? StackId(op.stack) : 0);
    return out.Add(row_.Int(kOperatorType).End(), 0);
  }

  int64_t StackId(int32_t text) {
    const auto [known, is_new] = stack_ids_.try_emplace(text, ids_.stack + static_cast<int64_t>(stacks_.size()));
    if (is_new) stacks_.push_back(text);
    return known->second;
  }

  Status WriteConnections() {
    CellLoader out = CellsOf(OperatorTable::kConnectionIds);
    for (const auto& [id, connection] : connections_) {
      RETURN_IF_ERROR(out.Add(row_.Begin().Int(id).Int(connection).End(), 0));
    }
    return out.Finish();
  }

  // The innermost frame has depth 0.
  Status WriteStacks() {
    CellLoader out = CellsOf(OperatorTable::kPytorchCallchains);
    for (size_t i = 0; i < stacks_.size(); ++i) {
      std::string_view frames = data_.texts.Text(stacks_[i]);
      int64_t depth = 0;
      for (std::string_view frame; NextPart(&frames, ';', &frame); ++depth) {
        row_.Begin().Int(ids_.stack + static_cast<int64_t>(i)).Int(Id(frame)).Int(depth);
        RETURN_IF_ERROR(out.Add(row_.End(), 0));
      }
    }
    return out.Finish();
  }

  Status WriteSteps() {
    CellLoader out = CellsOf(OperatorTable::kStepTime);
    for (const operators::FrameworkStep& step : data_.steps) {
      if (!model_.window.Has(step.begin)) continue;
      RETURN_IF_ERROR(out.Add(row_.Begin().Int(step.number).Int(step.begin).Int(step.end).End(), 0));
    }
    return out.Finish();
  }

  Status WriteCollections() {
    CellLoader out = CellsOf(OperatorTable::kGcRecord);
    for (const operators::GarbageCollection& collection : data_.collections) {
      if (!model_.window.Has(collection.begin)) continue;
      RETURN_IF_ERROR(out.Add(row_.Begin().Int(collection.begin).Int(collection.end).End(), 0));
    }
    return out.Finish();
  }

  Status WriteMemory() {
    CellLoader out = CellsOf(OperatorTable::kMemoryRecord);
    for (const operators::FrameworkMemory& each : data_.memory.records) {
      if (!model_.window.Has(each.time)) continue;
      row_.Begin().Int(Id(operators::kFrameworkComponent)).Int(each.time).Int(each.allocated).Int(each.reserved);
      RETURN_IF_ERROR(out.Add(row_.Int(each.active).Int(each.stream).Int(each.device).End(), 0));
    }
    return out.Finish();
  }

  Status WriteAllocations() {
    CellLoader out = CellsOf(OperatorTable::kOpMemory);
    for (const auto& [taken, released, inactive] : data_.memory.Allocations()) {
      if (!model_.window.Has(taken->time)) continue;
      const int32_t op = data_.TakerAt(taken->thread, taken->time);
      const auto time_or_null = [this](const operators::FrameworkMemory* at, int64_t since) {
        IntOrNull(at != nullptr, at == nullptr ? 0 : at->time - since);
      };
      row_.Begin().Int(op < 0 ? Id("") : TextId(data_.operators[static_cast<size_t>(op)].name)).Int(taken->bytes);
      row_.Int(taken->time);
      time_or_null(released, 0);
      time_or_null(inactive, 0);
      time_or_null(released, taken->time);
      time_or_null(inactive, taken->time);
      row_.Int(taken->allocated).Int(taken->reserved).Int(taken->active);
      for (const auto total : {&operators::FrameworkMemory::allocated, &operators::FrameworkMemory::reserved,
                               &operators::FrameworkMemory::active}) {
        IntOrNull(released != nullptr, released == nullptr ? 0 : released->*total);
      }
      RETURN_IF_ERROR(out.Add(row_.Int(taken->stream).Int(taken->device).End(), 0));
    }
    return out.Finish();
  }

  const FrameworkData& data_;
  std::vector<std::pair<int32_t, int64_t>> links_;        // operator, connection of the launch or flow
  std::vector<std::pair<int64_t, int64_t>> connections_;  // rows of CONNECTION_IDS
  std::vector<operators::BackwardPair> backward_;
  int64_t first_queue_ = 0;     // connection of the first task of the queue
  int64_t first_backward_ = 0;
  int64_t next_ = 0;            // behind ids_.framework
  std::unordered_map<int32_t, int64_t> texts_;
  std::unordered_map<int32_t, int64_t> stack_ids_;
  std::vector<int32_t> stacks_;  // in the order of their ids
};

}  // namespace

Status WriteFrameworkRows(const OperatorTarget& to) {
  if (to.model.framework == nullptr) {
    to.ids.connection += static_cast<int64_t>(to.model.host.apis.size());
    return {};
  }
  return FrameworkWriter(to).Write();
}

}  // namespace profd::exporting
