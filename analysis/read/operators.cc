#include "analysis/read/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "analysis/read/message_ends.h"
#include "analysis/times.h"
#include "export/beside.h"
#include "export/csv/collective_json.h"
#include "export/operators/communication_names.h"
#include "export/operators/details.h"
#include "export/operators/step_shares.h"

namespace profd::analysis {
namespace {

using exporting::operators::HostTask;
using exporting::operators::Model;
using exporting::operators::PmuColumn;
using exporting::operators::TaskRow;

class OperatorReader {
 public:
  OperatorReader(const Model& model, const std::set<int>& devices, bool keeps_calls, Rank* rank)
      : model_(model), devices_(devices), keeps_calls_(keeps_calls), rank_(*rank) {}

  void AddTasks() {
    // Not a moment with twice the memory.
    const auto mine = static_cast<size_t>(std::ranges::count_if(model_.rows, [this](const TaskRow& row) { return Has(row.device); }));
    rank_.executions.reserve(rank_.executions.size() + mine);
    if (keeps_calls_) launched_.reserve(mine);
    for (const TaskRow& row : model_.rows) {
      if (!Has(row.device)) continue;
      const HostTask* host = model_.HostOf(row);
      if (host == nullptr || !host->compute) continue;
      const int32_t op = OperatorOf(*host);
      if (op >= 0) AddTask(row, *host, op);
    }
  }

  void AddApis() {
    constexpr uint32_t kNotShown = UINT32_MAX;
    const auto& apis = model_.host.apis;
    if (!keeps_calls_) {
      for (const exporting::operators::Api& api : apis) {
        if (!api.early) LeaveOut(model_.host.WallNs(api.begin));
      }
      return;
    }
    std::vector<uint32_t> slices(apis.size(), kNotShown);
    rank_.slices.reserve(rank_.slices.size() + apis.size());
    for (size_t i = 0; i < apis.size(); ++i) {
      const exporting::operators::Api& api = apis[i];
      if (api.early) continue;
      slices[i] = static_cast<uint32_t>(rank_.slices.size());
      rank_.slices.push_back({model_.host.WallNs(api.begin), model_.host.WallNs(api.end), NameOf(api), LaneOfThread(api.thread)});
    }
    rank_.flows.reserve(rank_.flows.size() + launched_.size());
    for (const auto& [connection, execution] : launched_) {
      if (connection < 0 || slices[static_cast<size_t>(connection)] == kNotShown) continue;
      rank_.flows.push_back({slices[static_cast<size_t>(connection)], execution});
    }
  }

  void AddFramework() {
    if (model_.framework == nullptr) return;
    const auto& data = *model_.framework;
    for (const auto& op : data.operators) {
      if (!keeps_calls_) {
        LeaveOut(op.begin);
        continue;
      }
      if (op.stack >= 0) rank_.stacks.emplace(static_cast<uint32_t>(rank_.slices.size()), rank_.Text(data.texts.Text(op.stack)));
      rank_.slices.push_back({op.begin, op.end, rank_.Text(data.texts.Text(op.name)),
                              rank_.LaneOf("Python", fmt::format("Thread {}", op.thread)), true});
    }
    constexpr double kMiB = 1024.0 * 1024;
    for (const auto& record : data.memory.records) {
      if (!Has(record.device)) continue;
      rank_.memory[exporting::operators::kFrameworkComponent].push_back(
          {record.time, static_cast<double>(record.allocated) / kMiB, static_cast<double>(record.reserved) / kMiB,
           static_cast<double>(record.active) / kMiB});
    }
    for (const auto& each : data.memory.Allocations()) {
      if (each.taken == nullptr || !Has(each.taken->device)) continue;
      const int32_t taker = data.TakerAt(each.taken->thread, each.taken->time);
      const TextId name = taker < 0 ? kNoText : rank_.Text(data.texts.Text(data.operators[static_cast<size_t>(taker)].name));
      rank_.blocks.push_back({name, static_cast<double>(each.taken->bytes) / 1024, each.taken->time,
                              each.released == nullptr ? std::nullopt : std::optional(each.released->time)});
    }
  }

