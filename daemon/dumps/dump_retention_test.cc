#include "daemon/dumps/dump_retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "base/manual_executor.h"
#include "daemon/data/testing/test_dump.h"
#include "dump/reader.h"
#include "dump/session_dump.h"
#include "dump/test_support.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// While it exists no file may grow.
class NoSpace {
 public:
  NoSpace() {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    struct rlimit none = before_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoSpace() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  const sighandler_t handler_ = ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before_ = {};
};

class DumpRetentionTest : public ::testing::Test, protected DumpRetention::Watcher {
 protected:
  DumpRetentionTest() : root_(std::move(DumpRoot::Open(tmp_ / "root")).value()) {}
  ~DumpRetentionTest() override {
    if (retention_ != nullptr) retention_->Stop();
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
  void Begin(const QuotaLimits& limits = {}) {
    retention_ = std::make_unique<DumpRetention>(
        DumpRetention::Deps{control_, clock_, store_, states_, tmp_ / "root"}, limits);
    retention_->Watch(this);
    Result<std::vector<std::string>> names = root_.Names();
    retention_->Begin(names.value_or({}), {});
    Until([this] { return retention_->complete(); });
  }
  // DumpRetention::Watcher:
  void OnFound(const DumpRetention::RecoveredDump& found) override { found_.push_back(found.dump); }
  void OnRemoved(const std::string& name, std::string_view) override { removed_.push_back(name); }
  void Until(const std::function<bool()>& condition) { EXPECT_TRUE(time_.RunUntil(condition)); }

  TempDir tmp_;
  ManualClock clock_;
  ManualExecutor time_{clock_};
  Strand control_{time_.executor()};
  SystemClock system_;
  BlockPool pool_{8 << 20};
  StateStore store_{tmp_ / "state"};
  DumpRoot root_;
  DumpWriter writer_{DumpRoot::Open(tmp_ / "root").value(), system_, pool_, {.min_free_bytes = 0}};
  WriterStateSaver states_{control_, writer_, store_};
  std::vector<KeptDump> found_;
  std::vector<std::string> removed_;
  std::unique_ptr<DumpRetention> retention_;
};

TEST_F(DumpRetentionTest, FindsAndCompletesWhatThereIsNewestFirst) {
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
  EXPECT_EQ(retention_->recovered(), 1u);
}

TEST_F(DumpRetentionTest, WhatCouldNotBeCompletedIsTriedAgain) {
  const std::string name = Make("s-1", false);
  const auto manifest = [&] { return DumpReader::Open(root_, name)->ReadManifest().value(); };
  {
    const NoSpace volume;
    Begin();
    time_.Advance(30 * kNsPerSecond);
    retention_->Tick();
    Until([this] { return !retention_->trying(); });
  }
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(manifest().state, DumpState::kRunning);
  EXPECT_EQ(retention_->recovered(), 0u);
  // It may be large: not with every tick.
  time_.Advance(kNsPerSecond);
  retention_->Tick();
  EXPECT_FALSE(retention_->trying());
  time_.Advance(30 * kNsPerSecond);
  retention_->Tick();
  Until([this] { return retention_->recovered() == 1; });
  EXPECT_EQ(manifest().state, DumpState::kInterrupted);
  EXPECT_EQ(retention_->Find(name)->ended_wall_ns, manifest().end_wall_ns);
  time_.Advance(60 * kNsPerSecond);
  retention_->Tick();
  EXPECT_FALSE(retention_->trying());
}

TEST_F(DumpRetentionTest, RemovesExcessDumpsButNotPinnedOnes) {
  const std::string first = Make("s-1", true);
  const std::string second = Make("s-2", true);
  Begin();
  ASSERT_TRUE(retention_->Pin({first}, true, false).ok());
  retention_->SetLimits({.total = 1});
  retention_->Enforce();
  Until([&] { return retention_->Find(second) == nullptr && retention_->All().size() == 1; });
  EXPECT_THAT(removed_, ElementsAre(second));
  Status refused = retention_->CheckStart(1);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("dump.max_total_mb"));
  EXPECT_TRUE(std::filesystem::exists(tmp_ / ("root/" + first)));
}

TEST_F(DumpRetentionTest, SumsAndSpaceFollowWhatIsWritten) {
  const std::string finished = Make("s-1", true);
  Begin({.total = 1'000'000'000'000});
  const uint64_t before = retention_->total_bytes();
  EXPECT_GT(before, 0U);
  auto sums = [&] { return retention_->sums(); };
  EXPECT_EQ(sums().finished, before);
  const std::string running = Make("s-2", true);
  KeptDump dump{.name = running, .uid = 5};
  retention_->Opened(dump);
  retention_->Grown(running, 5000);
  EXPECT_EQ(sums().running, 5000U);
  EXPECT_TRUE(retention_->Enforce().removals.empty()) << "far below";
  retention_->Grown(running, 9000);
  EXPECT_TRUE(retention_->Pin({finished}, true, false).ok());
  EXPECT_EQ(sums().running, 9000U);
  EXPECT_EQ(sums().pinned, before);
  EXPECT_EQ(sums().finished, 0U);
  // The space reserved for what is still to come counts, too.
  retention_->SetLimits({.total = before + 10'000});
  EXPECT_TRUE(retention_->Pin({finished}, false, false).ok());
  EXPECT_FALSE(retention_->Enforce().removals.empty());
  Until([&] { return retention_->Find(finished) == nullptr && retention_->sums().finished == 0; });
  retention_->Closed(running, DumpState::kDone, 9000);
  Until([&] { return retention_->sums().running == 0 && retention_->sums().finished != 9000; });
  EXPECT_GT(sums().finished, 0U) << "what the files have";
}

TEST_F(DumpRetentionTest, AFlushBetweenTwoChecksIsNotAFastSession) {
  const std::string finished = Make("s-1", true);
  const std::string running = Make("s-2", true);
  Begin();
  retention_->SetLimits({.total = retention_->total_bytes() + (4u << 20)});
  retention_->Enforce();
  KeptDump dump;
  dump.name = running;
  retention_->Opened(dump);
  retention_->Grown(running, 1u << 20);
  const QuotaPlan plan = retention_->Enforce();
  EXPECT_TRUE(plan.removals.empty());
  EXPECT_FALSE(plan.over_total);
  // What waits for a slow disk will be written, too.
  retention_->Grown(running, 1u << 20, 4u << 20);
  EXPECT_TRUE(retention_->Enforce().over_total);
  retention_->Grown(running, 1u << 20, 1u << 20);
  EXPECT_FALSE(retention_->Enforce().over_total);
}

TEST_F(DumpRetentionTest, APauseDoesNotSlowTheNextSession) {
  const std::string first = Make("s-1", true);
  const std::string second = Make("s-2", true);
  Begin();
  retention_->SetLimits({.total = 1u << 30});
  KeptDump dump;
  dump.name = first;
  retention_->Opened(dump);
  retention_->Enforce();
  retention_->Grown(first, 20u << 20);
  time_.Advance(kNsPerSecond);
  retention_->Enforce();  // 20 MiB a second
  retention_->Closed(first, DumpState::kDone, 20u << 20);
  for (int i = 0; i < 50; ++i) {
    time_.Advance(200 * kNsPerMs);
    retention_->Enforce();
  }
  dump.name = second;
  retention_->Opened(dump);
  retention_->Grown(second, 1);
  retention_->SetLimits({.total = 5u << 20});
  EXPECT_TRUE(retention_->Enforce().over_total) << "half a second of the rate does not fit";
}

// Nor does a disk that takes nothing: what comes meanwhile is to be written, too.
TEST_F(DumpRetentionTest, ASlowDiskIsNotASlowSession) {
  const std::string running = Make("s-1", true);
  Begin();
  retention_->SetLimits({.total = 1u << 30});
  KeptDump dump;
  dump.name = running;
  retention_->Opened(dump);
  retention_->Enforce();
  retention_->Grown(running, 1u << 20, 10u << 20);
  time_.Advance(kNsPerSecond);
  retention_->Enforce();
  retention_->Grown(running, 1u << 20, 20u << 20);
  time_.Advance(kNsPerSecond);
  retention_->SetLimits({.total = 25u << 20});  // 21 are taken, at 10 a second
  EXPECT_TRUE(retention_->Enforce().over_total);
  // What moves from the queue to the disk is not counted again.
  retention_->SetLimits({.total = 1u << 30});
  for (int i = 0; i < 40; ++i) {
    retention_->Grown(running, 21u << 20, 0);
    time_.Advance(kNsPerSecond);
    retention_->Enforce();
  }
  retention_->SetLimits({.total = 23u << 20});
  EXPECT_FALSE(retention_->Enforce().over_total);
}

// Root's dumps have no limit of their own: the test's are, so it is asked about pins instead.
TEST_F(DumpRetentionTest, PinsAreLimitedAndSurvive) {
  const std::string first = Make("s-1", true);
  const std::string second = Make("s-2", true);
  Begin();
  uint64_t bytes = retention_->Find(first)->bytes;
  retention_->SetLimits({.pinned_per_uid = bytes + 1});
  EXPECT_TRUE(retention_->Pin({first}, true, false).ok());
  Status refused = retention_->Pin({second}, true, false);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("max_pinned_mb_per_uid"));
  EXPECT_TRUE(retention_->Pin({second}, true, true).ok());
  Until([&] { return store_.Load(kPinsFile).value_or("").find(second) != std::string::npos; });
  retention_->Stop();
  retention_.reset();
  found_.clear();
  Begin();
  EXPECT_TRUE(found_.at(0).pinned);
  EXPECT_TRUE(found_.at(1).pinned);
}

// Each change has all of them: on a disk that hangs they are not queued.
TEST_F(DumpRetentionTest, OfPinsThatWaitForTheDiskOnlyTheNewestAreKept) {
  const std::string first = Make("s-1", true);
  const std::string second = Make("s-2", true);
  Begin();
  std::promise<void> hang;
  std::string saved;
  writer_.Post([wait = hang.get_future().share()] { wait.wait(); });
  EXPECT_TRUE(retention_->Pin({first}, true, false).ok());
  writer_.Post([&] { saved = store_.Load(kPinsFile).value_or(""); });
  EXPECT_TRUE(retention_->Pin({second}, true, false).ok());
  EXPECT_TRUE(retention_->Pin({first}, false, false).ok());
  hang.set_value();
  AwaitWriter(writer_);
  EXPECT_THAT(saved, AllOf(HasSubstr(second), Not(HasSubstr(first))));
}

TEST(StateStoreTest, OneDaemonAtATime) {
  TempDir tmp;
  StateStore first(tmp / "state");
  StateStore second(tmp / "state");
  ASSERT_TRUE(first.Lock().ok());
  EXPECT_EQ(second.Lock().code(), StatusCode::kUnavailable);
}

// As where the dump root is moved away and made anew.
TEST(StateStoreTest, OneDaemonAtATimeInAFolderThatWasReplacedToo) {
  TempDir tmp;
  StateStore first(tmp / "state");
  ASSERT_TRUE(first.Lock().ok());
  std::filesystem::rename(tmp / "state", tmp / "moved");
  ASSERT_TRUE(first.SaveSession("ff", "{}").ok());
  StateStore second(tmp / "state");
  EXPECT_EQ(second.Lock().code(), StatusCode::kUnavailable);
  std::filesystem::rename(tmp / "state", tmp / "moved too");
  ASSERT_TRUE(second.Lock().ok());
  EXPECT_EQ(first.SaveSession("ff", "{}").code(), StatusCode::kUnavailable);
}

TEST(StateStoreTest, SessionsComeBackAndGo) {
  TempDir tmp;
  StateStore store(tmp / "state");
  ASSERT_TRUE(store.SaveSession("0123456789ab", "{}").ok());
  ASSERT_TRUE(store.SaveSession("0123456789ab", "{\"x\":1}").ok());
  ASSERT_TRUE(store.SaveSession("ff", "{}").ok());
  EXPECT_FALSE(store.SaveSession("../x", "{}").ok());
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
