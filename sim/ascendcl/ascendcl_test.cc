// libascendcl.so from outside: what runs when, and what is reported of it.
#include "sim/ascendcl/ascendcl.h"

#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/testing/temp_dir.h"
#include "sim/child_test_support.h"

namespace profd::sim::acl {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr uint64_t kAllSwitches = prof::kSwitchAclApi | prof::kSwitchHccl |
                                  prof::kSwitchRuntimeApi | prof::kSwitchTaskTimeL0 |
                                  prof::kSwitchTaskTrack;

const Library& Acl() {
  static const Library* const library = new Library(PROFD_SIM_ASCENDCL);
  return *library;
}
// libascendcl brings it along.
const Library& Profapi() {
  static const Library* const library = new Library(PROFD_SIM_PROFAPI);
  return *library;
}

Mutex g_mutex;
std::vector<std::string> g_reports;
std::map<uint64_t, std::string> g_names;

void Report(std::string what) {
  MutexLock lock(g_mutex);
  g_reports.push_back(std::move(what));
}
std::string NameOf(uint64_t id) { return g_names.count(id) != 0 ? g_names[id] : "?"; }

int32_t OnApi(uint32_t, const prof::Api* api) {
  EXPECT_EQ(api->magic, 0x5A5A);
  EXPECT_LT(api->begin, api->end);
  const bool node = api->level == prof::kNodeLevel;
  Report("api " + std::to_string(api->level) + (node ? " " + NameOf(api->item) : ""));
  return 0;
}
int32_t OnCompact(uint32_t, void* data, uint32_t size) {
  prof::Compact record;
  EXPECT_EQ(size, sizeof record);
  std::memcpy(&record, data, sizeof record);
  if (record.type == prof::kTrackType && record.level == prof::kRuntimeLevel) {
    prof::RuntimeTrack track;
    EXPECT_EQ(record.data_size, sizeof track);
    std::memcpy(&track, record.data, sizeof track);
    Report("track device " + std::to_string(track.device) + " stream " +
           std::to_string(track.stream) + " task " + std::to_string(track.task) + " type " +
           std::to_string(track.task_type) + " " + NameOf(track.kernel_name));
  } else if (record.type == prof::kNodeBasicType) {
    prof::NodeBasicInfo info;
    EXPECT_EQ(record.data_size, sizeof info);
    std::memcpy(&info, record.data, sizeof info);
    Report("node " + NameOf(info.name) + " " + NameOf(info.type) + " " +
           std::to_string(info.block_dim));
  } else {
    prof::HcclOpInfo info;
    EXPECT_EQ(record.type, prof::kNodeHcclOpType);
    EXPECT_EQ(record.data_size, sizeof info);
    std::memcpy(&info, record.data, sizeof info);
    Report("hccl " + NameOf(info.group) + " " + NameOf(info.algorithm) + " " +
           std::to_string(info.count));
  }
  return 0;
}
int32_t OnAdditional(uint32_t, void* data, uint32_t size) {
  prof::Additional record;
  EXPECT_EQ(size, sizeof record);
  std::memcpy(&record, data, sizeof record);
  uint32_t count = 0, shape = 0;
  std::memcpy(&count, record.data + 8, 4);
  std::memcpy(&shape, record.data + 8 + 4 + 44 + 12, 4);  // of the second tensor
  Report("tensors " + std::to_string(count) + " " + std::to_string(shape));
  return 0;
}
uint64_t OnHash(const char* text, size_t size) {
  Report("hash " + std::string(text, size));
  return 0;
}
int32_t OnType(uint16_t level, uint32_t, const char* name, size_t size) {
  Report("type " + std::to_string(level) + " " + std::string(name, size));
  return 0;
}

void Receive() {
  const auto set = CALL(Profapi(), MsprofRegisterProfileCallback);
  set(prof::kSlotApi, reinterpret_cast<void*>(&OnApi), 8);
  set(prof::kSlotCompact, reinterpret_cast<void*>(&OnCompact), 8);
  set(prof::kSlotAdditional, reinterpret_cast<void*>(&OnAdditional), 8);
  set(prof::kSlotHash, reinterpret_cast<void*>(&OnHash), 8);
  set(prof::kSlotTypeName, reinterpret_cast<void*>(&OnType), 8);
}
void Send(prof::CommandType type, uint64_t switches) {
  prof::Command command;
  command.type = type;
  command.switches = switches;
  EXPECT_EQ(CALL(Profapi(), profSetProfCommand)(&command, sizeof command), 0);
}
// Names that the test knows; what the stand-in hashes is compared with them.
void Know(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    g_names[CALL(Profapi(), MsprofGetHashId)(name.c_str(), name.size())] = name;
  }
  g_reports.clear();
}

