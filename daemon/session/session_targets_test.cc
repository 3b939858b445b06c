#include "daemon/session/session_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TrainingProcess Process(pid_t pid, uint32_t uid, std::string job, int rank,
                        std::vector<int> devices) {
  return TrainingProcess{.pid = pid, .uid = uid, .job_id = std::move(job), .rank = rank, .devices = std::move(devices)};
}

class SessionTargetsTest : public ::testing::Test {
 protected:
  SessionTargetsTest() {
    peer_.uid = 1000;
    known_ = {Process(10, 1000, "j1", 0, {0}), Process(11, 1000, "j1", 1, {1, 2}),
              Process(12, 1000, "j2", 0, {3}), Process(20, 2000, "secret", 0, {4}),
              Process(21, 2000, "j1", 7, {5})};
  }
  Result<SessionTargets> Resolve() const { return ResolveTargets(request_.target(), peer_, known_); }
  std::vector<pid_t> Pids() const {
    std::vector<pid_t> pids;
    for (const TrainingProcess& process : Resolve().value_or({}).processes) {
      pids.push_back(process.pid);
    }
    return pids;
  }
  std::string Problem() const { return Resolve().status().ToString(); }

  Peer peer_;
  std::vector<TrainingProcess> known_;
  v1::SessionSpec request_;
};

TEST_F(SessionTargetsTest, AJobMeansItsProcessesAndTheirDevices) {
  request_.mutable_target()->set_job_id("j1");
  Result<SessionTargets> targets = Resolve();
  ASSERT_TRUE(targets.ok()) << Problem();
  EXPECT_TRUE(targets->bound);
  EXPECT_THAT(targets->devices, ElementsAre(0, 1, 2));
  EXPECT_THAT(Pids(), ElementsAre(10, 11));
}

TEST_F(SessionTargetsTest, RanksNarrow) {
  request_.mutable_target()->set_job_id("j1");
  request_.mutable_target()->add_ranks(1);
  EXPECT_THAT(Resolve().value_or({}).devices, ElementsAre(1, 2));
  EXPECT_THAT(Pids(), ElementsAre(11));
  request_.mutable_target()->add_ranks(7);  // another user's
  EXPECT_THAT(Problem(), HasSubstr("no rank 7 on this node (here are 0, 1)"));
}

TEST_F(SessionTargetsTest, RanksOfNothingAreAnError) {
  request_.mutable_target()->add_ranks(0);
  EXPECT_EQ(Resolve().status().code(), StatusCode::kInvalidArgument);
  request_.mutable_target()->set_job_id("j1");
  request_.mutable_target()->set_all(true);
  EXPECT_EQ(Resolve().status().code(), StatusCode::kInvalidArgument);
}

TEST_F(SessionTargetsTest, AnUnknownJobListsThoseThereAre) {
  request_.mutable_target()->set_job_id("nope");
  EXPECT_EQ(Resolve().status().code(), StatusCode::kNotFound);
  EXPECT_THAT(Problem(), HasSubstr("job_id = \"nope\": no process of it runs on this node; known jobs: "
                                   "j1 (2 processes), j2 (1 process); "));
  EXPECT_THAT(Problem(), HasSubstr("use all or devices"));
  EXPECT_THAT(Problem(), Not(HasSubstr("secret")));
  known_.clear();
  EXPECT_THAT(Problem(), HasSubstr("you have no jobs"));
}

TEST_F(SessionTargetsTest, AnothersJobDoesNotExist) {
  request_.mutable_target()->set_job_id("secret");
  EXPECT_EQ(Resolve().status().code(), StatusCode::kNotFound);
  peer_.admin = true;
  EXPECT_THAT(Pids(), ElementsAre(20));
}

TEST_F(SessionTargetsTest, AJobOfTwoUsersIsNamedByPids) {
  peer_.admin = true;
  request_.mutable_target()->set_job_id("j1");
  EXPECT_EQ(Resolve().status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Problem(), HasSubstr("uids 1000, 2000"));
  request_.mutable_target()->add_pids(21);
  EXPECT_THAT(Pids(), ElementsAre(21));
  request_.mutable_target()->clear_pids();
  request_.mutable_target()->set_all(true);
  EXPECT_THAT(Pids(), IsEmpty());
  EXPECT_EQ(Resolve().value_or({}).warnings.size(), 1u);
}

TEST_F(SessionTargetsTest, WithDevicesOrAllAJobIsAName) {
  request_.mutable_target()->set_job_id("nope");
  request_.mutable_target()->set_all(true);
  Result<SessionTargets> targets = Resolve();
  ASSERT_TRUE(targets.ok()) << Problem();
  EXPECT_FALSE(targets->bound);
  request_.mutable_target()->set_job_id("j1");
  request_.mutable_target()->set_all(false);
  request_.mutable_target()->add_devices(6);
  targets = Resolve();
  ASSERT_TRUE(targets.ok()) << Problem();
  EXPECT_FALSE(targets->bound);
  EXPECT_THAT(targets->devices, IsEmpty());
  EXPECT_THAT(Pids(), ElementsAre(10, 11));  // for their marks
}

