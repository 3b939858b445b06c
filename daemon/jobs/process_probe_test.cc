#include "daemon/jobs/process_probe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "base/manual_executor.h"
#include "driver/rooted_fs.h"
#include "dump/test_support.h"

namespace profd {
namespace {

class ProcessProbeTest : public ::testing::Test {
 protected:
  ProcessProbeTest()
      : control_(time_.executor()),
        proc_(RootedFs::OpenRoot(tmp_.path()).value()),
        probe_(control_, proc_, clock_) {}

  void WriteProcess(int pid, uint64_t ticks, const std::string& job) {
    std::string base = std::to_string(pid);
    std::filesystem::create_directories(tmp_ / base);
    std::string stat = base + " (train) S";
    for (int field = 4; field < 22; ++field) stat += " 0";
    WriteText(tmp_ / (base + "/stat"), stat + " " + std::to_string(ticks) + " 0\n");
    WriteText(tmp_ / (base + "/environ"), "SLURM_JOB_ID=" + job);
    WriteText(tmp_ / (base + "/cgroup"), "0::/\n");
  }
  Result<std::vector<TrainingProcess>> Users(std::vector<DeviceUse> uses) {
    std::optional<Result<std::vector<TrainingProcess>>> answer;
    probe_.LookupUsers(std::move(uses), [&](auto users) {
      EXPECT_TRUE(control_.RunsHere());
      answer = std::move(users);
    });
    EXPECT_TRUE(time_.RunUntil([&] { return answer.has_value(); }));
    return *answer;
  }

  TempDir tmp_;
  ManualClock clock_;
  ManualExecutor time_{clock_};
  Strand control_;
  RootedFs proc_;
  ProcessProbe probe_;
};

TEST_F(ProcessProbeTest, AnswersOnTheControlStrand) {
  WriteProcess(42, 7, "4711");
  for (pid_t pid : {42, 43}) {
    std::optional<Result<ProcessFacts>> facts;
    probe_.Lookup(pid, [&](const Result<ProcessFacts>& answer) {
      EXPECT_TRUE(control_.RunsHere());
      facts = answer;
    });
    ASSERT_TRUE(time_.RunUntil([&] { return facts.has_value(); }));
    EXPECT_EQ(facts->ok() ? (*facts)->environment.job_id : "none", pid == 42 ? "4711" : "none");
  }
}

TEST_F(ProcessProbeTest, UsersAreProcessesThatExist) {
  WriteProcess(42, 7, "4711");
  WriteProcess(44, 8, "4712");
  auto users = Users({{42, {0, 1}}, {43, {1}}, {44, {2}}});
  ASSERT_TRUE(users.ok());
  ASSERT_EQ(users->size(), 2u);
  EXPECT_EQ((*users)[0].job_id, "4711");
  EXPECT_EQ((*users)[0].devices, (std::vector<int>{0, 1}));
  EXPECT_EQ((*users)[0].found_by, "device process list");
  EXPECT_FALSE((*users)[0].attached());
  // What is known of a process is kept for as long as it is the same one.
  WriteProcess(42, 7, "other");
  EXPECT_EQ((*Users({{42, {0}}}))[0].job_id, "4711");
  WriteProcess(42, 9, "successor");
  EXPECT_EQ((*Users({{42, {0}}}))[0].job_id, "successor");
}

TEST_F(ProcessProbeTest, ClosesWhatItIsGiven) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  UniqueFd read(ends[0]);
  probe_.Dispose(UniqueFd(ends[1]));
  pollfd hangup{read.get(), 0, 0};
  ASSERT_EQ(::poll(&hangup, 1, 60'000), 1);
  EXPECT_NE(hangup.revents & POLLHUP, 0);
}

}  // namespace
}  // namespace profd
