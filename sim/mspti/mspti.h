// libmspti.so as its clients see it. Written from the vendor's public headers, and on purpose apart
// from what profd itself knows of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/profapi/profapi.h"

namespace profd::sim::mspti {

enum Result : int {
  kOk = 0,
  kInvalidParameter = 1,
  kMultipleSubscribers = 2,
  kEndOfBuffer = 3,
  kQueueEmpty = 5,
  kNotPreloaded = 6,
  kInner = 999,
};
enum Kind : uint32_t {
  kMarker = 1,
  kKernel = 2,
  kApi = 3,
  kHccl = 4,
  kMemory = 5,
  kMemset = 6,
  kMemcpy = 7,
  kExternalCorrelation = 8,
  kCommunication = 9,
  kAclApi = 10,
  kNodeApi = 11,
  kRuntimeApi = 12,
  kNextKind = 13,  // of the profile `next` only
  kKinds = 14,
};
enum Domain : int { kRuntimeDomain = 1, kHcclDomain = 2, kDomains = 3 };
inline constexpr uint32_t kCallbackIds = 64;
inline constexpr uint32_t kExternalKinds = 5;  // valid: 1..4

using Request = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using Complete = void (*)(uint8_t* buffer, size_t size, size_t valid);
using Callback = void (*)(void* user, int domain, uint32_t id, const void* data);
struct Subscriber;

// Packed and aligned to 8: the vendor's macro. Made on the stack and copied to where they go.
#define PROFD_SIM_RECORD struct __attribute__((packed, aligned(8)))
PROFD_SIM_RECORD MarkerRecord {
  uint32_t kind, flag, source;
  uint64_t time, id;
  uint32_t object[2];  // process and thread, or device and stream
  const char *name, *domain;
};
PROFD_SIM_RECORD KernelRecord {
  uint32_t kind;
  uint64_t start, end;
  uint32_t device, stream;
  uint64_t correlation;
  const char *type, *name;
};
PROFD_SIM_RECORD ApiRecord {
  uint32_t kind;
  uint64_t start, end;
  uint32_t process, thread;
  uint64_t correlation;
  const char* name;
};
PROFD_SIM_RECORD HcclRecord {
  uint32_t kind;
  uint64_t start, end;
  uint32_t device, stream;
  double bandwidth;
  const char *name, *group;
};
PROFD_SIM_RECORD MemoryRecord {
  uint32_t kind, operation, memory_kind;
  uint64_t correlation, start, end, address, bytes;
  uint32_t process, device, stream;
};
PROFD_SIM_RECORD MemsetRecord {
  uint32_t kind, value;
  uint64_t bytes, start, end;
  uint32_t device, stream;
  uint64_t correlation;
  uint8_t is_async;
};
PROFD_SIM_RECORD MemcpyRecord {
  uint32_t kind, copy_kind;
  uint64_t bytes, start, end;
  uint32_t device, stream;
  uint64_t correlation;
  uint8_t is_async;
};
PROFD_SIM_RECORD ExternalRecord {
  uint32_t kind, external_kind;
  uint64_t id, correlation;
};
PROFD_SIM_RECORD CommunicationRecord {
  uint32_t kind, data_type;
  uint64_t count;
  uint32_t device, stream;
  uint64_t start, end;
  const char *algorithm, *name, *group;
  uint64_t correlation;
};
PROFD_SIM_RECORD NextRecord {
  uint32_t kind;
  uint8_t unknown[36];
};
static_assert(sizeof(MarkerRecord) == 56 && sizeof(KernelRecord) == 56 && sizeof(ApiRecord) == 48);
static_assert(sizeof(HcclRecord) == 56);
static_assert(sizeof(MemoryRecord) == 64 && sizeof(MemsetRecord) == 56);
static_assert(sizeof(MemcpyRecord) == 56 && sizeof(ExternalRecord) == 24);
static_assert(sizeof(CommunicationRecord) == 72 && sizeof(NextRecord) == 40);

struct CallbackData {
  uint32_t site;  // 0 enter, 1 exit
  const char* function;
  uint64_t unset[7];
};
static_assert(sizeof(CallbackData) == 72);

// Of the stand-in only.
struct Counts {
  uint64_t recorded[kKinds];  // copied into a buffer
  uint64_t declined;          // records: the request had no buffer
  uint64_t did_not_fit;       // records
  uint64_t threads;           // made to hand over
  uint64_t longest_request_ns;
  uint64_t host_reports;  // of libprofapi
};

}  // namespace profd::sim::mspti

using profd::sim::mspti::Subscriber;
PROFD_SIM_EXPORT int msptiSubscribe(Subscriber** subscriber, profd::sim::mspti::Callback callback,
                                    void* user);
PROFD_SIM_EXPORT int msptiUnsubscribe(Subscriber* subscriber);
PROFD_SIM_EXPORT int msptiEnableCallback(uint32_t enable, Subscriber* subscriber, int domain,
                                         uint32_t id);
PROFD_SIM_EXPORT int msptiEnableDomain(uint32_t enable, Subscriber* subscriber, int domain);
PROFD_SIM_EXPORT int msptiActivityRegisterCallbacks(profd::sim::mspti::Request request,
                                                    profd::sim::mspti::Complete complete);
PROFD_SIM_EXPORT int msptiActivityEnable(uint32_t kind);
PROFD_SIM_EXPORT int msptiActivityDisable(uint32_t kind);
PROFD_SIM_EXPORT bool msptiActivityIsEnabled(uint32_t kind);
PROFD_SIM_EXPORT int msptiActivityEnableMarkerDomain(const char* name);
PROFD_SIM_EXPORT int msptiActivityDisableMarkerDomain(const char* name);
PROFD_SIM_EXPORT int msptiActivityGetNextRecord(uint8_t* buffer, size_t valid, uint8_t** record);
PROFD_SIM_EXPORT int msptiActivityFlushAll(uint32_t flag);
PROFD_SIM_EXPORT int msptiActivityFlushPeriod(uint32_t milliseconds);
PROFD_SIM_EXPORT int msptiActivityPushExternalCorrelationId(int kind, uint64_t id);
PROFD_SIM_EXPORT int msptiActivityPopExternalCorrelationId(int kind, uint64_t* last);
PROFD_SIM_EXPORT void simMsptiControl(const char* settings);
PROFD_SIM_EXPORT void simMsptiCounts(profd::sim::mspti::Counts* counts);
