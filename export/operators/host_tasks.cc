#include "export/operators/host_tasks.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "export/beside.h"
#include "export/operators/numbers.h"
#include "export/operators/thread_tree.h"

namespace profd::exporting::operators {
namespace {

// What tasks are made of in one go: calls of a thread up to a moment at which none was running, and the tasks until
// the next ones. Records at that moment belong to no call.
struct Piece {
  uint32_t thread = 0;
  uint64_t begin = 0;
  uint64_t last = UINT64_MAX;  // moments, both included
  std::span<const Api> apis;
  std::span<const TaskRecord> tasks;
};

// Where the calls from `at` on are to be cut, at least so many behind it.
size_t EndOfPiece(std::span<const Api> apis, size_t at, size_t least) {
  uint64_t busy_until = 0;
  for (size_t i = at; i < apis.size(); ++i) {
    if (i - at >= least && apis[i].begin > busy_until) return i;
    if (ThreadTree::Takes(apis[i])) busy_until = std::max(busy_until, apis[i].end);
  }
  return apis.size();
}

// As ThreadTree::Attach, of those of `piece` in what is sorted by thread and time; with each one's index there.
template <class Records, class Take>
void Attach(const ThreadTree& tree, const ThreadTree::Level& level, const Records& records, const Piece& piece, bool to_inner,
            const Take& take) {
  const auto when = [](const auto& record) { return std::pair(record.thread, record.time); };
  const auto begin = std::ranges::lower_bound(records, std::pair(piece.thread, piece.begin), {}, when);
  const auto end = std::ranges::upper_bound(begin, records.end(), std::pair(piece.thread, piece.last), {}, when);
  const auto first = static_cast<size_t>(begin - records.begin());
  tree.Attach(level, std::span<const typename Records::value_type>(begin, end), to_inner,
              [&](size_t owner, size_t i) { take(owner, records[first + i], first + i); });
}

// Grows [begin, end) to hold `at`; those of one owner lie together.
void Grow(uint32_t* begin, uint32_t* end, size_t at) {
  if (*begin == *end) *begin = static_cast<uint32_t>(at);
  *end = static_cast<uint32_t>(at) + 1;
}

// One node-level API: indices of the records that belong to it. Of each kind the last one describes its operator,
// whatever names they have (operator-data b.1, 5).
struct LaunchRecords {
  uint64_t first_name = 0;  // of the node records, else of the others in the order of their kinds
  int32_t last_node = -1;
  int32_t attributes = -1;
  uint32_t tensors_begin = 0;
  uint32_t tensors_end = 0;
  int32_t contexts = -1;  // of HostData::contexts
  int32_t launch = -1;  // index of HostTasks::launches; -1: not made yet

  void Name(uint64_t name) {
    if (first_name == 0) first_name = name;
  }
};

// Of a piece, by the ordinals of its intervals.
Large<LaunchRecords> LaunchesOf(const HostData& data, const Piece& piece, const ThreadTree& tree) {
  Large<LaunchRecords> made(tree.nodes().size());
  Attach(tree, tree.nodes(), data.nodes, piece, true, [&](size_t owner, const NodeRecord& record, size_t index) {
    made[owner].last_node = static_cast<int32_t>(index);
    made[owner].Name(record.name);
  });
  Attach(tree, tree.nodes(), data.attributes, piece, false, [&](size_t owner, const auto& record, size_t index) {
    made[owner].attributes = static_cast<int32_t>(index);
    made[owner].Name(record.name);
  });
  Attach(tree, tree.nodes(), data.tensor_records, piece, false, [&](size_t owner, const TensorRecord& record, size_t index) {
    Grow(&made[owner].tensors_begin, &made[owner].tensors_end, index);
    made[owner].Name(record.name);
  });
  Attach(tree, tree.nodes(), data.context_records, piece, false, [&](size_t owner, const ContextRecord& record, size_t) {
    if (record.level != kNodeLevel) return;
    made[owner].contexts = static_cast<int32_t>(record.contexts);
    made[owner].Name(record.name);
  });
  return made;
}

// Hash of several numbers.
class Mix {
 public:
  Mix& Add(uint64_t part) {
    value_ = (value_ ^ part) * 0x9E3779B97F4A7C15u;
    value_ ^= value_ >> 32;
    return *this;
  }
  size_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

struct LaunchHash {
  size_t operator()(const Launch& of) const {
    const uint64_t indices = uint64_t{static_cast<uint32_t>(of.node)} << 32 | static_cast<uint32_t>(of.tensors);
    return Mix().Add(of.item).Add(of.first_name).Add(of.attributes).Add(indices).value();
  }
};

// But for time and thread.
struct NodeHash {
  size_t operator()(const NodeRecord& of) const {
    return Mix().Add(of.name).Add(of.type).Add(uint64_t{of.core_type} << 32 | uint32_t{of.blocks} << 16 | of.mix_ratio)
        .Add(of.hf32).Add(of.unaging).value();
  }
};
struct SameNode {
  bool operator()(const NodeRecord& a, const NodeRecord& b) const {
    const auto parts = [](const NodeRecord& of) {
      return std::tuple(of.name, of.type, of.core_type, of.blocks, of.mix_ratio, of.hf32, of.unaging);
    };
    return parts(a) == parts(b);
  }
};

// Makes each distinct launch once.
class Launches {
 public:
  Launches(HostData* data, HostTasks* made) : data_(*data), made_(*made) {}

