// The vendor's aclprof interface as far as profd uses it; libmsprofiler.so is opened at run time, so only types and
// numbers are here. Every fact is from the vendor's public headers (acl_prof.h, acl_base_rt.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace profd::lib::aclprof {

inline constexpr char kLibrary[] = "libmsprofiler.so";

enum Result : int {
  kInvalidParam = 100000,
  kRepeatInitialize = 100002,
  kProfAlreadyRun = 100042,
  kProfApiConflict = 148047,
  kFeatureUnsupported = 200006,
  kProfModulesUnsupported = 200007,
  kProfilingFailure = 500005,
};

// dataTypeConfig, as far as a session may ask for it: what the application's own runtime reports, and nothing that
// samples a channel of the device.
inline constexpr uint64_t kAllowedBits = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x80 | 0x100 | 0x200 | 0x800 |
                                         0x1000 | 0x2000 | 0x4000 | 0x8000 | 0x1000000 | 0x400000000 | 0x800000000;

// aclprofConfigType by its name; those that sample what the daemon samples itself are missing here on purpose.
struct ConfigName {
  std::string_view name;
  int type;
};
inline constexpr ConfigName kConfigNames[] = {{"storage_limit", 1}, {"optype", 14}, {"nts_metrics", 15}};
inline constexpr int kStorageLimit = 1;
inline constexpr uint64_t kLeastStorageLimitMb = 200;

struct Config;  // aclprofConfig
using InitFunction = int (*)(const char* path, size_t length);
using FinalizeFunction = int (*)();
using CreateConfigFunction = Config* (*)(uint32_t* devices, uint32_t count, int metrics, const void* events,
                                         uint64_t bits);
using ConfigFunction = int (*)(const Config* config);
using SetConfigFunction = int (*)(int type, const char* value, size_t length);
using DeviceCountFunction = int (*)(uint32_t* count);  // aclrtGetDeviceCount, of libascendcl.so

}  // namespace profd::lib::aclprof
