// Tests of the application's libraries: each in a child of its own, because a library that was
// loaded once keeps its state, and because some of what they do ends or hangs a process.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/testing/eventually.h"

namespace profd::sim {

struct ChildResult {
  int exit_code = -1;  // -1: a signal ended it
  int signal = 0;
  bool timed_out = false;
  std::string output;  // stdout and stderr
};

inline ChildResult RunChild(const std::function<void()>& body,
                            std::chrono::milliseconds patience = std::chrono::seconds(90)) {
  const UniqueFd output(::memfd_create("child", MFD_CLOEXEC));
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(output.get(), 1);
    ::dup2(output.get(), 2);
    body();
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  ChildResult result;
  int status = 0;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      result.timed_out = true;
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  char buffer[4096];
  off_t at = 0;
  for (ssize_t n; (n = ::pread(output.get(), buffer, sizeof buffer, at)) > 0; at += n) {
    result.output.append(buffer, static_cast<size_t>(n));
  }
  return result;
}

// For EXPECT_TRUE: the body ran to its end, and nothing it expects failed.
inline testing::AssertionResult InChild(const std::function<void()>& body) {
  const ChildResult result = RunChild(body);
  if (result.exit_code == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << (result.timed_out ? "did not end\n" : "") << "exit code "
                                     << result.exit_code << ", signal " << result.signal << "\n"
                                     << result.output;
}

// A test whose whole body runs in a child.
#define TEST_IN_CHILD(suite, name)                                                  \
  static void suite##_##name##_Body();                                              \
  TEST(suite, name) { EXPECT_TRUE(::profd::sim::InChild(&suite##_##name##_Body)); } \
  static void suite##_##name##_Body()

class Library {
 public:
  explicit Library(const char* path) : handle_(::dlopen(path, RTLD_NOW | RTLD_GLOBAL)) {
    if (handle_ == nullptr) ADD_FAILURE() << ::dlerror();
  }
  bool Has(const char* symbol) const { return ::dlsym(handle_, symbol) != nullptr; }
  template <class Fn>
  Fn* Get(const char* symbol) const {
    void* const address = ::dlsym(handle_, symbol);
    if (address == nullptr) {
      ADD_FAILURE() << "no symbol " << symbol;
      std::abort();
    }
    return reinterpret_cast<Fn*>(address);
  }

 private:
  void* handle_;
};
// A function of a library by its declaration: CALL(lib, aclrtSetDevice)(0).
#define CALL(library, function) (library).Get<decltype(function)>(#function)

}  // namespace profd::sim