  void AddMemory() {
    constexpr double kMiB = 1024.0 * 1024;
    for (const auto& record : model_.host.memory.memory) {
      if (record.device_type != exporting::operators::kNpuMemory || !Has(static_cast<int>(record.device))) continue;
      rank_.memory["GE"].push_back({model_.host.WallNs(record.time), static_cast<double>(record.allocated) / kMiB,
                                    static_cast<double>(record.reserved) / kMiB, std::nullopt});
    }
    for (const auto& each : model_.host.memory.Allocations()) {
      if (each.taken->device_type != exporting::operators::kNpuMemory || !Has(static_cast<int>(each.taken->device))) continue;
      rank_.blocks.push_back({each.taken->name == 0 ? kNoText : rank_.Text(model_.host.NameOf(each.taken->name)),
                              static_cast<double>(each.taken->bytes) / 1024, model_.host.WallNs(each.taken->time),
                              each.freed == nullptr ? std::nullopt : std::optional(model_.host.WallNs(each.freed->time))});
    }
  }

  void AddCollectives(const std::vector<exporting::StepSpan>& steps, const ReadContext& context) {
    for (const auto& op : model_.communication.ops) {
      if (!op.shown || !Has(op.device)) continue;
      rank_.longest_communication_ns = std::max(rank_.longest_communication_ns, op.end_ns - op.start_ns);
      rank_.communication_sum_ns = BoundedTime(rank_.communication_sum_ns + op.end_ns - op.start_ns);
      rank_.slices.push_back({op.start_ns, op.end_ns, rank_.Text(model_.NameOf(op)),
                              rank_.LaneOf("Communication", fmt::format("Group {}", op.group))});
    }
    AddTransfers();
    for (const int device : devices_) {
      const auto made = exporting::csv::CollectivesAsJson(model_, device, steps);
      if (made.operations == 0) continue;
      ReadCommunication(made.times, rank_.path, context, &rank_);
      ReadCommunicationMatrix(made.matrix, rank_.path, context, &rank_);
    }
    ends_.AddTo(&rank_);
  }

 private:
  bool Has(int device) const { return devices_.contains(device); }
  void LeaveOut(int64_t call_ns) { rank_.first_call_ns = std::min(rank_.first_call_ns.value_or(call_ns), call_ns); }

  void AddTransfers() {
    using exporting::operators::CommunicationTask;
    std::map<uint64_t, size_t> groups;  // their numbers
    std::vector<PlaneTask> tasks;
    int32_t last_op = -1;
    TextId message = kNoText;  // its name, where it is one
    for (const CommunicationTask& task : model_.communication.tasks) {
      if (task.op < 0 || task.info < 0) continue;
      const auto& op = model_.communication.ops[static_cast<size_t>(task.op)];
      const auto& info = model_.host.communication.infos[static_cast<size_t>(task.info)];
      if (!op.shown || !Has(op.device)) continue;
      if (std::exchange(last_op, task.op) != task.op) {
        const std::string name = model_.NameOf(op);
        message = IsSendOrReceive(name) ? rank_.Text(name) : kNoText;
      }
      if (message != kNoText) ends_.Add(message, info.local_rank, info.remote_rank);
      const std::string kind = model_.host.NameOf(info.name);
      const size_t group = groups.try_emplace(op.group, groups.size()).first->second;
      tasks.push_back({task.start_ns, task.end_ns, PlaneNumber(group, info.plane), rank_.TextOf(rank_.Text(kind))});
      if (info.bytes == 0) continue;
      if (!kind.starts_with("Memcpy") && !kind.starts_with("Reduce")) continue;
      rank_.transfers.push_back({task.start_ns, task.end_ns, info.bytes, rank_.Text(model_.NameOf(op)),
                                 rank_.Text(exporting::operators::TransportTypeName(info.transport)),
                                 rank_.Text(exporting::operators::LinkTypeName(info.link))});
    }
    rank_.AddWaits(std::move(tasks));
  }

