#include "export/trace/operator_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "export/operators/communication_names.h"
#include "export/operators/numbers.h"
#include "export/operators/overlap.h"
#include "export/trace/framework_layer.h"

namespace profd::exporting {
namespace {

using operators::Api;
using operators::CommunicationOp;
using operators::CommunicationTask;
using operators::HostTask;
using operators::kNoContext;
using operators::Model;
using operators::TaskRow;

constexpr uint32_t kNoPlane = 0xFFFFFFFF;

struct ApiLevel {
  std::string_view shown;
  std::string_view name;
};
ApiLevel LevelOf(uint16_t level) {
  switch (level) {
    case operators::kAclLevel: return {"AscendCL", "acl"};
    case operators::kModelLevel: return {"Model", "model"};
    case operators::kNodeLevel: return {"Node", "node"};
    case operators::kCommunicationLevel: return {"Communication", "communication"};
    case operators::kRuntimeLevel: return {"Runtime", "runtime"};
    default: return {};
  }
}

// Only calls of AscendCL have one: what the item gives, which most releases leave out, else their name.
std::string_view IdOf(const Model& model, const Api& api) {
  if (api.level != operators::kAclLevel) return "0";
  return api.item != 0 ? model.host.NameOf(api.item) : model.host.ApiName(api);
}

std::string_view ModeOf(const Model& model, const Api& api) {
  const std::string_view acl = api.level == operators::kAclLevel ? operators::AclClassName(api.type) : std::string_view();
  return acl.empty() ? model.host.TypeName(api.level, api.type) : acl;
}

// APIs that record an event or wait for one: their tasks have flows without being operators.
bool IsEvent(std::string_view id) { return id == "aclrtRecordEvent" || id == "aclrtStreamWaitEvent"; }

class Layers {
 public:
  Layers(const Model& model, const TimeWindow& window, LayerSink& sink) : model_(model), window_(window), sink_(sink) {}

  void Show() {
    ShowFramework(model_, window_, sink_);
    FindCopies();
    ShowApis();
    ShowTasks();
    ShowCommunication();
    ShowOverlaps();
  }

 private:
  using TaskKey = std::tuple<int16_t, uint16_t, uint16_t, uint16_t>;
  static TaskKey KeyOf(const TaskRow& row) { return {row.device, row.stream, row.task, row.batch}; }

  bool IsCopy(const HostTask& task) {
    const auto [known, is_new] = copies_.try_emplace(task.type, false);
    if (is_new) known->second = operators::RuntimeTypeName(model_.host, task.type) == "MEMCPY_ASYNC";
    return known->second;
  }

  void FindCopies() {
    for (const TaskRow& row : model_.rows) {
      const HostTask* host = model_.HostOf(row);
      if (host != nullptr && host->connection >= 0 && IsCopy(*host)) copying_.insert(host->connection);
    }
  }

  void ShowApis() {
    const auto& apis = model_.host.apis;
    const uint32_t* thread = nullptr;
    for (size_t i = 0; i < apis.size(); ++i) {
      const Api& api = apis[i];
      const ApiLevel level = LevelOf(api.level);
      const int64_t begin_ns = model_.host.WallNs(api.begin);
      if (api.early || level.name.empty() || !window_.Has(begin_ns)) continue;
      if (thread == nullptr || *thread != api.thread) {
        thread = &api.thread;
        sink_.Enter({&kCannProcess, -1, api.thread, fmt::format("Thread {}", api.thread)});
      }
      ShowApi(api, static_cast<int64_t>(i), level, begin_ns);
    }
  }

  void ShowApi(const Api& api, int64_t connection, const ApiLevel& level, int64_t begin_ns) {
    const std::string_view id = IdOf(model_, api);
    const bool is_event = IsEvent(id);
    if (is_event) event_apis_.insert(connection);
    const std::string& item = model_.host.NameOf(api.item);
    text_.assign(level.shown).append("@").append(model_.host.ApiName(api));
    const std::array<LayerArg, 6> args = {{{"Thread Id", uint64_t{api.thread}},
                                           {"Mode", ModeOf(model_, api)},
                                           {"level", level.name},
                                           {"id", id},
                                           {"item_id", item},
                                           {"connection_id", static_cast<uint64_t>(connection)}}};
    LayerEvent event{text_, begin_ns, model_.host.WallNs(api.end) - begin_ns, args};
    const LayerFlow launch{LayerFlow::Kind::kLaunch, true, static_cast<uint64_t>(connection)};
    if (is_event || api.level == operators::kNodeLevel || copying_.contains(connection)) event.flows = {&launch, 1};
    sink_.Take(event);
  }

