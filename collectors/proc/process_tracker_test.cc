#include "collectors/proc/process_tracker.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "collectors/proc/testing/host_fixture.h"

namespace profd {
namespace {

using testing::All;
using testing::AndAll;
using ::testing::ElementsAre;
using testing::FakeHost;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Job;
using testing::OnlyOf;
using testing::Roots;

std::string StatLine(int pid, std::string_view comm, int ppid, int start) {
  return fmt::format("{} ({}) S {} 1 1 0 -1 4194304 1 0 0 0 20 10 0 0 20 0 1 0 {} 4096 100 0\n",
                     pid, comm, ppid, start);
}

class ProcessTrackerTest : public ::testing::Test {
 protected:
  void AddProcess(int pid, int ppid, std::string_view comm = "python3", int start = 0,
                  std::string_view environ = "") {
    const std::string folder = std::to_string(pid);
    fake_.proc.Write(folder + "/stat", StatLine(pid, comm, ppid, start == 0 ? pid : start));
    fake_.proc.Write(folder + "/statm", "100 50 10 1 0 20 0\n");
    fake_.proc.Write(folder + "/environ", environ);
    AddThread(pid, pid);
  }
  void AddThread(int pid, int tid) {
    fake_.proc.Write(fmt::format("{}/task/{}/stat", pid, tid), StatLine(tid, "worker", 1, tid));
  }
  void RemoveProcess(int pid) { fake_.proc.Remove(std::to_string(pid)); }

  std::vector<int> Pids(const ProcessTracker& tracker, bool job_only = false) {
    std::vector<int> pids;
    for (const TrackedProcess* process : tracker.processes()) {
      if (!process->gone && (process->in_job || !job_only)) pids.push_back(process->pid);
    }
    return pids;
  }
  static int64_t Second(int n) { return n * kNsPerSecond; }

