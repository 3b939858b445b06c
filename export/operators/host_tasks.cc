#include "export/operators/host_tasks.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "export/operators/numbers.h"

namespace profd::exporting::operators {
namespace {

constexpr uint32_t kStreamDestroyed = 0xFFFF;
constexpr size_t kMostFlips = 65535;

// The intervals of one thread, outer before inner.
class ThreadTree {
 public:
  explicit ThreadTree(std::span<const Api> apis) {
    std::map<uint16_t, const Api*> last;
    std::vector<int32_t> open;
    for (const Api& api : apis) {
      const Api*& before = last[api.level];
      // A node-level API always counts, others only where they do not touch the one before of their level.
      if (api.level != kNodeLevel && api.level != kAclLevel && api.level != kModelLevel &&
          api.level != kCommunicationLevel) {
        continue;
      }
      if (api.level != kNodeLevel && before != nullptr && before->end >= api.begin) continue;
      before = &api;
      while (!open.empty() && Of(open.back()).end < api.end) open.pop_back();
      parents_.push_back(open.empty() ? -1 : open.back());
      apis_.push_back(&api);
      open.push_back(static_cast<int32_t>(apis_.size()) - 1);
      if (api.level == kNodeLevel) node_apis_.push_back(open.back());
    }
    launches_.resize(apis_.size());
  }

  const Api& Of(int32_t index) const { return *apis_[static_cast<size_t>(index)]; }
  int32_t ParentOf(int32_t index) const { return parents_[static_cast<size_t>(index)]; }
  Launch& LaunchOf(int32_t index) { return launches_[static_cast<size_t>(index)]; }

  // The innermost with begin < time <= end; -1: none.
  int32_t Find(uint64_t time) const {
    auto after = std::ranges::lower_bound(apis_, time, {}, [](const Api* api) { return api->begin; });
    auto at = static_cast<int32_t>(after - apis_.begin()) - 1;
    while (at >= 0 && Of(at).end < time) at = ParentOf(at);
    return at;
  }
  int32_t Above(int32_t index, uint16_t level) const {
    while (index >= 0 && Of(index).level != level) index = ParentOf(index);
    return index;
  }

  // Each record with the node-level API it belongs to; those between two belong to none. `to_inner`: the first inner
  // one that contains the record gets it.
  template <class Record, class Take>
  void Attach(std::span<const Record> records, bool to_inner, Take take) {
    size_t at = 0;
    for (size_t i = 0; i < records.size(); ++i) {
      const uint64_t time = records[i].time;
      while (at < node_apis_.size() && Of(node_apis_[at]).end < time) ++at;
      if (at == node_apis_.size()) return;
      if (time <= Of(node_apis_[at]).begin) continue;
      size_t owner = at;
      for (size_t k = at + 1; to_inner && k < node_apis_.size() && Of(node_apis_[k]).begin <= time; ++k) {
        if (time > Of(node_apis_[k]).end) continue;
        owner = k;
        break;
      }
      take(LaunchOf(node_apis_[owner]), i);
    }
  }

 private:
  std::vector<const Api*> apis_;
  std::vector<int32_t> parents_;
  std::vector<int32_t> node_apis_;
  std::vector<Launch> launches_;  // of the node-level ones
};

// Those of `thread` in what is sorted by thread.
template <class Record>
std::pair<size_t, size_t> OfThread(const std::vector<Record>& records, uint32_t thread) {
  const auto [begin, end] = EqualRange(records, thread, &Record::thread);
  return {static_cast<size_t>(begin - records.begin()), static_cast<size_t>(end - records.begin())};
}

template <class Record>
std::span<const Record> Part(const std::vector<Record>& records, std::pair<size_t, size_t> range) {
  return std::span(records).subspan(range.first, range.second - range.first);
}

void AttachRecords(const HostData& data, uint32_t thread, ThreadTree* tree) {
  const auto nodes = OfThread(data.nodes, thread);
  tree->Attach(Part(data.nodes, nodes), true, [&](Launch& launch, size_t i) {
    const auto node = static_cast<int64_t>(nodes.first + i);
    if (launch.node < 0) launch.first_name = data.nodes[nodes.first + i].name;
    launch.node = node;
  });
  const auto grow = [](uint32_t* begin, uint32_t* end, size_t at) {
    if (*begin == *end) *begin = static_cast<uint32_t>(at);
    *end = static_cast<uint32_t>(at) + 1;
  };
  const auto tensors = OfThread(data.tensor_records, thread);
  tree->Attach(Part(data.tensor_records, tensors), false, [&](Launch& launch, size_t i) {
    grow(&launch.tensors_begin, &launch.tensors_end, tensors.first + i);
  });
  const auto contexts = OfThread(data.context_records, thread);
  tree->Attach(Part(data.context_records, contexts), false, [&](Launch& launch, size_t i) {
    if (data.context_records[contexts.first + i].level != kNodeLevel) return;
    grow(&launch.contexts_begin, &launch.contexts_end, contexts.first + i);
  });
}

class Builder {
 public:
  Builder(const HostData& data, bool detailed) : data_(data), detailed_(detailed) {}

  HostTasks Build() {
    std::vector<TaskRecord> tasks = data_.tasks;
    NumberBatches(data_, &tasks);
    std::ranges::stable_sort(tasks, {}, &TaskRecord::thread);
    for (size_t begin = 0; begin < tasks.size();) {
      const uint32_t thread = tasks[begin].thread;
      size_t end = begin;
      while (end < tasks.size() && tasks[end].thread == thread) ++end;
      OneThread(thread, std::span(tasks).subspan(begin, end - begin));
      begin = end;
    }
    return std::move(made_);
  }

