// libmsprofiler.so as its clients see it: numbers and functions. Written from the vendor's public headers, and on
// purpose apart from what profd itself knows of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/profapi/profapi.h"

namespace profd::sim::aclprof {

enum Error : int {
  kOk = 0,
  kInvalidParam = 100000,
  kUninitialized = 100001,
  kRepeatInitialize = 100002,
  kInvalidConfig = 100010,
  kAlreadyRun = 100042,
  kNotRun = 100043,
  kApiConflict = 148047,
  kUnsupported = 200006,
  kFailure = 500005,
};

// dataTypeConfig.
inline constexpr uint64_t kAclApi = 0x1, kTaskTime = 0x2, kAicoreMetrics = 0x4, kAicpu = 0x8, kL2 = 0x10, kHccl = 0x20,
                          kTrainingTrace = 0x40, kMsproftx = 0x80, kRuntimeApi = 0x100, kTaskTimeL0 = 0x800,
                          kTaskTimeL2 = 0x2000, kOpAttr = 0x4000, kApiStats = 0x400000000;
enum Metrics : int { kArithmetic = 0, kPipe = 1, kMemory = 2, kMemoryL0 = 3, kResource = 4, kMemoryUb = 5, kL2Cache = 6,
                     kPipeExecute = 7, kMemoryAccess = 8, kNoMetrics = 0xFF };
enum ConfigType : int { kStorageLimit = 1, kLastConfigType = 16 };

struct Config;
struct SubscribeConfig;

}  // namespace profd::sim::aclprof

PROFD_SIM_EXPORT int aclprofInit(const char* path, size_t length);
PROFD_SIM_EXPORT int aclprofFinalize();
PROFD_SIM_EXPORT profd::sim::aclprof::Config* aclprofCreateConfig(uint32_t* devices, uint32_t count, int metrics,
                                                                  const void* events, uint64_t bits);
PROFD_SIM_EXPORT int aclprofDestroyConfig(const profd::sim::aclprof::Config* config);
PROFD_SIM_EXPORT int aclprofStart(const profd::sim::aclprof::Config* config);
PROFD_SIM_EXPORT int aclprofStop(const profd::sim::aclprof::Config* config);
// Of what may be missing, by version.
PROFD_SIM_EXPORT int aclprofWarmup(const profd::sim::aclprof::Config* config);
PROFD_SIM_EXPORT int aclprofSetConfig(int type, const char* value, size_t length);
PROFD_SIM_EXPORT int aclprofGetSupportedFeatures(size_t* size, void** features);
PROFD_SIM_EXPORT int aclprofModelSubscribe(uint32_t model, const profd::sim::aclprof::SubscribeConfig* config);
PROFD_SIM_EXPORT int aclprofModelUnSubscribe(uint32_t model);
// The settings of this library, while it runs.
PROFD_SIM_EXPORT void simMsprofilerControl(const char* settings);
