// libprofapi.so as its clients see it: layouts, numbers, functions. Written from the vendor's
// public headers, and on purpose apart from what profd itself knows of them.
#pragma once

#include <cstddef>
#include <cstdint>

#define PROFD_SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace profd::sim::prof {

inline constexpr uint16_t kMagic = 0x5A5A;

enum Level : uint16_t {
  kAicLevel = 3000,
  kRuntimeLevel = 5000,
  kHcclLevel = 5500,
  kNodeLevel = 10000,
  kModelLevel = 15000,
  kAclLevel = 20000,
  kTxLevel = 20500,
};

// Types of the runtime level: 1000 + number of the API; 0..800 are the names of task types.
enum RuntimeType : uint32_t {
  kTaskAicore = 0,
  kTaskAicpu = 1,
  kTaskEventRecord = 2,
  kTaskMemcpyAsync = 5,
  kTaskProfilerTraceEx = 26,
  kTaskAivec = 66,
  kTaskMixAic = 67,
  kTaskMixAiv = 68,
  kTaskNotifyWait = 69,
  kTaskSdma = 70,
  kTaskNotifyRecord = 71,
  kTaskFlip = 98,
  kTrackType = 802,
  kStreamExpandType = 804,
  kApiKernelLaunch = 1003,
  kApiStreamSynchronize = 1009,
  kApiMemcpyAsync = 1103,
};
enum NodeType : uint32_t {
  kNodeBasicType = 0,
  kNodeTensorType = 1,
  kNodeLaunchType = 5,
  kNodeHcclOpType = 10,
};
enum ModelType : uint32_t {
  kModelGraphIdMap = 0,  // additional
  kModelExecute = 1,     // events: begin and end
  kModelLoad = 2,
};
inline constexpr uint32_t kHcclInfoType = 1;         // of the communication's level, additional
inline constexpr uint32_t kHcclMasterType = 0x10001;  // of the communication's level, API
inline constexpr uint32_t kAclOpType = 0x010000;
inline constexpr uint32_t kAclModelType = 0x020000;
inline constexpr uint32_t kAclRuntimeType = 0x030000;
inline constexpr uint32_t kAclHcclType = 0x070000;

struct Api {
  uint16_t magic = kMagic;
  uint16_t level = 0;
  uint32_t type = 0;
  uint32_t thread = 0;
  uint32_t reserve = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t item = 0;
};
static_assert(sizeof(Api) == 40);

struct Event {
  uint16_t magic = kMagic;
  uint16_t level = 0;
  uint32_t type = 0;
  uint32_t thread = 0;
  uint32_t request = 0;
  uint64_t time = 0;
  uint64_t flag = UINT64_MAX;
  uint64_t item = 0;
};
static_assert(sizeof(Event) == 40);

struct Compact {
  uint16_t magic = kMagic;
  uint16_t level = 0;
  uint32_t type = 0;
  uint32_t thread = 0;
  uint32_t data_size = 0;
  uint64_t time = 0;
  uint8_t data[40] = {};
};
static_assert(sizeof(Compact) == 64 && offsetof(Compact, data) == 24);

struct Additional {
  uint16_t magic = kMagic;
  uint16_t level = 0;
  uint32_t type = 0;
  uint32_t thread = 0;
  uint32_t data_size = 0;
  uint64_t time = 0;
  uint8_t data[232] = {};
};
static_assert(sizeof(Additional) == 256 && offsetof(Additional, data) == 24);

struct RuntimeTrack {
  uint16_t device = 0;
  uint16_t stream = 0;
  uint32_t task = 0;  // low half the id, high half how often it has wrapped
  uint64_t task_type = 0;
  uint64_t kernel_name = 0;  // hash
  uint8_t extension[16] = {};
};
static_assert(sizeof(RuntimeTrack) == 40);

struct __attribute__((packed)) NodeBasicInfo {
  uint64_t name = 0;  // hashes
  uint32_t task_type = 0;
  uint64_t type = 0;
  uint32_t block_dim = 0;
  uint32_t flag = 0;
};
static_assert(sizeof(NodeBasicInfo) == 28);

struct __attribute__((packed)) HcclOpInfo {
  uint8_t relay = 0;
  uint8_t data_type = 0;
  uint64_t algorithm = 0;  // hash
  uint64_t count = 0;
  uint64_t group = 0;  // hash
};
static_assert(sizeof(HcclOpInfo) == 26);

struct __attribute__((packed)) HcclInfo {
  uint64_t item = 0;  // hashes
  uint64_t tag = 0;
  uint64_t group = 0;
  uint32_t rank = 0, remote_rank = 0, ranks = 0, work_flow = 0, plane = 0;
  uint32_t context = 0xFFFFFFFF;
  uint64_t notify = UINT64_MAX;
  uint32_t stage = 0, role = 0;
  double estimated_us = 0;
  uint64_t from = 0, to = 0, bytes = 0;
  uint32_t operation = 0, data_type = 0, link = 0, transport = 0, rdma = 0xFFFFFFFF, reserved = 0;
};
static_assert(sizeof(HcclInfo) == 120);

struct SetDevice {
  uint32_t chip = 0;
  uint32_t device = 0;
  bool is_open = false;
};
static_assert(sizeof(SetDevice) == 12);

enum CommandType : uint32_t { kInit = 0, kStart = 1, kStop = 2, kFinalize = 3 };
struct Command {
  uint64_t switches = 0;
  uint64_t switches_high = 0;
  uint32_t device_count = 0;
  uint32_t devices[64] = {};
  uint32_t model = 0xFFFFFFFF;
  uint32_t type = kInit;
  uint32_t cache_flag = 0;
  uint8_t parameters[5132] = {};
  uint32_t padding = 0;
};
static_assert(sizeof(Command) == 5424 && offsetof(Command, model) == 276);
static_assert(offsetof(Command, type) == 280 && offsetof(Command, parameters) == 288);

