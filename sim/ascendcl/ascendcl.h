// libascendcl.so as the simulated application calls it: the vendor's runtime functions, and
// functions of the stand-in (sim...) that say what a kernel of the vendor's compilers would have
// said itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/profapi/profapi.h"

namespace profd::sim::acl {

enum Error : int {
  kSuccess = 0,
  kInvalidParameter = 100000,
  kModelNotLoaded = 145000,
  kNoContext = 107002,    // the calling thread has set no device
  kSyncTimeout = 507046,  // what was waited for did not end
};
enum CopyKind : int { kHostToHost = 0, kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3 };

struct Tensor {   // 44 bytes, as TensorInfo has them
  uint32_t type;  // 0 input, 1 output
  uint32_t format;
  uint32_t data_type;
  uint32_t shape[8];
};
inline constexpr uint32_t kMaxTensors = 5;  // of one report

struct Kernel {
  const char* name;              // of the operator, as the host reports it
  const char* type;              // MatMulV2
  const char* function = "";     // of ACL around it (aclnnMatmul); "": none
  const char* kernel_name = "";  // "": as name
  uint32_t task_type = prof::kTaskAicore;
  uint32_t block_dim = 1;
  int64_t duration_ns = 0;
  const Tensor* tensors = nullptr;
  uint32_t tensor_count = 0;
};

struct Communication {
  const char* name;  // hcom_allReduce__123_0
  const char* type;  // hcom_allReduce_
  const char* function = "HcclAllReduce";
  const char* algorithm = "RING";
  uint8_t data_type = 4;
  uint64_t count = 0;
  uint64_t bytes = 0;
  int64_t duration_ns = 0;  // once all have arrived
};

// What the device writes about a task. Of a begin and an end, tag is the kind of its queue's entry.
enum QueueEntry : uint32_t { kEntryAicore = 0, kEntryAicpu = 1, kEntryAivec = 2, kEntryNotifyRecord = 6, kEntryNotifyWait = 7, kEntrySdma = 11 };
enum LogKind : uint32_t { kTaskBegin = 0, kTaskEnd = 1, kTaskTrace = 2 };
struct LogRecord {
  uint32_t kind;
  uint32_t stream;
  uint32_t task;
  uint32_t tag;     // kTaskTrace; else QueueEntry
  int64_t time_ns;  // CLOCK_MONOTONIC_RAW
  uint64_t value;   // kTaskTrace
  uint64_t model;   // kTaskTrace; kNoModel: of no graph
};
inline constexpr int kLogBusy = -10;
inline constexpr uint32_t kNoModel = 0xFFFFFFFF;

// Tags of a task that only reports when the device reached it: the parts of an iteration.
enum TraceTag : uint16_t {
  kModelStart = 0,
  kModelEnd = 1,
  kForwardStart = 2,
  kBackwardEnd = 3,
  kIterationEnd = 4,
  kReduceStart = 10000,  // + 2 k; its end is the next one
  kGetNextStart = 20000,
  kGetNextEnd = 20001,
};

}  // namespace profd::sim::acl

PROFD_SIM_EXPORT int aclInit(const char* config_path);
PROFD_SIM_EXPORT int aclFinalize();
PROFD_SIM_EXPORT int aclrtSetDevice(int32_t device);
PROFD_SIM_EXPORT int aclrtResetDevice(int32_t device);
PROFD_SIM_EXPORT int aclrtGetDevice(int32_t* device);
PROFD_SIM_EXPORT int aclrtGetDeviceCount(uint32_t* count);
PROFD_SIM_EXPORT int aclrtCreateStream(void** stream);
PROFD_SIM_EXPORT int aclrtSynchronizeStream(void* stream);
PROFD_SIM_EXPORT int aclrtSynchronizeDevice();
PROFD_SIM_EXPORT int aclrtCreateEvent(void** event);
PROFD_SIM_EXPORT int aclrtRecordEvent(void* event, void* stream);
PROFD_SIM_EXPORT int aclrtStreamWaitEvent(void* stream, void* event);
PROFD_SIM_EXPORT int aclrtDestroyEvent(void* event);
PROFD_SIM_EXPORT int aclrtMalloc(void** pointer, size_t size, int policy);
PROFD_SIM_EXPORT int aclrtFree(void* pointer);
PROFD_SIM_EXPORT int aclrtMemcpy(void* to, size_t to_size, const void* from, size_t size, int kind);
PROFD_SIM_EXPORT int aclrtMemcpyAsync(void* to, size_t to_size, const void* from, size_t size,
                                      int kind, void* stream);
PROFD_SIM_EXPORT int aclrtMemset(void* pointer, size_t size, int32_t value, size_t count);

PROFD_SIM_EXPORT int simAclLaunch(const profd::sim::acl::Kernel* kernel, void* stream);
// A graph is loaded once: what this thread launches between the two belongs to it, and runs each time
// it is executed, in `count` durations, one for each kernel and communication in their order.
PROFD_SIM_EXPORT int simAclModelLoad(uint32_t model, const char* name);
PROFD_SIM_EXPORT int simAclModelLoaded();
PROFD_SIM_EXPORT int simAclModelExecute(uint32_t model, uint32_t iteration,
                                        const int64_t* durations, size_t count);
PROFD_SIM_EXPORT int simAclTrace(uint64_t value, uint16_t tag, void* stream);
// A group of processes or threads that communicate; they meet in the file. Lives for ever.
PROFD_SIM_EXPORT void* simAclGroup(const char* name, const char* path, uint32_t members,
                                   uint32_t rank);
PROFD_SIM_EXPORT const char* simAclGroupName(const void* group);
PROFD_SIM_EXPORT int simAclCommunicate(const profd::sim::acl::Communication* communication,
                                       void* group, void* stream);
// The log of a device has one reader; it begins to be written when it is opened.
PROFD_SIM_EXPORT int simAclOpenLog(uint32_t device);
PROFD_SIM_EXPORT int simAclCloseLog(uint32_t device);
PROFD_SIM_EXPORT size_t simAclReadLog(uint32_t device, profd::sim::acl::LogRecord* records,
                                      size_t most);
// Everything that runs on a device, and what the application adds, as lines of JSON.
PROFD_SIM_EXPORT int simAclTruth(const char* path);
PROFD_SIM_EXPORT void simAclTruthLine(const char* json);
