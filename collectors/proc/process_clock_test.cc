#include "collectors/proc/process_clock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "collectors/proc/proc_text.h"
#include "collectors/proc/testing/fake_tree.h"

namespace profd {
namespace {

// A process that stands still.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    while (pid_ == 0) ::raise(SIGSTOP);
    EXPECT_EQ(::waitpid(pid_, nullptr, WUNTRACED), pid_);
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }

 private:
  const pid_t pid_;
};

Result<RootedFs> RealProc() { return RootedFs::OpenRoot("/proc"); }

TEST(ProcessClock, IsUsableOnOurOwnProc) {
  Result<RootedFs> proc = RealProc();
  ASSERT_TRUE(proc.ok());
  EXPECT_TRUE(ProcessClock(*proc).usable());
}

TEST(ProcessClock, IsNotUsableWhereNumbersMayMeanOthers) {
  const std::string pid = std::to_string(::getpid());
  testing::FakeTree tree;
  Result<RootedFs> proc = RootedFs::OpenRoot(tree.root());
  ASSERT_TRUE(proc.ok());
  EXPECT_FALSE(ProcessClock(*proc).usable());
  tree.Link("self", pid);
  EXPECT_FALSE(ProcessClock(*proc).usable());
  for (const std::string& numbers : {"4711 " + pid, pid + " 1", "\t" + pid + "1", std::string("x")}) {
    tree.Write(pid + "/status", "Name:\tx\nNStgid:\t" + numbers + "\n");
    EXPECT_FALSE(ProcessClock(*proc).usable()) << numbers;
  }
  tree.Write(pid + "/status", "Name:\tx\nNStgid:\t" + pid + "\n");
  EXPECT_TRUE(ProcessClock(*proc).usable());
}

TEST(ProcessClock, CountsWhatAProcessRuns) {
  const int64_t before = ProcessClock::Read(::getpid());
  EXPECT_GT(before, 0);
  int64_t after = before;
  while (after < before + 1'000'000) after = ProcessClock::Read(::getpid());
  Sleeper sleeper;
  // It may still leave its core; then its clock stands.
  int64_t ran = -1;
  while (ran != ProcessClock::Read(sleeper.pid())) ran = ProcessClock::Read(sleeper.pid());
  EXPECT_GE(ran, 0);
}

TEST(ProcessClock, RecognisesMissingProcesses) {
  int gone = 0;
  {
    Sleeper sleeper;
    gone = sleeper.pid();
    EXPECT_GE(ProcessClock::Read(gone), 0);
  }
  EXPECT_EQ(ProcessClock::Read(gone), -1);
  EXPECT_EQ(ProcessClock::Read(0), -1);
  EXPECT_EQ(ProcessClock::Read(-1), -1);
}

}  // namespace
}  // namespace profd
