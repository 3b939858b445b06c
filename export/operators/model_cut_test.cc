// What stays of a Model where a time or the longest operators are asked for.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "export/operators/model.h"

namespace profd::exporting::operators {
namespace {

// Three executions of a task, and what the AI CPU reports at the same times.
std::unique_ptr<Model> ModelOfThreeTimes() {
  auto model = std::make_unique<Model>(HostData([](uint64_t) { return 0; }, 0, false), true);
  DeviceCpu& cpu = model->cpu[0];
  cpu.clock = [](uint64_t count) { return static_cast<int64_t>(count) * 10; };
  cpu.monotonic = [](uint64_t ns) { return static_cast<int64_t>(ns) + 1; };
  for (const int64_t start_ns : {300, 100, 200}) {
    TaskRow row;
    row.start_ns = start_ns;
    row.end_ns = start_ns + 10;
    row.host = 0;
    row.stream = 4;
    row.task = 9;
    model->rows.push_back(row);
    CpuNode node;
    node.start = static_cast<uint64_t>(start_ns) / 10;
    node.stream = 4;
    node.task = 9;
    cpu.records.nodes.push_back(node);
    PipelineRecord pipeline;
    pipeline.time_ns = static_cast<uint64_t>(start_ns) - 1;
    cpu.records.pipeline.push_back(pipeline);
  }
  cpu.records.waits.emplace_back();
  for (const uint64_t number : {1, 2, 3, 4}) {
    CacheRecord record{4, 9, {}};
    record.counts[0] = number;
    model->cache[0].records.push_back(record);
  }
  model->cache[0].records.push_back({5, 9, {}});  // of a task that is not known
  return model;
}

// operator-data: records of the cache and waits have no time on a known clock.
TEST(ModelCutTest, RecordsBesideTasksAreCutByTheirTimes) {
  const std::unique_ptr<Model> model = ModelOfThreeTimes();
  model->KeepOnly({200, 299});
  ASSERT_EQ(model->rows.size(), 1u);
  const CpuRecords& cpu = model->cpu[0].records;
  ASSERT_EQ(cpu.nodes.size(), 1u);
  EXPECT_EQ(cpu.nodes[0].start, 20u);
  ASSERT_EQ(cpu.pipeline.size(), 1u);
  EXPECT_EQ(cpu.pipeline[0].time_ns, 199u);
  EXPECT_EQ(cpu.waits.size(), 1u);
  // That of the second execution.
  ASSERT_EQ(model->cache[0].records.size(), 1u);
  EXPECT_EQ(model->cache[0].records[0].counts[0], 2u);
}

TEST(ModelCutTest, WithoutAWindowAllRecordsStay) {
  const std::unique_ptr<Model> model = ModelOfThreeTimes();
  model->KeepOnly({});
  EXPECT_EQ(model->rows.size(), 3u);
  EXPECT_EQ(model->cpu[0].records.nodes.size(), 3u);
  EXPECT_EQ(model->cpu[0].records.pipeline.size(), 3u);
  EXPECT_EQ(model->cache[0].records.size(), 5u);
}

// Two operators, "7" and the longer "8", in turn on one stream, with the same id of a task.
std::unique_ptr<Model> ModelOfTwoOperators() {
  std::unique_ptr<Model> model = ModelOfThreeTimes();
  for (const uint64_t kernel : {7, 8}) {
    HostTask task;
    task.kernel = kernel;
    task.compute = true;
    model->host_tasks.tasks.push_back(task);
  }
  for (TaskRow& row : model->rows) {
    const bool is_second = row.start_ns == 200;
    row.host = is_second ? 1 : 0;
    row.end_ns = row.start_ns + (is_second ? 100 : 10);
  }
  return model;
}

std::vector<std::string> NamesOfCpuNodes(Model* model) {
  std::vector<std::string> names;
  for (const CpuNode& node : model->cpu[0].records.nodes) {
    const HostTask* task = model->HostOf(node);
    names.emplace_back(task == nullptr ? "" : model->OperatorName(*task));
  }
  return names;
}

TEST(ModelCutTest, CpuNodesAreOfOperatorsThatBeginBeforeTheWindow) {
  const std::unique_ptr<Model> model = ModelOfTwoOperators();
  model->cpu[0].clock = [](uint64_t count) { return static_cast<int64_t>(count) * 10 + 5; };
  model->KeepOnly({203, 299});
  EXPECT_TRUE(model->rows.empty());
  EXPECT_EQ(NamesOfCpuNodes(model.get()), std::vector<std::string>{"8"});
}

TEST(ModelCutTest, CpuNodesOfTheLongestOperatorsAlone) {
  const std::unique_ptr<Model> model = ModelOfTwoOperators();
  model->KeepOnly({});
  EXPECT_EQ(NamesOfCpuNodes(model.get()), (std::vector<std::string>{"7", "7", "8"}));
  model->KeepLongest(1);
  EXPECT_EQ(NamesOfCpuNodes(model.get()), std::vector<std::string>{"8"});
}

TEST(ModelCutTest, CacheOfTheLongestOperatorsAlone) {
  const std::unique_ptr<Model> model = ModelOfTwoOperators();
  model->KeepLongest(1);
  ASSERT_EQ(model->rows.size(), 1u);
  EXPECT_EQ(model->OperatorName(*model->HostOf(model->rows[0])), "8");
  ASSERT_EQ(model->cache[0].records.size(), 1u);
  EXPECT_EQ(model->cache[0].records[0].counts[0], 2u);
}

TEST(ModelCutTest, WhatExecutedBeforeTheLongestIsStillKnown) {
  const std::unique_ptr<Model> model = ModelOfTwoOperators();
  EXPECT_EQ(model->ExecutedBefore(0, 200), nullptr);  // the rows themselves show it
  model->KeepLongest(1);
  ASSERT_EQ(model->rows.size(), 1u);
  const Model::Executed* before = model->ExecutedBefore(0, model->rows[0].start_ns);
  ASSERT_NE(before, nullptr);
  EXPECT_EQ(before->start_ns, 100);
  EXPECT_EQ(before->end_ns, 110);
  EXPECT_EQ(model->ExecutedBefore(0, 100), nullptr);  // the first one
  EXPECT_EQ(model->ExecutedBefore(1, 200), nullptr);  // of another device
}

// What writes back a cache is a task, no operator (operator-data c.1).
TEST(ModelCutTest, OnlyOperatorsAreAmongTheLongest) {
  const std::unique_ptr<Model> model = ModelOfThreeTimes();
  for (const uint32_t core : {0, 3}) {  // AI_CORE, WRITE_BACK
    NodeRecord node;
    node.name = 10 + core;
    node.core_type = core;
    model->host_tasks.nodes.push_back(node);
    Launch launch;
    launch.node = static_cast<int32_t>(model->host_tasks.nodes.size()) - 1;
    model->host_tasks.launches.push_back(launch);
    HostTask task;
    task.launch = launch.node;
    task.compute = true;
    model->host_tasks.tasks.push_back(task);
  }
  for (TaskRow& row : model->rows) {
    const bool writes_back = row.start_ns == 300;
    row.host = writes_back ? 1 : 0;
    if (writes_back) row.end_ns = row.start_ns + 1000;
  }
  model->KeepLongest(1);
  ASSERT_EQ(model->rows.size(), 2u);
  for (const TaskRow& row : model->rows) EXPECT_EQ(model->OperatorName(*model->HostOf(row)), "10");
}

}  // namespace
}  // namespace profd::exporting::operators
