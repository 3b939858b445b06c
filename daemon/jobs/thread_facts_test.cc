#include "daemon/jobs/thread_facts.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <filesystem>

#include "driver/rooted_fs.h"
#include "dump/test_support.h"

namespace profd {
namespace {

class ThreadFactsTest : public ::testing::Test {
 protected:
  ThreadFactsTest() : proc_(RootedFs::OpenRoot(tmp_.path()).value()) {
    std::filesystem::create_directories(tmp_ / "42/fd");
    std::string stat = "42 (train) S";
    for (int field = 4; field < 22; ++field) stat += " 0";
    WriteText(tmp_ / "42/stat", stat + " 700 0\n");
  }

  void Thread(int id, const std::string& name, const std::string& state, const std::string& inner = "", const std::string& wchan = "0",
              const std::string& call = "running") {
    const std::string base = "42/task/" + std::to_string(id);
    std::filesystem::create_directories(tmp_ / base);
    WriteText(tmp_ / (base + "/status"), "Name:\t" + name + "\nUmask:\t0022\nState:\t" + state + "\nTgid:\t42\nNSpid:\t" + std::to_string(id) + inner +
              "\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7," + std::to_string(id) + "\n");
    WriteText(tmp_ / (base + "/wchan"), wchan);
    WriteText(tmp_ / (base + "/syscall"), call + "\n");
  }
  ProcessThreads Read() {
    auto threads = ReadThreads(proc_, 42, 700);
    EXPECT_TRUE(threads.ok()) << threads.status().message();
    return threads.ok() ? *threads : ProcessThreads();
  }
  static std::string Call(long number, const std::string& rest) { return std::to_string(number) + " " + rest; }

  TempDir tmp_;
  RootedFs proc_;
};

TEST_F(ThreadFactsTest, MainThreadFirstThenByNumber) {
  Thread(9, "older", "S (sleeping)");
  Thread(100, "hccl", "S (sleeping)");
  Thread(42, "train", "R (running)");
  const ProcessThreads all = Read();
  ASSERT_EQ(all.threads.size(), 3u);
  EXPECT_EQ(all.threads[0].thread, 42);
  EXPECT_EQ(all.threads[0].name, "train");
  EXPECT_EQ(all.threads[0].state, 'R');
  EXPECT_EQ(all.threads[0].cpus, "0-7,42");
  EXPECT_EQ(all.threads[1].thread, 9);
  EXPECT_EQ(all.threads[2].thread, 100);
  EXPECT_EQ(all.left_out, 0u);
}

TEST_F(ThreadFactsTest, ReportsWhatAThreadWaitsFor) {
  std::filesystem::create_symlink("/dev/davinci0", tmp_ / "42/fd/18");
  Thread(42, "train", "D (disk sleep)", "", "devdrv_wait_event", Call(SYS_ioctl, "0x12 0xc0185a01 0x7ffd 0x0 0x0 0x0 0x7ffd00 0x7f00"));
  Thread(43, "waits", "S (sleeping)", "", "futex_wait_queue", Call(SYS_futex, "0x7f00 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd 0x7f00"));
  Thread(44, "odd", "S (sleeping)", "", "0", Call(100'000, "0x1 0x0"));
  Thread(45, "between", "T (stopped)", "", "do_signal_stop", "-1 0x7ffd 0x7f00");
  const ProcessThreads all = Read();
  ASSERT_EQ(all.threads.size(), 4u);
  EXPECT_EQ(all.threads[0].state, 'D');
  EXPECT_EQ(all.threads[0].system_call, "ioctl");
  EXPECT_EQ(all.threads[0].file, "/dev/davinci0");
  EXPECT_EQ(all.threads[0].kernel_function, "devdrv_wait_event");
  EXPECT_EQ(all.threads[1].system_call, "futex");
  EXPECT_EQ(all.threads[1].file, "");
  EXPECT_EQ(all.threads[2].system_call, "number 100000");
  EXPECT_EQ(all.threads[2].kernel_function, "");
  EXPECT_EQ(all.threads[3].system_call, "");
  EXPECT_EQ(all.threads[3].kernel_function, "do_signal_stop");
}

TEST_F(ThreadFactsTest, WithoutTheRightToSeeMore) {
  Thread(42, "train", "S (sleeping)");
  std::filesystem::remove(tmp_ / "42/task/42/syscall");
  std::filesystem::remove(tmp_ / "42/task/42/wchan");
  const ProcessThreads all = Read();
  ASSERT_EQ(all.threads.size(), 1u);
  EXPECT_EQ(all.threads[0].state, 'S');
  EXPECT_EQ(all.threads[0].system_call, "");
}

TEST_F(ThreadFactsTest, NumbersInsideAContainer) {
  Thread(42, "train", "S (sleeping)", "\t7\t1");
  Thread(43, "plain", "S (sleeping)");
  const ProcessThreads all = Read();
  ASSERT_EQ(all.threads.size(), 2u);
  EXPECT_EQ(all.threads[0].inner, 1);
  EXPECT_EQ(all.threads[1].inner, 43);
}

TEST_F(ThreadFactsTest, TextsOfTheProcessAreHarmless) {
  std::filesystem::create_symlink("/tmp/\033[2J" + std::string(400, 'x'), tmp_ / "42/fd/3");
  Thread(42, "a\033[2Jb", "S (sleeping)", "", "0", Call(SYS_read, "0x3 0x0"));
  const ProcessThreads all = Read();
  ASSERT_EQ(all.threads.size(), 1u);
  EXPECT_EQ(all.threads[0].name.find('\033'), std::string::npos);
  EXPECT_EQ(all.threads[0].file.find('\033'), std::string::npos);
  EXPECT_EQ(all.threads[0].file.size(), 256u);
}

TEST_F(ThreadFactsTest, TooManyAreCounted) {
  for (int id = 42; id < 42 + 300; ++id) Thread(id, "t", "S (sleeping)");
  const ProcessThreads all = Read();
  EXPECT_EQ(all.threads.size(), kMaxShownThreads);
  EXPECT_EQ(all.left_out, 300 - kMaxShownThreads);
}

TEST_F(ThreadFactsTest, ProcessesThatAreOthers) {
  EXPECT_EQ(ReadThreads(proc_, 41, 700).status().code(), StatusCode::kNotFound);
  Thread(42, "train", "S (sleeping)");
  EXPECT_EQ(ReadThreads(proc_, 42, 701).status().code(), StatusCode::kNotFound) << "another process has its number";
}

}  // namespace
}  // namespace profd
