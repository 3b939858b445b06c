#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/archive/archive_rule.h"
#include "daemon/archive/archive_test_support.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kHere = "clickhouse://db:8123/profiles";

// Nothing is archived by itself: what waits was asked for.
class ArchiveRequestTest : public ArchiveQueueTest {
 protected:
  ArchiveRequestTest() {
    config_.archive_which = {"label=none"};
    Configure();
    user_.uid = 1000;
  }
  Status Ask(v1::ArchiveDumpsRequest request) {
    if (request.to().empty()) request.set_to(kHere);
    response_.Clear();
    return queue_->Request(user_, request, &response_);
  }
  Status AskJob(const std::string& run = "") {
    v1::ArchiveDumpsRequest request;
    request.set_job_id("train");
    request.set_run(run);
    return Ask(request);
  }
  Status AskIds(const std::vector<std::string>& ids, const std::string& run = "") {
    v1::ArchiveDumpsRequest request;
    request.mutable_ids()->Assign(ids.begin(), ids.end());
    request.set_run(run);
    return Ask(request);
  }
  std::vector<std::string> Runs() {
    std::vector<std::string> runs;
    for (const v1::Dump& dump : response_.dumps()) runs.push_back(dump.archive().run());
    return runs;
  }

  Peer user_;
  v1::ArchiveDumpsResponse response_;
};

TEST_F(ArchiveRequestTest, DumpsLoadedIntoAnotherDatabaseAreLoadedAgain) {
  Finish(1);
  ASSERT_TRUE(AskJob().ok());
  EXPECT_EQ(Take(), Name(1));
  ASSERT_TRUE(Loaded(1).ok());
  ASSERT_TRUE(AskJob().ok());
  EXPECT_EQ(Take(), "") << "it is there";
  config_.archive_to = "clickhouse://other/profiles";
  Configure();
  v1::ArchiveDumpsRequest request;
  request.set_job_id("train");
  request.set_to("clickhouse://other:8123/profiles");
  ASSERT_TRUE(Ask(request).ok());
  EXPECT_EQ(Take(), Name(1));
  EXPECT_EQ(upload_.to(), "clickhouse://other/profiles");
}

TEST_F(ArchiveRequestTest, AJobsDumpsWaitAndAreLoaded) {
  Finish(1);
  Finish(2);
  KeptDump other = Make(3);
  other.job_id = "other";
  Finish(other);
  EXPECT_EQ(Take(), "");
  ASSERT_TRUE(AskJob().ok());
  EXPECT_EQ(response_.dumps_size(), 2);
  EXPECT_EQ(response_.dumps(0).archive().state(), v1::ArchiveState::STATE_WAITING);
  EXPECT_THAT(Runs(), ElementsAre("1000-train-s1", "1000-train-s2"));
  EXPECT_EQ(response_.archive().waiting(), 2U);
  EXPECT_TRUE(IsProtected(1));
  EXPECT_FALSE(IsProtected(3));
  // Asking again changes nothing, before and after.
  ASSERT_TRUE(AskJob().ok());
  EXPECT_EQ(queue_->waiting().dumps, 2U);
  EXPECT_EQ(Take(), Name(1));
  EXPECT_TRUE(Loaded(1).ok());
  ASSERT_TRUE(AskJob().ok());
  EXPECT_EQ(response_.dumps(0).archive().state(), v1::ArchiveState::STATE_LOADED);
  EXPECT_EQ(response_.dumps(0).archive().rows(), 7U);
  EXPECT_EQ(queue_->waiting().dumps, 1U);
}

TEST_F(ArchiveRequestTest, ByTheIdOfASessionAStartOrADump) {
  Finish(1);
  KeptDump fleet = Make(2);
  fleet.fleet = "0123456789abcdef";
  Finish(fleet);
  Finish(3);
  ASSERT_TRUE(AskIds({"s1", "0123456789abcdef", Name(3), "of another node"}).ok());
  EXPECT_THAT(Runs(), ElementsAre("1000-train-s1", "1000-train-0123456789abcdef", "1000-train-s3"));
  EXPECT_EQ(AskIds({"of another node"}).code(), StatusCode::kNotFound);
}

