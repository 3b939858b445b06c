#include "daemon/jobs/stacks_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "base/manual_executor.h"
#include "daemon/session/testing/fake_job_directory.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

using Stacks = v1::ProcessStacks;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Peer User(uint32_t uid, bool admin = false) { return {.uid = uid, .admin = admin}; }

// Process 101 (rank 0, attached as 1) and 102 (rank 1, attached as 2) of job a and user 1000, 103 of job b and user 2000,
// which is not attached.
class StacksServiceTest : public ::testing::Test, protected ThreadProbe {
 protected:
  struct Answer {
    v1::GetStacksResponse out;
    std::optional<Status> status;
  };

  StacksServiceTest() {
    for (int i = 1; i <= 3; ++i) {
      TrainingProcess process{.pid = 100 + i, .start_ticks = static_cast<uint64_t>(i), .uid = i == 3 ? 2000u : 1000u,
                              .job_id = i == 3 ? "b" : "a", .rank = i - 1,
                              .attach_id = i == 3 ? 0 : static_cast<uint64_t>(i)};
      jobs_.processes.push_back(process);
    }
  }

  void LookupThreads(pid_t pid, uint64_t start_ticks, std::function<void(Result<ProcessThreads>)> done) override {
    EXPECT_EQ(static_cast<uint64_t>(pid - 100), start_ticks);
    kernel_[pid] = std::move(done);
  }
  void Get(const Peer& peer, Answer* answer, const v1::GetStacksRequest& request = {}) {
    service_.Get(peer, request, &answer->out, [answer](const Status& status) { answer->status = status; });
  }
  // What the kernel says of a process: its main thread and another one, which the process itself numbers from 1.
  void Kernel(pid_t pid) {
    ProcessThreads threads;
    threads.threads.resize(2);
    threads.threads[0] = {pid, 1, "python3", 'S', "futex_wait_queue", "futex", ""};
    threads.threads[1] = {pid + 1000, 2, "hccl", 'D', "devdrv_wait", "ioctl", "/dev/davinci0"};
    auto waiting = std::move(kernel_.at(pid));
    kernel_.erase(pid);
    waiting(threads);
  }
  void Python(uint64_t id, std::vector<attach::StacksReport::Thread> threads = {{1, "", true, {{"train.py", "main", 12}}}}) {
    attach::StacksReport report;
    report.seq = asked_.at(id).back();
    report.has_python = true;
    report.threads = std::move(threads);
    service_.OnReport(id, report);
  }

  ManualClock clock_;
  ManualExecutor time_{clock_};
  Strand control_{time_.executor()};
  testing::FakeJobDirectory jobs_;
  std::map<pid_t, std::function<void(Result<ProcessThreads>)>> kernel_;
  std::map<uint64_t, std::vector<uint64_t>> asked_;
  bool can_ask_ = true;
  StacksService service_{{control_, jobs_, *this, [this](uint64_t id, uint64_t seq) {
    if (can_ask_) asked_[id].push_back(seq);
    return can_ask_;
  }}};
};

