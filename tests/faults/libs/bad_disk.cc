// Loaded in front of the C library (LD_PRELOAD): a disk that answers writes of slices with an error
// of the test's choice, or slowly. PROFD_FAULT_DISK names a file; while it is there, it holds the errno,
// or how many bytes a second the disk takes, as a negative number; -1: no write returns while the file is there.
// With a '+' before it, it is not only of slices, but of every file of a dump.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// 0: go on. Reads with open and read, which are not ours.
int ErrorFor(int fd) {
  const char* control = std::getenv("PROFD_FAULT_DISK");
  if (control == nullptr || ::access(control, F_OK) != 0) return 0;
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = ::readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = '\0';
  if (std::strstr(path, "/PROF_") == nullptr) return 0;
  char text[16] = {};
  int file = ::open(control, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t got = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (got <= 0 || (text[0] != '+' && std::strstr(path, ".slice_") == nullptr)) return 0;
  return static_cast<int>(std::strtol(text, nullptr, 10));
}

// True when the write is to fail, with errno set.
bool Fails(int fd, size_t size) {
  const int error = ErrorFor(fd);
  if (error >= 0) {
    if (error > 0) errno = error;
    return error > 0;
  }
  while (ErrorFor(fd) == -1) ::usleep(5000);
  if (error == -1) return false;
  ::usleep(static_cast<useconds_t>(1e6 * static_cast<double>(size) / -error));
  return false;
}

template <class Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) ssize_t write(int fd, const void* data, size_t size) {
  static const auto next = Next<ssize_t (*)(int, const void*, size_t)>("write");
  if (Fails(fd, size)) return -1;
  return next(fd, data, size);
}

__attribute__((visibility("default"))) ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto next = Next<ssize_t (*)(int, const iovec*, int)>("writev");
  size_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  if (Fails(fd, size)) return -1;
  return next(fd, parts, count);
}

}  // extern "C"
