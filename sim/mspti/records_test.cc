// What libmspti.so records: kinds, versions, chips, names, correlation, times.
#include <cstdlib>
#include <fstream>

#include "sim/mspti/client_test_support.h"

namespace profd::sim::mspti {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

int64_t WallNs() { return SystemClock().WallNs(); }

TEST_IN_CHILD(MsptiRecords, AKernelHasNameTypeAndTimes) {
  BeginOn(3, {kKernel});
  const int64_t before = WallNs();
  Launch("layer0/MatMul");
  const Record kernel = Client::The().Wait(kKernel, 1).at(0);
  EXPECT_EQ(kernel.texts.at(36), "KERNEL_AICORE");
  EXPECT_EQ(kernel.texts.at(44), "layer0/MatMul");
  EXPECT_EQ(kernel.Get<uint32_t>(20), 3u);
  EXPECT_EQ(kernel.Get<uint32_t>(24), 0u);
  EXPECT_EQ(kernel.Get<uint64_t>(28), 1u);
  const uint64_t start = kernel.Get<uint64_t>(4);
  EXPECT_EQ(kernel.Get<uint64_t>(12) - start, 20'000u);
  EXPECT_GE(Int(start), before - 10'000);  // the pair of clocks errs by up to 5 us
  EXPECT_LE(Int(start), WallNs());
}

// What follows a key in a line of the ground truth.
int64_t NumberAfter(const std::string& line, const std::string& key) {
  const size_t at = line.find("\"" + key + "\":");
  EXPECT_NE(at, std::string::npos) << line;
  return std::strtoll(line.c_str() + at + key.size() + 3, nullptr, 10);
}

TEST_IN_CHILD(MsptiRecords, EqualTheGroundTruth) {
  const TempDir folder;
  const std::string path = folder / "truth";
  ASSERT_EQ(CALL(Acl(), simAclTruth)(path.c_str()), 0);
  CALL(Acl(), aclrtSetDevice)(0);
  void* streams[3] = {};
  for (void*& stream : streams) stream = NewStream();
  Client::The().Begin({kKernel});
  for (int i = 0; i < 300; ++i) {
    Launch(("kernel" + std::to_string(i)).c_str(), streams[i % 3], 1'000 + i * 37 % 5'000);
  }
  Synchronize();
  std::map<std::string, Record> recorded;
  for (const Record& record : Client::The().Wait(kKernel, 300)) {
    EXPECT_TRUE(recorded.emplace(record.texts.at(44), record).second) << "twice";
  }
  CALL(Acl(), aclFinalize)();
  std::ifstream file(path);
  size_t lines = 0;
  int64_t first_offset = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const size_t at = line.find("kernel", line.find("\"name\""));
    const Record& record = recorded.at(line.substr(at, line.find('"', at) - at));
    EXPECT_EQ(record.Get<uint32_t>(24), NumberAfter(line, "stream"));
    const int64_t begin = NumberAfter(line, "begin_ns"), end = NumberAfter(line, "end_ns");
    EXPECT_EQ(Int(record.Get<uint64_t>(12) - record.Get<uint64_t>(4)), end - begin);
    // One pair of clocks for all, or two that differ by their errors.
    const int64_t offset = Int(record.Get<uint64_t>(4)) - begin;
    if (lines == 0) first_offset = offset;
    EXPECT_LE(std::abs(offset - first_offset), 20'000);
  }
  EXPECT_EQ(lines, 300u);
}

TEST_IN_CHILD(MsptiRecords, CopiesAreNotKernels) {
  BeginOn(0, {kKernel});
  CALL(Acl(), aclrtMemcpyAsync)(nullptr, 8, nullptr, 8, acl::kHostToDevice, nullptr);
  Launch("after");
  EXPECT_EQ(Client::The().Wait(kKernel, 1).at(0).texts.at(44), "after");
  EXPECT_THAT(Client::The().Have(kKernel), SizeIs(1));
}

TEST_IN_CHILD(MsptiRecords, AttachesToARunningProcess) {
  CALL(Acl(), aclrtSetDevice)(0);
  Launch("known before");
  Synchronize();
  Client::The().Begin({kKernel});
  Launch("known before");
  EXPECT_EQ(Client::The().Wait(kKernel, 1).at(0).texts.at(44), "known before");
}

TEST_IN_CHILD(MsptiRecords, ADeviceThatIsSetLaterIsStarted) {
  Acl();
  Client::The().Begin({kKernel});
  CALL(Acl(), aclrtSetDevice)(5);
  Launch("late device");
  EXPECT_EQ(Client::The().Wait(kKernel, 1).at(0).Get<uint32_t>(20), 5u);
}

TEST_IN_CHILD(MsptiRecords, ApisCarryTheCorrelationOfTheLastKernel) {
  BeginOn(0, {kKernel, kAclApi, kNodeApi, kRuntimeApi});
  CALL(Acl(), aclrtMemset)(nullptr, 8, 0, 8);  // before the first kernel
  Launch("first");
  CALL(Acl(), aclrtMemset)(nullptr, 8, 0, 8);  // launches nothing
  Launch("second");
  const auto functions = Client::The().Wait(kAclApi, 4);
  EXPECT_EQ(functions[0].texts.at(36), "aclrtMemset");
  EXPECT_EQ(functions[0].Get<uint64_t>(28), 0u);
  EXPECT_EQ(functions[1].texts.at(36), "aclnnMatmul");
  EXPECT_EQ(functions[1].Get<uint64_t>(28), 1u);
  EXPECT_EQ(functions[2].Get<uint64_t>(28), 1u);
  EXPECT_EQ(functions[3].Get<uint64_t>(28), 2u);
  EXPECT_EQ(functions[0].Get<uint32_t>(20), static_cast<uint32_t>(::getpid()));
  EXPECT_LT(functions[0].Get<uint64_t>(4), functions[0].Get<uint64_t>(12));
  EXPECT_EQ(Client::The().Wait(kNodeApi, 2)[1].texts.at(36), "second");
  EXPECT_EQ(Client::The().Wait(kRuntimeApi, 2)[0].texts.at(36), "KernelLaunch");
}

TEST_IN_CHILD(MsptiRecords, KindApiIsAclAndNode) {
  BeginOn(0, {kApi});
  Launch("one");
  const auto functions = Client::The().Wait(kApi, 2);
  EXPECT_EQ(functions[0].texts.at(36), "one");
  EXPECT_EQ(functions[1].texts.at(36), "aclnnMatmul");
}

TEST_IN_CHILD(MsptiRecords, UnknownNamesLeaveNoRecord) {
  Settings("ascendcl.unnamed_functions=1;ascendcl.lost_begins=2");
  BeginOn(0, {kKernel, kAclApi});
  for (int i = 0; i < 4; ++i) Launch("kernel");
  Synchronize();
  EXPECT_THAT(Client::The().Wait(kKernel, 2), SizeIs(2));  // two lost their begins
  Client::The().End();
  EXPECT_THAT(Client::The().Have(kKernel), SizeIs(2));
  EXPECT_THAT(Client::The().Have(kAclApi), IsEmpty());
}

TEST_IN_CHILD(MsptiRecords, ACommunicationHasItsGroup) {
  BeginOn(0, {kCommunication});
  void* const group = GroupOfOne();
  const acl::Communication all_reduce = {.name = "hcom_allReduce__1",
                                         .type = "hcom_allReduce_",
                                         .count = 1000,
                                         .bytes = 4000,
                                         .duration_ns = 50'000};
  EXPECT_EQ(CALL(Acl(), simAclCommunicate)(&all_reduce, group, nullptr), 0);
  const Record record = Client::The().Wait(kCommunication, 1).at(0);
  EXPECT_EQ(record.Get<uint32_t>(4), 4u);
  EXPECT_EQ(record.Get<uint64_t>(8), 1000u);
  EXPECT_EQ(record.texts.at(40), "RING");
  EXPECT_EQ(record.texts.at(48), "hcom_allReduce__1");
  EXPECT_EQ(record.texts.at(56), "dp_0");
  EXPECT_EQ(record.Get<uint64_t>(32) - record.Get<uint64_t>(24), 50'000u);
}

TEST_IN_CHILD(MsptiRecords, OtherChipsGiveHostRecordsOnly) {
  Settings("mspti.chip=1");
  BeginOn(0, {kKernel, kAclApi});
  Launch("kernel");
  Synchronize();
  Client::The().Wait(kAclApi, 1);
  Client::The().End();
  EXPECT_THAT(Client::The().Have(kKernel), IsEmpty());
}

TEST(MsptiRecords, ChipsWithDeviceRecords) {
  for (const char* chip : {"5", "7", "15"}) {
    EXPECT_TRUE(InChild([chip] {
      Settings(std::string("mspti.chip=") + chip);
      BeginOn(0, {kKernel});
      Launch("kernel", NewStream());
      EXPECT_EQ(Client::The().Wait(kKernel, 1).at(0).Get<uint32_t>(24), 1u);
    })) << chip;
  }
}

TEST_IN_CHILD(MsptiRecords, AnOccupiedDeviceIsSilent) {
  CALL(Acl(), aclrtSetDevice)(0);
  ASSERT_EQ(CALL(Acl(), simAclOpenLog)(0), 0);  // another profiler in this process
  Client::The().Begin({kKernel, kAclApi});
  Launch("kernel");
  Synchronize();
  Client::The().Wait(kAclApi, 1);
  Client::The().End();
  EXPECT_THAT(Client::The().Have(kKernel), IsEmpty());
}

TEST_IN_CHILD(MsptiRecords, SilentOnCommand) {
  Settings("mspti.silent=1");
  BeginOn(0, {kKernel, kAclApi});
  Launch("kernel");
  Synchronize();
  Client::The().End();
  EXPECT_THAT(Client::The().Have(kAclApi), IsEmpty());
  EXPECT_EQ(Client::The().Requests(), 0u);
}

TEST_IN_CHILD(MsptiRecords, KernelsOfStreamsComeOutOfStartOrder) {
  CALL(Acl(), aclrtSetDevice)(0);
  void* const other = NewStream();
  Client::The().Begin({kKernel});
  Launch("long", nullptr, 30'000'000);
  Launch("short", other, 1'000);
  const auto kernels = Client::The().Wait(kKernel, 2);
  EXPECT_EQ(kernels[0].texts.at(44), "short");
  EXPECT_GT(kernels[0].Get<uint64_t>(4), kernels[1].Get<uint64_t>(4));
}

TEST_IN_CHILD(MsptiRecords, ExternalIdsAreOneStackForAllThreads) {
  BeginOn(0, {kKernel, kExternalCorrelation});
  const auto push = CALL(Mspti(), msptiActivityPushExternalCorrelationId);
  const auto pop = CALL(Mspti(), msptiActivityPopExternalCorrelationId);
  EXPECT_EQ(push(0, 1), kInvalidParameter);
  EXPECT_EQ(push(5, 1), kInvalidParameter);
  std::thread([&] { EXPECT_EQ(push(2, 77), kOk); }).join();
  Launch("kernel");
  const Record external = Client::The().Wait(kExternalCorrelation, 1).at(0);
  EXPECT_EQ(external.Get<uint32_t>(4), 2u);
  EXPECT_EQ(external.Get<uint64_t>(8), 77u);
  EXPECT_EQ(external.Get<uint64_t>(16), 1u);
  uint64_t last = 0;
  EXPECT_EQ(pop(2, nullptr), kInvalidParameter);
  EXPECT_EQ(pop(2, &last), kOk);
  EXPECT_EQ(last, 77u);
  EXPECT_EQ(pop(2, &last), kQueueEmpty);
}

TEST_IN_CHILD(MsptiRecords, TimesStepOnCommand) {
  BeginOn(0, {kKernel});
  Launch("before");
  Client::The().Wait(kKernel, 1);
  Control("mspti.time_step_ns=-1000000000;mspti.backwards=1");
  Launch("after");
  Launch("after");
  const auto kernels = Client::The().Wait(kKernel, 3);
  EXPECT_LT(kernels[1].Get<uint64_t>(4), kernels[0].Get<uint64_t>(4));
  EXPECT_LT(kernels[1].Get<uint64_t>(12), kernels[1].Get<uint64_t>(4)) << "ends before it starts";
  EXPECT_GT(kernels[2].Get<uint64_t>(12), kernels[2].Get<uint64_t>(4)) << "once";
}

TEST_IN_CHILD(MsptiRecords, HostTimesMayBeTheCounter) {
  Settings("profapi.host_frequency=1");
  BeginOn(0, {kAclApi});
  const int64_t before = WallNs();
  Launch("kernel");
  const int64_t after = WallNs();
  const Record call = Client::The().Wait(kAclApi, 1).at(0);
  EXPECT_GE(Int(call.Get<uint64_t>(4)), before - 1'000'000);
  EXPECT_LE(Int(call.Get<uint64_t>(12)), after + 1'000'000);
}

TEST_IN_CHILD(MsptiRecords, MemoryNeedsThePreload) {
  const auto enable = [](uint32_t kind) { return CALL(Mspti(), msptiActivityEnable)(kind); };
  for (const uint32_t kind : {kMemory, kMemset, kMemcpy, kHccl}) {
    EXPECT_EQ(enable(kind), kNotPreloaded) << kind;
  }
  EXPECT_EQ(enable(0), kInvalidParameter);
  EXPECT_EQ(enable(13), kInvalidParameter);
  EXPECT_EQ(CALL(Mspti(), msptiEnableDomain)(1, nullptr, kRuntimeDomain), kNotPreloaded);
  PretendPreload();
  EXPECT_EQ(enable(kMemory), kOk);  // the text of the variable is all that counts
}

TEST_IN_CHILD(MsptiRecords, MemoryByTheFunctionsItTakesOver) {
  PretendPreload();
  BeginOn(2, {kMemory, kMemset, kMemcpy});
  void* pointer = nullptr;
  CALL(Mspti(), aclrtMalloc)(&pointer, 4096, 0);
  CALL(Mspti(), aclrtMemset)(pointer, 4096, 7, 100);
  CALL(Mspti(), aclrtMemcpyAsync)(pointer, 64, pointer, 64, acl::kDeviceToHost, nullptr);
  CALL(Mspti(), aclrtFree)(pointer);
  const auto memory = Client::The().Wait(kMemory, 2);
  EXPECT_EQ(memory[0].Get<uint32_t>(4), 0u);
  EXPECT_EQ(memory[0].Get<uint32_t>(8), 1u);
  EXPECT_EQ(memory[0].Get<uint64_t>(36), reinterpret_cast<uint64_t>(pointer));
  EXPECT_EQ(memory[0].Get<uint64_t>(44), 4096u);
  EXPECT_EQ(memory[0].Get<uint32_t>(56), 2u);
  EXPECT_EQ(memory[1].Get<uint32_t>(4), 1u);
  const Record set = Client::The().Wait(kMemset, 1).at(0);
  EXPECT_EQ(set.Get<uint32_t>(4), 7u);
  EXPECT_EQ(set.Get<uint64_t>(8), 100u);
  const Record copy = Client::The().Wait(kMemcpy, 1).at(0);
  EXPECT_EQ(copy.Get<uint32_t>(4), 3u);  // DTOH
  EXPECT_EQ(copy.Get<uint8_t>(48), 1u);
}

std::vector<std::string> g_calls;
void OnCall(void* user, int domain, uint32_t id, const void* raw) {
  CallbackData data;
  std::memcpy(&data, raw, sizeof data);
  EXPECT_EQ(user, &g_calls);
  EXPECT_EQ(domain, kRuntimeDomain);
  for (const uint64_t word : data.unset) EXPECT_EQ(word, 0xA5A5A5A5A5A5A5A5u);
  g_calls.push_back(std::string(data.function) + " " + std::to_string(id) + " " +
                    std::to_string(data.site));
}

TEST_IN_CHILD(MsptiRecords, CallbacksAreAroundTheRealFunctions) {
  PretendPreload();
  Subscriber* subscriber = nullptr;
  const auto enable = CALL(Mspti(), msptiEnableCallback);
  EXPECT_EQ(enable(1, nullptr, kRuntimeDomain, 200), kOk) << "no effect: no client has subscribed";
  EXPECT_EQ(CALL(Mspti(), msptiSubscribe)(&subscriber, &OnCall, &g_calls), kOk);
  EXPECT_EQ(enable(1, subscriber, 9, 1), kInvalidParameter);
  EXPECT_EQ(enable(1, subscriber, kRuntimeDomain, 64), kInvalidParameter);
  EXPECT_EQ(enable(1, subscriber, kRuntimeDomain, 1), kOk);
  CALL(Mspti(), aclrtSetDevice)(0);
  CALL(Mspti(), aclrtFree)(nullptr);  // not enabled
  EXPECT_THAT(g_calls, testing::ElementsAre("aclrtSetDevice 1 0", "aclrtSetDevice 1 1"));
}

TEST(MsptiVersions, BeforeMarch2026NothingIsDeliveredOrReportedWithoutThePreload) {
  for (const char* profile : {"old", "closed", "2026-02"}) {
    EXPECT_TRUE(InChild([profile] {
      OldLibrary(profile);
      BeginOn(0, {kKernel, kApi, kMemory});
      Launch("kernel");
      Synchronize();
      Client::The().End();
      EXPECT_EQ(Client::The().Requests(), 0u);
    })) << profile;
    EXPECT_TRUE(InChild([profile] {
      OldLibrary(profile);
      PretendPreload();
      BeginOn(0, {kKernel});
      Launch("kernel");
      EXPECT_EQ(Client::The().Wait(kKernel, 1).at(0).texts.at(44), "kernel");
    })) << profile;
  }
}

TEST(MsptiVersions, KindsAndSymbolsOfEach) {
  const auto enable = [](uint32_t kind) { return CALL(Mspti(), msptiActivityEnable)(kind); };
  EXPECT_TRUE(InChild([&] {
    OldLibrary("old");
    EXPECT_EQ(enable(kAclApi), kInvalidParameter);
    EXPECT_FALSE(Mspti().Has("msptiActivityIsEnabled"));
  }));
  EXPECT_TRUE(InChild([&] {
    OldLibrary("2026-02");
    EXPECT_EQ(enable(kAclApi), kOk);
    EXPECT_EQ(enable(kMemory), kOk);  // no 6 yet
  }));
  EXPECT_TRUE(InChild([&] {
    OldLibrary("2026-03");
    EXPECT_EQ(enable(kMemory), kNotPreloaded);
    EXPECT_FALSE(Mspti().Has("msptiActivityIsEnabled"));
  }));
  EXPECT_TRUE(InChild([&] {
    EXPECT_FALSE(CALL(Mspti(), msptiActivityIsEnabled)(kKernel));
    EXPECT_EQ(enable(kKernel), kOk);
    EXPECT_TRUE(CALL(Mspti(), msptiActivityIsEnabled)(kKernel));
    EXPECT_EQ(CALL(Mspti(), msptiActivityDisable)(kKernel), kOk);
    EXPECT_FALSE(CALL(Mspti(), msptiActivityIsEnabled)(kKernel));
    EXPECT_EQ(CALL(Mspti(), msptiActivityDisable)(kKernel), kOk) << "what is off stays off";
  }));
  EXPECT_EQ(RunChild([] {
              OldLibrary("2026-05");
              Mspti();
            }).signal,
            SIGABRT);
}

TEST_IN_CHILD(MsptiVersions, TheClosedOneFreesItsTexts) {
  OldLibrary("closed");
  PretendPreload();
  BeginOn(0, {kKernel});
  Launch("kernel");
  const Record kernel = Client::The().Wait(kKernel, 1).at(0);
  EXPECT_EQ(kernel.texts.at(44), "kernel") << "read in the callback";
  EXPECT_STREQ(kernel.Get<const char*>(44), "######") << "read after it";
}

TEST_IN_CHILD(MsptiVersions, TheNextOneHasAKindOfUnknownSize) {
  Settings("mspti.profile=next");
  BeginOn(0, {kKernel});
  for (int i = 0; i < 9; ++i) Launch("kernel");
  Synchronize();
  EXPECT_TRUE(Eventually([] {
    Client::The().Flush();
    MutexLock lock(Client::The().mutex);
    return Client::The().unknown_bytes >= 40;
  }));
}

}  // namespace
}  // namespace profd::sim::mspti
