// libprofapi.so from outside, as the runtime, a receiver and a conflict detector see it.
#include "sim/profapi/profapi.h"

#include <cstring>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "sim/child_test_support.h"

namespace profd::sim::prof {
namespace {

using testing::ElementsAre;

const Library& Profapi() {
  static const Library* const library = new Library(PROFD_SIM_PROFAPI);
  return *library;
}

// What the callbacks of a test were given.
Mutex g_mutex;
std::vector<std::string> g_seen;
void See(const std::string& what) {
  MutexLock lock(g_mutex);
  g_seen.push_back(what);
}
std::vector<std::string> Seen() {
  MutexLock lock(g_mutex);
  return g_seen;
}

template <uint32_t kModule>
int32_t Module(uint32_t type, void* data, uint32_t size) {
  Command command;
  EXPECT_EQ(type, kControlSwitch);
  EXPECT_EQ(size, sizeof command);
  std::memcpy(&command, data, sizeof command);
  See(std::to_string(kModule) +
      (command.type == kStart  ? " start "
       : command.type == kStop ? " stop "
                               : " init ") +
      std::to_string(command.switches));
  return 0;
}

void Send(CommandType type, uint64_t switches) {
  Command command;
  command.type = type;
  command.switches = switches;
  EXPECT_EQ(CALL(Profapi(), profSetProfCommand)(&command, sizeof command), 0);
}

int32_t SetSlot(int32_t type, void* callback) {
  return CALL(Profapi(), MsprofRegisterProfileCallback)(type, callback, sizeof callback);
}

Counts ReadCounts() {
  Counts counts{};
  CALL(Profapi(), simProfapiCounts)(&counts);
  return counts;
}

int32_t ApiReceiver(uint32_t aging, const Api* api) {
  See("api " + std::to_string(aging) + " " + std::to_string(api->item));
  return 7;
}
int32_t OtherApiReceiver(uint32_t, const Api*) {
  See("other");
  return 0;
}
int32_t DataReceiver(uint32_t, void*, uint32_t size) {
  See("data " + std::to_string(size));
  return 0;
}
int32_t DeviceReceiver(void* data, uint32_t size) {
  SetDevice device;
  EXPECT_EQ(size, sizeof device);
  std::memcpy(&device, data, sizeof device);
  See("device " + std::to_string(device.device) + (device.is_open ? " open" : " closed"));
  return 0;
}
int32_t TypeReceiver(uint16_t level, uint32_t type, const char* name, size_t size) {
  EXPECT_NE(name[size], '\0') << "a receiver must not look for the end";
  See(std::to_string(level) + " " + std::to_string(type) + " " + std::string(name, size));
  return 0;
}
uint64_t HashReceiver(const char* text, size_t size) {
  See("hash " + std::string(text, size));
  return 1;
}

TEST_IN_CHILD(Profapi, CommandsReachTheModulesInOrder) {
  CALL(Profapi(), MsprofRegisterCallback)(kModuleHccl, &Module<kModuleHccl>);
  CALL(Profapi(), MsprofRegisterCallback)(kModuleGe, &Module<kModuleGe>);
  CALL(Profapi(), MsprofRegisterCallback)(kModuleAcl, &Module<kModuleAcl>);
  CALL(Profapi(), MsprofRegisterCallback)(kModuleRuntime, &Module<kModuleRuntime>);
  Send(kStart, 5);
  EXPECT_THAT(Seen(), ElementsAre("7 start 5", "48 start 5", "45 start 5", "3 start 5"));
  g_seen.clear();
  Send(kStop, 5);
  EXPECT_THAT(Seen(), ElementsAre("3 stop 5", "45 stop 5", "48 stop 5", "7 stop 5"));
}

TEST_IN_CHILD(Profapi, ACommandWithoutModulesIsFine) {
  Send(kStart, 1);
  Send(kStop, 1);
  EXPECT_NE(CALL(Profapi(), profSetProfCommand)(nullptr, sizeof(Command)), 0);
  Command command;
  EXPECT_NE(CALL(Profapi(), profSetProfCommand)(&command, 12), 0);
}

TEST_IN_CHILD(Profapi, ALateModuleIsGivenInitAndStart) {
  Send(kStart, 0x800);
  Send(kStart, 0x1);
  CALL(Profapi(), MsprofRegisterCallback)(77, &Module<77>);
  EXPECT_TRUE(Eventually([] { return Seen().size() == 2; }));
  EXPECT_THAT(Seen(), ElementsAre("77 init 2049", "77 start 2049"));
  g_seen.clear();
  Send(kStop, 0x801);
  CALL(Profapi(), MsprofRegisterCallback)(78, &Module<78>);  // no profiler runs any more
  Send(kStart, 2);
  EXPECT_THAT(Seen(), ElementsAre("77 stop 2049", "77 start 2", "78 start 2"));
}

TEST_IN_CHILD(Profapi, AReceiverGetsEverythingAndMsprofNothing) {
  Api api;
  api.item = 9;
  Compact compact;
  EXPECT_EQ(CALL(Profapi(), MsprofReportApi)(1, &api), 0);
  EXPECT_EQ(ReadCounts().to_msprof[kApis], 1u);
  SetSlot(kSlotApi, reinterpret_cast<void*>(&ApiReceiver));
  EXPECT_EQ(CALL(Profapi(), MsprofReportApi)(1, &api), 7);
  EXPECT_EQ(ReadCounts().to_msprof[kApis], 1u);
  EXPECT_EQ(ReadCounts().to_receiver[kApis], 1u);
  // Each kind has its own receiver.
  CALL(Profapi(), MsprofReportCompactInfo)(1, &compact, sizeof compact);
  EXPECT_EQ(ReadCounts().to_msprof[kCompacts], 1u);
  SetSlot(kSlotCompact, reinterpret_cast<void*>(&DataReceiver));
  CALL(Profapi(), MsprofReportCompactInfo)(1, &compact, sizeof compact);
  EXPECT_THAT(Seen(), ElementsAre("api 1 9", "data 64"));
}

TEST_IN_CHILD(Profapi, TheLastReceiverWinsAndNullClears) {
  const Api api;
  SetSlot(kSlotApi, reinterpret_cast<void*>(&ApiReceiver));
  SetSlot(kSlotApi, reinterpret_cast<void*>(&OtherApiReceiver));
  CALL(Profapi(), MsprofReportApi)(0, &api);
  SetSlot(kSlotApi, nullptr);
  CALL(Profapi(), MsprofReportApi)(0, &api);
  EXPECT_THAT(Seen(), ElementsAre("other"));
  EXPECT_EQ(ReadCounts().to_msprof[kApis], 1u);
}

TEST_IN_CHILD(Profapi, TypesOfBefore2026AreAcceptedAndDoNothing) {
  const Api api;
  for (const int32_t type : {0, 1, 2, 3, 6, 7, 8, 14, 15}) {
    EXPECT_EQ(SetSlot(type, reinterpret_cast<void*>(&OtherApiReceiver)), 0) << type;
  }
  CALL(Profapi(), MsprofReportApi)(0, &api);
  EXPECT_THAT(Seen(), ElementsAre());
  EXPECT_NE(SetSlot(17, reinterpret_cast<void*>(&OtherApiReceiver)), 0);
}

TEST_IN_CHILD(Profapi, KnownDevicesAreReplayed) {
  CALL(Profapi(), MsprofNotifySetDevice)(5, 2, true);
  CALL(Profapi(), MsprofNotifySetDevice)(5, 3, true);
  CALL(Profapi(), MsprofNotifySetDevice)(5, 2, false);
  SetSlot(kSlotDeviceState, reinterpret_cast<void*>(&DeviceReceiver));
  CALL(Profapi(), MsprofNotifySetDevice)(5, 4, true);
  CALL(Profapi(), MsprofNotifySetDevice)(5, 4, false);
  EXPECT_THAT(Seen(), ElementsAre("device 3 open", "device 4 open", "device 4 closed"));
}

TEST_IN_CHILD(Profapi, NamesComeWithoutAnEnd) {
  SetSlot(kSlotTypeName, reinterpret_cast<void*>(&TypeReceiver));
  SetSlot(kSlotHash, reinterpret_cast<void*>(&HashReceiver));
  CALL(Profapi(), MsprofRegTypeInfo)(kRuntimeLevel, 802, "task_track");
  const uint64_t id = CALL(Profapi(), MsprofGetHashId)("MatMul", 6);
  EXPECT_THAT(Seen(), ElementsAre("5000 802 task_track", "hash MatMul"));
  EXPECT_STREQ(CALL(Profapi(), MsprofId2Str)(id), "MatMul");
}

TEST_IN_CHILD(Profapi, HashesWithTwoPolynomials) {
  const auto hash = CALL(Profapi(), MsprofStr2Id);
  EXPECT_EQ(hash("", 0), UINT64_MAX);
  // 'a' = 97, 'b' = 98: 97 * 29 + 98 and 97 * 131 + 98.
  EXPECT_EQ(hash("ab", 2), uint64_t{2911} << 32 | 12805);
  // Signed characters: 0xFF is -1.
  EXPECT_EQ(hash("\xFF", 1), UINT64_MAX);
}

TEST(Profapi, TimeIsRawNanosecondsOrTheCounter) {
  const auto read = [](clockid_t id) {
    timespec now{};
    clock_gettime(id, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  };
  EXPECT_TRUE(InChild([read] {
    const uint64_t before = read(CLOCK_MONOTONIC_RAW);
    const uint64_t time = CALL(Profapi(), MsprofSysCycleTime)();
    EXPECT_GE(time, before);
    EXPECT_LE(time, read(CLOCK_MONOTONIC_RAW));
  }));
  EXPECT_TRUE(InChild([read] {
    ::setenv("PROFD_SIM_APP", "profapi.host_frequency=1", 1);
    const uint64_t before = read(CLOCK_MONOTONIC_RAW);
    const uint64_t time = CALL(Profapi(), MsprofSysCycleTime)();
    EXPECT_TRUE(time < before || time > read(CLOCK_MONOTONIC_RAW));
    EXPECT_GT(CALL(Profapi(), MsprofSysCycleTime)(), time);
  }));
}

TEST(Profapi, AMisspeltSettingEndsTheProcess) {
  const ChildResult result = RunChild([] {
    ::setenv("PROFD_SIM_APP", "other.x=1;profapi.host_frequenzy=1", 1);
    CALL(Profapi(), MsprofSysCycleTime)();
  });
  EXPECT_EQ(result.signal, SIGABRT);
  EXPECT_THAT(result.output, testing::HasSubstr("profapi.host_frequenzy=1"));
}

// mstx: an object that marks, and the two receivers behind libprofapi.

MstxFunction g_mark[8], g_domain[8];
MstxFunction* g_mark_table[8];
MstxFunction* g_domain_table[8];
int GetTable(int module, MstxFunction*** table, unsigned* size) {
  MstxFunction* const functions = module == kMstxCore ? g_mark : g_domain;
  MstxFunction** const addresses = module == kMstxCore ? g_mark_table : g_domain_table;
  for (int i = 0; i < 8; ++i) addresses[i] = &functions[i];
  *table = addresses;
  *size = module == kMstxCore ? 5 : 6;
  return 0;
}
void MarkOf(const char* message, void*) { See(std::string("mspti ") + message); }
uint64_t StartOf(const char*, void*) { return 42; }
void* CreateOf(const char* name) {
  See(std::string("mspti domain ") + name);
  return &g_mutex;
}
void DomainMarkOf(void* domain, const char* message, void*) {
  EXPECT_EQ(domain, &g_mutex);
  See(std::string("mspti in domain ") + message);
}
int ReceiverInit(MstxGetTable get_table) {
  MstxFunction** table = nullptr;
  unsigned size = 0;
  EXPECT_EQ(get_table(kMstxCore, &table, &size), 0);
  EXPECT_EQ(size, 5u);
  *table[1] = reinterpret_cast<MstxFunction>(&MarkOf);
  *table[2] = reinterpret_cast<MstxFunction>(&StartOf);
  EXPECT_EQ(get_table(kMstxDomain, &table, &size), 0);
  EXPECT_EQ(size, 5u) << "the vendor's wrong size";
  *table[1] = reinterpret_cast<MstxFunction>(&CreateOf);
  *table[3] = reinterpret_cast<MstxFunction>(&DomainMarkOf);
  return 0;
}

TEST_IN_CHILD(ProfapiMstx, MarksReachTheReceiverThatIsOn) {
  ASSERT_EQ(CALL(Profapi(), InitInjectionMstx)(&GetTable), 0);
  const auto mark = reinterpret_cast<void (*)(const char*, void*)>(g_mark[1]);
  const auto start = reinterpret_cast<uint64_t (*)(const char*, void*)>(g_mark[2]);
  const auto create = reinterpret_cast<void* (*)(const char*)>(g_domain[1]);
  const auto domain_mark = reinterpret_cast<void (*)(void*, const char*, void*)>(g_domain[3]);
  ASSERT_EQ(CALL(Profapi(), ProfRegisterMstxFunc)(&ReceiverInit, kMstxMspti), 0);
  void* const domain = create("data");  // made while msprof is on, which has nothing
  mark("unseen", nullptr);
  domain_mark(domain, "unseen", nullptr);
  EXPECT_EQ(start("unseen", nullptr), 0u);
  CALL(Profapi(), ProfEnableMstxFunc)(kMstxMspti);
  mark("seen", nullptr);
  domain_mark(domain, "load", nullptr);
  EXPECT_EQ(start("range", nullptr), 42u);
  CALL(Profapi(), ProfEnableMstxFunc)(kMstxMsprof);
  mark("unseen", nullptr);
  EXPECT_THAT(Seen(), ElementsAre("mspti seen", "mspti domain data", "mspti in domain load"));
}

}  // namespace
}  // namespace profd::sim::prof
