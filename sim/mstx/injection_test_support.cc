// An injection as a test's MSTX_INJECTION_PATH names it: writes what it is called with to stdout.
#include <cstdio>

#include "sim/profapi/profapi.h"

namespace profd::sim::prof {
namespace {

void Say(const char* what, const char* message) {
  std::printf("%s %s\n", what, message);
  std::fflush(stdout);
}
void Mark(const char* message, void*) { Say("mark", message); }
uint64_t Start(const char* message, void*) {
  Say("start", message);
  return 17;
}
void End(uint64_t id) { Say("end", id == 17 ? "17" : "of another"); }
void* Create(const char* name) {
  Say("domain", name);
  return const_cast<char*>("handle");
}
void DomainMark(void* domain, const char* message, void*) {
  Say(static_cast<const char*>(domain), message);
}

template <class Fn>
void Store(MstxFunction** table, unsigned size, unsigned id, Fn* function) {
  if (id < size) *table[id] = reinterpret_cast<MstxFunction>(function);
}

}  // namespace
}  // namespace profd::sim::prof

namespace prof = profd::sim::prof;

PROFD_SIM_EXPORT int InitInjectionMstx(prof::MstxGetTable get_table) {
  prof::MstxFunction** table = nullptr;
  unsigned size = 0;
  prof::Say("init", "once for each object");
  if (get_table(prof::kMstxCore, &table, &size) != 0) return 1;
  prof::Store(table, size, 1, &prof::Mark);
  prof::Store(table, size, 2, &prof::Start);
  prof::Store(table, size, 3, &prof::End);
  if (get_table(prof::kMstxDomain, &table, &size) != 0) return 1;
  prof::Store(table, size, 1, &prof::Create);
  prof::Store(table, size, 3, &prof::DomainMark);
  return 0;
}
