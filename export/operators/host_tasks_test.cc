#include "export/operators/host_tasks.h"

#include <gtest/gtest.h>

#include <random>

namespace profd::exporting::operators {
namespace {

// Calls within each other, with records and tasks at any moment, the bounds of calls among them.
class RandomThreads {
 public:
  explicit RandomThreads(uint32_t seed) : random_(seed) {}

  HostData Make() {
    HostData data([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false);
    for (const uint32_t thread : {7u, 3u, 9u}) {
      uint64_t time = 10;
      for (int call = 0; call < 150; ++call) time = AddCall(thread, time, 0, &data);
      for (int i = 0; i < 300; ++i) AddRecords(thread, random_() % (time + 20), &data);
    }
    for (const uint32_t number : {1u, 2u}) data.contexts.push_back({number, number + 1});
    data.tensors.resize(4);
    data.Finish();
    return data;
  }

 private:
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  // Returns when it is over.
  uint64_t AddCall(uint32_t thread, uint64_t begin, int depth, HostData* data) {
    constexpr uint16_t kLevels[] = {kModelLevel, kAclLevel, kNodeLevel, kCommunicationLevel, 5000};
    uint64_t end = begin;
    const uint32_t inner = depth < 3 ? Below(3) : 0;
    for (uint32_t i = 0; i < inner; ++i) end = AddCall(thread, end + Below(3), depth + 1, data);
    end += Below(4);
    Api api;
    api.begin = begin;
    api.end = end;
    api.item = Below(5);
    api.thread = thread;
    api.type = Below(3);
    api.request = Below(100);
    api.level = kLevels[Below(std::size(kLevels))];
    data->apis.push_back(api);
    return end + Below(3);
  }

  void AddRecords(uint32_t thread, uint64_t time, HostData* data) {
    TaskRecord task;
    task.time = time;
    task.thread = thread;
    task.kernel = Below(4);
    task.type = Below(10);
    task.stream = static_cast<uint16_t>(Below(3));
    task.task = static_cast<uint16_t>(number_++);
    data->tasks.push_back(task);
    NodeRecord node;
    node.time = time + Below(3);
    node.thread = thread;
    node.name = 1 + Below(3);
    node.type = Below(4);
    node.core_type = Below(6);
    data->nodes.push_back(node);
    data->tensor_records.push_back({time + Below(3), 1 + Below(3), thread, Below(4)});
    data->context_records.push_back({time + Below(3), 1 + Below(3), thread, Below(2), Below(2) == 0 ? kNodeLevel : kCommunicationLevel});
    data->attributes.push_back({time + Below(3), 1 + Below(3), Below(3), thread});
    CommunicationInfo info;
    info.time = time + Below(3);
    info.thread = thread;
    data->communication.infos.push_back(info);
    CommunicationOpInfo op_info;
    op_info.time = time + Below(3);
    op_info.thread = thread;
    data->communication.op_infos.push_back(op_info);
  }

  std::mt19937 random_;
  uint32_t number_ = 0;
};

// Where they are cut, nothing was running: the tasks are the same as without a cut.
TEST(HostTasksTest, PiecesGiveTheSameAsOneRead) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    HostData at_once = RandomThreads(seed).Make();
    const HostTasks expected = BuildHostTasks(&at_once, true);
    ASSERT_GE(expected.tasks.size(), 900u);
    for (const size_t calls : {1u, 2u, 50u}) {
      HostData cut = RandomThreads(seed).Make();
      const HostTasks made = BuildHostTasks(&cut, true, calls);
      EXPECT_EQ(made.tasks, expected.tasks) << seed << ", " << calls;
      EXPECT_EQ(made.launches, expected.launches);
      EXPECT_EQ(made.communication_launches, expected.communication_launches);
      EXPECT_EQ(made.communication, expected.communication);
      EXPECT_EQ(made.nodes.size(), expected.nodes.size());
      EXPECT_EQ(cut.tensors.size(), at_once.tensors.size());
    }
  }
}

// Of each kind of record the last of the launch counts, also where names differ.
TEST(HostTasksTest, TheLastRecordsDescribeTheOperator) {
  constexpr uint32_t kThread = 7;
  HostData data([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false);
  Api api;
  api.begin = 10;
  api.end = 100;
  api.thread = kThread;
  api.type = 5;
  api.level = kNodeLevel;
  data.apis.push_back(api);
  TaskRecord task;
  task.time = 50;
  task.thread = kThread;  // of type KERNEL_AICORE
  data.tasks.push_back(task);
  for (const uint64_t name : {1u, 2u}) {
    NodeRecord node;
    node.time = 60 + name;
    node.thread = kThread;
    node.name = name;
    data.nodes.push_back(node);
  }
  for (const uint32_t number : {0u, 1u, 2u}) {
    const uint64_t time = number == 0 ? 62 : 70;  // the last two are one description
    data.tensor_records.push_back({time, number == 0 ? uint64_t{2} : uint64_t{1}, kThread, number});
    data.tensors.push_back({Tensor{.format = number}});
    data.attributes.push_back({71 + number, 2 - number, 40 + number, kThread});
  }
  data.context_records = {{80, 2, kThread, 0, kNodeLevel}, {81, 1, kThread, 1, kNodeLevel}};
  data.contexts = {{3, 4}, {8}};
  data.Finish();
  const HostTasks made = BuildHostTasks(&data, true);
  ASSERT_EQ(made.launches.size(), 1u);
  EXPECT_EQ(made.nodes[static_cast<size_t>(made.launches[0].node)].name, 2u);
  EXPECT_EQ(made.launches[0].attributes, 42u);
  const std::vector<Tensor>& tensors = data.tensors[static_cast<size_t>(made.launches[0].tensors)];
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].format, 1u);
  EXPECT_EQ(tensors[1].format, 2u);
  ASSERT_EQ(made.tasks.size(), 2u);
  EXPECT_EQ(made.tasks[0].context, kNoContext);
  EXPECT_EQ(made.tasks[1].context, 8u);
}

