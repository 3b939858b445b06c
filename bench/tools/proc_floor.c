/* The least that reading the host costs: preads /proc/stat, /proc/meminfo and every process's stat
 * and statm HZ times a second for SECONDS, on absolute deadlines, and looks at nothing.
 * Prints the CPU ns spent, the readings and the files. usage: proc_floor HZ SECONDS [PID...] */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long Now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const long hz = atol(argv[1]), rounds = hz * atol(argv[2]);
  int* fds = malloc(sizeof(int) * (size_t)(2 * argc + 2));
  int files = 0;
  char path[64], buffer[65536];
  fds[files++] = open("/proc/stat", O_RDONLY);
  fds[files++] = open("/proc/meminfo", O_RDONLY);
  for (int i = 3; i < argc; ++i) {
    snprintf(path, sizeof path, "/proc/%s/stat", argv[i]);
    if ((fds[files] = open(path, O_RDONLY)) >= 0) ++files;
    snprintf(path, sizeof path, "/proc/%s/statm", argv[i]);
    /* Kernel threads have no memory: "0 0 0 0 0 0 0". */
    if ((fds[files] = open(path, O_RDONLY)) < 0) continue;
    if (pread(fds[files], buffer, sizeof buffer, 0) > 0 && buffer[0] != '0') ++files;
  }
  const long long begin = Now(CLOCK_MONOTONIC), cpu = Now(CLOCK_PROCESS_CPUTIME_ID);
  for (long round = 0; round < rounds; ++round) {
    const long long due = begin + round * (1000000000LL / hz);
    const struct timespec at = {due / 1000000000LL, due % 1000000000LL};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    for (int i = 0; i < files; ++i) (void)!pread(fds[i], buffer, sizeof buffer, 0);
  }
  printf("%lld %ld %d\n", Now(CLOCK_PROCESS_CPUTIME_ID) - cpu, rounds, files);
  return 0;
}