 private:
  void OneThread(uint32_t thread, std::span<const TaskRecord> tasks) {
    const auto apis = OfThread(data_.apis, thread);
    ThreadTree tree(Part(data_.apis, apis));
    AttachRecords(data_, thread, &tree);
    std::map<int32_t, int32_t> numbers;  // of launches, by the index of their API
    for (const TaskRecord& record : tasks) {
      HostTask task;
      task.time = record.time;
      task.kernel = record.kernel;
      task.type = record.type;
      task.device = record.device;
      task.stream = record.stream;
      task.task = record.task;
      task.batch = record.flip;
      const int32_t api = tree.Find(record.time);
      const int32_t node = tree.Above(api, kNodeLevel);
      task.communication = tree.Above(api, kCommunicationLevel) >= 0;
      if (const int32_t model = tree.Above(api, kModelLevel); model >= 0) {
        task.model = tree.Of(model).item;
        task.request = tree.Of(model).request;
      }
      const int32_t connected = node >= 0 ? node : api;
      if (connected >= 0) task.connection = connections_ + connected;
      if (node >= 0) task.launch = NumberOf(tree, node, &numbers);
      Blocks(record, &task);
      Classify(&task);
      Place(task);
    }
    connections_ += static_cast<int64_t>(apis.second - apis.first);
  }

  int32_t NumberOf(ThreadTree& tree, int32_t node, std::map<int32_t, int32_t>* numbers) {
    const auto [found, is_new] = numbers->try_emplace(node, static_cast<int32_t>(made_.launches.size()));
    if (is_new) {
      Launch launch = tree.LaunchOf(node);
      launch.item = tree.Of(node).item;
      made_.launches.push_back(launch);
    }
    return found->second;
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
    const int64_t node = made_.launches[static_cast<size_t>(task.launch)].node;
    return node < 0 ? nullptr : &data_.nodes[static_cast<size_t>(node)];
  }

  void Classify(HostTask* task) const {
    const std::string type = RuntimeTypeName(data_, task->type);
    const bool fusion = type == "FFTS_PLUS";
    if (task->launch >= 0) {
      const Launch& launch = made_.launches[static_cast<size_t>(task->launch)];
      const bool operation = std::string_view(type).starts_with("KERNEL") || type == "STARS_COMMON" ||
                             (fusion && !task->communication);
      if (operation && !data_.NameOf(launch.item).starts_with("Lccl")) {
        const NodeRecord* node = NodeOf(*task);
        // The marker of a whole FFTS+ graph is no operator, and without a description there is none.
        task->compute = !detailed_ || (node != nullptr && node->core_type != kFftsPlusCore);
        return;
      }
    }
    task->compute = task->kernel != 0 && !task->communication && CoreOfKernel(type) >= 0;
  }

  // A task with context ids is as many, and one more for the task around them.
  void Place(HostTask task) {
    const std::string type = RuntimeTypeName(data_, task.type);
    const bool takes_contexts = CoreOfKernel(type) >= 0 || type == "FFTS_PLUS";
    std::vector<uint32_t> ids;
    if (takes_contexts && type != "KERNEL_AICPU" && task.launch >= 0) {
      const Launch& launch = made_.launches[static_cast<size_t>(task.launch)];
      for (uint32_t i = launch.contexts_begin; i < launch.contexts_end; ++i) {
        const ContextRecord& record = data_.context_records[i];
        if (record.level != kNodeLevel) continue;
        const std::vector<uint32_t>& more = data_.contexts[record.contexts];
        ids.insert(ids.end(), more.begin(), more.end());
      }
    }
    if (ids.empty()) {
      const bool mix = type == "KERNEL_MIX_AIC" || type == "KERNEL_MIX_AIV";
      if (mix && task.launch < 0) task.context = 0;
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

  const HostData& data_;
  const bool detailed_;
  HostTasks made_;
  int64_t connections_ = 0;
};

}  // namespace

void NumberBatches(const HostData& data, std::vector<TaskRecord>* tasks) {
  using Stream = std::pair<uint16_t, uint16_t>;
  std::map<Stream, std::vector<TaskRecord>> flips;
  for (const TaskRecord& flip : data.flips) flips[{flip.device, flip.stream}].push_back(flip);
  for (auto& [stream, of_stream] : flips) std::ranges::stable_sort(of_stream, {}, &TaskRecord::time);
  std::map<Stream, std::vector<TaskRecord*>> streams;
  for (TaskRecord& task : *tasks) {
    task.flip = 0;  // from here on: its batch
    if (flips.contains({task.device, task.stream})) streams[{task.device, task.stream}].push_back(&task);
  }
  for (auto& [stream, of_stream] : streams) {
    const std::vector<TaskRecord>& wraps = flips[stream];
    if (wraps.size() > kMostFlips) continue;
    std::ranges::stable_sort(of_stream, {}, &TaskRecord::time);
    uint16_t batch = 0;
    size_t next = 0;
    for (size_t i = 0; i < of_stream.size(); ++i) {
      for (; next < wraps.size() && of_stream[i]->time > wraps[next].time; ++next) {
        ++batch;
        if (wraps[next].flip == kStreamDestroyed) continue;
        // Threads that raced for the wrap: ids below the flip's are of the new batch already.
        for (size_t k = i; k > 0 && of_stream[k - 1]->task < wraps[next].task; --k) of_stream[k - 1]->flip = batch;
      }
      of_stream[i]->flip = batch;
    }
  }
}

HostTasks BuildHostTasks(const HostData& data, bool detailed) { return Builder(data, detailed).Build(); }

}  // namespace profd::exporting::operators
