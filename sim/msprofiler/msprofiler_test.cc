// libmsprofiler.so: the state machine with its codes, what it writes, and what goes wrong on command.
#include <algorithm>

#include "sim/msprofiler/client_test_support.h"

namespace profd::sim::aclprof {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

TEST_IN_CHILD(AclprofStates, InitAndFinalize) {
  const TempDir folder;
  EXPECT_EQ(CALL(Msprofiler(), aclprofInit)(nullptr, 1), kInvalidParam);
  EXPECT_EQ(CALL(Msprofiler(), aclprofInit)("x", 0), kInvalidParam);
  EXPECT_EQ(CALL(Msprofiler(), aclprofInit)("x", 2), kInvalidParam) << "not its length";
  EXPECT_EQ(Init(std::string(4096, 'x')), kInvalidParam);
  EXPECT_EQ(Init("/nowhere/deep"), kInvalidParam);
  EXPECT_EQ(Init(folder.path() + "/made"), kOk);
  EXPECT_TRUE(fs::is_directory(folder.path() + "/made"));
  EXPECT_EQ(Init(folder.path()), kRepeatInitialize);
  EXPECT_EQ(Finalize(), kOk);
  EXPECT_EQ(Finalize(), kOk) << "nothing was initialised";
  EXPECT_EQ(Init(folder.path()), kOk);
}

TEST_IN_CHILD(AclprofStates, OthersThatProfile) {
  const TempDir folder;
  ::setenv("PROFILING_MODE", "dynamic", 1);
  EXPECT_EQ(Init(folder.path()), kUnsupported);
  ::unsetenv("PROFILING_MODE");
  CALL(Msprofiler(), simMsprofilerControl)("aclprof.commanded=1");
  EXPECT_EQ(Init(folder.path()), kAlreadyRun);
}

TEST_IN_CHILD(AclprofStates, Configs) {
  EXPECT_EQ(Create({}, kTaskTime), nullptr);
  EXPECT_NE(Create({}, kMsproftx), nullptr) << "marks alone need no device";
  EXPECT_EQ(Create({0, 0}, kTaskTime), nullptr);
  EXPECT_EQ(Create({64}, kTaskTime), nullptr);
  EXPECT_EQ(Create({0}, kAicoreMetrics, 9), nullptr);
  EXPECT_NE(Create({0}, kTaskTime, 9), nullptr) << "metrics that are not asked for";
  int events = 0;
  uint32_t device = 0;
  EXPECT_EQ(CALL(Msprofiler(), aclprofCreateConfig)(&device, 1, kPipe, &events, kAicoreMetrics), nullptr);
  EXPECT_EQ(CALL(Msprofiler(), aclprofDestroyConfig)(nullptr), kInvalidParam);
}

TEST_IN_CHILD(AclprofStates, SetConfigBetweenInitAndStart) {
  const TempDir folder;
  EXPECT_EQ(Set(kStorageLimit, "500MB"), kUninitialized);
  EXPECT_EQ(Init(folder.path()), kOk);
  EXPECT_EQ(Set(kStorageLimit, "500MB"), kOk);
  EXPECT_EQ(Set(kStorageLimit, "100MB"), kInvalidParam);
  EXPECT_EQ(Set(kStorageLimit, "500"), kInvalidParam);
  EXPECT_EQ(Set(2, "x"), kInvalidParam);
  EXPECT_EQ(Set(17, "x"), kInvalidParam);
  EXPECT_EQ(Set(14, std::string(257, 'x')), kInvalidParam);
  EXPECT_EQ(CALL(Msprofiler(), aclprofSetConfig)(14, "abc", 2), kInvalidParam);
}

TEST_IN_CHILD(AclprofStates, StartAndStop) {
  const TempDir folder;
  CALL(Acl(), aclrtSetDevice)(0);
  EXPECT_EQ(Init(folder.path()), kOk);
  Config* const config = Create({0}, kTaskTime);
  Config* const other = Create({0}, kAclApi);
  EXPECT_EQ(Stop(config), kNotRun);
  EXPECT_EQ(Start(config), kOk);
  EXPECT_EQ(Start(config), kAlreadyRun);
  EXPECT_EQ(Stop(other), kInvalidConfig);
  EXPECT_EQ(Stop(config), kOk);
  EXPECT_EQ(Stop(config), kNotRun);
  EXPECT_EQ(Start(other), kOk);
  EXPECT_EQ(Finalize(), kOk) << "stops what runs";
  EXPECT_EQ(Results(folder.path()), 2u) << "one for each Start";
  EXPECT_EQ(CALL(Msprofiler(), aclprofModelSubscribe)(1, nullptr), kApiConflict);
}

TEST_IN_CHILD(AclprofStates, NewerVersionsStartWithoutInit) {
  const TempDir folder;
  fs::current_path(folder.path());
  EXPECT_EQ(Start(nullptr), kOk);
  EXPECT_EQ(Stop(nullptr), kOk);
  EXPECT_EQ(Results(folder.path()), 1u);
}

TEST_IN_CHILD(AclprofStates, OlderVersionsDoNotAndLackFunctions) {
  LibraryPath() = PROFD_SIM_MSPROFILER_OLD_FILE;
  const TempDir folder;
  EXPECT_EQ(Start(Create({0}, kTaskTime)), kUninitialized);
  EXPECT_EQ(Finalize(), kUninitialized);
  EXPECT_EQ(Init(folder.path()), kOk);
  EXPECT_EQ(Start(nullptr), kInvalidParam);
  EXPECT_FALSE(Msprofiler().Has("aclprofSetConfig"));
  EXPECT_FALSE(Msprofiler().Has("aclprofGetSupportedFeatures"));
}

TEST_IN_CHILD(AclprofFiles, TheHostNamesAndTheDeviceTimes) {
  const TempDir folder;
  CALL(Acl(), aclrtSetDevice)(0);
  auto files = RunOne(folder, kTaskTime | kAclApi | kRuntimeApi);
  for (const char* file :
       {"host/info.json", "host/sample.json", "host/start_info", "host/end_info", "host/host_start.log",
        "device_0/info.json.0", "device_0/sample.json", "device_0/start_info.0", "device_0/end_info.0",
        "device_0/dev_start.log.0", "device_0/host_start.log.0"}) {
    EXPECT_THAT(files, Contains(Key(file)));
  }
  EXPECT_EQ(std::count(files["host/info.json"].begin(), files["host/info.json"].end(), '\n'), 0);
  const std::string& track = files["host/data/aging.compact.task_track"];
  const std::string& tensors = files["host/data/aging.additional.tensor_info"];
  ASSERT_EQ(track.size(), 64u);
  ASSERT_EQ(tensors.size(), 256u);
  EXPECT_EQ(At<uint16_t>(track, 0), 0x5A5A);
  EXPECT_EQ(At<uint16_t>(track, 2), 5000);
  const auto task = At<uint32_t>(track, 28);
  EXPECT_EQ(At<uint16_t>(track, 48), 24) << "blocks";
  const std::string& node = files["host/data/aging.compact.node_basic_info"];
  ASSERT_EQ(node.size(), 64u);
  // The launch of the node level encloses what belongs to it.
  const std::string& api = files["host/data/aging.api_event.data"];
  ASSERT_EQ(api.size() % 40, 0u);
  bool launch = false;
  for (size_t at = 0; at < api.size(); at += 40) {
    if (At<uint16_t>(api, at + 2) != 10000 || At<uint32_t>(api, at + 4) != 5) continue;
    launch = true;
    for (const std::string* record : {&track, &node, &tensors}) {
      EXPECT_GT(At<uint64_t>(*record, 16), At<uint64_t>(api, at + 16));
      EXPECT_LE(At<uint64_t>(*record, 16), At<uint64_t>(api, at + 24));
    }
  }
  EXPECT_TRUE(launch);
  const std::string name = std::to_string(At<uint64_t>(node, 24)) + ":conv\n";
  EXPECT_THAT(files["host/data/unaging.additional.hash_dic"], HasSubstr(name));
  EXPECT_THAT(files["host/data/unaging.additional.type_info_dic"], HasSubstr("5000_0:KERNEL_AICORE\n"));
  const std::string& stars = files["device_0/data/stars_soc.data.0"];
  ASSERT_EQ(stars.size(), 2 * 64u) << "begin and end";
  EXPECT_EQ(At<uint16_t>(stars, 0) & 0x3F, 0);
  EXPECT_EQ(At<uint16_t>(stars, 64) & 0x3F, 1);
  EXPECT_EQ(At<uint16_t>(stars, 64) >> 6 & 15, 1) << "running number";
  EXPECT_EQ(At<uint16_t>(stars, 2), 0x6BD3);
  EXPECT_EQ(At<uint16_t>(stars, 6), task);
  EXPECT_THAT(At<uint64_t>(stars, 64 + 8) - At<uint64_t>(stars, 8), IsHundredUs());
  EXPECT_EQ(files.count("device_0/data/ffts_profile.data.0"), 0u) << "not asked for";
}

TEST_IN_CHILD(AclprofFiles, CountersOfTheMetricsL2AndAicpu) {
  const TempDir folder, second;
  CALL(Acl(), aclrtSetDevice)(0);
  auto files = RunOne(folder, kAicoreMetrics | kL2 | kTaskTime, kResource);
  const std::string& pmu = files["device_0/data/ffts_profile.data.0"];
  ASSERT_EQ(pmu.size(), 128u);
  EXPECT_EQ(At<uint16_t>(pmu, 0) & 0x3F, 0b101000);
  const uint64_t counts = At<uint64_t>(pmu, 120) - At<uint64_t>(pmu, 112);
  EXPECT_THAT(counts, IsHundredUs());
  EXPECT_EQ(At<uint64_t>(pmu, 32), counts * 1800 / 50) << "at 1800 MHz";
  EXPECT_GT(At<uint64_t>(pmu, 64), 0u);
  EXPECT_EQ(At<uint64_t>(pmu, 72), 0u) << "three events";
  EXPECT_EQ(files["device_0/data/l2_cache.data.0"].size(), 72u);
  EXPECT_THAT(files["device_0/sample.json"], HasSubstr(R"("ai_core_profiling_events":"0x64,0x65,0x66")"));
  files = RunOne(second, kTaskTime | kAicpu, kNoMetrics, prof::kTaskAicpu);
  const std::string& aicpu = files["device_0/data/aicpu.data.0"];
  ASSERT_EQ(aicpu.size(), 256u);
  EXPECT_THAT(At<uint64_t>(aicpu, 80) - At<uint64_t>(aicpu, 40), IsHundredUs());
}

TEST_IN_CHILD(AclprofFiles, Iterations) {
  const TempDir folder;
  CALL(Acl(), aclrtSetDevice)(0);
  Config* const config = Begin(folder, {0}, kTrainingTrace);
  EXPECT_EQ(CALL(Acl(), simAclTrace)(7, 1, nullptr), 0);
  Synchronize();
  EXPECT_EQ(Stop(config), kOk);
  auto files = Read(folder.path());
  const std::string& track = files["device_0/data/ts_track.data.0"];
  ASSERT_EQ(track.size(), 40u);
  EXPECT_EQ(At<uint8_t>(track, 1), 10);
  EXPECT_EQ(At<uint64_t>(track, 16), 7u);
  EXPECT_EQ(At<uint16_t>(track, 36), 1);
}

TEST_IN_CHILD(AclprofFiles, NumbersOfTasksRunOver) {
  const TempDir folder;
  CALL(Acl(), aclrtSetDevice)(0);
  acl::Kernel kernel{};
  kernel.name = "k";
  kernel.type = "K";
  for (int i = 0; i < 65'530; ++i) CALL(Acl(), simAclLaunch)(&kernel, nullptr);
  Config* const config = Begin(folder, {0}, kTaskTime);
  Launch("conv", prof::kTaskAicore, 10);
  Synchronize();
  EXPECT_EQ(Stop(config), kOk);
  auto files = Read(folder.path());
  EXPECT_EQ(files["host/data/aging.compact.task_track"].size(), 11 * 64u) << "one for the flip";
  const std::string& flip = files["device_0/data/ts_track.data.0"];
  ASSERT_EQ(flip.size(), 40u);
  EXPECT_EQ(At<uint8_t>(flip, 1), 14);
  EXPECT_EQ(At<uint16_t>(flip, 18), 1);
}

TEST_IN_CHILD(AclprofFiles, SlicesGrow) {
  Settings("aclprof.slice_bytes=1024");
  const TempDir folder;
  CALL(Acl(), aclrtSetDevice)(0);
  Config* const config = Begin(folder, {0}, kTaskTime);
  Launch("conv", prof::kTaskAicore, 100);
  Synchronize();
  EXPECT_TRUE(Eventually([&] {
    return Read(folder.path())["device_0/data/stars_soc.data.0"].size() == 200 * 64u / 1024 * 1024;
  })) << "while it runs";
  EXPECT_EQ(Stop(config), kOk);
  EXPECT_EQ(Read(folder.path())["device_0/data/stars_soc.data.0"].size(), 200 * 64u);
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    if (entry.path().string().find(".slice_") == std::string::npos || entry.path().extension() == ".done") continue;
    EXPECT_TRUE(fs::exists(entry.path().string() + ".done")) << entry.path();
  }
}

TEST_IN_CHILD(AclprofFiles, TheStorageLimitTakesTheOldestSlices) {
  // 200 "MB" of 100 bytes: each directory may have (100 - 20) of them.
  Settings("aclprof.slice_bytes=1024;aclprof.megabyte=100");
  const TempDir folder;
  CALL(Acl(), aclrtSetDevice)(0);
  EXPECT_EQ(Init(folder.path()), kOk);
  EXPECT_EQ(Set(kStorageLimit, "200MB"), kOk);
  Config* const config = Create({0}, kTaskTime);
  EXPECT_EQ(Start(config), kOk);
  Launch("conv", prof::kTaskAicore, 200);
  Synchronize();
  EXPECT_EQ(Stop(config), kOk);
  auto files = Read(folder.path());
  const std::string& stars = files["device_0/data/stars_soc.data.0"];
  EXPECT_LE(stars.size(), 8000u);
  EXPECT_GE(stars.size(), 6000u);
  // The last task is the last that ended.
  EXPECT_EQ(At<uint16_t>(stars, stars.size() - 64 + 6), 200);
  EXPECT_FALSE(files["host/data/unaging.additional.hash_dic"].empty());
}

TEST_IN_CHILD(AclprofFiles, AFullDiskLeavesHalfOfIt) {
  Settings("aclprof.slice_bytes=1024;aclprof.disk_bytes=8000");
  const TempDir folder;
  CALL(Acl(), aclrtSetDevice)(0);
  Config* const config = Begin(folder, {0}, kTaskTime);
  Launch("conv", prof::kTaskAicore, 200);
  Synchronize();
  EXPECT_EQ(Stop(config), kFailure);
  EXPECT_FALSE(Read(folder.path()).empty());
  EXPECT_EQ(Read(folder.path()).count("host/end_info"), 0u);
  EXPECT_EQ(Finalize(), kOk);
}

TEST_IN_CHILD(AclprofFiles, NoDeviceNoDirectory) {
  const TempDir folder;
  Config* const config = Begin(folder, {0, 1}, kTaskTime);
  CALL(Acl(), aclrtSetDevice)(1);  // by the notice of libprofapi, with the same configuration
  Launch("late");
  Synchronize();
  EXPECT_EQ(Stop(config), kOk);
  auto files = Read(folder.path());
  EXPECT_EQ(files.count("device_0/info.json.0"), 0u);
  EXPECT_EQ(files["device_1/data/stars_soc.data.1"].size(), 2 * 64u);
}

TEST_IN_CHILD(AclprofFiles, ADeviceThatIsResetEnds) {
  const TempDir folder;
  CALL(Acl(), aclrtSetDevice)(0);
  Config* const config = Begin(folder, {0}, kTaskTime);
  Launch("conv");
  Synchronize();
  CALL(Acl(), aclrtResetDevice)(0);
  EXPECT_EQ(CALL(Acl(), simAclOpenLog)(0), 0) << "the channel is free";
  EXPECT_EQ(Read(folder.path())["device_0/data/stars_soc.data.0"].size(), 2 * 64u);
  EXPECT_EQ(Stop(config), kOk);
}

TEST_IN_CHILD(AclprofFiles, StopWaits) {
  Settings("aclprof.stop_ms=300");
  const TempDir folder;
  Config* const config = Begin(folder, {0}, kTaskTime);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Stop(config), kOk);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(300));
}

