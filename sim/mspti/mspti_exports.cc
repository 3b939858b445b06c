// The C symbols of libmspti.so. Never torn down but for the threads that hand buffers over.
#include <cstdio>
#include <iterator>

#include "sim/mspti/buffers.h"
#include "sim/mspti/config.h"
#include "sim/mspti/join.h"
#include "sim/mspti/markers.h"
#include "sim/mspti/mspti.h"
#include "sim/mspti/session.h"

namespace profd::sim::mspti {
namespace {

// dlopen is enough for all of this, as with the vendor's.
__attribute__((constructor)) void LoadNow() {
  std::puts("[mspti] libhccl.so: cannot open shared object file: No such file or directory");
  std::fflush(stdout);
  Config::The();
  Session::RegisterAtLoad();
}

struct AtExit {
  ~AtExit() { Buffers::The().JoinAll(); }
} g_at_exit;

void Enter(const char* function) {
  Config::HangInChild();
  if (Buffers::InRequest()) Misuse("a function was called in the request callback: a deadlock");
  Config::The().MayThrow(function);
}

// By kind, from 1 on: what the size of a record is. Of others it is unknown.
constexpr size_t kSizes[] = {0, 56, 56, 48, 56, 64, 56, 56, 24, 72, 48, 48, 48};
static_assert(std::size(kSizes) == kRuntimeApi + 1);

}  // namespace
}  // namespace profd::sim::mspti

namespace mspti = profd::sim::mspti;
using mspti::Buffers;
using mspti::Enter;
using mspti::Join;
using mspti::Markers;
using mspti::Session;

PROFD_SIM_EXPORT int msptiSubscribe(Subscriber** subscriber, mspti::Callback callback, void* user) {
  Enter(__func__);
  return Session::The().Subscribe(subscriber, callback, user);
}
PROFD_SIM_EXPORT int msptiUnsubscribe(Subscriber* subscriber) {
  Enter(__func__);
  return Session::The().Unsubscribe(subscriber);
}
PROFD_SIM_EXPORT int msptiEnableCallback(uint32_t enable, Subscriber*, int domain, uint32_t id) {
  Enter(__func__);
  return Session::The().EnableCallback(enable != 0, domain, id);
}
PROFD_SIM_EXPORT int msptiEnableDomain(uint32_t enable, Subscriber*, int domain) {
  Enter(__func__);
  return Session::The().EnableDomain(enable != 0, domain);
}
PROFD_SIM_EXPORT int msptiActivityRegisterCallbacks(mspti::Request request,
                                                    mspti::Complete complete) {
  Enter(__func__);
  return Buffers::The().Register(request, complete);
}
PROFD_SIM_EXPORT int msptiActivityEnable(uint32_t kind) {
  Enter(__func__);
  return Session::The().Enable(kind);
}
PROFD_SIM_EXPORT int msptiActivityDisable(uint32_t kind) {
  Enter(__func__);
  return Session::The().Disable(kind);
}
#ifndef PROFD_SIM_MSPTI_OLD
PROFD_SIM_EXPORT bool msptiActivityIsEnabled(uint32_t kind) {
  Enter(__func__);
  return kind < mspti::kKinds && Join::The().enabled(kind);
}
#endif
PROFD_SIM_EXPORT int msptiActivityEnableMarkerDomain(const char* name) {
  Enter(__func__);
  return Markers::The().SetDomain(name, true);
}
PROFD_SIM_EXPORT int msptiActivityDisableMarkerDomain(const char* name) {
  Enter(__func__);
  return Markers::The().SetDomain(name, false);
}
PROFD_SIM_EXPORT int msptiActivityGetNextRecord(uint8_t* buffer, size_t valid, uint8_t** record) {
  // Of the thread, whatever the buffer: who stops early begins the next one in its middle.
  static thread_local size_t t_position = 0;
  Enter(__func__);
  if (buffer == nullptr || record == nullptr) return mspti::kInvalidParameter;
  if (t_position >= valid) {
    t_position = 0;
    return mspti::kEndOfBuffer;
  }
  uint32_t kind = 0;
  __builtin_memcpy(&kind, buffer + t_position, sizeof kind);
  if (kind == 0 || kind >= std::size(mspti::kSizes)) return mspti::kInner;  // and the position stays
  *record = buffer + t_position;
  t_position += mspti::kSizes[kind];
  return mspti::kOk;
}
PROFD_SIM_EXPORT int msptiActivityFlushAll(uint32_t) {
  Enter(__func__);
  return Buffers::The().FlushAll();
}
PROFD_SIM_EXPORT int msptiActivityFlushPeriod(uint32_t milliseconds) {
  Enter(__func__);
  return Buffers::The().FlushPeriod(milliseconds);
}
PROFD_SIM_EXPORT int msptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
  Enter(__func__);
  return Join::The().PushExternal(kind, id);
}
PROFD_SIM_EXPORT int msptiActivityPopExternalCorrelationId(int kind, uint64_t* last) {
  Enter(__func__);
  return Join::The().PopExternal(kind, last);
}
PROFD_SIM_EXPORT void simMsptiControl(const char* settings) {
  mspti::Config::The().Control(settings);
}
PROFD_SIM_EXPORT void simMsptiCounts(mspti::Counts* counts) {
  *counts = {};
  Buffers::The().AddTo(counts);
  counts->host_reports = Join::The().host_reports();
}
