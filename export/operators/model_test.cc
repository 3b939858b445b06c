#include "export/operators/model.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "export/operators/numbers.h"

namespace profd::exporting::operators {
namespace {

constexpr uint32_t kThread = 7;
constexpr uint32_t kFftsPlus = 52;  // numbers of the runtime's tasks
constexpr uint32_t kNotifyWait = 14;
constexpr uint32_t kMasterApi = 0x10001;

// One launch with a communication API in it, and a task below that; counts are ns.
class OneLaunch {
 public:
  explicit OneLaunch(uint32_t type) { AddLaunch(0, type); }

  void AddLaunch(uint64_t begin, uint32_t type) {
    AddApi(begin + 10, begin + 100, kNodeLevel, 5);
    AddApi(begin + 20, begin + 60, kCommunicationLevel, kMasterApi);
    TaskRecord task;
    task.time = begin + 30;
    task.thread = kThread;
    task.type = type;
    task.stream = 4;
    task.task = 9;
    data_.tasks.push_back(task);
  }

  void AddContexts(uint16_t level, uint64_t time, std::vector<uint32_t> ids) {
    data_.context_records.push_back({time, 1, kThread, static_cast<uint32_t>(data_.contexts.size()), level});
    data_.contexts.push_back(std::move(ids));
  }
  void AddInfo(uint32_t context, uint64_t bytes) {
    CommunicationInfo info;
    info.time = 40 + data_.communication.infos.size();
    info.thread = kThread;
    info.context = context;
    info.bytes = bytes;
    data_.communication.infos.push_back(info);
  }
  void AddModel(uint64_t item, uint32_t request) {
    AddApi(5, 200, kModelLevel, 1);
    data_.apis.back().item = item;
    data_.apis.back().request = request;
  }

  void AddFlip(uint64_t time, uint16_t number) {
    TaskRecord flip;
    flip.time = time;
    flip.stream = 4;
    flip.batch = number;
    data_.flips.push_back(flip);
  }

  // Of a device that ran the task with these contexts.
  std::unique_ptr<Model> Run(std::initializer_list<uint32_t> contexts) {
    DeviceTasks ran(false);
    for (const uint32_t context : contexts) AddTask(&ran, context, 0);
    return Run(std::move(ran));
  }
  // 5 ns of the launches' task, from 1000 ns on each 10 ns.
  static void AddTask(DeviceTasks* ran, uint32_t context, uint16_t batch) {
    DeviceTask task;
    task.start = 1000 + 10 * ran->tasks.size();
    task.end = task.start + 5;
    task.context = context;
    task.stream = 4;
    task.task = 9;
    task.batch = batch;
    ran->tasks.push_back(task);
  }
  // Of a device that ran the task in these batches, and noted these flips.
  std::unique_ptr<Model> Run(std::initializer_list<uint16_t> batches, std::initializer_list<uint16_t> flips) {
    DeviceTasks ran(false);
    for (const uint16_t flip : flips) ran.flip_numbers[4].Add(flip);
    for (const uint16_t batch : batches) AddTask(&ran, kNoContext, batch);
    return Run(std::move(ran));
  }
  std::unique_ptr<Model> Run(DeviceTasks ran) {
    data_.Finish();
    HostTasks tasks = BuildHostTasks(&data_, true);
    auto model = std::make_unique<Model>(std::move(data_), true);
    model->host_tasks = std::move(tasks);
    model->Join(0, std::move(ran), [](uint64_t count) { return ClockMap::CutTime{static_cast<int64_t>(count), 0}; }, 0, {});
    return model;
  }

 private:
  void AddApi(uint64_t begin, uint64_t end, uint16_t level, uint32_t type) {
    Api api;
    api.begin = begin;
    api.end = end;
    api.item = 1;
    api.thread = kThread;
    api.type = type;
    api.level = level;
    data_.apis.push_back(api);
  }