  int32_t Of(uint64_t item, LaunchRecords* records) {
    if (records->launch >= 0) return records->launch;
    Launch launch;
    launch.item = item;
    launch.first_name = records->first_name;
    if (records->attributes >= 0) launch.attributes = data_.attributes[static_cast<size_t>(records->attributes)].text;
    if (records->last_node >= 0) launch.node = NodeOf(records->last_node);
    launch.tensors = TensorsOf(*records);
    const auto [known, is_new] = launches_.try_emplace(launch, static_cast<int32_t>(made_.launches.size()));
    if (is_new) made_.launches.push_back(launch);
    return records->launch = known->second;
  }
  // `record`: index of HostData::nodes.
  int32_t NodeOf(int32_t record) {
    const auto [known, is_new] = nodes_.try_emplace(NodeAt(record), static_cast<int32_t>(made_.nodes.size()));
    if (is_new) made_.nodes.push_back(NodeAt(record));
    return known->second;
  }

 private:
  const NodeRecord& NodeAt(int32_t index) const { return data_.nodes[static_cast<size_t>(index)]; }

  // The last; several records of one name and time are one list.
  int32_t TensorsOf(const LaunchRecords& records) {
    if (records.tensors_begin == records.tensors_end) return -1;
    const TensorRecord& last = data_.tensor_records[records.tensors_end - 1];
    several_.clear();
    for (uint32_t i = records.tensors_begin; i < records.tensors_end; ++i) {
      const TensorRecord& record = data_.tensor_records[i];
      if (record.name == last.name && record.time == last.time) several_.push_back(record.tensors);
    }
    if (several_.size() == 1) return static_cast<int32_t>(several_.front());
    const auto [known, is_new] = lists_.try_emplace(several_, static_cast<int32_t>(data_.tensors.size()));
    if (!is_new) return known->second;
    std::vector<Tensor> all;
    for (const uint32_t part : several_) all.insert(all.end(), data_.tensors[part].begin(), data_.tensors[part].end());
    data_.tensors.push_back(std::move(all));
    return known->second;
  }