  // Indices of tasks, and behind them of marks. A task with contexts is shown as these.
  Large<uint32_t> ShownTasks() const {
    Large<TaskKey> divided;
    for (const TaskRow& row : model_.rows) {
      if (row.context != kNoContext) divided.push_back(KeyOf(row));
    }
    std::ranges::sort(divided);
    Large<uint32_t> shown(model_.marks.size());
    shown.reserve(shown.size() + model_.rows.size());
    std::iota(shown.begin(), shown.end(), static_cast<uint32_t>(model_.rows.size()));
    for (size_t i = 0; i < model_.rows.size(); ++i) {
      const TaskRow& row = model_.rows[i];
      if (row.context == kNoContext && std::ranges::binary_search(divided, KeyOf(row))) continue;
      shown.push_back(static_cast<uint32_t>(i));
    }
    const auto place = [this](uint32_t index) {
      const auto of = [index](const auto& x) { return std::tuple(x.device, x.stream, x.start_ns, -x.end_ns, index); };
      const size_t rows = model_.rows.size();
      return index < rows ? of(model_.rows[index]) : of(model_.marks[index - rows]);
    };
    if (!std::ranges::is_sorted(shown, {}, place)) std::ranges::sort(shown, {}, place);
    return shown;
  }

  void ShowTasks() {
    std::optional<std::pair<int16_t, uint16_t>> before;
    const auto enter = [&](const auto& shown) {
      if (before == std::pair(shown.device, shown.stream)) return;
      before = {shown.device, shown.stream};
      sink_.Enter({&kHardwareProcess, shown.device, shown.stream, fmt::format("Stream {}", shown.stream)});
    };
    for (const uint32_t index : ShownTasks()) {
      const bool is_task = index < model_.rows.size();
      is_task ? enter(model_.rows[index]) : enter(model_.marks[index - model_.rows.size()]);
      is_task ? ShowTask(model_.rows[index]) : ShowMark(model_.marks[index - model_.rows.size()]);
    }
  }

  void ShowMark(const operators::DeviceMark& mark) {
    const std::array<LayerArg, 2> args = {{{"Physic Stream Id", uint64_t{mark.stream}},
                                           {"Task Id", uint64_t{mark.task}}}};
    const LayerFlow flow{LayerFlow::Kind::kMark, false, static_cast<uint64_t>(MarkConnection(mark.mark))};
    sink_.Take({mark.text, mark.start_ns, mark.end_ns - mark.start_ns, args, {&flow, 1}});
  }

  void ShowTask(const TaskRow& row) {
    const HostTask* host = model_.HostOf(row);
    const bool copies = host != nullptr && IsCopy(*host);
    const bool computes = host != nullptr && host->compute;
    const uint64_t connection = host == nullptr || host->connection < 0 ? kNoConnection
                                                                        : static_cast<uint64_t>(host->connection);
    const std::string own = model_.TaskType(row);
    std::string_view type = computes ? model_.CoreType(*host) : "N/A";
    std::string by_device;
    if (type == "N/A" && copies) by_device = operators::SqeTypeName(row.type);
    if (type == "N/A") type = copies ? by_device : own;
    args_.clear();
    args_.push_back({"Model Id", host == nullptr ? uint64_t{operators::kNoModel} : host->model});
    args_.push_back({"Task Type", type});
    args_.push_back({"Physic Stream Id", uint64_t{row.stream}});
    args_.push_back({"Task Id", uint64_t{model_.TaskId(row)}});
    args_.push_back({"Batch Id", uint64_t{model_.BatchId(row)}});
    args_.push_back({"Subtask Id", uint64_t{row.context}});
    args_.push_back({"connection_id", connection});
    std::string direction;
    if (copies && !model_.host.communication.copies.empty()) AddCopy(row, *host, &direction);
    const std::string_view name = computes ? model_.OperatorName(*host) : own;
    LayerEvent event{name, row.start_ns, row.end_ns - row.start_ns, args_};
    event.rest_ns = row.rest_ns;
    std::array<LayerFlow, 2> flows;
    size_t count = 0;
    const bool is_launched = computes || copies || event_apis_.contains(static_cast<int64_t>(connection));
    if (is_launched && !IsCutOff(static_cast<int64_t>(connection))) flows[count++] = {LayerFlow::Kind::kLaunch, false, connection};
    const auto by_framework = computes || copies ? FrameworkFlowTo(model_, row, window_) : std::nullopt;
    if (by_framework) flows[count++] = *by_framework;
    event.flows = {flows.data(), count};
    sink_.Take(event);
  }