// The launches within a call are not searched from its begin again for each record: that would take minutes.
TEST(HostTasksTest, ManyLaunchesWithinOneCall) {
  constexpr uint64_t kLaunches = 400'000;
  constexpr uint64_t kApart = 10;
  HostData data([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false);
  const auto call = [&data](uint64_t begin, uint64_t end) {
    Api api;
    api.begin = begin;
    api.end = end;
    api.level = kNodeLevel;
    data.apis.push_back(api);
  };
  const auto task = [&data](uint64_t time) {
    TaskRecord record;  // of type KERNEL_AICORE
    record.time = time;
    data.tasks.push_back(record);
  };
  const auto node = [&data](uint64_t time, uint64_t name) {
    NodeRecord record;
    record.time = time;
    record.name = name;
    data.nodes.push_back(record);
  };
  call(1, kApart * (kLaunches + 1));
  for (uint64_t i = 1; i <= kLaunches; ++i) {
    call(kApart * i, kApart * i + 5);
    task(kApart * i + 1);
    node(kApart * i + 5, 1 + i % 3);
  }
  task(kApart * (kLaunches + 1));
  node(kApart * kLaunches + 7, 9);  // behind the last launch: of the call around it
  data.Finish();
  const HostTasks made = BuildHostTasks(&data, true);
  ASSERT_EQ(made.tasks.size(), kLaunches + 1);
  for (uint64_t i = 0; i <= kLaunches; ++i) {
    const Launch& launch = made.launches[static_cast<size_t>(made.tasks[i].launch)];
    ASSERT_GE(launch.node, 0) << i;
    ASSERT_EQ(made.nodes[static_cast<size_t>(launch.node)].name, i < kLaunches ? 1 + (i + 1) % 3 : 9) << i;
  }
}

// At level 0 it is all that is known: of node records, else of attributes, tensors, contexts, whenever they were made.
TEST(HostTasksTest, TheFirstRecordNamesTheLaunch) {
  constexpr uint64_t kItem = 50;
  for (size_t from = 0; from < 5; ++from) {
    HostData data([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false);
    Api api;
    api.begin = 10;
    api.end = 100;
    api.item = kItem;
    api.level = kNodeLevel;
    data.apis.push_back(api);
    data.tasks.push_back(TaskRecord{.time = 20});
    data.context_records = {{30, 4, 0, 0, kCommunicationLevel}};
    data.contexts = {{0}};
    data.tensors.emplace_back();
    if (from < 1) data.nodes.push_back(NodeRecord{.time = 60, .name = 1});
    if (from < 2) data.attributes.push_back({50, 2, 7, 0});
    if (from < 3) data.tensor_records.push_back({40, 3, 0, 0});
    if (from < 4) data.context_records.push_back({35, 4, 0, 0, kNodeLevel});
    data.Finish();
    const HostTasks made = BuildHostTasks(&data, false);
    ASSERT_EQ(made.launches.size(), 1u);
    EXPECT_EQ(made.launches[0].first_name, from < 4 ? from + 1 : 0);
    EXPECT_EQ(made.launches[0].item, kItem);
  }
}

// Whether the communication API is around it or within it.
TEST(HostTasksTest, ACollectiveIsTheLaunchNextAroundTheTask) {
  HostData data([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false);
  const auto call = [&data](uint64_t begin, uint64_t end, uint16_t level) {
    Api api;
    api.begin = begin;
    api.end = end;
    api.level = level;
    data.apis.push_back(api);
  };
  call(10, 100, kNodeLevel);
  call(20, 90, kCommunicationLevel);
  call(30, 60, kNodeLevel);
  call(210, 300, kCommunicationLevel);
  call(220, 290, kNodeLevel);
  call(310, 400, kCommunicationLevel);
  for (const uint64_t time : {40u, 70u, 230u, 320u}) {
    TaskRecord task;
    task.time = time;
    data.tasks.push_back(task);
  }
  data.Finish();
  const HostTasks made = BuildHostTasks(&data, true);
  std::vector<uint64_t> begins;
  for (const CommunicationHostTask& task : made.communication) {
    const CommunicationLaunch& launch = made.communication_launches[static_cast<size_t>(task.launch)];
    begins.push_back(data.apis[static_cast<size_t>(launch.api)].begin);
  }
  EXPECT_EQ(begins, (std::vector<uint64_t>{30, 10, 220}));  // the last one has no launch
}

TEST(ApiTotalTest, VarianceOfLongCalls) {
  constexpr uint64_t k100s = 100'000'000'000;
  ApiTotal total;
  for (uint64_t i = 0; i < 7; ++i) total.Add(k100s + 1000 * i);
  EXPECT_DOUBLE_EQ(total.Variance(), 4e6);  // of 0 to 6 it is 4
  ApiTotal alike;
  for (int i = 0; i < 3; ++i) alike.Add(k100s + 1);
  EXPECT_EQ(alike.Variance(), 0);
}

// The end of a captured graph names its model and no stream.
TEST(HostTasksTest, AGraphIsOverOnAllItsStreams) {
  constexpr uint16_t kNoStream = 65535;
  HostData data([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false);
  data.captures = {{10, 0, 5, 7, false}, {11, 0, 6, 7, false}, {12, 0, 8, 9, false}, {13, 1, 5, 7, false},
                   {20, 0, kNoStream, 7, true}, {30, 0, 5, 11, false}};
  struct Case {
    uint64_t time;
    uint16_t device, stream;
    uint64_t model;
  };
  constexpr Case kCases[] = {{9, 0, 5, kNoModel},  {15, 0, 5, 7},  {16, 0, 6, 7}, {21, 0, 5, kNoModel},
                             {22, 0, 6, kNoModel}, {23, 0, 8, 9}, {24, 1, 5, 7}, {31, 0, 5, 11}};
  for (const Case& each : kCases) {
    TaskRecord task;
    task.time = each.time;
    task.device = each.device;
    task.stream = each.stream;
    data.tasks.push_back(task);
  }
  data.Finish();
  const HostTasks made = BuildHostTasks(&data, true);
  ASSERT_EQ(made.tasks.size(), std::size(kCases));
  for (size_t i = 0; i < std::size(kCases); ++i) EXPECT_EQ(made.tasks[i].model, kCases[i].model) << kCases[i].time;
}

}  // namespace
}  // namespace profd::exporting::operators