  HostData& data_;
  HostTasks& made_;
  std::unordered_map<Launch, int32_t, LaunchHash> launches_;
  std::unordered_map<NodeRecord, int32_t, NodeHash, SameNode> nodes_;
  std::map<std::vector<uint32_t>, int32_t> lists_;
  std::vector<uint32_t> several_;
};

// What the records of a piece say of communication, by the ordinals of its intervals. Empty where there is none.
struct PieceCommunication {
  std::vector<CommunicationLaunch> launches;  // of nodes; `node` is an index of HostData::nodes
  std::vector<CommunicationHostTask> tasks;   // of communication APIs: infos and contexts
  std::vector<int32_t> numbers;               // of launches that have tasks; -1: not yet
};

PieceCommunication CommunicationOf(const HostData& data, const Piece& piece, const ThreadTree& tree) {
  PieceCommunication made;
  if (tree.communication().empty()) return made;
  made.launches.resize(tree.nodes().size());
  made.numbers.resize(tree.nodes().size(), -1);
  made.tasks.resize(tree.communication().size());
  Attach(tree, tree.nodes(), data.nodes, piece, true, [&](size_t owner, const NodeRecord&, size_t index) {
    if (made.launches[owner].node < 0) made.launches[owner].node = static_cast<int32_t>(index);
  });
  Attach(tree, tree.nodes(), data.communication.op_infos, piece, false, [&](size_t owner, const auto&, size_t index) {
    CommunicationLaunch& launch = made.launches[owner];
    if (launch.op_info < 0) launch.op_info = static_cast<int32_t>(index);
  });
  Attach(tree, tree.communication(), data.context_records, piece, false, [&](size_t owner, const ContextRecord& record, size_t) {
    const std::vector<uint32_t>& ids = data.contexts[record.contexts];
    if (record.level != kCommunicationLevel || ids.size() != 2) return;  // the first and the last
    made.tasks[owner].first_context = ids[0];
    made.tasks[owner].last_context = ids[1];
  });
  Attach(tree, tree.communication(), data.communication.infos, piece, false, [&](size_t owner, const auto&, size_t index) {
    Grow(&made.tasks[owner].infos_begin, &made.tasks[owner].infos_end, index);
  });
  return made;
}

// Calls around a task, of the tree; -1: none.
struct CallsAround {
  int32_t innermost = -1;
  int32_t node = -1;
  int32_t communication = -1;
};

// What is known of a piece before its tasks are made; may be made on another thread than they are.
struct PieceRecords {
  PieceRecords(const HostData& data, const Piece& of)
      : piece(of), tree(of.apis), launches(LaunchesOf(data, of, tree)), communication(CommunicationOf(data, of, tree)) {
    around.reserve(of.tasks.size());
    size_t from = 0;
    for (const TaskRecord& record : of.tasks) {
      const int32_t call = tree.Find(record.time, &from);
      around.push_back({call, tree.Above(call, kNodeLevel), tree.Above(call, kCommunicationLevel)});
    }
  }
  Piece piece;
  ThreadTree tree;
  Large<LaunchRecords> launches;
  PieceCommunication communication;
  Large<CallsAround> around;  // by task
};

// What a task may be, by its type; -1: no kernel of a core.
struct TypeOfTask {
  explicit TypeOfTask(std::string_view name)
      : operation(name.starts_with("KERNEL") || name == "STARS_COMMON"),
        fusion(name == "FFTS_PLUS"),
        mix(name == "KERNEL_MIX_AIC" || name == "KERNEL_MIX_AIV"),
        core(CoreOfKernel(name)),
        takes_contexts((core >= 0 && name != "KERNEL_AICPU") || fusion) {}
  bool operation;
  bool fusion;
  bool mix;
  int core;
  bool takes_contexts;
};

class Builder {
 public:
  Builder(HostData* data, bool detailed, size_t calls_per_piece)
      : data_(*data), detailed_(detailed), calls_per_piece_(calls_per_piece), launches_(data, &made_) {
    for (const CaptureRecord& capture : data_.captures) AddCapture(capture);
  }

  HostTasks Build() {
    made_.tasks.reserve(data_.tasks.size());
    const std::vector<Piece> pieces = Cut();
    constexpr size_t kAhead = 4;
    MakeAhead<PieceRecords>::Run(pieces.size(), kAhead, [&](size_t i) { return PieceRecords(data_, pieces[i]); },
                                 [this](PieceRecords records) { AddPiece(&records); });
    return std::move(made_);
  }

 private:
  // The record of a graph's end has no stream (operator-data a.2): it is that of all the graph's streams.
  void AddCapture(const CaptureRecord& capture) {
    if (!capture.ended) {
      captures_[{capture.device, capture.stream}].push_back(capture);
      return;
    }
    for (auto& [place, of_stream] : captures_) {
      const CaptureRecord& last = of_stream.back();
      if (place.first == capture.device && last.model == capture.model && !last.ended) of_stream.push_back(capture);
    }
  }

