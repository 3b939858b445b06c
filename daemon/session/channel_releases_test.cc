// Who may release channels to other tools, for how long, and what becomes of the sessions that had them.
#include "daemon/session/channel_releases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/session/arbiter_test_support.h"
#include "daemon/session/testing/fake_node.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uint32_t kHolder = 1000;
constexpr uint32_t kOther = 1001;

class ChannelReleasesTest : public ArbiterTest {
 protected:
  ChannelReleasesTest() { Make(); }
  void Make() {
    ChannelReleases::Deps deps{control_, time_, *arbiter_, devices_, node_devices_, states_,
                               [this](const std::string& session) { return owners_.contains(session)
                                                                        ? std::optional(owners_.at(session))
                                                                        : std::nullopt; }};
    releases_.emplace(std::move(deps));
  }
  static Peer User(uint32_t uid) { return {.uid = uid}; }
  static Peer Administrator() { return {.uid = 0, .admin = true}; }
  Status Release(const Peer& peer, const v1::ReleaseChannelsRequest& request) {
    answer_.Clear();
    auto done = std::make_shared<std::promise<void>>();
    auto result = std::make_shared<Status>();
    OnControl([&] {
      releases_->Release(peer, request, &answer_, [done, result](const Status& status) {
        *result = status;
        done->set_value();
      });
    });
    Await(done->get_future());
    return *result;
  }
  Status ReleaseHccs(const Peer& peer, std::optional<uint64_t> ms = std::nullopt) {
    v1::ReleaseChannelsRequest request;
    request.add_devices(0);
    request.add_channels(9);
    if (ms) request.set_duration_ms(*ms);
    return Release(peer, request);
  }
  Status Acquire(const Peer& peer, std::vector<uint32_t> channels = {}) {
    v1::AcquireChannelsRequest request;
    request.add_devices(0);
    request.mutable_channels()->Add(channels.begin(), channels.end());
    answer_.Clear();
    return OnControl([&] { return releases_->Acquire(peer, request, &answer_); });
  }
  void Tick() {
    OnControl([&] {
      releases_->Tick();
      arbiter_->Tick();
    });
  }

  ManualClock time_;
  std::map<std::string, uint32_t> owners_;
  testing::FakeDevices node_devices_;
  testing::FakeStates states_;
  std::optional<ChannelReleases> releases_;
  v1::ChannelReleases answer_;
};

TEST_F(ChannelReleasesTest, TheSessionIsBusyUntilTheChannelIsTakenBack) {
  owners_["mine"] = kHolder;
  auto claim = Claim("hccs", 50, "mine");
  ASSERT_TRUE(ReleaseHccs(User(kHolder)).ok());
  EXPECT_THAT(DriverCalls(), ElementsAre("start 0/9 period 20", "stop 0/9"));
  ASSERT_THAT(answer_.releases(), SizeIs(1));
  EXPECT_EQ(answer_.releases(0).name(), "hccs");
  EXPECT_THAT(answer_.releases(0).sessions(), ElementsAre("mine"));
  EXPECT_EQ(answer_.releases(0).until_ns(), time_.wall_ns + 600 * kNsPerSecond);
  EXPECT_EQ(Answer(claim).state, v1::Outcome::RESULT_BUSY);
  // 2026-01-01T00:00:00Z and ten minutes.
  EXPECT_THAT(Answer(claim).detail, AllOf(HasSubstr("uid 1000"), HasSubstr("2026-01-01 00:10:00")));
  EXPECT_EQ(OnControl([&] { return arbiter_->Channels(0); }).front().state, v1::Channel::STATE_RELEASED);
  Tick();
  EXPECT_EQ(DriverCalls().size(), 2u) << "no start while another tool has it";
  ASSERT_TRUE(Acquire(User(kHolder)).ok());
  EXPECT_THAT(answer_.releases(), SizeIs(1));
  AwaitRunning(claim);
  EXPECT_EQ(DriverCalls().back(), "start 0/9 period 20");
}

TEST_F(ChannelReleasesTest, ItsTimeEnds) {
  auto claim = Claim("hccs", 50);
  ASSERT_TRUE(ReleaseHccs(User(kHolder), 5000).ok());
  time_.Advance(4999 * kNsPerMs);
  Tick();
  EXPECT_EQ(Answer(claim).state, v1::Outcome::RESULT_BUSY);
  time_.Advance(kNsPerMs);
  Tick();
  AwaitRunning(claim);
  EXPECT_EQ(releases_->size(), 0u);
}

TEST_F(ChannelReleasesTest, NewSessionsWaitForIt) {
  ASSERT_TRUE(ReleaseHccs(User(kHolder)).ok());
  auto claim = Claim("hccs", 50);
  EXPECT_EQ(Answer(claim).state, v1::Outcome::RESULT_BUSY);
  EXPECT_THAT(DriverCalls(), IsEmpty());
  auto other = Claim("hbm", 50);
  EXPECT_EQ(Answer(other).state, v1::Outcome::RESULT_RUNNING) << "another channel";
}

TEST_F(ChannelReleasesTest, AnotherUsersSessionKeepsItsChannel) {
  owners_["bobs"] = owners_["bobs second"] = kOther;
  auto claim = Claim("hccs", 50, "bobs");
  auto second = Claim("hccs", 50, "bobs second");
  const Status refused = ReleaseHccs(User(kHolder));
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
  ASSERT_THAT(refused.problems(), SizeIs(1)) << "one reason for one channel";
  EXPECT_EQ(refused.problems()[0].holder, "");
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("a session of another user"), Not(HasSubstr("bobs")),
                                       Not(HasSubstr(std::to_string(kOther)))));
  EXPECT_EQ(Answer(claim).state, v1::Outcome::RESULT_RUNNING);
  EXPECT_TRUE(ReleaseHccs(Administrator()).ok());
  EXPECT_EQ(Answer(claim).state, v1::Outcome::RESULT_BUSY);
  EXPECT_EQ(Answer(second).state, v1::Outcome::RESULT_BUSY);
}

