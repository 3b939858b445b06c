/* LD_PRELOAD: counts heap allocations per thread, in the process itself, without stopping it.
 * PROFD_ALLOC_ACCOUNT=FILE: the counts are mapped there: 16 bytes {uint32 magic, uint32 slots used,
 * uint64 0}, then slots of 24 bytes {uint32 thread id, uint32 0, uint64 allocations, uint64 bytes}.
 * glibc only: its own allocator is called by the names it exports for that. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kSlots = 682 };
static const uint32_t kMagic = 0x41434650; /* "PFCA" */

struct Slot {
  _Atomic uint32_t thread;
  uint32_t reserved;
  _Atomic uint64_t count;
  _Atomic uint64_t bytes;
};
struct File {
  _Atomic uint32_t magic;
  _Atomic uint32_t used;
  uint64_t reserved;
  struct Slot slots[kSlots];
};

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static struct File* _Atomic file;
/* initial-exec: the general model allocates a thread's block on first use, with malloc. */
static _Thread_local struct Slot* slot __attribute__((tls_model("initial-exec")));
static _Thread_local uint64_t mine __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void Map(void) {
  const char* path = getenv("PROFD_ALLOC_ACCOUNT");
  if (path == NULL) return;
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return;
  void* memory = MAP_FAILED;
  if (ftruncate(fd, sizeof(struct File)) == 0) {
    memory = mmap(NULL, sizeof(struct File), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (memory == MAP_FAILED) return;
  ((struct File*)memory)->magic = kMagic;
  file = memory;
}

static void Count(size_t bytes) {
  ++mine;
  struct File* to = file;
  if (to == NULL) return;
  if (slot == NULL) {
    uint32_t index = atomic_fetch_add(&to->used, 1);
    if (index >= kSlots) return;
    slot = &to->slots[index];
    slot->thread = (uint32_t)syscall(SYS_gettid);
  }
  atomic_fetch_add_explicit(&slot->count, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&slot->bytes, bytes, memory_order_relaxed);
}

uint64_t profd_bench_thread_allocations(void) { return mine; }

void* malloc(size_t size) {
  Count(size);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  Count(count * size);
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  Count(size);
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  Count(size);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  Count(size);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  Count(size);
  void* memory = __libc_memalign(alignment, size);
  if (memory == NULL) return ENOMEM;
  *out = memory;
  return 0;
}
