// The C symbols of libprofapi.so. Never torn down: reports may come while the process ends.

#include "base/clock.h"
#include "sim/profapi/bus.h"
#include "sim/profapi/mstx_switch.h"
#include "sim/profapi/profapi.h"
#include "sim/settings.h"

namespace profd::sim::prof {
namespace {

struct Library {
  Bus bus;
  SystemClock clock;
  bool host_frequency = false;

  Library() {
    ApplySettingsOfEnvironment("profapi", [this](std::string_view key, std::string_view value) {
      return key == "host_frequency" && ParseSetting(value, &host_frequency);
    });
  }
};

Library& TheLibrary() {
  static Library* const library = new Library;
  return *library;
}

std::string_view Text(const char* text, size_t size) {
  return text == nullptr ? std::string_view() : std::string_view(text, size);
}

// The functions that libprofapi writes into the table of each object that marks.
template <class Fn>
Fn Receiver(MstxModule module, size_t id) {
  return reinterpret_cast<Fn>(TheMstxSwitch().Current(module, id));
}
void Mark(const char* message, void* stream) {
  if (auto mark = Receiver<void (*)(const char*, void*)>(kMstxCore, 1)) mark(message, stream);
}
uint64_t RangeStart(const char* message, void* stream) {
  auto start = Receiver<uint64_t (*)(const char*, void*)>(kMstxCore, 2);
  return start ? start(message, stream) : 0;
}
void RangeEnd(uint64_t id) {
  if (auto end = Receiver<void (*)(uint64_t)>(kMstxCore, 3)) end(id);
}
void* DomainCreate(const char* name) { return TheMstxSwitch().CreateDomain(name); }
void DomainDestroy(void* domain) {
  void* const own = TheMstxSwitch().CurrentDomain(domain);
  if (auto destroy = Receiver<void (*)(void*)>(kMstxDomain, 2); destroy && own) destroy(own);
}
void DomainMark(void* domain, const char* message, void* stream) {
  void* const own = TheMstxSwitch().CurrentDomain(domain);
  auto mark = Receiver<void (*)(void*, const char*, void*)>(kMstxDomain, 3);
  if (mark && own) mark(own, message, stream);
}
uint64_t DomainRangeStart(void* domain, const char* message, void* stream) {
  void* const own = TheMstxSwitch().CurrentDomain(domain);
  auto start = Receiver<uint64_t (*)(void*, const char*, void*)>(kMstxDomain, 4);
  return start && own ? start(own, message, stream) : 0;
}
void DomainRangeEnd(void* domain, uint64_t id) {
  void* const own = TheMstxSwitch().CurrentDomain(domain);
  if (auto end = Receiver<void (*)(void*, uint64_t)>(kMstxDomain, 5); end && own) end(own, id);
}

template <class Fn>
void Store(MstxFunction** table, unsigned size, unsigned id, Fn function) {
  if (id < size) *table[id] = reinterpret_cast<MstxFunction>(function);
}

}  // namespace
}  // namespace profd::sim::prof

namespace prof = profd::sim::prof;
using prof::TheLibrary;

PROFD_SIM_EXPORT int32_t MsprofRegisterCallback(uint32_t module, prof::ModuleHandler handler) {
  return TheLibrary().bus.RegisterModule(module, handler);
}
PROFD_SIM_EXPORT int32_t MsprofRegisterProfileCallback(int32_t type, void* callback, uint32_t) {
  return TheLibrary().bus.SetSlot(type, callback);
}
PROFD_SIM_EXPORT int32_t MsprofReportApi(uint32_t aging, const prof::Api* api) {
  return TheLibrary().bus.ReportApi(aging, api);
}
PROFD_SIM_EXPORT int32_t MsprofReportEvent(uint32_t aging, const prof::Event* event) {
  return TheLibrary().bus.ReportEvent(aging, event);
}
PROFD_SIM_EXPORT int32_t MsprofReportCompactInfo(uint32_t aging, void* data, uint32_t size) {
  return TheLibrary().bus.ReportData(prof::kCompacts, aging, data, size);
}
PROFD_SIM_EXPORT int32_t MsprofReportAdditionalInfo(uint32_t aging, void* data, uint32_t size) {
  return TheLibrary().bus.ReportData(prof::kAdditionals, aging, data, size);
}
PROFD_SIM_EXPORT int32_t MsprofRegTypeInfo(uint16_t level, uint32_t type, const char* name) {
  if (name == nullptr) return -1;
  return TheLibrary().bus.RegisterType(level, type, name);
}
PROFD_SIM_EXPORT int32_t MsprofRegDataFormat(uint16_t, uint32_t, const char* format) {
  return format == nullptr ? -1 : 0;
}
PROFD_SIM_EXPORT uint64_t MsprofGetHashId(const char* text, size_t size) {
  return TheLibrary().bus.Hash(prof::Text(text, size));
}
PROFD_SIM_EXPORT uint64_t MsprofStr2Id(const char* text, size_t size) {
  return MsprofGetHashId(text, size);
}
PROFD_SIM_EXPORT char* MsprofId2Str(uint64_t id) {
  // The vendor's is one string for all threads; one for each here, so that tools stay usable.
  static thread_local std::string text;
  text = TheLibrary().bus.TextOf(id);
  return text.data();
}
PROFD_SIM_EXPORT uint64_t MsprofSysCycleTime() {
  const prof::Library& library = TheLibrary();
  return library.host_frequency ? library.clock.CpuCounter()
                                : static_cast<uint64_t>(library.clock.MonotonicRawNs());
}
PROFD_SIM_EXPORT int32_t MsprofNotifySetDevice(uint32_t chip, uint32_t device, bool is_open) {
  return TheLibrary().bus.NotifyDevice({chip, device, is_open});
}
PROFD_SIM_EXPORT int32_t profSetProfCommand(void* command, uint32_t size) {
  return TheLibrary().bus.SendCommand(command, size);
}
PROFD_SIM_EXPORT void simProfapiSetMsprof(const prof::Msprof* msprof) {
  TheLibrary().bus.SetMsprof(msprof);
}
PROFD_SIM_EXPORT void simProfapiCounts(prof::Counts* counts) {
  *counts = TheLibrary().bus.counts();
}

PROFD_SIM_EXPORT int InitInjectionMstx(prof::MstxGetTable get_table) {
  prof::MstxFunction** table = nullptr;
  unsigned size = 0;
  if (get_table == nullptr || get_table(prof::kMstxCore, &table, &size) != 0) return -1;
  prof::Store(table, size, 1, &prof::Mark);
  prof::Store(table, size, 2, &prof::RangeStart);
  prof::Store(table, size, 3, &prof::RangeEnd);
  if (get_table(prof::kMstxDomain, &table, &size) != 0) return -1;
  prof::Store(table, size, 1, &prof::DomainCreate);
  prof::Store(table, size, 2, &prof::DomainDestroy);
  prof::Store(table, size, 3, &prof::DomainMark);
  prof::Store(table, size, 4, &prof::DomainRangeStart);
  prof::Store(table, size, 5, &prof::DomainRangeEnd);
  return 0;
}
PROFD_SIM_EXPORT int ProfRegisterMstxFunc(prof::MstxInit init, uint64_t receiver) {
  return prof::TheMstxSwitch().Register(init, receiver);
}
PROFD_SIM_EXPORT int ProfEnableMstxFunc(uint64_t receiver) {
  return prof::TheMstxSwitch().Enable(receiver);
}