  void AddTask(const TaskRow& row, const HostTask& host, int32_t op) {
    Operator& made = rank_.operators[static_cast<size_t>(op)];
    const auto execution = static_cast<uint32_t>(rank_.executions.size());
    if (keeps_calls_) launched_.emplace_back(host.connection, execution);
    rank_.executions.push_back({row.start_ns, row.end_ns, op, LaneOfStream(row), host.has_blocks ? host.blocks : kNoBlocks,
                                static_cast<uint16_t>(host.has_blocks ? std::min<uint32_t>(host.mix_blocks, kNoBlocks) : kNoBlocks)});
    const auto cores = exporting::operators::CountersOf(model_, row, host);
    if (!cores) return;
    const auto ns = static_cast<double>(row.end_ns - row.start_ns);
    const double mhz = model_.device_pmu.at(row.device).mhz;
    for (size_t i = 0; i < cores->size(); ++i) AddRatios((*cores)[i], i == 1, mhz, ns, &made);
    made.EndRatios(ns);
  }

  // -1: it is not shown.
  int32_t OperatorOf(const HostTask& host) {
    const auto [it, is_new] = known_.try_emplace(exporting::operators::AlikeOf(model_, host), -1);
    if (!is_new) return it->second;
    const std::string_view core = model_.CoreType(host);
    if (!exporting::operators::IsShown(model_, host, core)) return -1;
    const auto [inputs, outputs] = exporting::operators::TensorsOf(model_, host);
    const int32_t op = rank_.OperatorOf(rank_.Text(model_.OperatorName(host)), rank_.Text(model_.OperatorType(host)), rank_.Text(core),
                                        rank_.Text(inputs.shapes));
    Operator& made = rank_.operators[static_cast<size_t>(op)];
    if (made.input_types == kNoText) {
      made.input_types = rank_.Text(inputs.types);
      made.output_shapes = rank_.Text(outputs.shapes);
      made.output_types = rank_.Text(outputs.types);
      made.input_formats = rank_.Text(inputs.formats);
      made.output_formats = rank_.Text(outputs.formats);
    } else if (core == kAiCpuCore) {
      made.AddTypes(rank_.Text(inputs.types), rank_.Text(outputs.types));
    }
    return it->second = op;
  }

  TextId NameOf(const exporting::operators::Api& api) {
    const auto [it, is_new] = api_names_.try_emplace({uint64_t{api.level} << 32 | api.type, api.item}, kNoText);
    if (is_new) it->second = rank_.Text(model_.host.ApiName(api));
    return it->second;
  }

  int32_t LaneOfThread(uint32_t thread) {
    const auto [it, is_new] = threads_.try_emplace(thread, -1);
    if (is_new) it->second = rank_.LaneOf("CANN", fmt::format("Thread {}", thread));
    return it->second;
  }

  int32_t LaneOfStream(const TaskRow& row) {
    const auto [it, is_new] = streams_.try_emplace({row.device, row.stream}, -1);
    if (is_new) it->second = profd::analysis::LaneOfStream(row.device, row.stream, &rank_);
    return it->second;
  }

  // Columns of a core that are ratios, and their numbers in the rank once they have had a value.
  struct Ratio {
    const PmuColumn* column = nullptr;
    std::string_view name;
    std::optional<size_t> index;
    size_t unit = 0;
  };
  std::vector<Ratio>& RatiosOf(const exporting::operators::PmuCore& core) {
    const auto [it, is_new] = ratios_.try_emplace(&core);
    if (!is_new) return it->second;
    constexpr std::string_view kRatio = "_ratio";
    for (const PmuColumn* column : core.Summary()) {
      if (column->kind != PmuColumn::Kind::kRatio || !column->name.ends_with(kRatio)) continue;
      it->second.push_back({column, std::string_view(column->name).substr(0, column->name.size() - kRatio.size()), std::nullopt});
    }
    return it->second;
  }