  // By thread and time.
  std::vector<Piece> Cut() const {
    std::vector<Piece> pieces;
    const std::span<const TaskRecord> all(data_.tasks);
    for (size_t task = 0; task < all.size();) {
      Piece piece;
      piece.thread = all[task].thread;
      const auto [first, behind] = EqualRange(data_.apis, piece.thread, &Api::thread);
      const std::span<const Api> apis(first, behind);
      const auto is_mine = [&all, thread = piece.thread](size_t at) { return at < all.size() && all[at].thread == thread; };
      for (size_t at = 0; is_mine(task);) {
        const size_t end = EndOfPiece(apis, at, calls_per_piece_);
        piece.last = end == apis.size() ? UINT64_MAX : apis[end].begin - 1;
        piece.apis = apis.subspan(at, end - at);
        const size_t begin = task;
        while (is_mine(task) && all[task].time <= piece.last) ++task;
        piece.tasks = all.subspan(begin, task - begin);
        if (!piece.tasks.empty()) pieces.push_back(piece);
        piece.begin = piece.last + 1;
        at = end;
      }
    }
    return pieces;
  }

  void AddPiece(PieceRecords* records) {
    const ThreadTree& tree = records->tree;
    for (size_t i = 0; i < records->piece.tasks.size(); ++i) {
      const TaskRecord& record = records->piece.tasks[i];
      const auto [call, node, communication] = records->around[i];
      HostTask task;
      task.kernel = record.kernel;
      task.type = record.type;
      task.device = record.device;
      task.stream = record.stream;
      task.task = record.task;
      task.batch = record.batch;
      if (communication >= 0) task.communication = IndexOf(tree, communication);
      FindModel(tree, call, record.time, &task);
      LaunchRecords* launch = node < 0 || !IsLaunch(tree.Of(node)) ? nullptr : &records->launches[tree.OrdinalOf(node)];
      if (launch != nullptr) task.launch = launches_.Of(tree.Of(node).item, launch);
      if (const CopyInfo* copy = data_.communication.CopyOf(record.thread, record.time)) {
        task.copy = static_cast<int32_t>(copy - data_.communication.copies.data());
      }
      Blocks(record, &task);
      const bool is_operation = Classify(&task);
      const int32_t connected = (is_operation || communication >= 0) && node >= 0 ? node : call;
      if (connected >= 0) task.connection = IndexOf(tree, connected);
      const int32_t added = communication < 0 || node < 0 ? -1 : AddCommunication(tree, records->around[i], task, &records->communication);
      if (added < 0 || is_operation) {
        Place(task, launch);
      } else {
        task.contexts = added;
        made_.tasks.push_back(task);
      }
    }
  }

  int32_t IndexOf(const ThreadTree& tree, int32_t api) const {
    return static_cast<int32_t>(&tree.Of(api) - data_.apis.data());
  }

  // Its index. The operation is the node-level API next around the task, within the communication API or around it.
  int32_t AddCommunication(const ThreadTree& tree, const CallsAround& around, const HostTask& task, PieceCommunication* of_piece) {
    const size_t ordinal = tree.OrdinalOf(around.node);
    int32_t& number = of_piece->numbers[ordinal];
    if (number < 0) {
      number = static_cast<int32_t>(made_.communication_launches.size());
      made_.communication_launches.push_back(of_piece->launches[ordinal]);
      CommunicationLaunch& launch = made_.communication_launches.back();
      launch.api = IndexOf(tree, around.node);
      if (launch.node >= 0) launch.node = launches_.NodeOf(launch.node);
    }
    CommunicationHostTask made = of_piece->tasks[tree.OrdinalOf(around.communication)];
    made.model = task.model;
    made.api = IndexOf(tree, around.communication);
    made.launch = number;
    made.device = task.device;
    made.stream = task.stream;
    made.task = task.task;
    made.batch = task.batch;
    made_.communication.push_back(made);
    return static_cast<int32_t>(made_.communication.size() - 1);
  }