  FakeHost fake_;
};

TEST_F(ProcessTrackerTest, AnEmptyScopeLooksAtNothing) {
  AddProcess(10, 1);
  ProcessTracker tracker(fake_.proc_fs, {}, {});
  EXPECT_TRUE(tracker.Refresh(Second(1)).ok());
  EXPECT_THAT(Pids(tracker), IsEmpty());
}

TEST_F(ProcessTrackerTest, AllMeansEveryNumberedFolder) {
  AddProcess(10, 1);
  AddProcess(9, 10);
  fake_.proc.Write("stat", "cpu 1 2 3\n");
  fake_.proc.MakeFolder("12a");
  fake_.proc.MakeFolder("-4");
  fake_.proc.MakeFolder("99999999999999");
  fake_.proc.MakeFolder("77");  // a process that is just going away: no stat
  ProcessTracker tracker(fake_.proc_fs, All(), {});
  EXPECT_TRUE(tracker.Refresh(Second(1)).ok());
  EXPECT_THAT(Pids(tracker), ElementsAre(9, 10));
  EXPECT_THAT(Pids(tracker, true), IsEmpty());
}

TEST_F(ProcessTrackerTest, RootsBringTheirDescendants) {
  AddProcess(100, 1);
  AddProcess(50, 100);  // numbers wrapped around
  AddProcess(40, 50);
  AddProcess(200, 1);
  AddProcess(201, 200);
  ProcessTracker tracker(fake_.proc_fs, Roots({100}), {});
  EXPECT_TRUE(tracker.Refresh(Second(1)).ok());
  EXPECT_THAT(Pids(tracker), ElementsAre(40, 50, 100));

  AddProcess(300, 40);
  EXPECT_TRUE(tracker.Refresh(Second(1) + Second(1) / 2).ok());
  EXPECT_THAT(Pids(tracker), ElementsAre(40, 50, 100));  // not before a second has passed
  EXPECT_TRUE(tracker.Refresh(Second(2)).ok());
  EXPECT_THAT(Pids(tracker), ElementsAre(40, 50, 100, 300));

  // The root exits: its children stay, and its number is not a root any more.
  RemoveProcess(100);
  EXPECT_TRUE(tracker.Refresh(Second(3)).ok());
  EXPECT_THAT(Pids(tracker), ElementsAre(40, 50, 300));
  AddProcess(100, 1, "other", 777);
  AddProcess(400, 100);
  EXPECT_TRUE(tracker.Refresh(Second(4)).ok());
  EXPECT_THAT(Pids(tracker), ElementsAre(40, 50, 300));
}

TEST_F(ProcessTrackerTest, ACycleOfParentsEnds) {
  AddProcess(10, 11);
  AddProcess(11, 10);
  AddProcess(12, 12);
  ProcessTracker tracker(fake_.proc_fs, Roots({10}), {});
  EXPECT_TRUE(tracker.Refresh(Second(1)).ok());
  EXPECT_THAT(Pids(tracker), ElementsAre(10, 11));
}

TEST_F(ProcessTrackerTest, ReportsMissingRootsOnce) {
  AddProcess(10, 1);
  ProcessTracker tracker(fake_.proc_fs, Roots({10, 4242}), {});
  Status status = tracker.Refresh(Second(1));
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("4242"));
  EXPECT_THAT(Pids(tracker), ElementsAre(10));
  EXPECT_TRUE(tracker.Refresh(Second(2)).ok());
}

TEST_F(ProcessTrackerTest, FindsAJobByEveryVariableAndByNothingElse) {
  using namespace std::string_literals;
  int pid = 10;
  for (const char* name :
       {"PROFD_JOB_ID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "MA_JOB_ID"}) {
    AddProcess(pid++, 1, "a", 0, "PATH=/bin\0"s + name + "=j7\0HOME=/\0"s);
  }
  AddProcess(20, 1, "b", 0, "SLURM_JOB_ID=j77\0"s);
  AddProcess(21, 1, "b", 0, "MY_JOB_ID=j7\0"s);
  AddProcess(22, 1, "b", 0, "SLURM_JOB_ID\0j7\0=j7\0"s);
  AddProcess(23, 1, "b", 0, "X=SLURM_JOB_ID=j7"s);
  AddProcess(24, 1, "c", 0, std::string(300000, 'x') + "\0JOB_ID=j7"s);  // the last, unterminated
  AddProcess(25, 24, "child");
  ProcessTracker tracker(fake_.proc_fs, Job("j7"), {});
  EXPECT_TRUE(tracker.Refresh(Second(1)).ok());
  EXPECT_THAT(Pids(tracker), ElementsAre(10, 11, 12, 13, 14, 15, 24, 25));
}

TEST_F(ProcessTrackerTest, LooksTwiceAtEnvironmentAndNameForTheSakeOfExec) {
  using namespace std::string_literals;
  AddProcess(10, 1, "slurmstepd");
  ProcessTracker tracker(fake_.proc_fs, Job("j7"), {});
  EXPECT_TRUE(tracker.Refresh(Second(1)).ok());
  EXPECT_THAT(Pids(tracker), IsEmpty());
  AddProcess(10, 1, "python3", 0, "SLURM_JOB_ID=j7\0"s);
  EXPECT_TRUE(tracker.Refresh(Second(2)).ok());
  ASSERT_THAT(Pids(tracker), ElementsAre(10));
  EXPECT_EQ(tracker.processes()[0]->comm, "python3");

  AddProcess(11, 1);
  EXPECT_TRUE(tracker.Refresh(Second(3)).ok());
  EXPECT_TRUE(tracker.Refresh(Second(4)).ok());
  AddProcess(11, 1, "late", 0, "SLURM_JOB_ID=j7\0"s);  // its environment is not read a third time
  EXPECT_TRUE(tracker.Refresh(Second(5)).ok());
  EXPECT_THAT(Pids(tracker), ElementsAre(10));
}

TEST_F(ProcessTrackerTest, AllAndAJobTogether) {
  using namespace std::string_literals;
  AddProcess(10, 1, "a", 0, "JOB_ID=j7\0"s);
  AddProcess(11, 10);
  AddProcess(12, 1);
  ProcessTracker tracker(fake_.proc_fs, AndAll(Job("j7")), {});
  EXPECT_TRUE(tracker.Refresh(Second(1)).ok());
  EXPECT_THAT(Pids(tracker), ElementsAre(10, 11, 12));
  EXPECT_THAT(Pids(tracker, true), ElementsAre(10, 11));
}

TEST_F(ProcessTrackerTest, RespectsTheOwner) {
  AddProcess(10, 1);
  ProcessTracker mine(fake_.proc_fs, OnlyOf(getuid(), All()), {});
  EXPECT_TRUE(mine.Refresh(Second(1)).ok());
  EXPECT_THAT(Pids(mine), ElementsAre(10));
  ProcessTracker others(fake_.proc_fs, OnlyOf(getuid() + 1, Roots({10})), {});
  EXPECT_EQ(others.Refresh(Second(1)).code(), StatusCode::kNotFound);
  EXPECT_THAT(Pids(others), IsEmpty());
}

TEST_F(ProcessTrackerTest, DropsASuccessorUnderTheSameNumber) {
  AddProcess(10, 1, "old", 500);
  AddProcess(11, 10);
  ProcessTracker tracker(fake_.proc_fs, Roots({10}), {.file = "statm"});
  EXPECT_TRUE(tracker.Refresh(Second(1)).ok());
  EXPECT_TRUE(tracker.Refresh(Second(2)).ok());
  EXPECT_THAT(Pids(tracker), ElementsAre(10, 11));
  AddProcess(10, 1, "new", 900);
  EXPECT_TRUE(tracker.Refresh(Second(3)).ok());
  EXPECT_THAT(Pids(tracker), ElementsAre(11));

  ProcessTracker all(fake_.proc_fs, All(), {.file = "statm"});
  EXPECT_TRUE(all.Refresh(Second(1)).ok());
  all.processes()[0]->attachment = std::make_unique<ProcessAttachment>();
  AddProcess(10, 1, "newer", 901);
  EXPECT_TRUE(all.Refresh(Second(2)).ok());
  ASSERT_THAT(Pids(all), ElementsAre(10, 11));
  EXPECT_EQ(all.processes()[0]->comm, "newer");
  EXPECT_EQ(all.processes()[0]->attachment, nullptr);  // nothing of the old one is left
}

TEST_F(ProcessTrackerTest, AVanishedProcessIsNotAnError) {
  AddProcess(10, 1);
  AddProcess(11, 1);
  ProcessTracker tracker(fake_.proc_fs, All(), {.max_kept_files = 1});
  EXPECT_TRUE(tracker.Refresh(Second(1)).ok());
  EXPECT_EQ(tracker.kept_files(), 1u);
  RemoveProcess(11);  // the one that is opened per reading
  TrackedProcess& process = *tracker.processes()[1];
  EXPECT_EQ(tracker.Read(process).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(process.gone);
  EXPECT_TRUE(tracker.Refresh(Second(1) + 1).ok());
  EXPECT_EQ(tracker.processes().size(), 1u);
}

TEST_F(ProcessTrackerTest, StaysWithinItsBoundsAndReportsItOnce) {
  for (int pid = 1; pid <= 20; ++pid) AddProcess(pid, 0);
  ProcessTracker tracker(fake_.proc_fs, All(), {.max_processes = 8, .max_kept_files = 5});
  Status status = tracker.Refresh(Second(1));
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("12 processes"));
  EXPECT_EQ(tracker.processes().size(), 8u);
  EXPECT_EQ(tracker.kept_files(), 5u);
  for (TrackedProcess* process : tracker.processes()) {
    EXPECT_EQ(tracker.Read(*process).value_or(""),
              StatLine(process->pid, "python3", 0, process->pid));
  }
  EXPECT_TRUE(tracker.Refresh(Second(2)).ok());
  // When some exit, others take their places, and descriptors are given back.
  for (int pid = 1; pid <= 6; ++pid) RemoveProcess(pid);
  EXPECT_TRUE(tracker.Refresh(Second(3)).ok());
  EXPECT_THAT(Pids(tracker), ElementsAre(7, 8, 9, 10, 11, 12, 13, 14));
  EXPECT_EQ(tracker.kept_files(), 5u);
}

TEST_F(ProcessTrackerTest, FollowsThreadsOfTheJobOnly) {
  AddProcess(10, 1);
  AddThread(10, 12);
  AddThread(10, 13);
  AddProcess(20, 1);
  ProcessTracker tracker(fake_.proc_fs, AndAll(Roots({10})),
                         {.threads = true, .max_threads = 3, .max_kept_files = 3});
  EXPECT_TRUE(tracker.Refresh(Second(1)).ok());
  ASSERT_THAT(Pids(tracker), ElementsAre(10, 20));
  TrackedProcess& process = *tracker.processes()[0];
  EXPECT_EQ(process.threads.size(), 3u);
  EXPECT_EQ(tracker.processes()[1]->threads.size(), 0u);
  EXPECT_EQ(tracker.Read(process, process.threads[2]).value_or(""), StatLine(13, "worker", 1, 13));

  fake_.proc.Remove("10/task/12");
  AddThread(10, 11);
  AddThread(10, 14);
  EXPECT_EQ(tracker.Refresh(Second(2)).code(), StatusCode::kResourceExhausted);
  std::vector<int> tids;
  for (const TrackedThread& thread : tracker.processes()[0]->threads) tids.push_back(thread.tid);
  EXPECT_THAT(tids, ElementsAre(10, 11, 13));
  EXPECT_TRUE(tracker.Refresh(Second(3)).ok());

  RemoveProcess(10);
  RemoveProcess(20);
  EXPECT_TRUE(tracker.Refresh(Second(4)).ok());
  EXPECT_EQ(tracker.kept_files(), 0u);
}

TEST_F(ProcessTrackerTest, GarbageIsNotAProcess) {
  AddProcess(10, 1);
  fake_.proc.Write("11/stat", std::string(1 << 20, '('));
  fake_.proc.Write("12/stat", "");
  fake_.proc.Write("13/stat", StatLine(14, "other number", 1, 5));
  fake_.proc.Write("15/stat", std::string("\0\xff\n", 3));
  fake_.proc.MakeFolder("16/stat");  // opens, but cannot be read
  fake_.proc.Link("17/stat", "/etc/hostname");
  ProcessTracker tracker(fake_.proc_fs, All(), {});
  EXPECT_TRUE(tracker.Refresh(Second(1)).ok());
  EXPECT_THAT(Pids(tracker), ElementsAre(10));
}

TEST_F(ProcessTrackerTest, TheRealProcWorksToo) {
  Result<RootedFs> real = RootedFs::OpenRoot("/proc");
  ASSERT_TRUE(real.ok());
  ProcessTracker tracker(*real, Roots({getpid()}), {.threads = true});
  ASSERT_TRUE(tracker.Refresh(Second(1)).ok());
  ASSERT_EQ(tracker.processes().size(), 1u);
  TrackedProcess& process = *tracker.processes()[0];
  PidStat stat;
  ASSERT_TRUE(ParsePidStat(tracker.Read(process).value_or(""), &stat));
  EXPECT_EQ(stat.pid, getpid());
  EXPECT_EQ(stat.ppid, getppid());
  ASSERT_GE(process.threads.size(), 1u);
  EXPECT_TRUE(ParsePidStat(tracker.Read(process, process.threads[0]).value_or(""), &stat));
}

}  // namespace
}  // namespace profd