  // The call is outside of the window: a flow from it has no begin.
  bool IsCutOff(int64_t connection) const {
    const auto& apis = model_.host.apis;
    if (window_.HasAll() || connection < 0 || static_cast<size_t>(connection) >= apis.size()) return false;
    const Api& api = apis[static_cast<size_t>(connection)];
    return api.early || !window_.Has(model_.host.WallNs(api.begin));
  }

  // One without a record copied 0 bytes in a direction that is not known.
  void AddCopy(const TaskRow& row, const HostTask& host, std::string* direction) {
    const operators::CopyInfo* copy = model_.CopyOf(host);
    const uint64_t bytes = copy == nullptr ? 0 : copy->bytes;
    const double ns = row.duration_ns();
    *direction = operators::CopyDirectionName(copy == nullptr ? UINT32_MAX : copy->direction);
    args_.push_back({"size(B)", bytes});
    args_.push_back({"bandwidth(GB/s)", ns > 0 ? static_cast<double>(bytes) / ns : 0.0});
    args_.push_back({"operation", *direction});
  }

  // A thread of operations for each group, by its first operation, and below it one for each plane.
  void ShowCommunication() {
    struct Group {
      uint64_t hash = 0;
      std::vector<size_t> ops;
      std::map<uint32_t, std::vector<const CommunicationTask*>> planes;
    };
    const operators::Communication& all = model_.communication;
    struct Device {
      std::vector<Group> groups;
      std::unordered_map<uint64_t, size_t> numbers;  // by hash
    };
    std::map<int, Device> devices;
    const auto group_of = [&devices](const CommunicationOp& op) -> Group& {
      Device& device = devices[op.device];
      const auto [known, is_new] = device.numbers.try_emplace(op.group, device.groups.size());
      if (is_new) device.groups.push_back({op.group, {}, {}});
      return device.groups[known->second];
    };
    for (size_t i = 0; i < all.ops.size(); ++i) {
      if (all.ops[i].shown) group_of(all.ops[i]).ops.push_back(i);
    }
    for (const CommunicationTask& task : all.tasks) {
      if (task.op < 0 || !window_.Has(task.start_ns)) continue;
      const CommunicationOp& op = all.ops[static_cast<size_t>(task.op)];
      const operators::CommunicationInfo* info = model_.InfoOf(task);
      const bool known = info != nullptr && info->plane != kNoPlane;
      if (op.shown) group_of(op).planes[known ? info->plane : 0].push_back(&task);
    }
    for (auto& [device, of] : devices) {
      int64_t tid = 0;
      for (Group& group : of.groups) {
        sink_.Enter({&kCommunicationProcess, device, tid,
                     fmt::format("Group {} Communication", group.hash == 0 ? "N/A" : model_.host.NameOf(group.hash))});
        std::ranges::sort(group.ops, {}, [&all](size_t op) { return all.ops[op].start_ns; });
        for (const size_t op : group.ops) ShowOp(all.ops[op]);
        for (auto& [plane, tasks] : group.planes) {
          sink_.Enter({&kCommunicationProcess, device, tid + plane + 1, fmt::format("Plane {}", plane)});
          std::ranges::sort(tasks, {}, &CommunicationTask::start_ns);
          for (const CommunicationTask* task : tasks) ShowCommunicationTask(*task);
        }
        tid += (group.planes.empty() ? 0 : int64_t{group.planes.rbegin()->first}) + 2;
      }
    }
  }