Kernel MatMul() {
  static const Tensor tensors[2] = {{0, 2, 1, {16, 32}}, {1, 2, 1, {64}}};
  Kernel kernel{"layer0/MatMul", "MatMulV2"};
  kernel.function = "aclnnMatmul";
  kernel.block_dim = 24;
  kernel.duration_ns = 100'000;
  kernel.tensors = tensors;
  kernel.tensor_count = 2;
  return kernel;
}

std::vector<LogRecord> ReadLog(size_t least) {
  std::vector<LogRecord> all;
  EXPECT_TRUE(Eventually([&] {
    LogRecord records[64];
    const size_t count = CALL(Acl(), simAclReadLog)(0, records, 64);
    all.insert(all.end(), records, records + count);
    return all.size() >= least;
  }));
  return all;
}

TEST_IN_CHILD(Ascendcl, CallsNeedADevice) {
  const Kernel kernel = MatMul();
  EXPECT_EQ(CALL(Acl(), simAclLaunch)(&kernel, nullptr), kNoContext);
  int32_t device = 0;
  EXPECT_EQ(CALL(Acl(), aclrtGetDevice)(&device), kNoContext);
  EXPECT_EQ(CALL(Acl(), aclrtSetDevice)(3), 0);
  EXPECT_EQ(CALL(Acl(), aclrtGetDevice)(&device), 0);
  EXPECT_EQ(device, 3);
  EXPECT_EQ(CALL(Acl(), aclrtSetDevice)(64), kInvalidParameter);
}

