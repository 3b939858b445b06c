// profctl jobs against golden files.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "client/test_support.h"
#include "client/user_names.h"

namespace profd::client {
namespace {

v1::JobProcess* AddProcess(v1::Job* job, int pid, std::optional<int> rank) {
  v1::JobProcess* process = job->add_processes();
  process->set_pid(pid);
  process->set_uid(job->uid());
  if (rank) process->set_rank(*rank);
  process->set_command("python3");
  process->set_found_by(v1::JobProcess::FOUND_BY_DEVICE_PROCESS_LIST);
  return process;
}

class JobsTest : public ProfctlTest {
 protected:
  JobsTest() {
    v1::Job* training = daemon_.jobs.add_jobs();
    training->set_job_id("4711");
    training->set_uid(1000);
    training->set_world_size(16);
    training->add_sessions("69a5620509d5");
    for (int i = 0; i < 4; ++i) {
      v1::JobProcess* process = AddProcess(training, 1200 + i + (i == 3 ? 40 : 0), 8 + i);
      process->set_local_rank(i);
      process->add_devices(static_cast<uint32_t>(i));
      if (i == 2) {
        process->set_silent_ns(12'000'000'000);
        continue;
      }
      process->set_attached(true);
      process->set_found_by(v1::JobProcess::FOUND_BY_ATTACHED);
      process->set_framework("pytorch");
      process->set_attached_ns(1'767'225'600'000'000'000);
      process->set_step(99 + i);
      process->set_step_ns(250'500'000 + static_cast<uint64_t>(i) * 1'000'000'000);
      process->set_marks(1000);
      process->set_dropped_marks(static_cast<uint64_t>(i));
    }
    v1::Job* nameless = daemon_.jobs.add_jobs();
    nameless->set_uid(0);
    AddProcess(nameless, 77, std::nullopt)->set_command("evil\033[2J");
  }
};

TEST_F(JobsTest, PrintsAsTheGoldenFilesSay) {
  EXPECT_EQ(Run({"jobs"}), 0);
  ExpectGolden(out(), "jobs.txt");
  EXPECT_EQ(Run({"jobs", "--json"}), 0);
  ExpectGolden(out(), "jobs.json");
  EXPECT_EQ(Run({"jobs", "--job", "4711", "--attached"}), 0);
  ExpectGolden(out(), "jobs_processes.txt");
  EXPECT_EQ(daemon_.jobs_request.job_id(), "4711");
  EXPECT_TRUE(daemon_.jobs_request.attached_only());
  EXPECT_EQ(out().find('\033'), std::string::npos);
}

// The nodes of --nodes are asked by a thread each. A name is never seen before it is looked up, which is done once.
TEST(UserNames, AreTheSameForManyThreads) {
  constexpr uint32_t kUsers = 500;
  std::atomic<uint32_t> lookups = 0;
  SetUserLookup([&](uint32_t uid) {
    ++lookups;
    std::this_thread::yield();
    return "user" + std::to_string(uid);
  });
  std::atomic<uint32_t> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&wrong] {
      for (uint32_t uid = 0; uid < kUsers; ++uid) wrong += UserText(uid) == "user" + std::to_string(uid) ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(lookups, kUsers);
  SetUserLookup([](uint32_t uid) { return std::to_string(uid); });
}

TEST_F(JobsTest, ReportsThatThereIsNothing) {
  daemon_.jobs.clear_jobs();
  EXPECT_EQ(Run({"jobs"}), 0);
  EXPECT_EQ(out(), "no process is attached or uses a device\n");
  ExpectMessage({"jobs", "--job", "none"}, 4, "no process of job none");
  EXPECT_EQ(Run({"jobs", "--json"}), 0);
  EXPECT_NE(out().find("\"jobs\": []"), std::string::npos);
}

}  // namespace
}  // namespace profd::client
