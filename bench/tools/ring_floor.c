/* The least that taking records out of rings and keeping them costs: READ bytes a second out of a memfd and WRITE bytes a
 * second into a new file of DIR each second, in pieces of 256 KiB, twenty times a second; what a file has is put on the
 * disk before the next. Nothing looks at the bytes. For SECONDS; prints the CPU ns spent.
 * usage: ring_floor DIR READ WRITE SECONDS */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kRounds = 20, kPiece = 256 << 10, kRing = 8 << 20 };

static long long Now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int NewFile(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/floor", folder);
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  unlink(path); /* the bytes go when it is closed */
  return fd;
}

int main(int argc, char** argv) {
  static char data[kPiece];
  if (argc != 5) return 2;
  const size_t take = (size_t)atol(argv[2]) / kRounds, put = (size_t)atol(argv[3]) / kRounds;
  const long rounds = atol(argv[4]) * kRounds;
  const int ring = memfd_create("floor", MFD_CLOEXEC);
  if (rounds <= 0 || ring < 0) return 2;
  for (size_t at = 0; at < kRing; at += sizeof data) {
    if (write(ring, data, sizeof data) != (ssize_t)sizeof data) return 1;
  }
  int fd = NewFile(argv[1]);
  size_t from = 0;
  const long long begin = Now(CLOCK_MONOTONIC), cpu = Now(CLOCK_PROCESS_CPUTIME_ID);
  for (long round = 0; round < rounds; ++round) {
    const long long due = begin + round * (1000000000LL / kRounds);
    const struct timespec at = {due / 1000000000LL, due % 1000000000LL};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    for (size_t left = take; left > 0;) {
      const size_t piece = left < kPiece ? left : kPiece;
      if (pread(ring, data, piece, (off_t)from) != (ssize_t)piece) return 1;
      from = (from + kPiece) % kRing;
      left -= piece;
    }
    for (size_t left = put; left > 0;) {
      const size_t piece = left < kPiece ? left : kPiece;
      if (write(fd, data, piece) != (ssize_t)piece) return 1;
      left -= piece;
    }
    if ((round + 1) % kRounds != 0) continue;
    if (fdatasync(fd) != 0 || close(fd) != 0) return 1;
    fd = NewFile(argv[1]);
    if (fd < 0) return 1;
  }
  printf("%lld\n", Now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
  return 0;
}