TEST_F(StacksServiceTest, KernelAndPythonInOneAnswer) {
  Answer answer;
  Get(User(1000), &answer);
  Kernel(101);
  Kernel(102);
  Python(1);
  EXPECT_FALSE(answer.status) << "one is still awaited";
  Python(2, {{2, "loader", false, {{"loader.py", "fetch", 7}, {"thread.py", "run", 1}}}, {77, "", false, {}}});
  ASSERT_TRUE(answer.status);
  ASSERT_EQ(answer.out.processes_size(), 2);
  const Stacks& first = answer.out.processes(0);
  EXPECT_EQ(first.pid(), 101);
  EXPECT_EQ(first.rank(), 0);
  EXPECT_EQ(first.python(), Stacks::PYTHON_ANSWERED);
  ASSERT_EQ(first.threads_size(), 2);
  EXPECT_EQ(first.threads(0).thread(), 101);
  EXPECT_EQ(first.threads(0).state(), v1::ThreadStack::STATE_SLEEPING);
  EXPECT_TRUE(first.threads(0).trains());
  ASSERT_EQ(first.threads(0).frames_size(), 1);
  EXPECT_EQ(first.threads(0).frames(0).file(), "train.py");
  EXPECT_EQ(first.threads(0).frames(0).function(), "main");
  EXPECT_EQ(first.threads(0).frames(0).line(), 12u);
  EXPECT_EQ(first.threads(1).state(), v1::ThreadStack::STATE_BLOCKED);
  EXPECT_EQ(first.threads(1).file(), "/dev/davinci0");
  EXPECT_EQ(first.threads(1).frames_size(), 0);
  // By the number that the process has for it; what the kernel did not have yet comes behind.
  const Stacks& second = answer.out.processes(1);
  ASSERT_EQ(second.threads_size(), 3);
  EXPECT_EQ(second.threads(1).thread(), 1102);
  EXPECT_EQ(second.threads(1).name(), "loader") << "the interpreter's name says more";
  ASSERT_EQ(second.threads(1).frames_size(), 2);
  EXPECT_EQ(second.threads(1).frames(0).function(), "fetch");
  EXPECT_FALSE(second.threads(2).has_thread());
}

TEST_F(StacksServiceTest, AnswersForTheCallersProcessesOnly) {
  Answer own, all, none;
  Get(User(2000), &own);
  Kernel(103);
  ASSERT_EQ(own.out.processes_size(), 1);
  EXPECT_EQ(own.out.processes(0).pid(), 103);
  EXPECT_EQ(own.out.processes(0).python(), Stacks::PYTHON_NOT_ATTACHED);
  Get(User(3000), &none);
  EXPECT_EQ(none.status->code(), StatusCode::kNotFound);
  Peer viewer = User(UINT32_MAX);
  viewer.viewer = true;
  Get(viewer, &none);
  EXPECT_EQ(none.status->code(), StatusCode::kNotFound);
  Get(User(0, true), &all);
  for (pid_t pid : {101, 102, 103}) Kernel(pid);
  Python(1);
  Python(2);
  EXPECT_EQ(all.out.processes_size(), 3);
}

TEST_F(StacksServiceTest, SomeByJobRankAndPid) {
  const auto pids = [&](const v1::GetStacksRequest& request) {
    Answer answer;
    Get(User(0, true), &answer, request);
    time_.Advance(StacksService::kDeadlineNs);
    std::vector<int> found;
    for (const Stacks& process : answer.out.processes()) found.push_back(process.pid());
    return found;
  };
  v1::GetStacksRequest request;
  request.set_job_id("a");
  EXPECT_THAT(pids(request), ElementsAre(101, 102));
  request.add_ranks(1);
  EXPECT_THAT(pids(request), ElementsAre(102));
  request.Clear();
  request.add_pids(103);
  request.add_pids(101);
  EXPECT_THAT(pids(request), ElementsAre(101, 103));
}

TEST_F(StacksServiceTest, ReportsProcessesThatDoNotAnswer) {
  Answer answer;
  Get(User(1000), &answer);
  Kernel(101);
  Python(2);
  time_.Advance(StacksService::kDeadlineNs - 1);
  EXPECT_FALSE(answer.status);
  time_.Advance(1);
  ASSERT_TRUE(answer.status);
  EXPECT_TRUE(answer.status->ok());
  EXPECT_EQ(answer.out.processes(0).python(), Stacks::PYTHON_SILENT);
  EXPECT_EQ(answer.out.processes(0).threads_size(), 2);
  EXPECT_EQ(answer.out.processes(1).python(), Stacks::PYTHON_ANSWERED);
  EXPECT_THAT(answer.out.processes(1).problem(), HasSubstr("in time"));
  ASSERT_EQ(answer.out.processes(1).threads_size(), 1) << "Python's are there all the same";
  // What comes late is of no use, and does no harm.
  Kernel(102);
  Python(1);
}

