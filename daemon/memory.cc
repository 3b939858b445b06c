#include "daemon/memory.h"

#include <malloc.h>

#include "base/clock.h"

namespace profd {
namespace {

// Each thread that meets a busy heap would get one of its own, up to eight a core: on a node with 192
// cores memory that is freed on one thread would hardly ever be used again. In steady state nothing is
// allocated where it would be noticed.
constexpr int kMaxHeaps = 2;
// Of unused blocks; a second of eight NPUs at the highest rates takes less.
constexpr size_t kMaxParkedBlockBytes = 4 << 20;
// Giving back takes some milliseconds, so not after each of many short sessions.
constexpr int64_t kTrimEveryNs = 10 * kNsPerSecond;

}  // namespace

void LimitMemory() {
#ifdef __GLIBC__
  ::mallopt(M_ARENA_MAX, kMaxHeaps);  // NOLINT(concurrency-mt-unsafe)
#endif
}

void MemoryTrim::Tick(uint64_t ended, int64_t now_ns, BlockPool* pool) {
  pool->Trim(kMaxParkedBlockBytes);
  if (ended == trimmed_at_ || now_ns < next_ns_) return;
  trimmed_at_ = ended;
  next_ns_ = now_ns + kTrimEveryNs;
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace profd