TEST_F(ChannelReleasesTest, OnlyWhoReleasedItTakesItBack) {
  ASSERT_TRUE(ReleaseHccs(User(kHolder)).ok());
  EXPECT_EQ(ReleaseHccs(User(kOther)).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(Acquire(User(kOther), {9}).code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(Acquire(User(kOther)).ok()) << "all of his own: none";
  EXPECT_THAT(answer_.releases(), IsEmpty());
  EXPECT_EQ(releases_->size(), 1u);
  EXPECT_TRUE(Acquire(Administrator(), {9}).ok());
  EXPECT_EQ(releases_->size(), 0u);
}

TEST_F(ChannelReleasesTest, LengthIsLimitedByRole) {
  EXPECT_EQ(ReleaseHccs(User(kHolder), 3'600'001).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ReleaseHccs(User(kHolder), 999).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ReleaseHccs(User(kHolder), 172'800'000).message(), "duration_ms = 172800000: must be 1s..1h");
  EXPECT_EQ(ReleaseHccs(Administrator(), 172'800'000).message(), "duration_ms = 172800000: must be 1s..24h");
  EXPECT_TRUE(ReleaseHccs(User(kHolder), 3'600'000).ok());
  EXPECT_EQ(ReleaseHccs(Administrator(), 86'400'001).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(ReleaseHccs(Administrator(), 86'400'000).ok());
}

TEST_F(ChannelReleasesTest, EveryProblemOfARequestIsListed) {
  v1::ReleaseChannelsRequest request;
  EXPECT_EQ(Release(User(kHolder), request).code(), StatusCode::kInvalidArgument) << "no device";
  request.add_devices(7);
  request.add_devices(0);
  request.add_channels(77);
  request.add_channels(9);
  const Status refused = Release(User(kHolder), request);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.problems(), SizeIs(2)) << refused.message();
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("devices: no device 7 on this node (there are 0"),
                                       HasSubstr("channels: no channel 77 (instr.group_18_aic) on device 0 (there are 1, 8, 9, 52, 132)")));
  EXPECT_EQ(releases_->size(), 0u);
}

TEST_F(ChannelReleasesTest, NamedManyTimesIsReleasedOnce) {
  v1::ReleaseChannelsRequest request;
  for (int i = 0; i < ChannelReleases::kMostNamed; ++i) {
    request.add_devices(0);
    request.add_channels(9);
  }
  ASSERT_TRUE(Release(User(kHolder), request).ok());
  EXPECT_THAT(answer_.releases(), SizeIs(1));
  EXPECT_EQ(releases_->size(), 1u);
  ASSERT_TRUE(Acquire(User(kHolder), std::vector<uint32_t>(ChannelReleases::kMostNamed, 9)).ok());
  EXPECT_THAT(answer_.releases(), SizeIs(1));
  EXPECT_EQ(releases_->size(), 0u);
}

// The work is devices times channels: 40 kB of ids kept the daemon busy for a minute.
TEST_F(ChannelReleasesTest, ListsAreShort) {
  v1::ReleaseChannelsRequest request;
  for (int i = 0; i <= ChannelReleases::kMostNamed; ++i) {
    request.add_devices(0);
    request.add_channels(9);
  }
  EXPECT_EQ(Release(User(kHolder), request).message(), "devices: at most 256 ids, not 257\nchannels: at most 256 ids, not 257");
  EXPECT_EQ(Acquire(User(kHolder), std::vector<uint32_t>(ChannelReleases::kMostNamed + 1, 9)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(releases_->size(), 0u);
}

TEST_F(ChannelReleasesTest, WithoutNamesAllChannelsOfTheDevice) {
  v1::ReleaseChannelsRequest request;
  request.add_devices(0);
  ASSERT_TRUE(Release(User(kHolder), request).ok());
  EXPECT_EQ(releases_->size(), devices_[0].channels.size());
}

TEST_F(ChannelReleasesTest, ADriverThatDoesNotStopIsReported) {
  owners_["mine"] = kHolder;
  auto claim = Claim("hccs", 50, "mine");
  hal_.Code(testing::Call::kStop, -1);
  ASSERT_TRUE(ReleaseHccs(User(kHolder)).ok());
  ASSERT_THAT(answer_.releases(), SizeIs(1));
  EXPECT_THAT(answer_.releases(0).problem(), HasSubstr("stop"));
  EXPECT_EQ(Answer(claim).state, v1::Outcome::RESULT_BUSY);
}

TEST_F(ChannelReleasesTest, ARestartOfTheDaemonTakesNothingAway) {
  ASSERT_TRUE(ReleaseHccs(User(kHolder), 5000).ok());
  const std::string saved = states_.files["released_channels.json"];
  ASSERT_TRUE(Acquire(User(kHolder)).ok());
  Make();
  OnControl([&] { releases_->Restore(saved); });
  EXPECT_EQ(releases_->size(), 1u);
  auto claim = Claim("hccs", 50);
  EXPECT_EQ(Answer(claim).state, v1::Outcome::RESULT_BUSY);
  // Later than its time: it is over.
  ASSERT_TRUE(Acquire(User(kHolder)).ok());
  Make();
  time_.Advance(5 * kNsPerSecond);
  OnControl([&] { releases_->Restore(saved); });
  EXPECT_EQ(releases_->size(), 0u);
  OnControl([&] { releases_->Restore("{\"releases\": [{\"device\": 99"); });
  EXPECT_EQ(releases_->size(), 0u) << "a damaged file";
}

}  // namespace
}  // namespace profd
