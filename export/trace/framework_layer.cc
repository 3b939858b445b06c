#include "export/trace/framework_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "export/operators/framework_times.h"

namespace profd::exporting {
namespace {

using operators::FrameworkData;
using operators::FrameworkKernel;
using operators::FrameworkOperator;
using operators::Model;
using operators::QueueTask;

// Of each kind of execution numbers of its own.
uint64_t NumberOf(const Model& model, const operators::TaskRow& row) {
  return static_cast<uint64_t>(&row - model.rows.data());
}
uint64_t NumberOf(const Model& model, const operators::CommunicationOp& op) {
  return model.rows.size() + static_cast<uint64_t>(&op - model.communication.ops.data());
}
uint64_t NumberOf(const Model& model, const FrameworkKernel& kernel) {
  return kernel.task != nullptr ? NumberOf(model, *kernel.task) : NumberOf(model, *kernel.communication);
}

std::optional<LayerFlow> FlowTo(const Model& model, int32_t connection, uint64_t number, const TimeWindow& window) {
  const int32_t op = model.FrameworkOf(connection);
  if (op < 0 || !window.Has(model.framework->operators[static_cast<size_t>(op)].begin)) return std::nullopt;
  return LayerFlow{LayerFlow::Kind::kFramework, false, number};
}

class Layer {
 public:
  Layer(const Model& model, const TimeWindow& window, LayerSink& sink)
      : model_(model), data_(*model.framework), window_(window), sink_(sink) {}

  void Show() {
    FindArrows();
    FindParents();
    FindEntries();
    const uint64_t* thread = nullptr;
    for (const Entry& entry : entries_) {
      if (thread == nullptr || *thread != entry.thread) {
        thread = &entry.thread;
        sink_.Enter({&kPythonProcess, -1, static_cast<int64_t>(entry.thread), fmt::format("Thread {}", entry.thread)});
      }
      switch (entry.kind) {
        case Entry::Kind::kPython: ShowCall(entry.index); break;
        case Entry::Kind::kOperator: ShowOperator(entry.index); break;
        default: ShowHalf(data_.queue[entry.index], entry.kind == Entry::Kind::kPut);
      }
    }
    ShowCollections();
  }

 private:
  // Something of a thread, in the order in which it is shown.
  struct Entry {
    enum class Kind : uint8_t { kPython, kOperator, kPut, kTaken };
    uint64_t thread;
    int64_t begin;
    int64_t end;
    Kind kind;
    uint32_t index;
  };
  using OperatorFlow = std::pair<uint32_t, LayerFlow>;  // by operator

  void Add(Entry::Kind kind, uint64_t thread, int64_t begin, int64_t end, size_t index) {
    if (window_.Has(begin)) entries_.push_back({thread, begin, end, kind, static_cast<uint32_t>(index)});
  }

  void FindEntries() {
    for (size_t i = 0; i < data_.python.calls.size(); ++i) {
      const operators::PythonCall& call = data_.python.calls[i];
      Add(Entry::Kind::kPython, call.thread, call.begin, call.end, i);
    }
    for (size_t i = 0; i < data_.operators.size(); ++i) {
      const FrameworkOperator& op = data_.operators[i];
      Add(Entry::Kind::kOperator, op.thread, op.begin, op.end, i);
    }
    for (size_t i = 0; i < data_.queue.size(); ++i) {
      const auto& [correlation, put, taken] = data_.queue[i];
      if (put.known) Add(Entry::Kind::kPut, put.thread, put.begin, put.end, i);
      if (taken.known) Add(Entry::Kind::kTaken, taken.thread, taken.begin, taken.end, i);
    }
    std::ranges::sort(entries_, {}, [](const Entry& entry) {
      return std::tuple(entry.thread, entry.begin, -entry.end, entry.kind, entry.index);
    });
  }

  void FindArrows() {
    operators::ForEachFrameworkKernel(model_, [this](const FrameworkKernel& kernel) {
      if (!window_.Has(kernel.start_ns())) return;
      operator_flows_.emplace_back(static_cast<uint32_t>(kernel.op),
                           LayerFlow{LayerFlow::Kind::kFramework, true, NumberOf(model_, kernel)});
    });
    FindBackward();
    std::ranges::sort(operator_flows_, {}, [](const OperatorFlow& flow) {
      return std::tuple(flow.first, flow.second.kind, flow.second.id, flow.second.from);
    });
  }