TEST_F(StacksServiceTest, ASilentProcessIsQueriedOnce) {
  Answer first, second, third;
  v1::GetStacksRequest of_one;
  of_one.add_pids(101);
  Get(User(1000), &first, of_one);
  time_.Advance(StacksService::kDeadlineNs);
  Get(User(1000), &second, of_one);
  EXPECT_EQ(asked_[1].size(), 1u);
  Kernel(101);
  Python(1);
  ASSERT_TRUE(second.status);
  EXPECT_EQ(second.out.processes(0).python(), Stacks::PYTHON_ANSWERED);
  Get(User(1000), &third, of_one);
  EXPECT_EQ(asked_[1].size(), 2u) << "it has answered: it is asked anew";
  time_.Advance(StacksService::kDeadlineNs);
}

TEST_F(StacksServiceTest, ProcessesThatEndOrCannotBeQueried) {
  Answer ended, old;
  v1::GetStacksRequest of_one;
  of_one.add_pids(101);
  Get(User(1000), &ended, of_one);
  service_.OnClosed(1);
  auto waiting = std::move(kernel_.at(101));
  waiting(Status(StatusCode::kNotFound, "the process has ended"));
  ASSERT_TRUE(ended.status);
  EXPECT_EQ(ended.out.processes(0).problem(), "the process has ended");
  can_ask_ = false;
  Get(User(1000), &old, of_one);
  Kernel(101);
  ASSERT_TRUE(old.status);
  EXPECT_EQ(old.out.processes(0).python(), Stacks::PYTHON_NOT_ATTACHED);
}

TEST_F(StacksServiceTest, AnswersOfStrangersAreIgnored) {
  Answer answer;
  v1::GetStacksRequest of_one;
  of_one.add_pids(101);
  Get(User(1000), &answer, of_one);
  Kernel(101);
  attach::StacksReport wrong;
  wrong.seq = asked_[1].back() + 5;
  service_.OnReport(1, wrong);
  service_.OnReport(99, wrong);
  EXPECT_FALSE(answer.status);
  wrong.seq = asked_[1].back();
  service_.OnReport(1, wrong);
  ASSERT_TRUE(answer.status);
  EXPECT_EQ(answer.out.processes(0).python(), Stacks::PYTHON_NONE);
}

TEST_F(StacksServiceTest, Limits) {
  std::vector<Answer> answers(StacksService::kMaxLooksOfUser + 1);
  for (Answer& answer : answers) Get(User(1000), &answer);
  ASSERT_TRUE(answers.back().status);
  EXPECT_EQ(answers.back().status->code(), StatusCode::kResourceExhausted);
  Answer other;
  Get(User(2000), &other);
  EXPECT_FALSE(other.status) << "another user is not in the way of this one";
  time_.Advance(StacksService::kDeadlineNs);
  EXPECT_TRUE(answers.front().status && other.status);

  std::vector<attach::StacksReport::Frame> frames(attach::kMaxStackFrames, {"f\033.py", "f", 1});
  Answer deep;
  v1::GetStacksRequest of_one;
  of_one.add_pids(101);
  Get(User(1000), &deep, of_one);
  Kernel(101);
  Python(1, std::vector<attach::StacksReport::Thread>(attach::kMaxStackThreads, {1, "", false, frames}));
  ASSERT_TRUE(deep.status);
  size_t count = 0;
  for (const v1::ThreadStack& thread : deep.out.processes(0).threads()) {
    count += static_cast<size_t>(thread.frames_size());
    for (const v1::StackFrame& frame : thread.frames()) EXPECT_EQ(frame.file().find('\033'), std::string::npos);
  }
  EXPECT_EQ(count, StacksService::kMaxFrames);
  EXPECT_TRUE(deep.out.processes(0).frames_left_out());

  jobs_.processes.assign(20, jobs_.processes.back());
  for (int i = 0; i < 20; ++i) jobs_.processes[static_cast<size_t>(i)].rank = 19 - i;
  Answer many;
  Get(User(2000), &many);
  time_.Advance(StacksService::kDeadlineNs);
  EXPECT_EQ(many.out.processes_size(), static_cast<int>(StacksService::kMaxProcesses));
  EXPECT_EQ(many.out.left_out(), 20 - StacksService::kMaxProcesses);
  EXPECT_EQ(many.out.processes(0).rank(), 0);
}

}  // namespace
}  // namespace profd