  HostData data_{[](uint64_t count) { return static_cast<int64_t>(count); }, 0, false};
};

// Which of the rows have a task of the host.
std::vector<bool> Joined(const Model& model) {
  std::vector<bool> joined;
  for (const TaskRow& row : model.rows) joined.push_back(row.host >= 0);
  return joined;
}

TEST(ModelTest, ContextsOfACommunicationTaskAreOfItsLaunch) {
  OneLaunch launch(kFftsPlus);
  launch.AddModel(77, 3);
  launch.AddContexts(kCommunicationLevel, 50, {3, 5});
  const auto ran = launch.Run({kNoContext, 2, 3, 5, 6});
  const Model& model = *ran;
  EXPECT_EQ(Joined(model), (std::vector<bool>{true, false, true, true, false}));
  for (const TaskRow& row : model.rows) {
    const HostTask* host = model.HostOf(row);
    if (host == nullptr) continue;
    EXPECT_EQ(model.host.apis[static_cast<size_t>(host->connection)].level, kNodeLevel);
    EXPECT_EQ(host->model, 77u);
    EXPECT_EQ(host->request, 3u);
    EXPECT_EQ(host->type, kFftsPlus);
    EXPECT_FALSE(host->compute);
  }
}

// The ids of a stream wrap before the second and third of three tasks (operator-data b.2), but of the device's flips the
// first is missing: of its first two tasks it is not known which they are.
TEST(ModelTest, CommunicationBehindMissingFlipsIsOfItsLaunch) {
  OneLaunch launches(kNotifyWait);
  launches.AddLaunch(200, kNotifyWait);
  launches.AddLaunch(400, kNotifyWait);
  launches.AddFlip(150, 1);
  launches.AddFlip(350, 2);
  const auto model = launches.Run({0, 0, 1}, {2});
  EXPECT_EQ(Joined(*model), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(model->unplaced, 2u);
  ASSERT_EQ(model->communication.tasks.size(), 1u);
  const CommunicationTask& task = model->communication.tasks[0];
  EXPECT_EQ(task.start_ns, 1020);
  EXPECT_EQ(model->host.apis[static_cast<size_t>(model->HostOf(task).api)].begin, 420u);
  EXPECT_EQ(model->HostOf(task).batch, model->rows[2].batch) << "exports look for it by that";
}

// The device's second flip of three is missing: its second batch is two of the host's, and behind it both go on alike. The
// same the other way round: the second batch of the host is two of the device's.
TEST(ModelTest, AFlipMissingInTheMiddleCostsTheBatchesBesideIt) {
  for (const bool of_device : {true, false}) {
    OneLaunch launches(kNotifyWait);
    for (const uint64_t begin : {200, 400, 600}) launches.AddLaunch(begin, kNotifyWait);
    for (const uint16_t number : std::to_array<uint16_t>({1, 2, 3})) {
      if (of_device || number != 2) launches.AddFlip(200 * number - 50, number);
    }
    const auto model = of_device ? launches.Run({0, 1, 1, 2}, {1, 3}) : launches.Run({0, 1, 2, 3}, {1, 2, 3});
    EXPECT_EQ(Joined(*model), (std::vector<bool>{true, false, false, true}));
    EXPECT_EQ(model->unplaced, 2u);
    ASSERT_EQ(model->communication.tasks.size(), 2u);
    const CommunicationTask& last = model->communication.tasks[1];
    EXPECT_EQ(model->host.apis[static_cast<size_t>(model->HostOf(last).api)].begin, 620u);
  }
}

// The collection ended before the device had run what the host had launched: its last flips are not missing.
TEST(ModelTest, FlipsOfTasksThatWereNotRunAreNotMissing) {
  OneLaunch launches(kNotifyWait);
  for (const uint64_t begin : {200, 400}) launches.AddLaunch(begin, kNotifyWait);
  for (const uint16_t number : std::to_array<uint16_t>({1, 2})) launches.AddFlip(200 * number - 50, number);
  const auto model = launches.Run({0, 1}, {1});
  EXPECT_EQ(Joined(*model), (std::vector<bool>{true, true}));
  EXPECT_EQ(model->unplaced, 0u);
}

// Behind the end of a stream (65535) its number is another's, whose flips begin anew: what is missing is not known.
TEST(ModelTest, FlipsOfAStreamThatBeginsAnewAreNotCompared) {
  OneLaunch launches(kNotifyWait);
  launches.AddLaunch(200, kNotifyWait);
  launches.AddFlip(150, 0xFFFF);
  launches.AddFlip(500, 1);
  launches.AddFlip(600, 3);
  const auto model = launches.Run({0, 1}, {2, 3});
  EXPECT_EQ(Joined(*model), (std::vector<bool>{true, true}));
  EXPECT_EQ(model->unplaced, 0u);
}

// The task around the contexts begins before the first and ends behind the last of them.
TEST(ModelTest, WhatIsAroundContextsIsNoTaskOfTheOperation) {
  OneLaunch launch(kFftsPlus);
  launch.AddContexts(kCommunicationLevel, 50, {3, 5});
  launch.AddInfo(4, 64);
  const auto ran = launch.Run({kNoContext, 3, 4});
  const Model& model = *ran;
  ASSERT_EQ(model.communication.tasks.size(), 2u);
  EXPECT_EQ(model.communication.tasks[0].context, 3u);
  EXPECT_EQ(model.communication.tasks[0].info, -1);
  EXPECT_EQ(model.communication.tasks[1].context, 4u);
  EXPECT_EQ(model.communication.tasks[1].info, 0);
  ASSERT_EQ(model.communication.ops.size(), 1u);
  EXPECT_EQ(model.communication.ops[0].start_ns, 1010);
  EXPECT_EQ(model.communication.ops[0].end_ns, 1025);
}

TEST(ModelTest, ContextsWithoutARangeAreThoseOfTheInfos) {
  OneLaunch launch(kFftsPlus);
  launch.AddInfo(1, 64);
  launch.AddInfo(8, 64);
  const auto ran = launch.Run({kNoContext, 1, 2, 8});
  const Model& model = *ran;
  EXPECT_EQ(Joined(model), (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(model.communication.tasks.size(), 2u);
}

TEST(ModelTest, ACommunicationTaskWithoutRecordsHasNoContexts) {
  const auto ran = OneLaunch(kNotifyWait).Run({kNoContext, 0});
  const Model& model = *ran;
  EXPECT_EQ(Joined(model), (std::vector<bool>{true, false}));
  EXPECT_EQ(model.communication.tasks.size(), 1u);
}

TEST(ModelTest, TheLastInfoOfAContextCounts) {
  OneLaunch launch(kFftsPlus);
  launch.AddInfo(1, 64);
  launch.AddInfo(1, 128);
  const auto ran = launch.Run({1});
  const Model& model = *ran;
  ASSERT_EQ(model.communication.tasks.size(), 1u);
  EXPECT_EQ(model.InfoOf(model.communication.tasks[0])->bytes, 128u);
}

TEST(ModelTest, DurationsAreMadeBeforeTimesAreCut) {
  Model model(HostData([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false), true);
  DeviceTasks ran(false);
  DeviceTask task;
  task.start = 3;
  task.end = 8;
  ran.tasks.push_back(task);
  // 2.25 ns a count.
  const auto clock = [](uint64_t count) {
    const double ns = 2.25 * static_cast<double>(count);
    const auto whole = static_cast<int64_t>(ns);
    return ClockMap::CutTime{whole, static_cast<float>(ns - static_cast<double>(whole))};
  };
  model.Join(0, std::move(ran), clock, 0, {});
  ASSERT_EQ(model.rows.size(), 1u);
  EXPECT_EQ(model.rows[0].end_ns - model.rows[0].start_ns, 12);
  EXPECT_EQ(model.rows[0].duration_ns(), 11.25);
}

// Those that end from the task's start to its end, as many as it has; without a look at those of all executions, which
// would take minutes.
TEST(ModelTest, BlocksOfManyExecutions) {
  constexpr uint32_t kExecutions = 60'000;
  Model model(HostData([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false), true);
  HostTask& task = model.host_tasks.tasks.emplace_back();
  task.context = 0;
  task.mix_blocks = 2;
  DeviceTasks ran(false);
  const auto record = [](uint64_t end, uint32_t cycles, bool vector_core) {
    PmuRecord made;
    made.context = 0;
    made.sub_type = 6;  // MIX_AIC
    made.end = end;
    made.counts[0] = cycles;
    made.vector_core = vector_core;
    return made;
  };
  for (uint64_t i = 1; i <= kExecutions; ++i) {
    DeviceTask execution;
    execution.start = 1000 * i;
    execution.end = 1000 * i + 100;
    execution.context = 0;
    ran.tasks.push_back(execution);
    ran.pmu.push_back(record(1000 * i + 50, 7, false));
    ran.block_pmu.push_back(record(1000 * i - 1, 1000, true));
    ran.block_pmu.push_back(record(1000 * i, 1, true));
    for (const uint32_t cycles : {2u, 100u}) ran.block_pmu.push_back(record(1000 * i + 100, cycles, true));
  }
  model.Join(0, std::move(ran), [](uint64_t count) { return ClockMap::CutTime{static_cast<int64_t>(count), 0}; }, 0, {});
  ASSERT_EQ(model.rows.size(), kExecutions);
  for (const TaskRow& row : model.rows) {
    ASSERT_GE(row.other_pmu, 0);
    ASSERT_EQ(model.pmu_counts.Of(model.pmu[static_cast<size_t>(row.other_pmu)]).cycles, 3u);
  }
}

// Its 16 bits are those of the number that stands for none.
TEST(ModelTest, TheLargestContextIsNotTheTaskAroundIt) {
  Model model(HostData([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false), true);
  DeviceTasks ran(false);
  for (const uint32_t context : {kNoContext, 65535u, 0u}) {
    OneLaunch::AddTask(&ran, context, 0);
    HostTask& task = model.host_tasks.tasks.emplace_back();
    task.stream = ran.tasks.back().stream;
    task.task = ran.tasks.back().task;
    task.context = context;
  }
  model.Join(0, std::move(ran), [](uint64_t count) { return ClockMap::CutTime{static_cast<int64_t>(count), 0}; }, 0, {});
  EXPECT_EQ(model.ambiguous, 0u);
  ASSERT_EQ(model.rows.size(), 3u);
  for (int32_t i = 0; i < 3; ++i) EXPECT_EQ(model.rows[static_cast<size_t>(i)].host, i);
}

TEST(ModelTest, OfCollectivesOnlyAivKernelsAreOperators) {
  EXPECT_TRUE(IsOperator("AI_CPU", "add"));
  EXPECT_TRUE(IsOperator("COMMUNICATION", "AllReduceAivKernel"));
  EXPECT_FALSE(IsOperator("COMMUNICATION", "AllReduce"));
  EXPECT_FALSE(IsOperator(kCommunicationOnCpu, "AllReduceAivKernel"));
  EXPECT_FALSE(IsOperator("WRITE_BACK", "add"));
}

// A record of 32 bytes: start or end of a task.
void AddV6Record(uint16_t function, uint16_t sqe, uint32_t number, uint64_t count, std::vector<std::byte>* bytes) {
  constexpr size_t kBytes = 32;
  bytes->resize(bytes->size() + kBytes);
  std::byte* record = bytes->data() + bytes->size() - kBytes;
  const uint16_t words[] = {static_cast<uint16_t>(function | sqe << 10), kStarsMagic};
  std::memcpy(record, words, sizeof words);
  std::memcpy(record + 4, &number, sizeof number);
  std::memcpy(record + 8, &count, sizeof count);
}

// Of tasks that a host recorded on chips 15 and 16.
std::unique_ptr<Model> ModelOfV6(const std::vector<TaskRecord>& tasks) {
  HostData data([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false);
  data.unique_tasks = true;
  for (const TaskRecord& task : tasks) data.tasks.push_back(task);
  data.Finish();
  HostTasks built = BuildHostTasks(&data, true);
  auto model = std::make_unique<Model>(std::move(data), true);
  model->host_tasks = std::move(built);
  return model;
}

void JoinV6(const std::vector<std::byte>& stars, Model* model) {
  DeviceTasks ran(false, true);
  ran.FeedStars(stars);
  ran.Finish();
  EXPECT_EQ(ran.bad_records, 0u);
  model->Join(0, std::move(ran), [](uint64_t count) { return ClockMap::CutTime{static_cast<int64_t>(count), 0}; }, 0, {});
}

TEST(ModelTest, TasksOfChips15And16JoinByTheirNumber) {
  constexpr uint32_t kNumber = 0x10203;
  TaskRecord task;
  task.time = 30;
  task.kernel = 5;
  task.type = 66;  // KERNEL_AIVEC
  task.stream = 12;
  task.task = kNumber & 0xFFFF;
  task.batch = kNumber >> 16;
  const std::unique_ptr<Model> made = ModelOfV6({task});
  Model& model = *made;
  std::vector<std::byte> bytes;
  // Two at once, whose numbers differ in the upper half alone.
  AddV6Record(0, 1, kNumber, 1000, &bytes);
  AddV6Record(0, 16, kNumber + 0x10000, 1001, &bytes);
  AddV6Record(1, 1, kNumber, 1010, &bytes);
  AddV6Record(1, 16, kNumber + 0x10000, 1020, &bytes);
  JoinV6(bytes, &model);
  ASSERT_EQ(model.rows.size(), 2u);
  const TaskRow& known = model.rows[0];
  EXPECT_EQ(known.start_ns, 1000);
  EXPECT_EQ(known.end_ns, 1010);
  ASSERT_GE(known.host, 0);
  EXPECT_EQ(known.stream, 12);
  EXPECT_EQ(model.TaskId(known), kNumber);
  EXPECT_EQ(model.BatchId(known), 0u);
  EXPECT_EQ(SqeTypeName(known.type), "AIV_SQE");
  EXPECT_EQ(model.rows[1].host, -1);
  EXPECT_EQ(model.TaskId(model.rows[1]), kNumber + 0x10000);
  EXPECT_EQ(model.TaskType(model.rows[1]), "CCU_SQE");
}

// dump-format 2.12 has stream and task where others have the number (operator-data b.2).
TEST(ModelTest, TasksOfChips15And16MayHaveStreamAndTask) {
  std::vector<TaskRecord> tasks;
  for (uint16_t number = 0; number < 3; ++number) {
    TaskRecord task;
    task.time = 30 + number;
    task.kernel = 5;
    task.type = 66;  // KERNEL_AIVEC
    task.stream = static_cast<uint16_t>(number == 2 ? 70 : 3);
    task.task = static_cast<uint16_t>(number == 2 ? 65530 : number);
    tasks.push_back(task);
  }
  const std::unique_ptr<Model> made = ModelOfV6(tasks);
  Model& model = *made;
  std::vector<std::byte> bytes;
  for (const auto& [stream, task] : {std::pair(3u, 0u), std::pair(3u, 1u), std::pair(70u, 65530u), std::pair(9u, 4u)}) {
    const uint32_t words = stream | task << 16;
    AddV6Record(0, 1, words, 1000, &bytes);
    AddV6Record(1, 1, words, 1010, &bytes);
  }
  JoinV6(bytes, &model);
  ASSERT_EQ(model.rows.size(), 4u);
  for (const TaskRow& row : model.rows) {
    if (row.stream == 9) {
      EXPECT_EQ(row.host, -1);
      EXPECT_EQ(model.TaskId(row), 4u);
    } else {
      ASSERT_GE(row.host, 0);
      EXPECT_EQ(model.HostOf(row)->stream, row.stream);
      EXPECT_EQ(model.HostOf(row)->task, row.task);
    }
  }
}

}  // namespace
}  // namespace profd::exporting::operators
