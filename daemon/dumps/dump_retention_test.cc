#include "daemon/dumps/dump_retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <thread>

#include "dump/session_dump.h"
#include "dump/test_util.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class DumpKeeperTest : public ::testing::Test {
 protected:
  DumpKeeperTest() : root_(std::move(DumpRoot::Open(tmp_ / "root")).value()) {}
  ~DumpKeeperTest() override {
    if (keeper_ != nullptr) keeper_->Stop();
    executor_.Stop();
  }

  // A finished dump, or one that a crash left.
  std::string Make(const std::string& session, bool finish) {
    SessionDumpOptions options;
    options.session.session_id = session;
    options.session.start_wall_ns = clock_.WallNs();
    options.session.start_raw_ns = clock_.MonotonicRawNs();
    options.owner = Myself();
    options.sync_at_end = false;
    auto dump = SessionDump::Create(root_, std::move(options));
    EXPECT_TRUE(dump.ok()) << dump.status().ToString();
    if (finish) {
      EXPECT_TRUE((*dump)->Finish({clock_.WallNs(), clock_.MonotonicRawNs(), DumpState::kDone, "x"})
                      .ok());
    }
    return (*dump)->name();
  }
  template <class F>
  auto OnControl(F f) {
    std::promise<decltype(f())> result;
    control_.Post([&] { result.set_value(f()); });
    return result.get_future().get();
  }
  void Begin(const QuotaLimits& limits = {}) {
    OnControl([&] {
      keeper_ = std::make_unique<DumpRetention>(
          DumpRetention::Deps{control_, clock_, store_, tmp_ / "root"}, limits);
      keeper_->SetHooks({[this](const DumpRetention::Found& found) { found_.push_back(found.dump); },
                         [this](const std::string& name, std::string_view) {
                           removed_.push_back(name);
                         }});
      Result<std::vector<std::string>> names = root_.Names();
      keeper_->Begin(names.value_or({}), {}, [] {});
      return 0;
    });
    Until([this] { return keeper_->complete(); });
  }
  void Until(const std::function<bool()>& condition) {
    while (!OnControl(condition)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  TempDir tmp_;
  SystemClock clock_;
  Executor executor_{"test-control", 1};
  Strand control_{executor_};
  StateStore store_{tmp_ / "state"};
  DumpRoot root_;
  std::vector<KeptDump> found_;
  std::vector<std::string> removed_;
  std::unique_ptr<DumpRetention> keeper_;
};

TEST_F(DumpKeeperTest, FindsAndCompletesWhatThereIsNewestFirst) {
  const std::string first = Make("s-1", true);
  const std::string second = Make("s-2", false);
  Begin();
  ASSERT_EQ(found_.size(), 2u);
  EXPECT_EQ(found_[0].name, second);
  EXPECT_EQ(found_[0].state, DumpState::kInterrupted);
  EXPECT_EQ(found_[0].session_id, "s-2");
  EXPECT_EQ(found_[1].name, first);
  EXPECT_EQ(found_[1].state, DumpState::kDone);
  EXPECT_GT(found_[1].bytes, 0u);
  EXPECT_EQ(OnControl([&] { return keeper_->recovered(); }), 1u);
}

TEST_F(DumpKeeperTest, WhatIsTooMuchGoesButNotWhatIsPinned) {
  const std::string first = Make("s-1", true);
  const std::string second = Make("s-2", true);
  Begin();
  ASSERT_TRUE(OnControl([&] { return keeper_->Pin({first}, true, false); }).ok());
  OnControl([&] {
    keeper_->SetLimits({.total = 1});
    return keeper_->Enforce().over_total;
  });
  Until([&] { return keeper_->Find(second) == nullptr && keeper_->All().size() == 1; });
  EXPECT_THAT(removed_, ElementsAre(second));
  Status refused = OnControl([&] { return keeper_->CheckStart(1); });
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("dump.max_total_mb"));
  EXPECT_TRUE(std::filesystem::exists(tmp_ / ("root/" + first)));
}