  // Of the model-level API around it, else of the graph that its stream was captured for.
  void FindModel(const ThreadTree& tree, int32_t api, uint64_t time, HostTask* task) const {
    if (const int32_t model = tree.Above(api, kModelLevel); model >= 0) {
      task->model = tree.Of(model).item;
      task->request = tree.Of(model).request;
      return;
    }
    const auto captured = captures_.find({task->device, task->stream});
    if (captured == captures_.end()) return;
    const auto after = std::ranges::upper_bound(captured->second, time, {}, &CaptureRecord::time);
    if (after != captured->second.begin() && !std::prev(after)->ended) task->model = std::prev(after)->model;
  }

  void Blocks(const TaskRecord& record, HostTask* task) const {
    if (record.has_blocks || !detailed_) {  // without details these fields are 0, and shown
      task->has_blocks = true;
      task->blocks = record.blocks;
      task->mix_blocks = uint32_t{record.blocks} * record.mix_ratio;
    } else if (const NodeRecord* node = NodeOf(*task)) {
      task->has_blocks = true;
      task->blocks = node->blocks;
      task->mix_blocks = uint32_t{node->blocks} * node->mix_ratio;
    }
  }

  const NodeRecord* NodeOf(const HostTask& task) const {
    if (task.launch < 0) return nullptr;
    const int32_t node = made_.launches[static_cast<size_t>(task.launch)].node;
    return node < 0 ? nullptr : &made_.nodes[static_cast<size_t>(node)];
  }

  const TypeOfTask& TypeOf(const HostTask& task) {
    const auto known = types_.find(task.type);
    return known != types_.end() ? known->second
                                 : types_.try_emplace(task.type, RuntimeTypeName(data_, task.type)).first->second;
  }

  // True: it is the operation of its launch. Others are operators only by a kernel of their own.
  bool Classify(HostTask* task) {
    const TypeOfTask& type = TypeOf(*task);
    if (task->launch >= 0 && (type.operation || (type.fusion && task->communication < 0))) {
      const NodeRecord* node = NodeOf(*task);
      // The marker of a complete FFTS+ graph is not an operator, and without a description there is none.
      task->compute = !detailed_ || (node != nullptr && node->core_type != kFftsPlusCore);
      return true;
    }
    task->compute = task->kernel != 0 && task->communication < 0 && type.core >= 0;
    return false;
  }

  // Does this node-level API launch what is below it (operator-data b.1, 4)? Each kind is looked up once.
  bool IsLaunch(const Api& api) {
    const auto [known, is_new] = is_launch_.try_emplace({api.type, api.item}, true);
    if (is_new) known->second = data_.TypeName(api.level, api.type) != "step_info" && !data_.NameOf(api.item).starts_with("Lccl");
    return known->second;
  }

  // A task with context ids is as many, and one more for the task around them.
  void Place(HostTask task, const LaunchRecords* launch) {
    const TypeOfTask& type = TypeOf(task);
    static const std::vector<uint32_t> kNone;
    const bool has_contexts = type.takes_contexts && launch != nullptr && launch->contexts >= 0 && !data_.unique_tasks;
    const std::vector<uint32_t>& ids = has_contexts ? data_.contexts[static_cast<size_t>(launch->contexts)] : kNone;
    if (ids.empty()) {
      if (type.mix && task.launch < 0 && !data_.unique_tasks) task.context = 0;
      made_.tasks.push_back(task);
      return;
    }
    HostTask around = task;
    around.compute = false;
    made_.tasks.push_back(around);
    for (const uint32_t id : ids) {
      task.context = id;
      made_.tasks.push_back(task);
    }
  }

  HostData& data_;
  const bool detailed_;
  const size_t calls_per_piece_;
  std::map<std::pair<uint16_t, uint16_t>, std::vector<CaptureRecord>> captures_;  // by device and stream
  std::map<uint32_t, TypeOfTask> types_;
  HostTasks made_;
  std::map<std::pair<uint32_t, uint64_t>, bool> is_launch_;  // by type and item
  Launches launches_;
};

}  // namespace

HostTasks BuildHostTasks(HostData* data, bool detailed, size_t calls_per_piece) {
  HostTasks made = Builder(data, detailed, calls_per_piece).Build();
  Release(&data->tasks);
  Release(&data->nodes);
  Release(&data->tensor_records);
  Release(&data->context_records);
  Release(&data->contexts);
  Release(&data->attributes);
  return made;
}

}  // namespace profd::exporting::operators