  void AddRatios(const exporting::operators::CoreCounters& counted, bool is_vector, double mhz, double ns, Operator* op) {
    for (Ratio& ratio : RatiosOf(*counted.core)) {
      const auto value = exporting::operators::PmuValue(*ratio.column, counted.counts, counted.time_us, mhz);
      if (!value) continue;
      if (!ratio.index) {
        ratio.index = Rank::NumberIn(&rank_.ratio_names, ratio.name);
        ratio.unit = Rank::NumberIn(&rank_.unit_names, ratio.name);
      }
      op->AddRatio(*ratio.index, *value, ns);
      Rank::AddTo(&op->unit_ns, ratio.unit, *value * counted.time_us * 1000);
    }
    // Its time in all, as the vendor's tables call it.
    Rank::AddTo(&op->unit_ns, Rank::NumberIn(&rank_.unit_names, is_vector ? "aiv" : "aicore"), counted.time_us * 1000);
  }

  const Model& model_;
  const std::set<int>& devices_;
  bool keeps_calls_;
  Rank& rank_;
  std::map<std::pair<int, uint32_t>, int32_t> streams_;  // lanes
  std::vector<std::pair<int32_t, uint32_t>> launched_;  // connection and execution
  std::unordered_map<exporting::operators::Alike, int32_t, exporting::operators::AlikeHash> known_;
  std::unordered_map<const exporting::operators::PmuCore*, std::vector<Ratio>> ratios_;
  std::map<std::pair<uint64_t, uint64_t>, TextId> api_names_;  // by level and type, and item
  std::unordered_map<uint32_t, int32_t> threads_;              // lanes
  MessageEnds ends_;
};

}  // namespace

void AddOperators(const Model& model, const std::set<int>& devices, const std::vector<exporting::StepSpan>& steps,
                  const ReadContext& context, Rank* rank) {
  OperatorReader reader(model, devices, context.detail.calls, rank);
  // Made once, of the model alone: beside what fills the rank.
  exporting::RunBeside(2, [&](size_t part) { part == 0 ? reader.AddTasks() : void(exporting::operators::OverlapsOf(model)); });
  reader.AddApis();
  reader.AddFramework();
  reader.AddMemory();
  reader.AddCollectives(steps, context);
  std::optional<exporting::operators::Overlap> all;
  exporting::operators::Intervals receives;
  for (const auto& [device, overlap] : exporting::operators::OverlapsOf(model)) {
    if (!devices.contains(device)) continue;
    all = all ? exporting::operators::Merged(*all, overlap) : overlap;
    const auto waits = exporting::operators::ReceivesOf(model, device);
    receives.insert(receives.end(), waits.begin(), waits.end());
  }
  std::ranges::sort(receives, {}, &exporting::operators::Interval::start_ns);
  if (all) AddOverlap(*all, receives, steps, rank);
}

int32_t LaneOfStream(int device, int64_t stream, Rank* rank) {
  const bool first = device == rank->device.value_or(device);
  return rank->LaneOf("Ascend Hardware", first ? fmt::format("Stream {}", stream) : fmt::format("Stream {} of device {}", stream, device));
}

void AddOverlap(const exporting::operators::Overlap& overlap, const exporting::operators::Intervals& receives,
                const std::vector<exporting::StepSpan>& steps, Rank* rank) {
  rank->overlap = rank->recorded ? exporting::operators::Merged(rank->overlap, overlap) : overlap;
  rank->recorded = exporting::operators::ExtentOf(rank->overlap);
  for (const auto& share : exporting::operators::StepShares(rank->overlap, receives, steps)) {
    if (share.step) rank->shares[share.step->number] = SharesOf(share);
  }
}

}  // namespace profd::analysis
