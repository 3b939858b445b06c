// libprofd_mstx.so: MSTX_INJECTION_PATH names it in a job's environment, and the marks and ranges that frameworks,
// HCCL and users make with mstx become profd's, beside the vendor's own profiler: each call is recorded by libprofd
// (which does nothing while no session wants marks) and handed on to libprofapi, where msprof and MSPTI listen; not in a
// forked child of a process that has marked.
//
// Threading: any function on any thread. No lock is held during a call into another library.
#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "client/libprofd/mstx/mstx_abi.h"
#include "client/libprofd/mstx/profd_calls.h"

extern "C" __attribute__((visibility("default"))) int InitInjectionMstx(profd::mstx::GetTable get_table);

namespace profd::mstx {
namespace {

// libprofapi's tables are filled by itself; some versions count on more places than they say.
constexpr size_t kSlots = 8;

// The functions of the profiler behind us; null = it has none.
struct Slots {
  std::array<Function, kSlots> functions{};
  std::array<Function*, kSlots> addresses{};
  Slots() {
    for (size_t i = 1; i < kSlots; ++i) addresses[i] = &functions[i];
  }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  template <class Call>
  Call Get(unsigned place) const {
    return reinterpret_cast<Call>(functions[place]);
  }
};

// Handles are addresses in an array, so that those of others are recognised without a lock. A domain is never
// taken away: its handle may be in use by a thread that does not know of its end.
constexpr size_t kMaxDomains = 1024;
struct Domain {
  std::string name;
  std::atomic<DomainHandle> chained{nullptr};  // null: the profiler has none
  size_t users = 0;  // who created it and has not destroyed it; under Injection::mutex
  bool is_changing = false;  // a thread creates or destroys the profiler's (Settle); under Injection::mutex
  bool is_chained = false;   // of that thread
};

// Ranges that both libprofd and the profiler behind us have: more than that open at a time are the latter's only.
constexpr size_t kMaxPairs = 65536;
// Ids that only libprofd has. Most profilers do not count that far; of one that does all ranges are pairs.
constexpr uint64_t kOwnId = uint64_t{1} << 63;
struct Pair {
  uint64_t own = 0;
  uint64_t chained = 0;  // 0: the profiler has none
};

// Made once and never destroyed: marks may come while the process ends.
struct Injection {
  ProfdCalls profd;
  Slots core, domain, memory;
  Mutex mutex;
  std::array<Domain, kMaxDomains> domains{};
  std::atomic<size_t> domain_count{0};
  std::unordered_map<uint64_t, Pair> pairs GUARDED_BY(mutex);  // by the caller's id
  std::atomic<size_t> pair_count{0};
  std::atomic<bool> profiler_counts_far{false};  // up to kOwnId
};
Injection* g_injection = nullptr;

Injection& State() { return *g_injection; }

int GetPrivateTable(int module, Function*** table, unsigned* size) {
  if (table == nullptr || size == nullptr) return 1;
  Injection& state = State();
  switch (module) {
    case kCore:
      *table = state.core.addresses.data();
      *size = kCoreCount;
      return 0;
    case kDomain:
      *table = state.domain.addresses.data();
      *size = kDomainCount;
      return 0;
    case kMemory:
      *table = state.memory.addresses.data();
      *size = kMemoryCount;
      return 0;
    default:
      return 1;
  }
}

void Unchain() {
  for (Slots* slots : {&State().core, &State().domain, &State().memory}) {
    slots->functions.fill(nullptr);
  }
}

void Chain() {
  constexpr const char* kProfapi = "libprofapi.so";
  void* profapi = ::dlopen(kProfapi, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (profapi == nullptr) profapi = ::dlopen(kProfapi, RTLD_LAZY | RTLD_LOCAL);
  if (profapi == nullptr) return;
  auto init = reinterpret_cast<Init>(::dlsym(profapi, "InitInjectionMstx"));
  if (init == nullptr || init == &InitInjectionMstx) return;
  if (init(&GetPrivateTable) != 0) Unchain();
}

void BeforeFork() ACQUIRE(State().mutex) { State().mutex.Lock(); }
void AfterForkInParent() RELEASE(State().mutex) { State().mutex.Unlock(); }
// MSPTI's locks may be held in the child, for ever: it records for libprofd alone.
void AfterForkInChild() RELEASE(State().mutex) {
  Unchain();
  State().mutex.Unlock();
}

// False without memory.
bool MakeOnce() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  ::pthread_once(&once, [] {
    g_injection = new (std::nothrow) Injection;
    if (g_injection == nullptr) return;
    g_injection->profd = FindProfd();
    Chain();
    ::pthread_atfork(&BeforeFork, &AfterForkInParent, &AfterForkInChild);
  });
  return g_injection != nullptr;
}

Domain* OwnDomain(DomainHandle handle) {
  const auto at = reinterpret_cast<uintptr_t>(handle);
  const auto begin = reinterpret_cast<uintptr_t>(State().domains.data());
  if (at < begin || (at - begin) % sizeof(Domain) != 0) return nullptr;
  const size_t index = (at - begin) / sizeof(Domain);
  return index < State().domain_count.load(std::memory_order_acquire) ? &State().domains[index]
                                                                      : nullptr;
}

DomainHandle ChainedOf(const Domain* domain, DomainHandle handle) {
  return domain == nullptr ? handle : domain->chained.load(std::memory_order_relaxed);
}

const char* NameOf(const Domain* domain) { return domain == nullptr ? nullptr : domain->name.c_str(); }

void Record(const char* domain, const char* message) {
  if (State().profd.mark_in != nullptr) State().profd.mark_in(domain, message);
}

uint64_t StartOwn(const char* domain, const char* message) {
  return State().profd.range_start == nullptr ? 0 : State().profd.range_start(domain, message);
}

// The id the caller gets. `own` and `chained` may be 0.
uint64_t Join(uint64_t own, uint64_t chained) {
  Injection& state = State();
  if ((chained & kOwnId) != 0) state.profiler_counts_far.store(true, std::memory_order_relaxed);
  if (own == 0) return chained;
  const uint64_t id = chained != 0 ? chained : own | kOwnId;
  if (chained == 0 && !state.profiler_counts_far.load(std::memory_order_relaxed)) return id;
  try {
    const MutexLock lock(state.mutex);
    if (state.pairs.size() < kMaxPairs && state.pairs.try_emplace(id, Pair{own, chained}).second) {
      state.pair_count.store(state.pairs.size(), std::memory_order_release);
      return id;
    }
  } catch (...) {  // no memory
  }
  state.profd.range_end(own);  // the caller gets an id that does not lead to it
  return chained;
}

// The profiler's id of a range that ends; 0 = it has none. Ends ours.
uint64_t Part(uint64_t id) {
  Injection& state = State();
  if (state.profd.range_end == nullptr) return id;
  if ((id & kOwnId) != 0 && !state.profiler_counts_far.load(std::memory_order_relaxed)) {
    state.profd.range_end(id & ~kOwnId);
    return 0;
  }
  if (state.pair_count.load(std::memory_order_acquire) == 0) return id;
  Pair pair;
  {
    const MutexLock lock(state.mutex);
    auto found = state.pairs.find(id);
    if (found == state.pairs.end()) return id;
    pair = found->second;
    state.pairs.erase(found);
    state.pair_count.store(state.pairs.size(), std::memory_order_release);
  }
  state.profd.range_end(pair.own);
  return pair.chained;
}

void MarkA(const char* message, Stream stream) {
  Record(nullptr, message);
  if (auto next = State().core.Get<MarkCall>(kMark)) next(message, stream);
}

uint64_t RangeStartA(const char* message, Stream stream) {
  const uint64_t own = StartOwn(nullptr, message);
  auto next = State().core.Get<RangeStartCall>(kRangeStart);
  return Join(own, next == nullptr ? 0 : next(message, stream));
}

void RangeEnd(uint64_t id) {
  if (id == 0) return;
  const uint64_t chained = Part(id);
  auto next = State().core.Get<RangeEndCall>(kRangeEnd);
  if (chained != 0 && next != nullptr) next(chained);
}

Domain* FindDomain(Injection& state, const char* name) REQUIRES(state.mutex) {
  const size_t count = state.domain_count.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    if (state.domains[i].name == name) return &state.domains[i];
  }
  return nullptr;
}

// The profiler's domain is there while ours has users. One thread at a time creates or destroys it, since profilers may
// know domains by their names; the others leave it to that one, and what they mark meanwhile is libprofd's alone.
void Settle(Injection& state, Domain& domain) {
  for (;;) {
    {
      const MutexLock lock(state.mutex);
      domain.is_changing = (domain.users > 0) != domain.is_chained;
      if (!domain.is_changing) return;
    }
    domain.is_chained = !domain.is_chained;
    if (domain.is_chained) {
      auto create = state.domain.Get<CreateCall>(kCreate);
      domain.chained = create == nullptr ? nullptr : create(domain.name.c_str());
    } else if (const DomainHandle ended = domain.chained.exchange(nullptr)) {
      if (auto destroy = state.domain.Get<DestroyCall>(kDestroy)) destroy(ended);
    }
  }
}

// The same handle for the same name. Where there are too many it is the profiler's, and what is marked in it has no
// domain for libprofd.
DomainHandle CreateA(const char* name) {
  if (name == nullptr) return nullptr;
  Injection& state = State();
  Domain* domain = nullptr;
  bool changes = false;
  try {
    const MutexLock lock(state.mutex);
    const size_t count = state.domain_count.load(std::memory_order_relaxed);
    domain = FindDomain(state, name);
    if (domain == nullptr && count < kMaxDomains) {
      state.domains[count].name = name;
      domain = &state.domains[count];
      state.domain_count.store(count + 1, std::memory_order_release);
    }
    if (domain != nullptr) {
      ++domain->users;
      changes = !std::exchange(domain->is_changing, true);
    }
  } catch (...) {  // no memory
  }
  if (domain == nullptr) {
    auto next = state.domain.Get<CreateCall>(kCreate);
    return next == nullptr ? nullptr : next(name);
  }
  if (changes) Settle(state, *domain);
  return domain;
}

// One of ours may be in use under the same name elsewhere: the profiler's ends with its last user.
void Destroy(DomainHandle handle) {
  if (Domain* domain = OwnDomain(handle)) {
    bool changes = false;
    {
      const MutexLock lock(State().mutex);
      changes = domain->users > 0 && --domain->users == 0 && !std::exchange(domain->is_changing, true);
    }
    if (changes) Settle(State(), *domain);
    return;
  }
  auto next = State().domain.Get<DestroyCall>(kDestroy);
  if (handle != nullptr && next != nullptr) next(handle);
}

void DomainMarkA(DomainHandle handle, const char* message, Stream stream) {
  const Domain* domain = OwnDomain(handle);
  Record(NameOf(domain), message);
  auto next = State().domain.Get<DomainMarkCall>(kDomainMark);
  const DomainHandle chained = ChainedOf(domain, handle);
  if (next != nullptr && chained != nullptr) next(chained, message, stream);
}

uint64_t DomainRangeStartA(DomainHandle handle, const char* message, Stream stream) {
  const Domain* domain = OwnDomain(handle);
  const uint64_t own = StartOwn(NameOf(domain), message);
  auto next = State().domain.Get<DomainRangeStartCall>(kDomainRangeStart);
  const DomainHandle chained = ChainedOf(domain, handle);
  return Join(own, next == nullptr || chained == nullptr ? 0 : next(chained, message, stream));
}

void DomainRangeEnd(DomainHandle handle, uint64_t id) {
  if (id == 0) return;
  const Domain* domain = OwnDomain(handle);
  const uint64_t chained = Part(id);
  auto next = State().domain.Get<DomainRangeEndCall>(kDomainRangeEnd);
  const DomainHandle chained_domain = ChainedOf(domain, handle);
  if (chained != 0 && next != nullptr && chained_domain != nullptr) next(chained_domain, chained);
}

// A module's functions that are not null, as far as the table goes: not every provider counts right.
bool Fill(GetTable get_table, int module, const std::array<Function, kSlots>& functions) {
  Function** table = nullptr;
  unsigned size = 0;
  if (get_table(module, &table, &size) != 0 || table == nullptr) return false;
  for (unsigned i = 1; i < size && i < kSlots; ++i) {
    if (table[i] != nullptr && functions[i] != nullptr) *table[i] = functions[i];
  }
  return true;
}

template <class Call>
Function Of(Call call) {
  return reinterpret_cast<Function>(call);
}

int FillTables(GetTable get_table) {
  if (get_table == nullptr) return 1;
  if (!MakeOnce()) return 1;
  // What is not ours to record goes to the profiler behind us directly.
  std::array<Function, kSlots> core = State().core.functions;
  core[kMark] = Of(&MarkA);
  core[kRangeStart] = Of(&RangeStartA);
  core[kRangeEnd] = Of(&RangeEnd);
  std::array<Function, kSlots> domain{};
  domain[kCreate] = Of(&CreateA);
  domain[kDestroy] = Of(&Destroy);
  domain[kDomainMark] = Of(&DomainMarkA);
  domain[kDomainRangeStart] = Of(&DomainRangeStartA);
  domain[kDomainRangeEnd] = Of(&DomainRangeEnd);
  const bool has_core = Fill(get_table, kCore, core);
  const bool has_domain = Fill(get_table, kDomain, domain);
  Fill(get_table, kMemory, State().memory.functions);
  return has_core || has_domain ? 0 : 1;
}

}  // namespace
}  // namespace profd::mstx

int InitInjectionMstx(profd::mstx::GetTable get_table) { return profd::mstx::FillTables(get_table); }
