// Flows of a hand-made model in an export of a part of the time.
#include "export/trace/operator_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "export/operators/model.h"
#include "export/trace/trace_test_support.h"

namespace profd::exporting {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int64_t kMsNs = 1'000'000;

operators::Api Call(int64_t begin_ms) {
  operators::Api api;
  api.begin = static_cast<uint64_t>(begin_ms * kMsNs);
  api.end = api.begin + kMsNs / 5;
  api.thread = 4243;
  api.type = 5;
  api.level = operators::kNodeLevel;
  return api;
}

// A kernel 10 ms after the begin, launched at 1 ms, and a collective at 22 ms, launched at 5 ms.
std::unique_ptr<operators::Model> MadeModel() {
  const auto clock = [](uint64_t count) { return kBeginNs + static_cast<int64_t>(count); };
  auto model = std::make_unique<operators::Model>(operators::HostData(clock, kBeginNs, true), true);
  model->host.apis.push_back(Call(1));
  model->host.apis.push_back(Call(5));
  model->host_tasks.nodes.emplace_back();
  operators::Launch launch;
  launch.node = 0;
  model->host_tasks.launches.push_back(launch);
  operators::HostTask task;
  task.connection = task.launch = 0;
  task.compute = true;
  model->host_tasks.tasks.push_back(task);
  operators::TaskRow row;
  row.start_ns = kBeginNs + 10 * kMsNs;
  row.end_ns = row.start_ns + kMsNs;
  row.host = 0;
  model->rows.push_back(row);
  operators::CommunicationLaunch collective;
  collective.api = 1;
  model->host_tasks.communication_launches.push_back(collective);
  operators::CommunicationOp op;
  op.start_ns = kBeginNs + 22 * kMsNs;
  op.end_ns = op.start_ns + kMsNs;
  op.launch = 0;
  op.shown = true;
  model->communication.ops.push_back(op);
  return model;
}

// By connection: where flows begin, and where they end.
struct Flows : LayerSink {
  void Enter(const LayerThread&) override {}
  void Take(const LayerEvent& event) override {
    for (const LayerFlow& flow : event.flows) (flow.from ? begins : ends).push_back(flow.id);
  }
  std::vector<uint64_t> begins;
  std::vector<uint64_t> ends;
};

Flows FlowsFrom(int64_t from_ms) {
  const std::unique_ptr<operators::Model> model = MadeModel();
  TimeWindow window;
  if (from_ms > 0) window.from_ns = kBeginNs + from_ms * kMsNs;
  model->KeepOnly(window);
  Flows flows;
  ShowOperators(*model, window, flows);
  return flows;
}

TEST(OperatorLayers, FlowsLeadFromTheCallToWhatItLaunched) {
  const Flows flows = FlowsFrom(0);
  EXPECT_THAT(flows.begins, UnorderedElementsAre(0, 1));
  EXPECT_THAT(flows.ends, UnorderedElementsAre(0, 1));
}

TEST(OperatorLayers, FlowsFromBeforeTheWindowHaveNoEndEither) {
  const Flows later = FlowsFrom(3);
  EXPECT_THAT(later.begins, UnorderedElementsAre(1));
  EXPECT_THAT(later.ends, UnorderedElementsAre(1)) << "the kernel's call is cut off";
  EXPECT_THAT(FlowsFrom(6).ends, IsEmpty()) << "and the collective's";
}

struct Threads : LayerSink {
  void Enter(const LayerThread& thread) override { entered.emplace_back(thread.tid, thread.name); }
  void Take(const LayerEvent&) override {}
  std::vector<std::pair<int64_t, std::string>> entered;
};

TEST(OperatorLayers, ATaskWithoutAPlaneIsOnTheFirst) {
  const std::unique_ptr<operators::Model> model = MadeModel();
  model->host.communication.infos.emplace_back().plane = 0xFFFFFFFF;
  model->host_tasks.communication.emplace_back().api = 1;
  operators::CommunicationTask task;
  task.start_ns = kBeginNs + 22 * kMsNs;
  task.end_ns = task.start_ns + kMsNs;
  task.op = task.host = task.info = 0;
  model->communication.tasks.push_back(task);
  Threads threads;
  ShowOperators(*model, {}, threads);
  EXPECT_THAT(threads.entered, ::testing::Contains(::testing::Pair(1, "Plane 0")));
}

}  // namespace
}  // namespace profd::exporting
