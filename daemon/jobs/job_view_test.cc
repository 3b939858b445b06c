#include "daemon/jobs/job_view.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

TrainingProcess MakeViewed(uint64_t attach_id, pid_t pid, const std::string& job, uint32_t uid = 1000) {
  return {.pid = pid, .uid = uid, .job_id = job, .attach_id = attach_id};
}

class JobViewTest : public ::testing::Test {
 protected:
  v1::ListJobsResponse View(const Peer& peer, const std::string& job = "", bool attached = false) {
    v1::ListJobsRequest request;
    request.set_job_id(job);
    request.set_attached_only(attached);
    v1::ListJobsResponse out;
    DescribeJobs(peer, request, processes_, sessions_, kNsPerSecond, &out);
    return out;
  }
  static Peer User(uint32_t uid) { return {.uid = uid}; }
  std::vector<TrainingProcess> processes_ = {MakeViewed(1, 11, "a"), MakeViewed(0, 12, "a"),
                                             MakeViewed(2, 13, "a", 2000), MakeViewed(0, 14, "")};
  std::vector<ActiveSession> sessions_ = {{"s1", "a", 1000}, {"s2", "a", 2000}, {"s3", "", 1000}};
};

TEST_F(JobViewTest, TheSameIdOfAnotherUserIsAnotherJob) {
  v1::ListJobsResponse mine = View(User(1000));
  ASSERT_EQ(mine.jobs_size(), 2);
  EXPECT_EQ(mine.jobs(0).job_id(), "");
  EXPECT_EQ(mine.jobs(0).sessions(0), "s3");
  EXPECT_EQ(mine.jobs(1).processes_size(), 2);
  ASSERT_EQ(mine.jobs(1).sessions_size(), 1);
  EXPECT_EQ(mine.jobs(1).sessions(0), "s1");
  v1::ListJobsResponse theirs = View(User(2000));
  ASSERT_EQ(theirs.jobs_size(), 1);
  EXPECT_EQ(theirs.jobs(0).sessions(0), "s2");
  Peer admin = User(0);
  admin.admin = true;
  EXPECT_EQ(View(admin).jobs_size(), 3);
  EXPECT_EQ(View(admin, "a").jobs_size(), 2);
  EXPECT_EQ(View(User(3000)).jobs_size(), 0);
}

TEST_F(JobViewTest, FiltersAndOrders) {
  processes_[0].rank = 9;
  processes_[1].rank = 2;
  processes_[1].world_size = 16;
  processes_[1].silent_since_ns = kNsPerSecond / 2;
  v1::ListJobsResponse out = View(User(1000), "a");
  ASSERT_EQ(out.jobs_size(), 1);
  EXPECT_EQ(out.jobs(0).world_size(), 16u);
  EXPECT_EQ(out.jobs(0).processes(0).rank(), 2);
  EXPECT_EQ(out.jobs(0).processes(0).silent_ns(), 500'000'000u);
  EXPECT_FALSE(out.jobs(0).processes(1).has_silent_ns());
  EXPECT_EQ(View(User(1000), "", true).jobs_size(), 1);
  EXPECT_EQ(View(User(1000), "", true).jobs(0).processes_size(), 1);
  EXPECT_EQ(View(User(1000), "none").jobs_size(), 0);
}

// What a watcher of activity keeps.
}  // namespace
}  // namespace profd