// Switches of a command.
inline constexpr uint64_t kSwitchAclApi = 0x1;
inline constexpr uint64_t kSwitchHccl = 0x20;
inline constexpr uint64_t kSwitchRuntimeApi = 0x100;
inline constexpr uint64_t kSwitchTaskTimeL0 = 0x800;
inline constexpr uint64_t kSwitchTaskTrack = 0x4000000;
inline constexpr uint64_t kSwitchAicpuModel = uint64_t{1} << 62;

enum Module : uint32_t { kModuleHccl = 3, kModuleRuntime = 7, kModuleGe = 45, kModuleAcl = 48 };
inline constexpr uint32_t kControlSwitch = 1;  // type of a module's callback
using ModuleHandler = int32_t (*)(uint32_t type, void* data, uint32_t size);

enum SlotType : int32_t {
  kSlotCompact = 4,
  kSlotAdditional = 5,
  kSlotApi = 9,
  kSlotEvent = 10,
  kSlotTypeName = 11,
  kSlotHash = 12,
  kSlotHostFrequency = 13,
  kSlotDeviceState = 16,
  kSlotTypes = 17,
};
using ApiSlot = int32_t (*)(uint32_t aging, const Api*);
using EventSlot = int32_t (*)(uint32_t aging, const Event*);
using DataSlot = int32_t (*)(uint32_t aging, void* data, uint32_t size);
using TypeNameSlot = int32_t (*)(uint16_t level, uint32_t type, const char* name, size_t size);
using HashSlot = uint64_t (*)(const char* text, size_t size);
using DeviceStateSlot = int32_t (*)(void* set_device, uint32_t size);

// mstx: modules of a table of functions, and who receives the calls behind libprofapi.
enum MstxModule : int { kMstxCore = 1, kMstxDomain = 2, kMstxMemory = 3, kMstxModules = 4 };
enum MstxReceiver : uint64_t { kMstxMsprof = 1, kMstxMspti = 2 };
using MstxFunction = void (*)();
using MstxGetTable = int (*)(int module, MstxFunction*** table, unsigned* size);
using MstxInit = int (*)(MstxGetTable get_table);

// Of the stand-in only: libmsprofiler's way in, where the vendor's has a library of its own behind libprofapi. Reports
// come when no slot has been set for them, names, types and devices always. Calls may come on any thread.
struct Msprof {
  void (*api)(uint32_t aging, const Api& api);
  void (*event)(uint32_t aging, const Event& event);
  void (*compact)(uint32_t aging, const Compact& record);
  void (*additional)(uint32_t aging, const Additional& record);
  void (*type_name)(uint16_t level, uint32_t type, const char* name, size_t size);
  void (*name)(uint64_t id, const char* text, size_t size);
  void (*device)(const SetDevice& device);  // known ones are replayed
};

// Of the stand-in only: what was reported, and to whom it went.
enum Reported : unsigned { kApis, kEvents, kCompacts, kAdditionals, kReportedKinds };
struct Counts {
  uint64_t to_receiver[kReportedKinds];
  uint64_t to_msprof[kReportedKinds];  // no receiver had been set
};

}  // namespace profd::sim::prof

PROFD_SIM_EXPORT int32_t MsprofRegisterCallback(uint32_t module,
                                                profd::sim::prof::ModuleHandler handler);
PROFD_SIM_EXPORT int32_t MsprofRegisterProfileCallback(int32_t type, void* callback, uint32_t size);
PROFD_SIM_EXPORT int32_t MsprofReportApi(uint32_t aging, const profd::sim::prof::Api* api);
PROFD_SIM_EXPORT int32_t MsprofReportEvent(uint32_t aging, const profd::sim::prof::Event* event);
PROFD_SIM_EXPORT int32_t MsprofReportCompactInfo(uint32_t aging, void* data, uint32_t size);
PROFD_SIM_EXPORT int32_t MsprofReportAdditionalInfo(uint32_t aging, void* data, uint32_t size);
PROFD_SIM_EXPORT int32_t MsprofRegTypeInfo(uint16_t level, uint32_t type, const char* name);
PROFD_SIM_EXPORT int32_t MsprofRegDataFormat(uint16_t level, uint32_t type, const char* format);
PROFD_SIM_EXPORT uint64_t MsprofGetHashId(const char* text, size_t size);
PROFD_SIM_EXPORT uint64_t MsprofStr2Id(const char* text, size_t size);
PROFD_SIM_EXPORT char* MsprofId2Str(uint64_t id);
PROFD_SIM_EXPORT uint64_t MsprofSysCycleTime();
PROFD_SIM_EXPORT int32_t MsprofNotifySetDevice(uint32_t chip, uint32_t device, bool is_open);
PROFD_SIM_EXPORT int32_t profSetProfCommand(void* command, uint32_t size);
PROFD_SIM_EXPORT int InitInjectionMstx(profd::sim::prof::MstxGetTable get_table);
PROFD_SIM_EXPORT int ProfRegisterMstxFunc(profd::sim::prof::MstxInit init, uint64_t receiver);
PROFD_SIM_EXPORT int ProfEnableMstxFunc(uint64_t receiver);
PROFD_SIM_EXPORT void simProfapiSetMsprof(const profd::sim::prof::Msprof* msprof);
PROFD_SIM_EXPORT void simProfapiCounts(profd::sim::prof::Counts* counts);
