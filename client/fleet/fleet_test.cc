#include "client/fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <thread>

#include "client/commands/stacks.h"
#include "client/fleet/fleet_answers.h"
#include "client/fleet/test_support.h"

namespace profd::client {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(ClockOffset, IsTheMiddleOfTheShortestTrip) {
  ClockOffset offset = OffsetOf({1'000, 6'100, 200});
  EXPECT_EQ(offset.offset_ns, 5'000);
  EXPECT_EQ(offset.error_ns, 100);
  // Rounded up: the bound stays one.
  EXPECT_EQ(OffsetOf({1'000, 1'000, 3}).error_ns, 2);
  EXPECT_EQ(OffsetOf({1'000, 500, 0}).offset_ns, -500);
}

// Trips of given lengths (negative: no answer) on a clock that stands still otherwise; the node is asked
// at their ends, which is the worst that can be.
class TripApi final : public DeafApi {
 public:
  TripApi(ManualClock* clock, std::vector<int64_t> took, int64_t offset)
      : clock_(clock), took_(std::move(took)), offset_(offset) {}
  Result<v1::GetTimeResponse> GetTime() override {
    if (took_[round_] < 0) return Unavailable("gone");
    clock_->Advance(took_[round_++]);
    v1::GetTimeResponse time;
    time.set_wall_ns(clock_->WallNs() + offset_);
    return time;
  }

  static Result<ClockOffset> Measure(const std::vector<int64_t>& took, int64_t offset) {
    ManualClock clock;
    TripApi api(&clock, took, offset);
    return MeasureOffset(api, clock, static_cast<int>(took.size()), kNsPerSecond);
  }

 private:
  ManualClock* clock_;
  std::vector<int64_t> took_;
  int64_t offset_;
  size_t round_ = 0;
};

TEST(ClockOffset, TheTruthIsWithinTheBound) {
  auto offset = TripApi::Measure({9'000'000, 40'000, 2'000'000}, 77'000'000);
  ASSERT_TRUE(offset.ok());
  EXPECT_EQ(offset->error_ns, 20'000);
  EXPECT_LE(std::abs(offset->offset_ns - 77'000'000), offset->error_ns);
}

TEST(ClockOffset, ADistantNodeIsNotPolledConstantly) {
  auto offset = TripApi::Measure({2 * kNsPerSecond, 1, 1}, 0);
  ASSERT_TRUE(offset.ok());
  EXPECT_EQ(offset->error_ns, kNsPerSecond);
  EXPECT_EQ(TripApi::Measure({-1}, 0).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(TripApi::Measure({5}, -4 * (int64_t{1} << 59)).status().code(),
            StatusCode::kInternal);
}

TEST_F(FleetTest, CallsAllOfThemButNotAllAtOnce) {
  Make(200);
  Fleet fleet = MakeFleet();
  FleetReport report = StatusOfAll(&fleet);
  EXPECT_EQ(Print(report), kExitOk);
  EXPECT_LE(cluster_.most_at_once, static_cast<int>(kNodesAtOnce));
  ASSERT_EQ(report.nodes.size(), 200u);
  for (size_t i = 0; i < 200; ++i) EXPECT_EQ(report.nodes[i].node, names_[i].text);
  EXPECT_THAT(out_.str(), HasSubstr("1 x Ascend910B"));
}

TEST_F(FleetTest, SlowRefusingAndDeadOnesAreNamed) {
  Make(64, {{3, FakeNode::Kind::kSlow},
            {5, FakeNode::Kind::kRefuses},
            {7, FakeNode::Kind::kDead},
            {63, FakeNode::Kind::kDead}});
  node_timeout_ns_ = 100 * kNsPerMs;
  FleetReport report = Start();
  EXPECT_EQ(report.nodes[3].status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(report.nodes[5].status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(report.nodes[7].status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(Print(report), kExitPartial);
  EXPECT_THAT(err_.str(), HasSubstr("unreachable"));
  EXPECT_THAT(err_.str(), HasSubstr("n63"));
  EXPECT_THAT(err_.str(), HasSubstr("refused (1 of 64): n05\n"));
  EXPECT_THAT(out_.str(), HasSubstr("busy; by uid 3"));
  EXPECT_THAT(Node(3).starts, IsEmpty());
}

TEST_F(FleetTest, ACallThatBreaksSaysWhatToDo) {
  Make(1);
  const NodeCall call(std::make_unique<NodeApi>(&cluster_, &Node(0)), cluster_.clock, 0, nullptr, [] { return std::string(); });
  EXPECT_EQ(call.Explain(Unavailable("Socket closed")).message(), "the call ended: Socket closed; if profd was restarted there, try again");
}

// There is no session that stop, fetch or export could find by the fleet's id. A node without an answer may have one.
TEST_F(FleetTest, AStartThatAllRefuseHasNoFleetId) {
  Make(2, {{0, FakeNode::Kind::kRefuses}, {1, FakeNode::Kind::kRefuses}});
  const FleetReport report = Start();
  EXPECT_EQ(report.fleet_id, "");
  EXPECT_EQ(Print(report), kExitRefused);
  EXPECT_THAT(out_.str(), Not(HasSubstr("fleet ")));
}

TEST_F(FleetTest, OneInstantInEachNodesOwnTime) {
  Make(3);
  Node(0).offset_ns = 3600 * kNsPerSecond;
  Node(2).offset_ns = -5 * kNsPerSecond;
  FleetStart wanted = Wanted();
  (*wanted.request.mutable_metadata())["mine"] = "kept";
  FleetReport report = Start(wanted);
  EXPECT_EQ(Print(report), kExitOk);
  ASSERT_GT(report.common_start_ns, 0);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(Node(i).starts.size(), 1u);
    const v1::SessionSpec& start = Node(i).starts[0];
    ASSERT_TRUE(report.nodes[i].offset.has_value());
    const ClockOffset& offset = *report.nodes[i].offset;
    EXPECT_LE(std::abs(offset.offset_ns - Node(i).offset_ns), offset.error_ns);
    EXPECT_EQ(start.schedule().start_at_ns(), report.common_start_ns + offset.offset_ns);
    auto metadata = start.metadata();
    EXPECT_EQ(metadata["mine"], "kept");
    EXPECT_EQ(metadata["clock_offset_ns"], std::to_string(offset.offset_ns));
    EXPECT_EQ(metadata["clock_offset_error_ns"], std::to_string(offset.error_ns));
    EXPECT_EQ(metadata["common_start_ns"], std::to_string(report.common_start_ns));
    EXPECT_EQ(metadata["fleet_nodes"], "3");
    EXPECT_EQ(metadata["fleet_node"], names_[i].text);
  }
}

TEST_F(FleetTest, TheUsersInstantAndSteps) {
  Make(1);
  FleetStart wanted = Wanted();
  wanted.request.mutable_schedule()->set_start_at_ns(1234);
  FleetReport report = Start(wanted);
  EXPECT_EQ(report.common_start_ns, 1234);
  // That was long ago.
  EXPECT_TRUE(report.nodes[0].late);
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("n00 answered after the common start")));

  wanted.request.mutable_schedule()->clear_start_at_ns();
  wanted.request.mutable_schedule()->set_start_in_ms(3'600'000);
  int64_t before = cluster_.clock.WallNs();
  report = Start(wanted);
  EXPECT_GE(report.common_start_ns, before + 3600 * kNsPerSecond);
  EXPECT_EQ(Node(0).starts.back().schedule().start_in_ms(), 0u);
  EXPECT_FALSE(report.nodes[0].late);

  wanted.request.mutable_schedule()->clear_start_in_ms();
  wanted.request.mutable_schedule()->set_start_step(11);
  report = Start(wanted);
  EXPECT_EQ(report.common_start_ns, 0);
  EXPECT_EQ(Node(0).starts.back().schedule().start_at_ns(), 0);
  EXPECT_EQ(Node(0).starts.back().schedule().start_step(), 11);
  EXPECT_THAT(Node(0).starts.back().metadata(), Contains(::testing::Key("clock_offset_ns")));
}

TEST_F(FleetTest, ANodeThatIsReachedTooLateForTheInstantBeginsAtOnce) {
  Make(2, {{1, FakeNode::Kind::kReachedLate}});
  FleetStart wanted = Wanted();
  wanted.request.mutable_schedule()->set_start_in_ms(50);
  FleetReport report = Start(wanted);
  EXPECT_EQ(Print(report), kExitOk);
  ASSERT_EQ(Node(1).starts.size(), 2u);
  EXPECT_FALSE(Node(1).starts[1].schedule().has_start_at_ns());
  EXPECT_EQ(Node(1).starts[1].metadata().at("common_start_ns"), std::to_string(report.common_start_ns));
  EXPECT_TRUE(report.nodes[1].late);
  EXPECT_THAT(report.warnings, Contains(HasSubstr("n01 answered after the common start")));
  // An instant of the user's own is not changed.
  wanted.request.mutable_schedule()->set_start_at_ns(1234);
  report = Start(wanted);
  EXPECT_EQ(Node(1).starts.size(), 3u);
  EXPECT_EQ(report.nodes[1].status.code(), StatusCode::kInvalidArgument);
}

TEST_F(FleetTest, AllOrNothingStopsWhatWasStarted) {
  Make(8, {{4, FakeNode::Kind::kRefuses}});
  FleetStart wanted = Wanted();
  wanted.all_or_nothing = true;
  FleetReport report = Start(wanted);
  for (size_t i = 0; i < 8; ++i) {
    if (i == 4) continue;
    EXPECT_THAT(Node(i).stopped, ElementsAre("s0")) << i;
    EXPECT_TRUE(report.nodes[i].undone) << i;
  }
  EXPECT_EQ(Print(report), kExitRefused);
  EXPECT_THAT(err_.str(), HasSubstr("stopped again (7 of 8)"));
  // The job is on the others.
  report.nodes[4].status = NotFound("no process of it runs on this node");
  EXPECT_EQ(Print(report), kExitRefused);
}

TEST_F(FleetTest, AllOrNothingStartsNothingWhenOneIsAway) {
  Make(3, {{1, FakeNode::Kind::kDead}});
  FleetStart wanted = Wanted();
  wanted.all_or_nothing = true;
  FleetReport report = Start(wanted);
  EXPECT_THAT(Node(0).starts, IsEmpty());
  EXPECT_THAT(Node(2).starts, IsEmpty());
  EXPECT_EQ(Print(report), kExitUnreachable);
}

TEST_F(FleetTest, FindsAndStopsSessionsThatStartedWithoutAnAnswer) {
  Make(2, {{1, FakeNode::Kind::kSlowToStart}});
  // Another session of the job is not ours.
  v1::Session other;
  other.set_session_id("other");
  other.mutable_spec()->mutable_target()->set_job_id("j");
  other.mutable_status()->set_state(v1::Session::STATE_RUNNING);
  Node(1).sessions.push_back(other);
  node_timeout_ns_ = 200 * kNsPerMs;
  FleetStart wanted = Wanted();
  wanted.all_or_nothing = true;
  FleetReport report = Start(wanted);
  EXPECT_EQ(report.nodes[1].status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Node(1).stopped, ElementsAre("s1"));
  EXPECT_TRUE(report.nodes[1].undone);
}

TEST_F(FleetTest, AnInterruptStopsWhatWasStartedUnlessKept) {
  for (bool keep : {false, true}) {
    names_.clear();
    cluster_.nodes.clear();
    Make(4, {{2, FakeNode::Kind::kSlowToStart}});
    SignalWatch signals({SIGUSR2});
    std::thread interrupter([this] {
      // Once the others have their sessions and the slow one has begun.
      for (;;) {
        std::unique_lock lock(cluster_.mutex);
        auto started = std::count_if(cluster_.nodes.begin(), cluster_.nodes.end(),
                                     [](const auto& node) { return !node.second.sessions.empty(); });
        lock.unlock();
        if (started == 4) break;
        std::this_thread::yield();
      }
      kill(getpid(), SIGUSR2);
    });
    FleetStart wanted = Wanted();
    wanted.keep = keep;
    FleetReport report = Start(wanted, &signals);
    interrupter.join();
    EXPECT_TRUE(report.interrupted);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(Node(i).stopped.size(), keep ? 0u : 1u) << i;
    EXPECT_EQ(Print(report), kExitPartial);
    EXPECT_THAT(err_.str(), HasSubstr("interrupted"));
  }
}

TEST_F(FleetTest, ANodeThatWasNotCalledIsNamedAndHasNoAnswer) {
  std::map<size_t, FakeNode::Kind> slow;
  for (size_t node = 0; node < kNodesAtOnce; ++node) slow[node] = FakeNode::Kind::kSlow;
  Make(kNodesAtOnce + 1, slow);
  SignalWatch signals({SIGUSR2});
  kill(getpid(), SIGUSR2);
  Fleet fleet = MakeFleet(&signals);
  const auto all = AskEach<NodeStacks>(&fleet, "stacks", "j", [](ProfdApi& api) -> Result<v1::GetStacksResponse> {
    const auto reached = api.GetTime();
    if (!reached.ok()) return reached.status();
    return v1::GetStacksResponse();
  });
  EXPECT_EQ(PrintFailures(io_, all, "job j"), kExitPartial);
  EXPECT_THAT(err_.str(), HasSubstr("profctl: n64: not called: interrupted before its turn\n"));
  const Json json = AnswersToJson(all);
  EXPECT_TRUE(json["nodes"][kNodesAtOnce]["answer"].is_null());
}

TEST_F(FleetTest, StopByJobReportsNodesWithoutOne) {
  Make(3);
  Start();
  Node(1).sessions.clear();
  FleetReport report = Stop({{}, "j", false});
  EXPECT_EQ(Print(report), kExitOk);
  EXPECT_TRUE(report.nodes[1].none);
  EXPECT_THAT(out_.str(), HasSubstr("no session"));
  EXPECT_EQ(Print(report, /*json=*/true), kExitOk);
  const Json json = Json::parse(out_.str(), nullptr, false);
  EXPECT_EQ(json["ok"], 2);
  EXPECT_EQ(json["failed"], 0) << "\"is listed, but is not a failure\" (docs/many-nodes.md)";
  report = Stop({{}, "unknown", false});
  EXPECT_EQ(Print(report), kExitNotFound);
}

TEST_F(FleetTest, AnIdThatNoNodeHasIsReportedBesideThoseThatAreStopped) {
  Make(2);
  Start();
  Node(1).sessions.clear();
  FleetReport report = Stop({{"s0", "s7"}, "", false});
  EXPECT_EQ(Print(report), kExitPartial);
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("session s7")));
  // One node has it.
  EXPECT_EQ(Print(Stop({{"s0"}, "", false})), kExitOk);
}

TEST_F(FleetTest, HowLongASessionRunsIsByItsNodesClock) {
  Make(1);
  Node(0).offset_ns = 3600 * kNsPerSecond;
  v1::Session session;
  session.set_session_id("s0");
  session.mutable_status()->set_state(v1::Session::STATE_RUNNING);
  session.mutable_status()->set_started_ns(cluster_.clock.WallNs() + Node(0).offset_ns - 7'505 * kNsPerSecond);
  Node(0).sessions.push_back(session);
  Fleet fleet = MakeFleet();
  EXPECT_EQ(Print(ListOnAll(&fleet, {})), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr(" 2h 05m "));
}

TEST_F(FleetTest, ExitCodesShowTheResult) {
  using Kind = FakeNode::Kind;
  auto code = [this](const std::map<size_t, Kind>& kinds) {
    names_.clear();
    cluster_.nodes.clear();
    Make(2, kinds);
    return Print(Start());
  };
  EXPECT_EQ(code({}), kExitOk);
  EXPECT_EQ(code({{0, Kind::kDead}}), kExitPartial);
  EXPECT_EQ(code({{0, Kind::kRefuses}}), kExitPartial);
  EXPECT_EQ(code({{0, Kind::kRefuses}, {1, Kind::kRefuses}}), kExitRefused);
  EXPECT_EQ(code({{0, Kind::kDead}, {1, Kind::kDead}}), kExitUnreachable);
  EXPECT_EQ(code({{0, Kind::kDead}, {1, Kind::kRefuses}}), kExitRefused);
}

TEST_F(FleetTest, ExitCodesOfQuestions) {
  Make(2);
  const auto code = [this](int first, int second) {
    Fleet fleet = MakeFleet();
    return AskAll(&fleet, {"show", true, [&](const Context& context) { return context.endpoint.socket == "/n00" ? first : second; }});
  };
  EXPECT_EQ(code(kExitOk, kExitOk), kExitOk);
  EXPECT_EQ(code(kExitOk, kExitNotFound), kExitOk);
  EXPECT_EQ(code(kExitNotFound, kExitNotFound), kExitNotFound);
  EXPECT_EQ(code(kExitOk, kExitUnreachable), kExitPartial);
  EXPECT_EQ(code(kExitUnreachable, kExitUnreachable), kExitUnreachable);
  // One node was reached, and the other one may have it.
  EXPECT_EQ(code(kExitNotFound, kExitUnreachable), kExitPartial);
}

TEST_F(FleetTest, AQuestionThatTheDeadlineEndsIsUnanswered) {
  Make(2, {{0, FakeNode::Kind::kSlow}, {1, FakeNode::Kind::kDead}});
  node_timeout_ns_ = 100 * kNsPerMs;
  Fleet fleet = MakeFleet();
  const FleetQuestion question{"list", true, [](const Context& context) {
    auto answer = context.api.ListSessions({});
    return answer.ok() ? kExitOk : Fail(context, answer.status());
  }};
  EXPECT_EQ(AskAll(&fleet, question), kExitUnreachable);
  const Json json = Json::parse(out_.str(), nullptr, false);
  ASSERT_TRUE(json.is_object()) << out_.str();
  EXPECT_EQ(json["nodes"][0]["exit_code"], kExitUnreachable);
  EXPECT_EQ(json["nodes"][0]["answer"]["error"]["code"], "deadline_exceeded");
  EXPECT_THAT(err_.str(), HasSubstr("n00: no answer in time"));
}

TEST_F(FleetTest, Json) {
  Make(2, {{1, FakeNode::Kind::kDead}});
  EXPECT_EQ(Print(Start(), /*json=*/true), kExitPartial);
  Json json = Json::parse(out_.str(), nullptr, false);
  ASSERT_TRUE(json.is_object()) << out_.str();
  EXPECT_EQ(json["ok"], 1);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["exit_code"], kExitPartial);
  EXPECT_EQ(json["nodes"][0]["node"], "n00");
  EXPECT_EQ(json["nodes"][0]["sessions"][0]["state"], "scheduled");
  EXPECT_TRUE(json["nodes"][0]["clock_offset_ns"].is_number_integer());
  EXPECT_EQ(json["nodes"][1]["error"]["code"], "unavailable");
}

}  // namespace
}  // namespace profd::client