TEST_F(ArchiveRequestTest, OnlyTheCallersOwn) {
  Finish(1);
  user_.uid = 1001;
  EXPECT_EQ(AskJob().code(), StatusCode::kNotFound);
  EXPECT_EQ(AskIds({"s1"}).code(), StatusCode::kNotFound);
  user_.viewer = true;
  EXPECT_EQ(AskJob().code(), StatusCode::kNotFound) << "a viewer sees it and takes nothing";
  user_.viewer = false;
  user_.admin = true;
  ASSERT_TRUE(AskJob("x").ok());
  EXPECT_THAT(Runs(), ElementsAre("1000-x")) << "the owner's uid, whichever user requests it";
}

TEST_F(ArchiveRequestTest, OnlyIntoTheNodesOwnDatabase) {
  Finish(1);
  v1::ArchiveDumpsRequest request;
  request.set_job_id("train");
  for (const char* same : {"clickhouse://db/profiles", "clickhouse://me:secret@DB:8123/profiles"}) {
    request.set_to(same);
    EXPECT_TRUE(Ask(request).ok()) << same;
  }
  for (const char* other : {"clickhouse://db2/profiles", "clickhouses://db/profiles", "clickhouse://db:9000/profiles", "clickhouse://db/other",
                            "clickhouse://me:secret@evil/profiles"}) {
    request.set_to(other);
    const Status refused = Ask(request);
    EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << other;
    EXPECT_THAT(refused.message(), HasSubstr("loads into clickhouse://db:8123/profiles"));
    EXPECT_THAT(refused.message(), ::testing::Not(HasSubstr("secret")));
  }
  for (const char* none : {"", "db", "http://db/profiles", "clickhouse://db", "clickhouse://a@b@/x"}) {
    request.set_to(none);
    user_.uid = 1000;
    v1::ArchiveDumpsResponse ignored;
    EXPECT_EQ(queue_->Request(user_, request, &ignored).code(), StatusCode::kInvalidArgument) << none;
  }
  config_.archive_to = "";
  Configure();
  EXPECT_EQ(AskJob().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(AskJob().message(), HasSubstr("archive.to is not set"));
}

TEST_F(ArchiveRequestTest, ANameOfTheUsers) {
  Finish(1);
  ASSERT_TRUE(AskJob("llama").ok());
  EXPECT_THAT(Runs(), ElementsAre("1000-llama"));
  EXPECT_EQ(Take(), Name(1));
  EXPECT_EQ(upload_.run(), "1000-llama");
  EXPECT_TRUE(Loaded(1).ok());
  ASSERT_TRUE(AskJob().ok());
  EXPECT_EQ(response_.dumps(0).archive().state(), v1::ArchiveState::STATE_LOADED) << "any name will do";
  ASSERT_TRUE(AskJob("llama").ok());
  EXPECT_EQ(Take(), "") << "it is there under that name";
  ASSERT_TRUE(AskJob("{user}-bert").ok());
  EXPECT_EQ(Take(), Name(1));
  EXPECT_EQ(upload_.run(), "1000-bert");
  // Where the operator does not keep users apart.
  EXPECT_TRUE(Loaded(1).ok());
  config_.archive_run = "{job}";
  Configure();
  ASSERT_TRUE(AskJob("bert").ok());
  EXPECT_THAT(Runs(), ElementsAre("bert"));
  for (const char* wrong : {"a\nb", "{nothing}", "{", "\x7f"}) EXPECT_EQ(AskJob(wrong).code(), StatusCode::kInvalidArgument) << wrong;
  EXPECT_EQ(AskJob(std::string(kMaxRunName + 1, 'a')).code(), StatusCode::kInvalidArgument);
}

TEST_F(ArchiveRequestTest, AnotherNameWhileItIsLoaded) {
  Finish(1);
  ASSERT_TRUE(AskJob("one").ok());
  EXPECT_EQ(Take(), Name(1));
  ASSERT_TRUE(AskJob("two").ok());
  EXPECT_TRUE(Loaded(1).ok()) << "as one";
  EXPECT_TRUE(IsProtected(1));
  EXPECT_EQ(Take(), Name(1));
  EXPECT_EQ(upload_.run(), "1000-two");
  EXPECT_TRUE(Loaded(1).ok());
  EXPECT_FALSE(IsProtected(1));
  EXPECT_EQ(StateOf(1).run(), "1000-two");
}

TEST_F(ArchiveRequestTest, SessionsDoNotReplaceEachOther) {
  Finish(1);
  Finish(2);
  const Status refused = AskJob("llama");
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("'llama-{session}'"));
  EXPECT_EQ(queue_->waiting().dumps, 0U);
  ASSERT_TRUE(AskJob("llama-{session}").ok());
  EXPECT_THAT(Runs(), ElementsAre("1000-llama-s1", "1000-llama-s2"));
  ASSERT_TRUE(AskIds({"s1"}, "llama").ok());
  // One session that was resumed.
  KeptDump second = Make(3);
  second.session_id = "s1";
  second.segment = 2;
  Finish(second);
  ASSERT_TRUE(AskIds({"s1"}, "llama").ok());
  EXPECT_THAT(Runs(), ElementsAre("1000-llama", "1000-llama.2"));
}

