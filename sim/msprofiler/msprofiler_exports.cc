// The C symbols of libmsprofiler.so.
#include "sim/msprofiler/config.h"
#include "sim/msprofiler/msprofiler.h"
#include "sim/msprofiler/profiler.h"

namespace aclprof = profd::sim::aclprof;
using aclprof::Profiler;
using aclprof::Settings;

namespace {

// A result that was requested stands for the call, which then does nothing.
template <class Call>
int Answer(const char* function, Call call) {
  const int ordered = Settings::The().MayFail(function, aclprof::kOk);
  return ordered != aclprof::kOk ? ordered : call();
}

}  // namespace

PROFD_SIM_EXPORT int aclprofInit(const char* path, size_t length) {
  return Answer("aclprofInit", [&] { return Profiler::The().Init(path, length); });
}
PROFD_SIM_EXPORT int aclprofFinalize() {
  return Answer("aclprofFinalize", [] { return Profiler::The().Finalize(); });
}
PROFD_SIM_EXPORT aclprof::Config* aclprofCreateConfig(uint32_t* devices, uint32_t count, int metrics,
                                                      const void* events, uint64_t bits) {
  if (Settings::The().MayFail("aclprofCreateConfig", aclprof::kOk) != aclprof::kOk) return nullptr;
  return Profiler::The().CreateConfig(devices, count, metrics, events, bits);
}
PROFD_SIM_EXPORT int aclprofDestroyConfig(const aclprof::Config* config) {
  return Answer("aclprofDestroyConfig", [&] { return Profiler::The().DestroyConfig(config); });
}
PROFD_SIM_EXPORT int aclprofStart(const aclprof::Config* config) {
  return Answer("aclprofStart", [&] { return Profiler::The().Start(config); });
}
PROFD_SIM_EXPORT int aclprofStop(const aclprof::Config* config) {
  return Answer("aclprofStop", [&] { return Profiler::The().Stop(config); });
}
PROFD_SIM_EXPORT int aclprofModelSubscribe(uint32_t, const aclprof::SubscribeConfig*) { return aclprof::kApiConflict; }
PROFD_SIM_EXPORT int aclprofModelUnSubscribe(uint32_t) { return aclprof::kApiConflict; }
#ifndef PROFD_SIM_MSPROFILER_OLD
PROFD_SIM_EXPORT int aclprofWarmup(const aclprof::Config* config) {
  return config == nullptr ? aclprof::kInvalidParam : aclprof::kOk;
}
PROFD_SIM_EXPORT int aclprofSetConfig(int type, const char* value, size_t length) {
  return Answer("aclprofSetConfig", [&] { return Profiler::The().SetConfig(type, value, length); });
}
PROFD_SIM_EXPORT int aclprofGetSupportedFeatures(size_t* size, void** features) {
  if (size == nullptr || features == nullptr) return aclprof::kInvalidParam;
  *size = 0;
  *features = nullptr;
  return aclprof::kOk;
}
#endif
PROFD_SIM_EXPORT void simMsprofilerControl(const char* settings) { Settings::The().Control(settings); }
