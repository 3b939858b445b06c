#include "sim/account.h"

#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include "sim/shared_file.h"

// Of bench/alloc_counter when that is preloaded.
extern "C" __attribute__((weak)) uint64_t profd_bench_thread_allocations();

namespace profd::sim {
namespace {

struct AccountFile {
  std::atomic<uint32_t> magic;
  std::atomic<uint32_t> used;
  uint64_t reserved;
  AccountSlot slots[kAccountSlots];
};

int64_t ThreadCpuNs() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

uint64_t Allocations() {
  return profd_bench_thread_allocations != nullptr ? profd_bench_thread_allocations() : 0;
}

AccountFile* Map() {
  auto* file = static_cast<AccountFile*>(MapShared(std::getenv("PROFD_SIM_ACCOUNT"), sizeof(AccountFile), 0644));
  if (file != nullptr) file->magic.store(kAccountMagic, std::memory_order_relaxed);
  return file;
}

AccountFile* File() {
  static AccountFile* const file = Map();
  return file;
}

AccountSlot* SlotOfThread() {
  AccountFile* file = File();
  if (file == nullptr) return nullptr;
  thread_local AccountSlot* slot = nullptr;
  if (slot != nullptr) return slot;
  const uint32_t index = file->used.fetch_add(1, std::memory_order_relaxed);
  if (index >= kAccountSlots) return nullptr;
  slot = &file->slots[index];
  slot->thread.store(static_cast<uint32_t>(::gettid()), std::memory_order_relaxed);
  return slot;
}

// One read of the clock: half of the first and half of the second of a call lie outside of what
// they measure, and are the simulator's all the same.
int64_t ClockCostNs() {
  static const int64_t cost = [] {
    constexpr int kTimes = 64;
    const int64_t begin = ThreadCpuNs();
    for (int i = 1; i < kTimes; ++i) ThreadCpuNs();
    return (ThreadCpuNs() - begin) / kTimes;
  }();
  return cost;
}

}  // namespace

Accounted::Accounted() : slot_(SlotOfThread()) {
  if (slot_ == nullptr) return;
  ClockCostNs();
  begin_allocations_ = Allocations();
  begin_ns_ = ThreadCpuNs();
}

Accounted::~Accounted() {
  if (slot_ == nullptr) return;
  const int64_t spent = ThreadCpuNs() - begin_ns_ + ClockCostNs();
  slot_->busy_ns.fetch_add(static_cast<uint64_t>(spent), std::memory_order_relaxed);
  slot_->calls.fetch_add(1, std::memory_order_relaxed);
  slot_->allocations.fetch_add(Allocations() - begin_allocations_, std::memory_order_relaxed);
}

}  // namespace profd::sim