  void ShowOp(const CommunicationOp& op) {
    const operators::CommunicationOpInfo* info = model_.InfoOf(op);
    const std::string type = info == nullptr ? "N/A" : operators::CommunicationDataTypeName(info->data_type);
    const std::string algorithm = info == nullptr ? "N/A" : model_.host.NameOf(info->algorithm);
    const int64_t api = model_.LaunchOf(op).api;
    const auto yes = [](bool value) -> std::string_view { return value ? "yes" : "no"; };
    const LayerArg no_count{"count", std::string_view("N/A")};
    const std::array<LayerArg, 8> args = {{{"rank_size", uint64_t{op.rank_size}},
                                           {"connection_id", static_cast<uint64_t>(api)},
                                           {"model id", op.model},
                                           {"data_type", type},
                                           {"alg_type", algorithm},
                                           info == nullptr ? no_count : LayerArg{"count", info->count},
                                           {"relay", yes(info != nullptr && info->relay)},
                                           {"retry", yes(info != nullptr && info->retry)}}};
    const std::string name = model_.NameOf(op);
    std::vector<LayerFlow> flows;
    if (!IsCutOff(api)) flows.push_back({LayerFlow::Kind::kLaunch, false, static_cast<uint64_t>(api)});
    if (const auto by_framework = FrameworkFlowTo(model_, op, window_)) flows.push_back(*by_framework);
    sink_.Take({name, op.start_ns, op.end_ns - op.start_ns, args, flows, {}});
  }

  void ShowCommunicationTask(const CommunicationTask& task) {
    const operators::CommunicationInfo none;
    const operators::CommunicationInfo* known = model_.InfoOf(task);
    const operators::CommunicationInfo& info = known == nullptr ? none : *known;
    const operators::CommunicationHostTask& host = model_.HostOf(task);
    const std::string name = known == nullptr ? "N/A" : model_.host.NameOf(info.name);
    const std::string notify = fmt::to_string(info.notify);
    const std::string transport = operators::TransportTypeName(known == nullptr ? UINT32_MAX : info.transport);
    const std::string data = operators::CommunicationDataTypeName(known == nullptr ? UINT32_MAX : info.data_type);
    const std::string link = operators::LinkTypeName(known == nullptr ? UINT32_MAX : info.link);
    const std::array<LayerArg, 14> args = {{{"notify_id", notify},
                                            {"duration estimated(us)", info.estimated_us},
                                            {"stream id", uint64_t{host.stream}},
                                            {"task id", uint64_t{model_.TaskId(host)}},
                                            {"context id", uint64_t{task.context}},
                                            {"task type", name},
                                            {"src rank", uint64_t{info.local_rank}},
                                            {"dst rank", uint64_t{info.remote_rank}},
                                            {"transport type", transport},
                                            {"size(Byte)", info.bytes},
                                            {"data type", data},
                                            {"link type", link},
                                            {"bandwidth(GB/s)", task.gbps},
                                            {"model id", host.model}}};
    sink_.Take({name, task.start_ns, task.end_ns - task.start_ns, args, {}, {}, task.rest_ns});
  }

  void ShowOverlaps() {
    for (const auto& [device, overlap] : operators::OverlapsOf(model_)) {
      for (size_t kind = 0; kind < overlap.size(); ++kind) {
        if (overlap[kind].empty()) continue;
        const std::string_view name = OverlapName(static_cast<operators::OverlapKind>(kind));
        sink_.Enter({&kOverlapProcess, device, static_cast<int64_t>(kind), name});
        for (const operators::Interval& each : overlap[kind]) {
          sink_.Take({name, each.start_ns, each.end_ns - each.start_ns, {}});
        }
      }
    }
  }

  const Model& model_;
  const TimeWindow window_;
  LayerSink& sink_;
  std::map<uint32_t, bool> copies_;          // by type of the runtime
  std::unordered_set<int64_t> copying_;      // connection ids
  std::unordered_set<int64_t> event_apis_;
  std::string text_;
  std::vector<LayerArg> args_;
};

}  // namespace

void ShowOperators(const Model& model, const TimeWindow& window, LayerSink& sink) {
  Layers(model, window, sink).Show();
}

}  // namespace profd::exporting
