#include "export/sqlite/operator_doc_model.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace profd::exporting {
namespace {

constexpr int64_t kMsNs = 1'000'000;
constexpr std::string_view kHashes =
    "1:mm_1\n2:add_1\n3:mm_2\n4:MatMulV2\n5:Add\n6:hcom_allReduce_\n7:world\n8:RING\n";
constexpr std::string_view kTypes =
    "10000_5:launch\n5000_0:KERNEL_AICORE\n5000_66:KERNEL_AIVEC\n5000_5:MEMCPY_ASYNC\n";

void FeedLines(operators::Model* model, operators::HostFileKind kind, std::string_view lines) {
  operators::HostFile file;
  file.kind = kind;
  model->host.Feed(file, std::as_bytes(std::span(lines.data(), lines.size())));
}

struct Planned {
  uint64_t name, type;
  uint32_t core, runtime;
  uint16_t blocks;
  int64_t start_ms, ms;
  uint64_t cycles;  // 0: not counted
};

void AddOperator(operators::Model* model, const Planned& plan, int64_t begin_ns) {
  const auto number = static_cast<uint16_t>(model->host_tasks.tasks.size());
  operators::Api api;
  api.begin = (number + 1u) * kMsNs;
  api.end = api.begin + kMsNs / 5;
  api.item = plan.name;
  api.thread = 4243;
  api.type = 5;
  api.level = operators::kNodeLevel;
  model->host.apis.push_back(api);
  operators::NodeRecord node;
  node.name = plan.name;
  node.type = plan.type;
  node.core_type = plan.core;
  model->host_tasks.nodes.push_back(node);
  operators::Launch launch;
  launch.item = plan.name;
  launch.node = number;
  model->host_tasks.launches.push_back(launch);
  operators::HostTask task;
  task.connection = task.launch = number;
  task.type = plan.runtime;
  task.stream = 2;
  task.task = number;
  task.blocks = plan.blocks;
  task.has_blocks = task.compute = true;
  model->host_tasks.tasks.push_back(task);
  operators::TaskRow row;
  row.start_ns = begin_ns + plan.start_ms * kMsNs;
  row.end_ns = row.start_ns + plan.ms * kMsNs;
  row.host = number;
  row.stream = 2;
  row.task = number;
  if (plan.cycles > 0) {
    row.pmu = static_cast<int32_t>(model->pmu.size());
    operators::PmuRecord counted;
    operators::PmuCounts counts;
    counts.cycles = plan.cycles;
    counts.counters[0] = plan.cycles / 2;
    counts.counters[1] = plan.cycles / 4 * (number + 1u);
    model->pmu_counts.Pack(counts, &counted);
    model->pmu.push_back(counted);
  }
  model->rows.push_back(row);
}

void AddCopy(operators::Model* model, int64_t begin_ns) {
  operators::CopyInfo copy;
  copy.bytes = 64u << 20;
  copy.direction = 1;
  model->host.communication.copies.push_back(copy);
  operators::HostTask task;
  task.copy = 0;
  task.type = 5;
  task.stream = 3;
  task.task = 9;
  operators::TaskRow row;
  row.host = static_cast<int32_t>(model->host_tasks.tasks.size());
  row.start_ns = begin_ns + 40 * kMsNs;
  row.end_ns = row.start_ns + 4 * kMsNs;
  row.stream = 3;
  row.task = 9;
  model->host_tasks.tasks.push_back(task);
  model->rows.push_back(row);
}

void AddCollective(operators::Model* model, int64_t begin_ns) {
  operators::Api api;
  api.begin = 5 * kMsNs;
  api.end = api.begin + kMsNs;
  api.item = 6;
  api.thread = 4243;
  api.type = 5;
  api.level = operators::kNodeLevel;
  operators::CommunicationLaunch launch;
  launch.api = static_cast<int32_t>(model->host.apis.size());
  launch.op_info = 0;
  model->host.apis.push_back(api);
  operators::CommunicationOpInfo info;
  info.algorithm = 8;
  info.group = 7;
  info.count = 4096;
  model->host.communication.op_infos.push_back(info);
  model->host_tasks.communication_launches.push_back(launch);
  operators::CommunicationOp op;
  op.start_ns = begin_ns + 22 * kMsNs;
  op.end_ns = op.start_ns + 12 * kMsNs;
  op.group = 7;
  op.launch = 0;
  op.rank_size = 2;
  op.shown = true;
  model->communication.ops.push_back(op);
}

}  // namespace

std::unique_ptr<operators::Model> MadeOperators(int64_t begin_ns, int rank) {
  const auto clock = [begin_ns](uint64_t count) { return begin_ns + static_cast<int64_t>(count); };
  auto model = std::make_unique<operators::Model>(operators::HostData(clock, begin_ns, true), true);
  FeedLines(model.get(), operators::HostFileKind::kHashes, kHashes);
  FeedLines(model.get(), operators::HostFileKind::kTypes, kTypes);
  operators::DevicePmu setup;
  setup.mhz = 1000;
  setup.group.aic.cores = 20;
  setup.group.aic.columns = {{"aic_mac_ratio", operators::PmuColumn::Kind::kRatio, {{1, 1}}},
                             {"aic_mte2_ratio", operators::PmuColumn::Kind::kRatio, {{2, 1}}}};
  setup.group.aic.SetEvents(std::array<uint32_t, 2>{1, 2});
  model->device_pmu[0] = setup;
  AddOperator(model.get(), {1, 4, 0, 0, 24, 10, 4, 40000}, begin_ns);
  AddOperator(model.get(), {2, 5, 2, 66, 48, 15, 1, 0}, begin_ns);
  AddOperator(model.get(), {3, 4, 0, 0, 24, 20, rank == 0 ? 6 : 9, 80000}, begin_ns);
  AddCopy(model.get(), begin_ns);
  AddCollective(model.get(), begin_ns);
  return model;
}

}  // namespace profd::exporting