TEST_F(ArchiveRequestTest, DumpsGivenUpWaitAgain) {
  config_.archive_give_up_after_h = 1;
  Configure();
  Finish(1);
  ASSERT_TRUE(AskJob().ok());
  time_.Advance(3601 * kNsPerSecond);
  queue_->Tick();
  EXPECT_EQ(StateOf(1).state(), v1::ArchiveState::STATE_LOST);
  ASSERT_TRUE(AskJob().ok());
  queue_->Tick();
  EXPECT_EQ(StateOf(1).state(), v1::ArchiveState::STATE_WAITING) << "the hours count from the request";
  v1::ArchiveDumpsRequest look;
  look.set_job_id("train");
  look.set_only_look(true);
  time_.Advance(3601 * kNsPerSecond);
  queue_->Tick();
  ASSERT_TRUE(Ask(look).ok());
  EXPECT_EQ(response_.dumps(0).archive().state(), v1::ArchiveState::STATE_LOST) << "looking queues nothing";
  EXPECT_THAT(response_.dumps(0).archive().problem(), HasSubstr("given up after 1 h"));
}

TEST_F(ArchiveRequestTest, AFullQueueRefusesAndLosesNothing) {
  config_.archive_max_waiting = 4;
  Configure();
  for (int number : {1, 2, 3}) Finish(number);
  EXPECT_EQ(AskJob().code(), StatusCode::kResourceExhausted) << "half of it is one user's";
  EXPECT_THAT(AskJob().message(), HasSubstr("one user may have half"));
  EXPECT_EQ(queue_->waiting().dumps, 0U) << "all or nothing";
  ASSERT_TRUE(AskIds({"s1", "s2"}).ok());
  EXPECT_EQ(AskIds({"s3"}).code(), StatusCode::kResourceExhausted);
  user_.admin = true;
  ASSERT_TRUE(AskIds({"s3"}).ok());
  Finish(4);
  Finish(5);
  const Status full = AskIds({"s4", "s5"});
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), HasSubstr("archive.max_waiting"));
  EXPECT_THAT(Counted(queue_->counts().lost), IsEmpty());
  config_.archive_max_waiting_mb = 4;
  Configure();
  Finish(6, 2 * kMiB);
  EXPECT_THAT(AskIds({"s6"}).message(), HasSubstr("archive.max_waiting_mb"));
}

TEST_F(ArchiveRequestTest, NamesIncompleteDumps) {
  KeptDump running = Make(1);
  running.writing = true;
  retention_->Opened(running);
  ASSERT_TRUE(AskJob().ok());
  EXPECT_THAT(response_.unfinished(), ElementsAre("s1"));
  EXPECT_EQ(response_.dumps_size(), 0);
  EXPECT_EQ(queue_->waiting().dumps, 0U);
}

TEST_F(ArchiveRequestTest, ARequestIsQueuedCompletelyOrNotAtAll) {
  v1::ArchiveDumpsRequest request;
  EXPECT_EQ(Ask(request).code(), StatusCode::kInvalidArgument) << "neither";
  request.set_job_id("train");
  request.add_ids("s1");
  EXPECT_EQ(Ask(request).code(), StatusCode::kInvalidArgument) << "both";
  EXPECT_EQ(AskIds(std::vector<std::string>(257, "s1")).code(), StatusCode::kInvalidArgument);
}

TEST_F(ArchiveRequestTest, SurvivesTheDaemonWithItsName) {
  Finish(1);
  ASSERT_TRUE(AskJob("llama").ok());
  Start();
  KeptDump dump = Make(1);
  dump.ended_wall_ns = clock_.WallNs();
  retention_->Opened(dump);
  retention_->Closed(dump.name, DumpState::kDone, 0);
  queue_->OnFound({*retention_->Find(dump.name), {}, {}});
  queue_->OnComplete();
  EXPECT_TRUE(IsProtected(1));
  EXPECT_EQ(Take(), Name(1));
  EXPECT_EQ(upload_.run(), "1000-llama");
}

}  // namespace
}  // namespace profd
