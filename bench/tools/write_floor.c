/* The least that writing a dump costs: BYTES a second into FILES new files in DIR, once a second each, for SECONDS.
 * Prints the CPU ns spent and the seconds it took. usage: write_floor DIR FILES BYTES SECONDS */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long long Now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const long files = atol(argv[2]), rounds = atol(argv[4]);
  if (files <= 0 || rounds <= 0) return 2;
  const size_t bytes = (size_t)atol(argv[3]) / (size_t)files;
  int* fds = malloc(sizeof(int) * (size_t)files);
  char* data = malloc(bytes);
  char path[4096];
  memset(data, 1, bytes);
  for (long i = 0; i < files; ++i) {
    snprintf(path, sizeof path, "%s/floor.%ld", argv[1], i);
    fds[i] = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    unlink(path); /* the bytes go with the process */
    if (fds[i] < 0) return 1;
  }
  const long long begin = Now(CLOCK_MONOTONIC), cpu = Now(CLOCK_PROCESS_CPUTIME_ID);
  for (long round = 0; round < rounds; ++round) {
    const long long due = begin + round * 1000000000LL;
    const struct timespec at = {due / 1000000000LL, due % 1000000000LL};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    for (long i = 0; i < files; ++i) {
      if (write(fds[i], data, bytes) != (ssize_t)bytes) return 1;
    }
  }
  printf("%lld %ld\n", Now(CLOCK_PROCESS_CPUTIME_ID) - cpu, rounds);
  return 0;
}
