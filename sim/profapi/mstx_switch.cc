#include "sim/profapi/mstx_switch.h"

namespace profd::sim::prof {
namespace {

// What an init is given to write to; one at a time.
MstxFunction g_table[kMstxModules][MstxSwitch::kFunctions];
MstxFunction* g_addresses[kMstxModules][MstxSwitch::kFunctions];

int GetTable(int module, MstxFunction*** table, unsigned* size) {
  if (module < kMstxCore || module > kMstxDomain || table == nullptr || size == nullptr) return -1;
  *table = g_addresses[module];
  *size = 5;  // the vendor's answers the size of CORE for CORE_DOMAIN, too, which has 6
  return 0;
}

}  // namespace

MstxSwitch& TheMstxSwitch() {
  static MstxSwitch* const the = new MstxSwitch;
  return *the;
}

int MstxSwitch::Register(MstxInit init, uint64_t receiver) {
  if (init == nullptr || (receiver != kMstxMsprof && receiver != kMstxMspti)) return -1;
  MutexLock lock(mutex_);
  for (int module = kMstxCore; module < kMstxModules; ++module) {
    for (size_t id = 0; id < kFunctions; ++id) {
      g_table[module][id] = nullptr;
      g_addresses[module][id] = &g_table[module][id];
    }
  }
  const int result = init(&GetTable);
  if (result != 0) return result;
  for (int module = kMstxCore; module < kMstxModules; ++module) {
    for (size_t id = 0; id < kFunctions; ++id)
      functions_[receiver][module][id] = g_table[module][id];
  }
  return 0;
}

int MstxSwitch::Enable(uint64_t receiver) {
  if (receiver != kMstxMsprof && receiver != kMstxMspti) return -1;
  MutexLock lock(mutex_);
  current_ = receiver;
  return 0;
}

MstxFunction MstxSwitch::Current(MstxModule module, size_t id) {
  MutexLock lock(mutex_);
  return functions_[current_][module][id];
}

void* MstxSwitch::CreateDomain(const char* name) {
  if (name == nullptr) return nullptr;
  MutexLock lock(mutex_);
  domains_.push_back({name, {}});
  return &domains_.back();
}

void* MstxSwitch::CurrentDomain(void* handle) {
  if (handle == nullptr) return nullptr;
  Domain* domain = nullptr;
  uint64_t receiver = 0;
  MstxFunction create = nullptr;
  {
    MutexLock lock(mutex_);
    for (Domain& known : domains_) {
      if (&known == handle) domain = &known;
    }
    if (domain == nullptr) return nullptr;
    receiver = current_;
    if (domain->of_receiver[receiver] != nullptr) return domain->of_receiver[receiver];
    create = functions_[receiver][kMstxDomain][1];
  }
  if (create == nullptr) return nullptr;
  void* const made = reinterpret_cast<void* (*)(const char*)>(create)(domain->name.c_str());
  MutexLock lock(mutex_);
  domain->of_receiver[receiver] = made;
  return made;
}

}  // namespace profd::sim::prof
