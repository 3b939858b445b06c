// mstx as an object of the application has it: functions of the vendor's header that go through a
// hidden context of the object's own. The first call of any of them looks for an injection, once
// and for all: MSTX_INJECTION_PATH's, or whatever InitInjectionMstx the process shows to everybody.
#pragma once

#include <dlfcn.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "sim/profapi/profapi.h"

#define PROFD_SIM_HIDDEN __attribute__((visibility("hidden")))

namespace profd::sim::mstx {

inline constexpr unsigned kSizes[prof::kMstxModules] = {0, 5, 6, 5};  // ids + 1
inline constexpr unsigned kMostFunctions = 6;
// Of the stand-in only: so many of each table are admitted to be there.
inline constexpr char kSizeEnv[] = "PROFD_SIM_MSTX_TABLE";

struct PROFD_SIM_HIDDEN Context {
  enum State : int { kUntouched, kStarting, kReady };
  std::atomic<int> state{kUntouched};
  prof::MstxFunction functions[prof::kMstxModules][kMostFunctions] = {};
  prof::MstxFunction* tables[prof::kMstxModules][kMostFunctions] = {};
};
// One in each object that includes this file.
PROFD_SIM_HIDDEN inline Context g_context;

PROFD_SIM_HIDDEN inline int GetTable(int module, prof::MstxFunction*** table, unsigned* size) {
  if (module < prof::kMstxCore || module >= prof::kMstxModules) return 1;
  if (table == nullptr || size == nullptr) return 1;
  const char* const admitted = std::getenv(kSizeEnv);
  *size = admitted == nullptr ? kSizes[module]
                              : static_cast<unsigned>(std::strtoul(admitted, nullptr, 10));
  *table = g_context.tables[module];
  return 0;
}

// Until an injection has replaced it: what is still there afterwards does nothing.
PROFD_SIM_HIDDEN inline void Trampoline() {}

PROFD_SIM_HIDDEN inline bool Inject() {
  const char* const path = std::getenv("MSTX_INJECTION_PATH");
  void* const handle = path == nullptr ? nullptr : ::dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  // A path that cannot be opened is as good as none.
  void* const init = ::dlsym(handle == nullptr ? RTLD_DEFAULT : handle, "InitInjectionMstx");
  return init != nullptr && reinterpret_cast<prof::MstxInit>(init)(&GetTable) == 0;
}

PROFD_SIM_HIDDEN inline void Initialise() {
  Context& context = g_context;
  int untouched = Context::kUntouched;
  if (context.state.compare_exchange_strong(untouched, Context::kStarting)) {
    for (int module = prof::kMstxCore; module < prof::kMstxModules; ++module) {
      for (unsigned id = 0; id < kMostFunctions; ++id) {
        context.functions[module][id] = &Trampoline;
        context.tables[module][id] = &context.functions[module][id];
      }
    }
    const bool injected = Inject();
    for (auto& module : context.functions) {
      for (prof::MstxFunction& function : module) {
        if (!injected || function == &Trampoline) function = nullptr;
      }
    }
    context.state.store(Context::kReady, std::memory_order_release);
  }
  while (context.state.load(std::memory_order_acquire) != Context::kReady) ::sched_yield();
}

template <class Result, class... Arguments>
PROFD_SIM_HIDDEN inline Result Call(prof::MstxModule module, unsigned id, Arguments... arguments) {
  Initialise();
  const prof::MstxFunction function = g_context.functions[module][id];
  if (function == nullptr) return Result();
  return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
}

PROFD_SIM_HIDDEN inline void Mark(const char* message, void* stream) {
  Call<void>(prof::kMstxCore, 1, message, stream);
}
PROFD_SIM_HIDDEN inline uint64_t RangeStart(const char* message, void* stream) {
  return Call<uint64_t>(prof::kMstxCore, 2, message, stream);
}
PROFD_SIM_HIDDEN inline void RangeEnd(uint64_t id) { Call<void>(prof::kMstxCore, 3, id); }
PROFD_SIM_HIDDEN inline int GetToolId(uint64_t* id) { return Call<int>(prof::kMstxCore, 4, id); }
PROFD_SIM_HIDDEN inline void* DomainCreate(const char* name) {
  return Call<void*>(prof::kMstxDomain, 1, name);
}
PROFD_SIM_HIDDEN inline void DomainDestroy(void* domain) {
  Call<void>(prof::kMstxDomain, 2, domain);
}
PROFD_SIM_HIDDEN inline void DomainMark(void* domain, const char* message, void* stream) {
  Call<void>(prof::kMstxDomain, 3, domain, message, stream);
}
PROFD_SIM_HIDDEN inline uint64_t DomainRangeStart(void* domain, const char* message, void* stream) {
  return Call<uint64_t>(prof::kMstxDomain, 4, domain, message, stream);
}
PROFD_SIM_HIDDEN inline void DomainRangeEnd(void* domain, uint64_t id) {
  Call<void>(prof::kMstxDomain, 5, domain, id);
}

}  // namespace profd::sim::mstx