  void FindBackward() {
    const auto shown = [this](int32_t op) { return window_.Has(data_.operators[static_cast<size_t>(op)].begin); };
    for (const operators::BackwardPair& pair : data_.BackwardPairs()) {
      if (!shown(pair.forward) || !shown(pair.backward)) continue;
      const auto id = static_cast<uint64_t>(pair.sequence);
      operator_flows_.emplace_back(static_cast<uint32_t>(pair.forward), LayerFlow{LayerFlow::Kind::kBackward, true, id});
      operator_flows_.emplace_back(static_cast<uint32_t>(pair.backward), LayerFlow{LayerFlow::Kind::kBackward, false, id});
    }
  }

  void ShowOperator(uint32_t index) {
    const FrameworkOperator& op = data_.operators[index];
    args_.clear();
    args_.push_back({"Sequence number", op.sequence});
    args_.push_back({"Fwd thread id", op.forward_thread});
    const std::string lists[] = {Text(op.shapes), Text(op.types), Text(op.stack)};
    if (op.shapes >= 0) args_.push_back({"Input Dims", std::string_view(lists[0])});
    if (op.types >= 0) args_.push_back({"Input type", std::string_view(lists[1])});
    if (op.stack >= 0) args_.push_back({"Call stack", std::string_view(lists[2])});
    flows_.clear();
    const auto first = std::ranges::lower_bound(operator_flows_, index, {}, &OperatorFlow::first);
    for (auto at = first; at != operator_flows_.end() && at->first == index; ++at) flows_.push_back(at->second);
    sink_.Take({data_.texts.Text(op.name), op.begin, op.end - op.begin, args_, flows_, "cpu_op"});
  }

  // Calls are numbered as they are sorted; one that is in no other is its own parent.
  void FindParents() {
    const std::vector<operators::PythonCall>& calls = data_.python.calls;
    std::vector<uint32_t> open;
    for (uint32_t i = 0; i < calls.size(); ++i) {
      const auto goes_on = [&](uint32_t around) {
        return calls[around].thread == calls[i].thread && calls[around].end >= calls[i].end;
      };
      while (!open.empty() && !goes_on(open.back())) open.pop_back();
      parents_.push_back(open.empty() ? i : open.back());
      open.push_back(i);
    }
  }

  void ShowCall(uint32_t index) {
    const operators::PythonCall& call = data_.python.calls[index];
    args_.assign({{"Python id", uint64_t{index}}, {"Python parent id", uint64_t{parents_[index]}}});
    sink_.Take({data_.NameOf(call), call.begin, call.end - call.begin, args_, {}, "python_function"});
  }

  // On a row of their own: no thread is recorded.
  void ShowCollections() {
    bool entered = false;
    for (const operators::GarbageCollection& collection : data_.collections) {
      if (!window_.Has(collection.begin)) continue;
      if (!std::exchange(entered, true)) sink_.Enter({&kPythonProcess, -1, 0, "GC"});
      sink_.Take({"GC", collection.begin, collection.end - collection.begin, {}, {}, "GC"});
    }
  }

  std::string Text(int32_t id) const { return operators::Listed(data_.texts.Text(id)); }

  void ShowHalf(const QueueTask& task, bool put) {
    const QueueTask::Half& half = put ? task.put : task.taken;
    const QueueTask::Half& other = put ? task.taken : task.put;
    args_.assign(1, {"correlation_id", task.correlation});
    flows_.clear();
    if (other.known && window_.Has(other.begin)) flows_.push_back({LayerFlow::Kind::kQueue, put, task.correlation});
    const std::string name = put ? "Enqueue" : fmt::format("Dequeue@{}", data_.texts.Text(half.name));
    sink_.Take({name, half.begin, half.end - half.begin, args_, flows_, put ? "enqueue" : "dequeue"});
  }

  const Model& model_;
  const FrameworkData& data_;
  const TimeWindow& window_;
  LayerSink& sink_;
  std::vector<Entry> entries_;
  std::vector<OperatorFlow> operator_flows_;
  std::vector<uint32_t> parents_;  // of Python's calls
  std::vector<LayerArg> args_;
  std::vector<LayerFlow> flows_;
};

}  // namespace

void ShowFramework(const Model& model, const TimeWindow& window, LayerSink& sink) {
  if (model.framework != nullptr) Layer(model, window, sink).Show();
}

std::optional<LayerFlow> FrameworkFlowTo(const Model& model, const operators::TaskRow& row, const TimeWindow& window) {
  const operators::HostTask* host = model.HostOf(row);
  return host == nullptr ? std::nullopt : FlowTo(model, host->connection, NumberOf(model, row), window);
}

std::optional<LayerFlow> FrameworkFlowTo(const Model& model, const operators::CommunicationOp& op,
                                         const TimeWindow& window) {
  return FlowTo(model, model.LaunchOf(op).api, NumberOf(model, op), window);
}

}  // namespace profd::exporting
