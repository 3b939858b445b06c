#include "analysis/read/operators.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace profd::analysis {
namespace {

using exporting::operators::HostData;
using exporting::operators::HostTask;
using exporting::operators::Model;
using exporting::operators::TaskRow;
using exporting::operators::Tensor;

// One kernel, on stream 2 of each device from 1 to 2 us.
void LaunchOn(const std::vector<int16_t>& devices, Model* model) {
  model->host_tasks.launches.emplace_back();
  HostTask& task = model->host_tasks.tasks.emplace_back();
  task.launch = 0;
  task.type = 66;  // KERNEL_AIVEC
  task.compute = true;
  for (const int16_t device : devices) {
    TaskRow& row = model->rows.emplace_back();
    row.device = device;
    row.stream = 2;
    row.host = 0;
    row.start_ns = 1000;
    row.end_ns = 2000;
  }
}

// Of tensor_info (operator-data a.2): 1 FLOAT16, 3 INT32; 0 NCHW, 2 ND.
TEST(OperatorReader, TensorsHaveTypesAndFormats) {
  Model model(HostData([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false), true);
  const Tensor input{false, 2, 1, {4, 8}};
  const Tensor output{true, 0, 3, {4}};
  model.host.tensors.push_back({input, input, output});
  LaunchOn({0}, &model);
  model.host_tasks.launches[0].tensors = 0;
  std::vector<Problem> problems;
  ReadContext context;
  context.problems = &problems;
  Rank rank;
  AddOperators(model, {0}, {}, context, &rank);
  ASSERT_EQ(rank.operators.size(), 1u);
  const Operator& op = rank.operators[0];
  EXPECT_EQ(rank.TextOf(op.input_shapes), "4,8;4,8");
  EXPECT_EQ(rank.TextOf(op.input_types), "FLOAT16;FLOAT16");
  EXPECT_EQ(rank.TextOf(op.input_formats), "ND;ND");
  EXPECT_EQ(rank.TextOf(op.output_shapes), "4");
  EXPECT_EQ(rank.TextOf(op.output_types), "INT32");
  EXPECT_EQ(rank.TextOf(op.output_formats), "NCHW");
}

// The host's are those of both; streams of one number are two.
TEST(OperatorReader, DevicesOfARankShareItsCalls) {
  Model model(HostData([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false), true);
  model.host.apis.push_back({.begin = 500, .end = 600, .level = 20000});
  LaunchOn({4, 5}, &model);
  std::vector<Problem> problems;
  ReadContext context;
  context.problems = &problems;
  Rank rank;
  rank.device = 4;
  AddOperators(model, {4, 5}, {}, context, &rank);
  EXPECT_EQ(rank.executions.size(), 2u);
  EXPECT_EQ(rank.slices.size(), 1u);
  std::vector<std::string> lanes;
  for (const Lane& lane : rank.lanes) lanes.push_back(lane.group + ", " + lane.name);
  EXPECT_EQ(lanes, (std::vector<std::string>{"Ascend Hardware, Stream 2", "Ascend Hardware, Stream 2 of device 5", "CANN, Thread 0"}));
}

}  // namespace
}  // namespace profd::analysis
