// Input: the files of operator-level records that a process and a device left, each whole records and a rest. They are
// joined, cut and drawn; the result refers to nothing that is not there, and there is no more of it than records.
#include <array>

#include "export/operators/model.h"
#include "export/operators/step_shares.h"
#include "export/trace/operator_layers.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::exporting::operators {
namespace {

// In the order of make_operator_seeds.py.
constexpr std::array<std::string_view, 19> kHostFiles = {
    "aging.api_event.data",          "aging.compact.task_track",      "aging.compact.node_basic_info",
    "unaging.compact.node_basic_info", "aging.additional.tensor_info", "unaging.additional.context_id_info",
    "aging.compact.expand_stream_spec", "aging.compact.capture_stream_info", "aging.additional.hccl_info",
    "aging.compact.hccl_op_info",    "aging.compact.memcpy_info",     "aging.additional.task_memory_info",
    "aging.additional.static_op_mem", "unaging.additional.graph_id_map", "unaging.additional.hash_dic",
    "unaging.additional.type_info_dic", "unaging.additional.fusion_op_info", "aging.compact.node_attr_info",
    "aging.additional.mc2_comm_info"};
enum DeviceFile : size_t { kStars = kHostFiles.size(), kTsTrack, kProfile, kCpu, kHwts, kAicore, kCache, kFiles };

ClockMap Clock() {
  ClockFacts facts;
  facts.begin_us = 1'767'225'600'000'000;
  facts.host_hz = 100e6;
  facts.device_hz = 50e6;
  return ClockMap(facts);
}

class CountingSink : public LayerSink {
 public:
  void Enter(const LayerThread& thread) override { FUZZ_EXPECT(thread.process != nullptr); }
  void Take(const LayerEvent&) override { ++events; }
  size_t events = 0;
};

std::unique_ptr<Model> Read(fuzz::Input* input, bool detailed, const ClockMap& clock) {
  HostData host([clock](uint64_t count) { return clock.HostRecord(count); }, clock.facts().begin_us * 1000, true);
  auto model = std::make_unique<Model>(std::move(host), detailed);
  const bool wide = input->Take<uint8_t>() % 2 != 0;
  DeviceTasks device(wide);
  CpuRecords cpu;
  while (!input->empty()) {
    const size_t file = input->TakeIndex(kFiles);
    const std::string_view piece = input->TakePiece(input->Take<uint16_t>());
    const auto bytes = std::as_bytes(std::span(piece.data(), piece.size()));
    switch (file) {
      case kStars: device.FeedStars(bytes); break;
      case kTsTrack: device.FeedTsTrack(bytes); break;
      case kProfile: device.FeedProfile(bytes); break;
      case kCpu: cpu.Feed(bytes); break;
      case kHwts: device.FeedHwts(bytes); break;
      case kAicore: device.FeedAicore(bytes); break;
      case kCache: device.FeedCache(bytes); break;
      default: model->host.Feed(*HostFileOf(kHostFiles[file]), bytes);
    }
  }
  model->host.Finish();
  model->host_tasks = BuildHostTasks(&model->host, detailed);
  const uint64_t records = device.records;
  device.Finish();
  FUZZ_EXPECT(2 * device.tasks.size() + device.unpaired + device.cache.size() <= records);
  for (const DeviceTask& task : device.tasks) FUZZ_EXPECT(task.start <= task.end);
  DevicePmu setup;
  setup.group = device.pmu_has_times ? PmuGroupOf("PipeUtilization", "PipeUtilization") : PmuGroupOfOneCore("Memory", 1);
  setup.mhz = 1000;
  model->Join(0, std::move(device), [&clock](uint64_t count) { return clock.DeviceTask(count); },
              clock.facts().begin_us * 1000, setup);
  model->cpu[0] = {std::move(cpu), [clock](uint64_t count) { return clock.DeviceTask(count).ns; },
                   [clock](uint64_t ns) { return clock.HostNs(static_cast<int64_t>(ns)); }};
  for (const FusedOperator& fused : model->host.fused) FUZZ_EXPECT(fused.originals.size() <= 8);
  return model;
}

void CheckRows(const Model& model) {
  for (const TaskRow& row : model.rows) {
    FUZZ_EXPECT(row.start_ns <= row.end_ns);
    const HostTask* host = model.HostOf(row);
    if (host == nullptr) continue;
    FUZZ_EXPECT(host->connection < static_cast<int64_t>(model.host.apis.size()));
    FUZZ_EXPECT(host->launch < static_cast<int64_t>(model.host_tasks.launches.size()));
    if (!host->compute) continue;
    FUZZ_EXPECT(!model.OperatorName(*host).empty() || host->kernel != 0 || host->launch >= 0);
    FUZZ_EXPECT(!model.CoreType(*host).empty());
  }
  for (const CommunicationOp& op : model.communication.ops) FUZZ_EXPECT(!model.TypeOf(op).empty() || op.device == 0);
}

void CheckTotals(const Model& model) {
  for (const FusedOperator& fused : model.host.fused) {
    const auto id = model.host.ModelAt(fused.thread, fused.time);
    FUZZ_EXPECT(!id || !model.host.ModelName(*id).empty() || model.host.HasModelNames());
  }
  for (const auto& [key, total] : model.host.ApiTotals()) FUZZ_EXPECT(total.min_ns <= total.max_ns && total.count > 0);
  for (const auto& [device, overlap] : OverlapsOf(model)) {
    for (const Intervals& intervals : overlap) {
      for (const Interval& interval : intervals) FUZZ_EXPECT(interval.start_ns < interval.end_ns);
    }
    FUZZ_EXPECT(StepShares(overlap, ReceivesOf(model, device), {}).size() == 1);
  }
}

void Run(fuzz::Input input) {
  const auto detailed = input.Take<uint8_t>() % 2 != 0;
  const auto longest = input.Take<uint8_t>();
  const ClockMap clock = Clock();
  const std::unique_ptr<Model> model = Read(&input, detailed, clock);
  CheckRows(*model);
  CheckTotals(*model);
  CountingSink sink;
  ShowOperators(*model, {}, sink);
  const size_t rows = model->rows.size();
  if (longest > 0) model->KeepLongest(longest);
  FUZZ_EXPECT(model->rows.size() <= rows);
  CheckRows(*model);
}

}  // namespace
}  // namespace profd::exporting::operators

void profd::fuzz::Run(Input input) { exporting::operators::Run(input); }