TEST_F(DumpKeeperTest, SumsAndRoomFollowWhatIsWritten) {
  const std::string finished = Make("s-1", true);
  Begin({.total = 1'000'000'000'000});
  const uint64_t before = OnControl([&] { return keeper_->total_bytes(); });
  EXPECT_GT(before, 0U);
  auto sums = [&] { return OnControl([&] { return keeper_->sums(); }); };
  EXPECT_EQ(sums().finished, before);
  const std::string running = Make("s-2", true);
  OnControl([&] {
    KeptDump dump;
    dump.name = running;
    dump.uid = 5;
    keeper_->Opened(dump);
    keeper_->Grown(running, 5000);
    return 0;
  });
  EXPECT_EQ(sums().running, 5000U);
  EXPECT_TRUE(OnControl([&] { return keeper_->Enforce().removals.empty(); })) << "far below";
  OnControl([&] {
    keeper_->Grown(running, 9000);
    return keeper_->Pin({finished}, true, false).ok();
  });
  EXPECT_EQ(sums().running, 9000U);
  EXPECT_EQ(sums().pinned, before);
  EXPECT_EQ(sums().finished, 0U);
  // The room that is left for what is still to come counts, too.
  OnControl([&] {
    keeper_->SetLimits({.total = before + 10'000});
    return keeper_->Pin({finished}, false, false).ok();
  });
  EXPECT_FALSE(OnControl([&] { return keeper_->Enforce().removals.empty(); }));
  Until([&] { return keeper_->Find(finished) == nullptr && keeper_->sums().finished == 0; });
  OnControl([&] {
    keeper_->Closed(running, DumpState::kDone, 9000);
    return 0;
  });
  Until([&] { return keeper_->sums().running == 0 && keeper_->sums().finished != 9000; });
  EXPECT_GT(sums().finished, 0U) << "what the files have";
}

TEST_F(DumpKeeperTest, AFlushBetweenTwoLooksIsNoFlood) {
  const std::string finished = Make("s-1", true);
  const std::string running = Make("s-2", true);
  Begin();
  const QuotaPlan plan = OnControl([&] {
    keeper_->SetLimits({.total = keeper_->total_bytes() + (4u << 20)});
    keeper_->Enforce();
    KeptDump dump;
    dump.name = running;
    keeper_->Opened(dump);
    keeper_->Grown(running, 1u << 20);
    return keeper_->Enforce();
  });
  EXPECT_TRUE(plan.removals.empty());
  EXPECT_FALSE(plan.over_total);
}

// Root's dumps have no limit of their own: the test's are, so it is asked about pins instead.
TEST_F(DumpKeeperTest, PinsAreLimitedAndSurvive) {
  const std::string first = Make("s-1", true);
  const std::string second = Make("s-2", true);
  Begin();
  uint64_t bytes = OnControl([&] { return keeper_->Find(first)->bytes; });
  OnControl([&] {
    keeper_->SetLimits({.pinned_per_uid = bytes + 1});
    return 0;
  });
  EXPECT_TRUE(OnControl([&] { return keeper_->Pin({first}, true, false); }).ok());
  Status refused = OnControl([&] { return keeper_->Pin({second}, true, false); });
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("max_pinned_mb_per_uid"));
  EXPECT_TRUE(OnControl([&] { return keeper_->Pin({second}, true, true); }).ok());
  Until([&] { return store_.LoadPins().value_or("").find(second) != std::string::npos; });
  keeper_->Stop();
  OnControl([&] {
    keeper_.reset();
    return 0;
  });
  found_.clear();
  Begin();
  EXPECT_TRUE(found_.at(0).pinned);
  EXPECT_TRUE(found_.at(1).pinned);
}

TEST(StateStoreTest, OneDaemonAtATime) {
  TempDir tmp;
  StateStore first(tmp / "state");
  StateStore second(tmp / "state");
  ASSERT_TRUE(first.Lock().ok());
  EXPECT_EQ(second.Lock().code(), StatusCode::kUnavailable);
}

TEST(StateStoreTest, SessionsComeBackAndGo) {
  TempDir tmp;
  StateStore store(tmp / "state");
  ASSERT_TRUE(store.SaveSession("0123456789ab", "{}", true).ok());
  ASSERT_TRUE(store.SaveSession("0123456789ab", "{\"x\":1}", false).ok());
  ASSERT_TRUE(store.SaveSession("ff", "{}", false).ok());
  EXPECT_FALSE(store.SaveSession("../x", "{}", false).ok());
  ASSERT_TRUE(store.DropSession("ff").ok());
  EXPECT_TRUE(store.DropSession("ff").ok());
  WriteText(tmp / "state/sessions/.half.json.tmp", "{");
  auto sessions = store.LoadSessions();
  ASSERT_TRUE(sessions.ok());
  EXPECT_THAT(*sessions, UnorderedElementsAre(std::pair<const std::string, std::string>(
                             "0123456789ab", "{\"x\":1}")));
}

TEST(StateStoreTest, AFolderOthersMayReadIsRefused) {
  TempDir tmp;
  std::filesystem::create_directory(tmp / "state");
  std::filesystem::permissions(tmp / "state", std::filesystem::perms(0755));
  EXPECT_EQ(StateStore(tmp / "state").Lock().code(), StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace profd