TEST_F(SessionTargetsTest, AJobToComeIsAwaited) {
  request_.mutable_target()->set_job_id("later");
  EXPECT_FALSE(Resolve().ok());
  request_.mutable_target()->set_follow(true);
  ASSERT_TRUE(Resolve().ok()) << Problem();
  EXPECT_TRUE(Resolve()->bound);
  EXPECT_TRUE(Resolve()->awaits());
  EXPECT_THAT(Resolve()->warnings, IsEmpty());
  EXPECT_TRUE(Resolve()->Matches(Process(30, 1000, "later", 0, {1})));
  EXPECT_FALSE(Resolve()->Matches(Process(30, 2000, "later", 0, {1})));
  request_.mutable_target()->add_ranks(5);
  EXPECT_TRUE(Resolve().ok()) << Problem();
  request_.mutable_target()->set_job_id("j1");
  request_.mutable_target()->clear_ranks();
  EXPECT_FALSE(Resolve()->awaits()) << "it is there";
}

TEST_F(SessionTargetsTest, FollowIsAboutOneJob) {
  request_.mutable_target()->set_follow(true);
  EXPECT_THAT(Problem(), HasSubstr("job_id"));
  request_.mutable_target()->set_job_id("later");
  request_.mutable_target()->add_devices(1);
  EXPECT_THAT(Problem(), HasSubstr("devices"));
}

TEST_F(SessionTargetsTest, PidsNarrow) {
  request_.mutable_target()->set_job_id("j1");
  request_.mutable_target()->add_pids(11);
  EXPECT_THAT(Pids(), ElementsAre(11));
  EXPECT_THAT(Resolve().value_or({}).devices, ElementsAre(1, 2));
  request_.mutable_target()->clear_job_id();
  EXPECT_THAT(Pids(), ElementsAre(11));
  request_.mutable_target()->set_pids(0, 4711);
  Result<SessionTargets> targets = Resolve();
  ASSERT_TRUE(targets.ok()) << Problem();
  EXPECT_FALSE(targets->bound);
  EXPECT_THAT(targets->unknown_pids, ElementsAre(4711));
}

// It would become a session of the complete node.
TEST_F(SessionTargetsTest, PidsBesideAJobAreItsProcesses) {
  request_.mutable_target()->set_job_id("j1");
  for (const auto& [pid, why] : {std::pair{12, "(it is one of job j2); "}, {20, "of job j1; "}, {4711, "of job j1; "}}) {
    request_.mutable_target()->clear_pids();
    request_.mutable_target()->add_pids(11);
    request_.mutable_target()->add_pids(pid);
    EXPECT_EQ(Resolve().status().code(), StatusCode::kNotFound) << pid;
    EXPECT_THAT(Problem(), AllOf(HasSubstr("pids = " + std::to_string(pid) + ": is none of the processes of job j1"), HasSubstr(why),
                                 Not(HasSubstr("pids = 11")), Not(HasSubstr("secret"))));
  }
  request_.mutable_target()->set_pids(1, 10);
  EXPECT_THAT(Pids(), ElementsAre(10, 11));
  request_.mutable_target()->add_ranks(1);
  EXPECT_THAT(Problem(), HasSubstr("pids = 10: is none of the processes of job j1, ranks 1; "));
  request_.mutable_target()->clear_ranks();
  known_[1].job_id = "";
  EXPECT_THAT(Problem(), HasSubstr("pids = 11: is none of the processes of job j1 (it belongs to none)"));
  request_.mutable_target()->set_job_id("nope");
  EXPECT_THAT(Problem(), HasSubstr("job_id = \"nope\": no process of it runs on this node"));
  // Then it is only a name, as in `profctl run --job`.
  request_.mutable_target()->set_all(true);
  EXPECT_TRUE(Resolve().ok()) << Problem();
}

TEST_F(SessionTargetsTest, NothingNamedMeansNoProcess) {
  Result<SessionTargets> targets = Resolve();
  ASSERT_TRUE(targets.ok());
  EXPECT_FALSE(targets->any());
  EXPECT_THAT(Pids(), IsEmpty());
  EXPECT_FALSE(targets->Matches(known_[0]));
}

TEST_F(SessionTargetsTest, LatecomersAreDistinguished) {
  request_.mutable_target()->set_job_id("j1");
  request_.mutable_target()->add_ranks(1);
  SessionTargets targets = Resolve().value_or({});
  EXPECT_TRUE(targets.Matches(Process(30, 1000, "j1", 1, {})));
  EXPECT_FALSE(targets.Matches(Process(30, 1000, "j1", 0, {})));
  EXPECT_FALSE(targets.Matches(Process(30, 1000, "j2", 1, {})));
  EXPECT_FALSE(targets.Matches(Process(30, 2000, "j1", 1, {})));
}

TEST_F(SessionTargetsTest, ProcessesThatHaveGoneDoNotCount) {
  for (TrainingProcess& process : known_) process.silent_since_ns = 1;
  request_.mutable_target()->set_job_id("j1");
  EXPECT_EQ(Resolve().status().code(), StatusCode::kNotFound);
}

TEST_F(SessionTargetsTest, AJobWithoutDevicesIsProfiledOnTheHost) {
  known_ = {Process(10, 1000, "j1", 0, {})};
  request_.mutable_target()->set_job_id("j1");
  Result<SessionTargets> targets = Resolve();
  ASSERT_TRUE(targets.ok());
  EXPECT_TRUE(targets->bound);
  ASSERT_EQ(targets->warnings.size(), 1u);
  EXPECT_THAT(targets->warnings[0], HasSubstr("only the host"));
}

}  // namespace
}  // namespace profd
