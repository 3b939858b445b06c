// Memory goes back to the system when what it was for is over: a daemon that runs for months is as large
// as what it does now, not as what it did once.
#include <malloc.h>

#include "daemon/app_impl.h"
#include "driver/block.h"

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

// Before the first thread.
void App::Impl::LimitMemory() {
#ifdef __GLIBC__
  ::mallopt(M_ARENA_MAX, kMaxHeaps);  // NOLINT(concurrency-mt-unsafe)
#endif
}

// Every second.
void App::Impl::TrimMemory(int64_t now_ns) {
  const uint64_t ended = sessions->ended_total();
  node->pool().Trim(kMaxParkedBlockBytes);
  if (ended == trimmed_at_session || now_ns < next_trim_ns) return;
  trimmed_at_session = ended;
  next_trim_ns = now_ns + kTrimEveryNs;
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace profd
