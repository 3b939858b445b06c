// `profctl stacks`.
#include "client/commands/stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/json.h"
#include "client/test_support.h"

namespace profd::client {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Its main thread waits in function `where`; another one of a vendor's library sleeps.
v1::ProcessStacks Process(int rank, const std::string& where, int64_t step = 118) {
  v1::ProcessStacks process;
  process.set_pid(4700 + rank);
  process.set_job_id("j42");
  process.set_rank(rank);
  process.set_command("train.py");
  process.set_step(step);
  process.set_python(v1::ProcessStacks::PYTHON_ANSWERED);
  v1::ThreadStack& main = *process.add_threads();
  main.set_thread(4700 + rank);
  main.set_state(v1::ThreadStack::STATE_SLEEPING);
  main.set_system_call("futex");
  main.set_kernel_function("futex_wait_queue");
  main.set_trains(true);
  for (const auto& [function, line] : {std::pair(where, 31), {std::string("main"), 88}}) {
    v1::StackFrame& frame = *main.add_frames();
    frame.set_file("train.py");
    frame.set_function(function);
    frame.set_line(static_cast<uint32_t>(line));
  }
  v1::ThreadStack& other = *process.add_threads();
  other.set_thread(5700 + rank);
  other.set_name("hccl");
  other.set_state(v1::ThreadStack::STATE_SLEEPING);
  return process;
}

class StacksTest : public ProfctlTest {};

TEST_F(StacksTest, RanksAtTheSamePlaceAreOneEntryTheFewestFirst) {
  for (int rank : {0, 1, 2, 4}) *daemon_.stacks.add_processes() = Process(rank, "all_reduce", rank == 4 ? 117 : 118);
  *daemon_.stacks.add_processes() = Process(3, "save_checkpoint", 117);
  EXPECT_EQ(Run({"stacks", "--job", "j42", "--rank", "0-4", "--pid", "7"}), 0) << err();
  EXPECT_EQ(daemon_.stacks_request.job_id(), "j42");
  EXPECT_THAT(daemon_.stacks_request.ranks(), testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(daemon_.stacks_request.pids(), testing::ElementsAre(7));
  EXPECT_EQ(out(),
            "rank 3 (process 4703, train.py) of job j42, step 117\n"
            "  main thread, trains: sleeps, system call futex (futex_wait_queue)\n"
            "      save_checkpoint (train.py:31)\n"
            "      main (train.py:88)\n"
            "  other threads: --all\n"
            "\n"
            "4 ranks: 0-2,4 of job j42, steps 117 to 118\n"
            "  main thread, trains: sleeps, system call futex (futex_wait_queue)\n"
            "      all_reduce (train.py:31)\n"
            "      main (train.py:88)\n"
            "  other threads: --all\n");
}

TEST_F(StacksTest, AllThreads) {
  v1::ProcessStacks process = Process(3, "save");
  process.mutable_threads(1)->set_state(v1::ThreadStack::STATE_BLOCKED);
  process.mutable_threads(1)->set_system_call("ioctl");
  process.mutable_threads(1)->set_file("/dev/davinci0\033[2J");
  process.set_threads_left_out(12);
  *daemon_.stacks.add_processes() = process;
  EXPECT_EQ(Run({"stacks", "--all"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("  main thread 4703, trains: sleeps"));
  EXPECT_THAT(out(), HasSubstr("  thread 5703 (hccl): blocked in the kernel, system call ioctl on /dev/davinci0"));
  EXPECT_THAT(out(), HasSubstr("12 more threads"));
  EXPECT_THAT(out(), Not(HasSubstr("\033")));
  // One that a driver holds is seen without it.
  EXPECT_EQ(Run({"stacks"}), 0);
  EXPECT_THAT(out(), HasSubstr("thread (hccl): blocked in the kernel"));
}

TEST_F(StacksTest, ReportsWhyThereAreNoFrames) {
  for (const auto& [python, text] : {std::pair(v1::ProcessStacks::PYTHON_SILENT, "has not answered in two seconds"),
                                     {v1::ProcessStacks::PYTHON_NONE, "no Python"},
                                     {v1::ProcessStacks::PYTHON_NOT_ATTACHED, "not attached"}}) {
    daemon_.stacks.Clear();
    v1::ProcessStacks process = Process(3, "save");
    process.mutable_threads(0)->clear_frames();
    process.set_python(python);
    *daemon_.stacks.add_processes() = process;
    EXPECT_EQ(Run({"stacks"}), 0);
    EXPECT_THAT(out(), HasSubstr(text));
  }
  daemon_.stacks.mutable_processes(0)->set_problem("the kernel has not answered in time");
  daemon_.stacks.mutable_processes(0)->clear_threads();
  daemon_.stacks.set_left_out(4);
  EXPECT_EQ(Run({"stacks"}), 0);
  EXPECT_THAT(out(), HasSubstr("\n  the kernel has not answered in time\n"));
  EXPECT_THAT(out(), HasSubstr("\n4 of 5 processes are not shown"));
}

// As of SIGSTOP: a C++ process is as silent then as one with a Python.
TEST_F(StacksTest, AStoppedProcessIsNotSaidToHaveAPython) {
  v1::ProcessStacks process = Process(3, "save");
  process.mutable_threads(0)->clear_frames();
  process.mutable_threads(0)->set_state(v1::ThreadStack::STATE_STOPPED);
  process.set_python(v1::ProcessStacks::PYTHON_SILENT);
  *daemon_.stacks.add_processes() = process;
  EXPECT_EQ(Run({"stacks"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("\n  the process is stopped and cannot answer: only the kernel's state\n"));
  EXPECT_THAT(out(), Not(HasSubstr("Python")));
}

TEST_F(StacksTest, JsonAndErrors) {
  *daemon_.stacks.add_processes() = Process(3, "save");
  EXPECT_EQ(Run({"stacks", "--json"}), 0);
  const Json json = Json::parse(out());
  EXPECT_EQ(json["processes"][0]["rank"], 3);
  EXPECT_EQ(json["processes"][0]["python"], "answered");
  EXPECT_EQ(json["processes"][0]["threads"][0]["state"], "sleeping");
  EXPECT_EQ(json["processes"][0]["threads"][0]["frames"][0]["function"], "save");
  ExpectMessage({"stacks", "--rank", "x", "--pid", "-1"}, 2, "--rank");
  EXPECT_THAT(err(), HasSubstr("--pid"));
  daemon_.error = NotFound("no such training process of this user is known here");
  ExpectMessage({"stacks", "--job", "j42"}, 4, "training process of job j42 not found, or not owned by you");
  EXPECT_THAT(err(), HasSubstr("profctl jobs"));
  ExpectMessage({"stacks", "--pid", "7"}, 4, "process 7 not found, or not owned by you");
}

TEST_F(StacksTest, ManyNodes) {
  *daemon_.stacks.add_processes() = Process(3, "save");
  EXPECT_EQ(Run({"--nodes", "unix:/a,unix:/b", "stacks", "--job", "j42"}), 0) << err();
  EXPECT_THAT(out(), ContainsRegex("^2 ranks: 3 of job j42"));
  EXPECT_EQ(Run({"--nodes", "unix:/a", "stacks", "--job", "j42"}), 0) << err();
  EXPECT_THAT(out(), ContainsRegex("^rank 3 on unix:/a \\(process 4703, train.py\\) of job j42, step 118\n"));
  EXPECT_EQ(Run({"--nodes", "unix:/a,unix:/b", "--json", "stacks"}), 0);
  EXPECT_EQ(Json::parse(out())["nodes"][1]["answer"]["processes"][0]["pid"], 4703);
  EXPECT_EQ(Json::parse(out())["nodes"][1]["exit_code"], 0);
  ExpectMessage({"--nodes", "unix:/a", "stacks", "--pid", "7"}, 2, "--pid");
  daemon_.error = NotFound("none");
  ExpectMessage({"--nodes", "unix:/a,unix:/b", "stacks"}, 4,
                "training process not found on these 2 nodes, or not owned by you");
  EXPECT_EQ(Run({"--nodes", "unix:/a,unix:/b", "--json", "stacks"}), 4);
  EXPECT_EQ(Json::parse(out())["nodes"][1]["exit_code"], 4);
}

}  // namespace
}  // namespace profd::client
