// The functions of libascendcl that libmspti takes over where it was preloaded: callbacks around
// the real ones, and records of memory with the times of the host's call.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "sim/mspti/buffers.h"
#include "sim/mspti/collectives.h"
#include "sim/mspti/join.h"
#include "sim/mspti/mspti.h"
#include "sim/mspti/real_time.h"
#include "sim/mspti/session.h"
#include "sim/mspti/vendor.h"

namespace profd::sim::mspti {
namespace {

enum CallbackId : uint32_t {
  kDeviceSet = 1,
  kDeviceReset = 2,
  kStreamCreated = 7,
  kStreamSynchronized = 9,
  kLaunch = 10,
  kMalloc = 15,
  kFree = 16,
  kMemcpyCall = 22,
  kMemcpyAsyncCall = 24,
  kMemsetCall = 27,
};
constexpr uint32_t kNoStream = 0xFFFFFFFF;

template <class Real>
int Around(uint32_t id, const char* function, Real real) {
  Session::The().Call(kRuntimeDomain, id, 0, function);
  const int result = real();
  Session::The().Call(kRuntimeDomain, id, 1, function);
  return result;
}

uint32_t CurrentDevice() {
  int32_t device = -1;
  return ASCENDCL(aclrtGetDevice)(&device) == 0 ? static_cast<uint32_t>(device) : 0xFFFFFFFF;
}

template <class Record>
void Finish(Record& record, uint32_t kind, uint64_t start) {
  if (!Join::The().enabled(kind)) return;
  record.kind = kind;
  record.start = start;
  record.end = RealTime::The().Now();
  record.device = CurrentDevice();
  record.stream = kNoStream;
  record.correlation = Join::The().CorrelationOf(static_cast<uint32_t>(::syscall(SYS_gettid)));
  Buffers::The().Put(record, {});
}

void PutMemory(uint32_t operation, void* pointer, size_t bytes, uint64_t start) {
  MemoryRecord record{};
  record.operation = operation;
  record.memory_kind = 1;
  record.address = reinterpret_cast<uint64_t>(pointer);
  record.bytes = bytes;
  record.process = static_cast<uint32_t>(::getpid());
  Finish(record, kMemory, start);
}

void PutCopy(int kind, size_t bytes, bool is_async, uint64_t start) {
  MemcpyRecord record{};
  record.copy_kind = static_cast<uint32_t>(kind) + 1;  // ACL counts from 0
  record.bytes = bytes;
  record.is_async = is_async;
  Finish(record, kMemcpy, start);
}

}  // namespace
}  // namespace profd::sim::mspti

namespace mspti = profd::sim::mspti;
using mspti::Around;
using mspti::RealTime;

PROFD_SIM_EXPORT int aclrtSetDevice(int32_t device) {
  return Around(mspti::kDeviceSet, __func__, [&] { return ASCENDCL(aclrtSetDevice)(device); });
}
PROFD_SIM_EXPORT int aclrtResetDevice(int32_t device) {
  return Around(mspti::kDeviceReset, __func__, [&] { return ASCENDCL(aclrtResetDevice)(device); });
}
PROFD_SIM_EXPORT int aclrtCreateStream(void** stream) {
  return Around(mspti::kStreamCreated, __func__,
                [&] { return ASCENDCL(aclrtCreateStream)(stream); });
}
PROFD_SIM_EXPORT int aclrtSynchronizeStream(void* stream) {
  return Around(mspti::kStreamSynchronized, __func__,
                [&] { return ASCENDCL(aclrtSynchronizeStream)(stream); });
}
PROFD_SIM_EXPORT int simAclLaunch(const profd::sim::acl::Kernel* kernel, void* stream) {
  return Around(mspti::kLaunch, "aclrtLaunchKernel",
                [&] { return ASCENDCL(simAclLaunch)(kernel, stream); });
}
PROFD_SIM_EXPORT int simAclCommunicate(const profd::sim::acl::Communication* communication, void* group,
                                      void* stream) {
  if (communication == nullptr) return ASCENDCL(simAclCommunicate)(communication, group, stream);
  const uint32_t id = mspti::CollectiveCallback(communication->function);
  mspti::Session::The().Call(mspti::kHcclDomain, id, 0, communication->function);
  const uint64_t mark = mspti::Collectives::The().Begin(*communication, group, stream);
  const int result = ASCENDCL(simAclCommunicate)(communication, group, stream);
  mspti::Collectives::The().End(mark, stream);
  mspti::Session::The().Call(mspti::kHcclDomain, id, 1, communication->function);
  return result;
}
PROFD_SIM_EXPORT int aclrtMalloc(void** pointer, size_t size, int policy) {
  const uint64_t start = RealTime::The().Now();
  const int result = Around(mspti::kMalloc, __func__,
                            [&] { return ASCENDCL(aclrtMalloc)(pointer, size, policy); });
  if (result == 0) mspti::PutMemory(0, *pointer, size, start);
  return result;
}
PROFD_SIM_EXPORT int aclrtFree(void* pointer) {
  const uint64_t start = RealTime::The().Now();
  const int result = Around(mspti::kFree, __func__, [&] { return ASCENDCL(aclrtFree)(pointer); });
  mspti::PutMemory(1, pointer, 0, start);
  return result;
}
PROFD_SIM_EXPORT int aclrtMemcpy(void* to, size_t to_size, const void* from, size_t size,
                                 int kind) {
  const uint64_t start = RealTime::The().Now();
  const int result = Around(mspti::kMemcpyCall, __func__,
                            [&] { return ASCENDCL(aclrtMemcpy)(to, to_size, from, size, kind); });
  mspti::PutCopy(kind, size, false, start);
  return result;
}
PROFD_SIM_EXPORT int aclrtMemcpyAsync(void* to, size_t to_size, const void* from, size_t size,
                                      int kind, void* stream) {
  const uint64_t start = RealTime::The().Now();
  const int result = Around(mspti::kMemcpyAsyncCall, __func__, [&] {
    return ASCENDCL(aclrtMemcpyAsync)(to, to_size, from, size, kind, stream);
  });
  mspti::PutCopy(kind, size, true, start);
  return result;
}
PROFD_SIM_EXPORT int aclrtMemset(void* pointer, size_t size, int32_t value, size_t count) {
  const uint64_t start = RealTime::The().Now();
  const int result = Around(mspti::kMemsetCall, __func__,
                            [&] { return ASCENDCL(aclrtMemset)(pointer, size, value, count); });
  mspti::MemsetRecord record{};
  record.value = static_cast<uint32_t>(value);
  record.bytes = count;
  mspti::Finish(record, mspti::kMemset, start);
  return result;
}
