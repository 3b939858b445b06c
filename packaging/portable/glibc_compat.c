/* What Debian 12's compiler and static libraries take from glibc 2.29 to 2.36, in terms of glibc 2.28: portable
 * builds are linked with an older glibc (scripts/lib/old-glibc), and this is part of each of their programs. Hidden:
 * none of it replaces what other libraries of the process use. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)

/* 2.32, for shared_ptr: "perhaps several threads" is always right. */
char __libc_single_threaded = 0;

/* 2.36, for random_device and libcrypt. */
void arc4random_buf(void* buffer, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t got = getrandom((char*)buffer + done, size - done, 0);
    if (got < 0 && errno != EINTR) abort();
    if (got > 0) done += (size_t)got;
  }
}

uint32_t arc4random(void) {
  uint32_t value;
  arc4random_buf(&value, sizeof value);
  return value;
}

/* 2.32 */
const char* sigabbrev_np(int number) {
  static const char* const kNames[] = {
      [SIGHUP] = "HUP",   [SIGINT] = "INT",   [SIGQUIT] = "QUIT", [SIGILL] = "ILL",   [SIGTRAP] = "TRAP",
      [SIGABRT] = "ABRT", [SIGBUS] = "BUS",   [SIGFPE] = "FPE",   [SIGKILL] = "KILL", [SIGUSR1] = "USR1",
      [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2", [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM", [SIGTERM] = "TERM"};
  const size_t count = sizeof kNames / sizeof *kNames;
  return number > 0 && (size_t)number < count ? kNames[number] : NULL;
}

/* 2.34. Of the descriptors that are open now; later ones are closed on exec like all of ours. */
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t* actions, int from) {
  DIR* open = opendir("/proc/self/fd");
  if (open == NULL) return errno;
  int error = 0;
  for (const struct dirent* entry = readdir(open); entry != NULL && error == 0; entry = readdir(open)) {
    const long fd = strtol(entry->d_name, NULL, 10);
    if (entry->d_name[0] == '.' || fd < from || fd == dirfd(open)) continue;
    error = posix_spawn_file_actions_addclose(actions, (int)fd);
  }
  closedir(open);
  return error;
}

/* 2.30 */
pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }
ssize_t getdents64(int fd, void* buffer, size_t size) { return syscall(SYS_getdents64, fd, buffer, size); }

static int64_t NowNs(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* 2.30, for waits on the steady clock. The condition variable knows the wall clock only, which may be set back: no
 * more than a second at a time, then the caller looks at its own clock, as after any spurious wake-up. */
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* deadline) {
  const int64_t second = 1000000000;
  int64_t left = (int64_t)deadline->tv_sec * second + deadline->tv_nsec - NowNs(clock);
  if (left <= 0) return ETIMEDOUT;
  int64_t until = NowNs(CLOCK_REALTIME) + (left < second ? left : second);
  struct timespec wall = {until / second, until % second};
  int result = pthread_cond_timedwait(condition, mutex, &wall);
  return result == ETIMEDOUT && left > second ? 0 : result;
}

/* 2.35, for exceptions: the frame table of the object that has `pc`. */
struct Search {
  uintptr_t pc;
  struct dl_find_object* found;
};

static int LookInto(struct dl_phdr_info* info, size_t size, void* data) {
  struct Search* search = data;
  const ElfW(Phdr)* frames = NULL;
  uintptr_t begin = 0, end = 0;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    uintptr_t at = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_GNU_EH_FRAME) frames = header;
    if (header->p_type == PT_LOAD && search->pc >= at && search->pc - at < header->p_memsz) {
      begin = at;
      end = at + header->p_memsz;
    }
  }
  if (end == 0) return 0;
  if (frames == NULL) return -1;
  search->found->dlfo_flags = 0;
  search->found->dlfo_map_start = (void*)begin;
  search->found->dlfo_map_end = (void*)end;
  search->found->dlfo_link_map = NULL;
  search->found->dlfo_eh_frame = (void*)(info->dlpi_addr + frames->p_vaddr);
  return 1;
}

int _dl_find_object(void* pc, struct dl_find_object* result) {
  struct Search search = {(uintptr_t)pc, result};
  return dl_iterate_phdr(LookInto, &search) == 1 ? 0 : -1;
}

/* 2.29 has these without the errors of old standards, which nobody here looks at. The linker sends calls of NAME to
 * __wrap_NAME (--wrap, cmake/ProfdPortable.cmake). */
#ifdef __x86_64__
#define FIRST "GLIBC_2.2.5"
#else
#define FIRST "GLIBC_2.17"
#endif
#define HIDDEN __attribute__((visibility("hidden")))
#define OLD1(name) \
  double Old_##name(double x); \
  __asm__(".symver Old_" #name "," #name "@" FIRST); \
  HIDDEN double __wrap_##name(double x); \
  double __wrap_##name(double x) { return Old_##name(x); }
#define OLD2(name) \
  double Old_##name(double x, double y); \
  __asm__(".symver Old_" #name "," #name "@" FIRST); \
  HIDDEN double __wrap_##name(double x, double y); \
  double __wrap_##name(double x, double y) { return Old_##name(x, y); }
#pragma GCC visibility pop /* those of glibc are not hidden */
OLD1(exp)
OLD1(exp2)
OLD1(log)
OLD1(log2)
OLD2(pow)