TEST_IN_CHILD(Ascendcl, TasksOfAStreamRunOneAfterTheOther) {
  const SystemClock clock;
  CALL(Acl(), aclrtSetDevice)(0);
  ASSERT_EQ(CALL(Acl(), simAclOpenLog)(0), 0);
  const Kernel kernel = MatMul();
  const int64_t before = clock.MonotonicRawNs();
  CALL(Acl(), simAclLaunch)(&kernel, nullptr);
  CALL(Acl(), simAclLaunch)(&kernel, nullptr);
  EXPECT_EQ(CALL(Acl(), aclrtSynchronizeStream)(nullptr), 0);
  EXPECT_GE(clock.MonotonicRawNs() - before, 200'000);
  const std::vector<LogRecord> log = ReadLog(4);
  ASSERT_EQ(log.size(), 4u);
  EXPECT_EQ(log[0].kind, kTaskBegin);
  EXPECT_EQ(log[1].kind, kTaskEnd);
  EXPECT_EQ(log[1].task, log[0].task);
  EXPECT_GE(log[0].time_ns, before);
  EXPECT_EQ(log[1].time_ns - log[0].time_ns, 100'000);
  EXPECT_GT(log[2].time_ns, log[1].time_ns);
  EXPECT_EQ(log[3].task, log[0].task + 1);
}

TEST_IN_CHILD(Ascendcl, AStreamWaitsForTheEventsOfOthers) {
  CALL(Acl(), aclrtSetDevice)(0);
  CALL(Acl(), simAclOpenLog)(0);
  void *first = nullptr, *second = nullptr, *event = nullptr;
  CALL(Acl(), aclrtCreateStream)(&first);
  CALL(Acl(), aclrtCreateStream)(&second);
  CALL(Acl(), aclrtCreateEvent)(&event);
  Kernel kernel = MatMul();
  kernel.duration_ns = 3'000'000;
  CALL(Acl(), simAclLaunch)(&kernel, first);
  CALL(Acl(), aclrtRecordEvent)(event, first);
  CALL(Acl(), aclrtStreamWaitEvent)(second, event);
  CALL(Acl(), simAclLaunch)(&kernel, second);
  CALL(Acl(), aclrtDestroyEvent)(event);
  EXPECT_EQ(CALL(Acl(), aclrtSynchronizeDevice)(), 0);
  const std::vector<LogRecord> log = ReadLog(4);
  EXPECT_EQ(log[1].stream, 1u);
  EXPECT_EQ(log[2].stream, 2u);
  EXPECT_GE(log[2].time_ns, log[1].time_ns);
}

TEST_IN_CHILD(Ascendcl, TheLogHasOneReader) {
  CALL(Acl(), aclrtSetDevice)(0);
  EXPECT_EQ(CALL(Acl(), simAclOpenLog)(0), 0);
  EXPECT_EQ(CALL(Acl(), simAclOpenLog)(0), kLogBusy);
  EXPECT_EQ(CALL(Acl(), simAclCloseLog)(0), 0);
  EXPECT_EQ(CALL(Acl(), simAclOpenLog)(0), 0);
}

TEST_IN_CHILD(Ascendcl, ReportsNothingWithoutAStart) {
  Receive();
  CALL(Acl(), aclrtSetDevice)(0);
  const Kernel kernel = MatMul();
  CALL(Acl(), simAclLaunch)(&kernel, nullptr);
  EXPECT_THAT(g_reports, IsEmpty());
}

TEST_IN_CHILD(Ascendcl, ReportsAKernelInTheVendorsOrder) {
  Receive();
  CALL(Acl(), aclrtSetDevice)(2);
  Send(prof::kStart, kAllSwitches);
  Know({"layer0/MatMul", "MatMulV2"});
  const Kernel kernel = MatMul();
  CALL(Acl(), simAclLaunch)(&kernel, nullptr);
  CALL(Acl(), simAclLaunch)(&kernel, nullptr);
  const std::vector<std::string> first(g_reports.begin(), g_reports.begin() + 9);
  EXPECT_THAT(first, ElementsAre("hash layer0/MatMul",
                                 "track device 2 stream 0 task 1 type 0 layer0/MatMul",
                                 "api 5000", "hash MatMulV2", "api 10000 layer0/MatMul",
                                 "node layer0/MatMul MatMulV2 24", "tensors 2 64",
                                 "type 20000 aclnnMatmul", "api 20000"));
  EXPECT_EQ(g_reports[9], "track device 2 stream 0 task 2 type 0 layer0/MatMul") << "no hash";
}

TEST(Ascendcl, EachSourceHasItsSwitch) {
  const auto reports_with = [](uint64_t switches) {
    Receive();
    CALL(Acl(), aclrtSetDevice)(0);
    Send(prof::kStart, switches);
    g_reports.clear();
    const Kernel kernel = MatMul();
    CALL(Acl(), simAclLaunch)(&kernel, nullptr);
    return g_reports;
  };
  EXPECT_TRUE(InChild(
      [=] { EXPECT_THAT(reports_with(prof::kSwitchRuntimeApi), ElementsAre("api 5000")); }));
  EXPECT_TRUE(InChild([=] {
    EXPECT_THAT(reports_with(prof::kSwitchAclApi), Contains("api 20000"));
    EXPECT_THAT(g_reports, Not(Contains(HasSubstr("track"))));
  }));
  EXPECT_TRUE(InChild([=] {
    EXPECT_THAT(reports_with(prof::kSwitchTaskTrack),
                ElementsAre("hash layer0/MatMul", HasSubstr("track device 0")));
  }));
  EXPECT_TRUE(InChild([=] {
    EXPECT_THAT(reports_with(prof::kSwitchTaskTimeL0), Contains(HasSubstr("tensors")));
    EXPECT_THAT(g_reports, Not(Contains("api 20000")));
  }));
}

TEST_IN_CHILD(Ascendcl, NamesAreForgottenAtStopAndSaidAgain) {
  Receive();
  CALL(Acl(), aclrtSetDevice)(0);
  const Kernel kernel = MatMul();
  Send(prof::kStart, kAllSwitches);
  EXPECT_THAT(g_reports, Contains("type 5000 KERNEL_AICORE"));
  CALL(Acl(), simAclLaunch)(&kernel, nullptr);
  Send(prof::kStop, kAllSwitches);
  g_reports.clear();
  CALL(Acl(), simAclLaunch)(&kernel, nullptr);
  EXPECT_THAT(g_reports, IsEmpty());
  Send(prof::kStart, kAllSwitches);
  EXPECT_THAT(g_reports, Contains("type 20000 aclnnMatmul"));
  CALL(Acl(), simAclLaunch)(&kernel, nullptr);
  EXPECT_THAT(g_reports, Contains("hash layer0/MatMul"));
}

TEST_IN_CHILD(Ascendcl, CopiesAreTasksAndNoKernels) {
  Receive();
  CALL(Acl(), aclrtSetDevice)(0);
  Send(prof::kStart, kAllSwitches);
  Know({"MemcpyAsync"});
  char bytes[8];
  EXPECT_EQ(CALL(Acl(), aclrtMemcpyAsync)(bytes, 8, bytes, 8, kHostToDevice, nullptr), 0);
  EXPECT_EQ(CALL(Acl(), aclrtMemcpyAsync)(bytes, 8, bytes, 9, kHostToDevice, nullptr),
            kInvalidParameter);
  EXPECT_THAT(g_reports, Contains("track device 0 stream 0 task 1 type 5 MemcpyAsync"));
  EXPECT_THAT(g_reports, Contains("api 20000"));
}

TEST_IN_CHILD(Ascendcl, ACommunicationEndsWhenTheLastRankHasCome) {
  Receive();
  CALL(Acl(), aclrtSetDevice)(0);
  Send(prof::kStart, kAllSwitches);
  Know({"dp", "RING", "hcom_allReduce__1", "hcom_allReduce_"});
  const TempDir folder;
  const std::string path = folder / "group";
  const Communication all_reduce = {.name = "hcom_allReduce__1",
                                    .type = "hcom_allReduce_",
                                    .count = 1000,
                                    .bytes = 4000,
                                    .duration_ns = 50'000};
  const SystemClock clock;
  void* const mine = CALL(Acl(), simAclGroup)("dp", path.c_str(), 2, 0);
  ASSERT_NE(mine, nullptr);
  CALL(Acl(), simAclOpenLog)(0);
  ASSERT_EQ(CALL(Acl(), simAclCommunicate)(&all_reduce, mine, nullptr), 0);
  int64_t other_launch = 0;
  std::thread other([&] {
    void* const theirs = CALL(Acl(), simAclGroup)("dp", path.c_str(), 2, 1);
    CALL(Acl(), aclrtSetDevice)(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a slow rank
    other_launch = clock.MonotonicRawNs();
    CALL(Acl(), simAclCommunicate)(&all_reduce, theirs, nullptr);
    EXPECT_EQ(CALL(Acl(), aclrtSynchronizeDevice)(), 0);
  });
  EXPECT_EQ(CALL(Acl(), aclrtSynchronizeDevice)(), 0);
  other.join();
  const std::vector<LogRecord> log = ReadLog(6);
  ASSERT_EQ(log.size(), 6u) << "waits, moves, says so";
  EXPECT_LT(log[0].time_ns, other_launch) << "begins when this rank comes to it";
  EXPECT_GE(log[1].time_ns, other_launch) << "waits for the other";
  EXPECT_EQ(log[5].time_ns - log[2].time_ns, 50'000);
  EXPECT_GE(log[5].time_ns, other_launch + 50'000);
  EXPECT_THAT(g_reports, Contains("hccl dp RING 1000"));
  EXPECT_THAT(g_reports, Contains("api 10000 hcom_allReduce__1"));
  EXPECT_THAT(g_reports, Contains("track device 0 stream 0 task 1 type 69 hcom_allReduce_"));
  EXPECT_THAT(g_reports, Contains("track device 0 stream 0 task 2 type 70 hcom_allReduce_"));
}

TEST_IN_CHILD(Ascendcl, KeepsTheTruth) {
  const TempDir folder;
  const std::string path = folder / "truth";
  ASSERT_EQ(CALL(Acl(), simAclTruth)(path.c_str()), 0);
  CALL(Acl(), aclrtSetDevice)(0);
  const Kernel kernel = MatMul();
  CALL(Acl(), simAclLaunch)(&kernel, nullptr);
  CALL(Acl(), aclrtSynchronizeDevice)();
  CALL(Acl(), simAclTruthLine)("{\"what\":\"step\"}");
  CALL(Acl(), aclFinalize)();
  std::ifstream file(path);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_THAT(line, HasSubstr("\"what\":\"kernel\",\"device\":0,\"stream\":0,\"task\":1,"
                              "\"name\":\"layer0/MatMul\",\"type\":\"MatMulV2\""));
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_EQ(line, "{\"what\":\"step\"}");
}

TEST_IN_CHILD(Ascendcl, LosesBeginsAndNamesOnCommand) {
  ::setenv("PROFD_SIM_APP", "ascendcl.lost_begins=2;ascendcl.unnamed_functions=1", 1);
  Receive();
  CALL(Acl(), aclrtSetDevice)(0);
  CALL(Acl(), simAclOpenLog)(0);
  Send(prof::kStart, kAllSwitches);
  const Kernel kernel = MatMul();
  for (int i = 0; i < 4; ++i) CALL(Acl(), simAclLaunch)(&kernel, nullptr);
  CALL(Acl(), aclrtSynchronizeDevice)();
  std::vector<uint32_t> begun;
  for (const LogRecord& record : ReadLog(6)) {
    if (record.kind == kTaskBegin) begun.push_back(record.task);
  }
  EXPECT_THAT(begun, ElementsAre(1, 3));
  EXPECT_THAT(g_reports, Not(Contains("type 20000 aclnnMatmul")));
}

}  // namespace
}  // namespace profd::sim::acl