TEST_IN_CHILD(AclprofConflicts, WhileMsptiHasTheSlotsTheHostIsSilent) {
  const std::string acl = PROFD_SIM_ASCENDCL;
  ::setenv("ASCEND_HOME_PATH", acl.substr(0, acl.rfind('/')).c_str(), 1);
  const TempDir folder;
  CALL(Acl(), aclrtSetDevice)(0);
  const Library mspti(PROFD_SIM_MSPTI);
  mspti::Subscriber* subscriber = nullptr;
  EXPECT_EQ(CALL(mspti, msptiSubscribe)(&subscriber, nullptr, nullptr), 0);
  auto files = RunOne(folder, kTaskTime | kAclApi);
  EXPECT_THAT(files["host/data/aging.compact.task_track"], IsEmpty());
  EXPECT_THAT(files["host/data/aging.api_event.data"], IsEmpty());
  EXPECT_EQ(files["device_0/data/stars_soc.data.0"].size(), 2 * 64u) << "its channels are free";
}

TEST_IN_CHILD(AclprofConflicts, AHeldChannelReportsItOrNot) {
  const TempDir folder;
  CALL(Acl(), aclrtSetDevice)(0);
  EXPECT_EQ(CALL(Acl(), simAclOpenLog)(0), 0);
  auto files = RunOne(folder, kTaskTime);
  EXPECT_THAT(files, Contains(Key("device_0/info.json.0")));
  EXPECT_EQ(files.count("device_0/data/stars_soc.data.0"), 0u);
  CALL(Msprofiler(), simMsprofilerControl)("aclprof.busy_channel_fails=1");
  EXPECT_EQ(Init(folder.path()), kOk);
  EXPECT_EQ(Start(Create({0}, kTaskTime)), kFailure);
}

TEST_IN_CHILD(AclprofConflicts, EachFunctionFailsOnCommand) {
  Settings("aclprof.fail=aclprofInit:500005");
  const TempDir folder;
  EXPECT_EQ(Init(folder.path()), kFailure);
  CALL(Msprofiler(), simMsprofilerControl)("aclprof.fail=aclprofInit:0;aclprof.throw=aclprofFinalize");
  EXPECT_EQ(Init(folder.path()), kOk);
  EXPECT_THROW(Finalize(), std::runtime_error);
}

}  // namespace
}  // namespace profd::sim::aclprof
