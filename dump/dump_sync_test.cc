#include "dump/dump_sync.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>

#include "dump/test_support.h"

namespace profd {
namespace {

// A disk that takes as long as the test likes.
class SlowIo : public DumpIo {
 public:
  int Sync(int fd) override {
    std::unique_lock lock(mutex_);
    ++started;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    errno = error;
    return error == 0 ? DumpIo::Sync(fd) : -1;
  }
  void DropCache(int) override { ++dropped; }
  void WaitStarted() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return started > 0; });
  }
  void Open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  int started = 0;
  std::atomic<int> dropped{0};
  int error = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// Sets how many files the process may have open for as long as it exists.
class OpenFilesLimit {
 public:
  explicit OpenFilesLimit(rlim_t wanted) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit limit = before_;
    limit.rlim_cur = std::min(std::max(before_.rlim_cur, wanted), before_.rlim_max);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~OpenFilesLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  OpenFilesLimit(const OpenFilesLimit&) = delete;
  OpenFilesLimit& operator=(const OpenFilesLimit&) = delete;

 private:
  rlimit before_{};
};

class DumpSyncTest : public testing::Test {
 protected:
  DumpSyncTest() { WriteText(tmp_ / "file", "x"); }
  UniqueFd Fd() { return UniqueFd(::open((tmp_ / "file").c_str(), O_RDONLY | O_CLOEXEC)); }
  UniqueFd Dir() {
    return UniqueFd(::open(tmp_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  TempDir tmp_;
  DumpSync::Outcome outcome_ = std::make_shared<std::atomic<int>>(0);
};

TEST_F(DumpSyncTest, ASlowDiskHoldsUpNoDumpAndTakesNoMoreThanItCan) {
  // The files that wait are open: more than the usual limit allows.
  const OpenFilesLimit limit(4096);
  SlowIo io;
  DumpSync sync(io);
  ASSERT_TRUE(sync.Take(Fd(), DumpSync::SyncMode::kSync, outcome_));
  io.WaitStarted();
  int taken = 0;
  while (taken < 5000 && sync.Take(Fd(), DumpSync::SyncMode::kClosed, outcome_)) ++taken;
  EXPECT_EQ(taken, 1024);
  EXPECT_FALSE(sync.idle());
  std::promise<void> done;
  sync.Then(Dir(), outcome_, [&done] { done.set_value(); });
  io.Open();
  done.get_future().wait();
  EXPECT_EQ(io.dropped, 1024);
  EXPECT_EQ(outcome_->load(), 0);
}

TEST_F(DumpSyncTest, AFailureIsTheSessionsOwn) {
  SlowIo io;
  io.error = EIO;
  io.Open();
  DumpSync sync(io);
  auto other = std::make_shared<std::atomic<int>>(0);
  ASSERT_TRUE(sync.Take(Fd(), DumpSync::SyncMode::kClosed, outcome_));
  std::promise<void> done;
  sync.Then(Dir(), other, [&done] { done.set_value(); });
  done.get_future().wait();
  EXPECT_EQ(outcome_->load(), EIO);
  EXPECT_EQ(other->load(), 0);
  EXPECT_EQ(io.dropped, 0);
}

TEST_F(DumpSyncTest, AReplacementHappensOnceItIsOnTheDiskUnlessCalledOff) {
  WriteText(tmp_ / "new", "2");
  SlowIo io;
  DumpSync sync(io);
  auto replacement = std::make_shared<PendingReplacement>(Dir(), "new", "file");
  ASSERT_TRUE(sync.Replace(Fd(), replacement, outcome_));
  io.WaitStarted();
  EXPECT_EQ(ReadText(tmp_ / "file"), "x");
  WriteText(tmp_ / "newer", "3");
  auto never = std::make_shared<PendingReplacement>(Dir(), "newer", "file");
  ASSERT_TRUE(sync.Replace(Fd(), never, outcome_));
  EXPECT_TRUE(never->CallOff());
  io.Open();
  std::promise<void> done;
  sync.Then(Dir(), outcome_, [&done] { done.set_value(); });
  done.get_future().wait();
  EXPECT_EQ(ReadText(tmp_ / "file"), "2");
  EXPECT_TRUE(replacement->over());
  EXPECT_FALSE(replacement->CallOff());
  EXPECT_EQ(FilesBelow(tmp_.path()), std::set<std::string>{"file"});
}

}  // namespace
}  // namespace profd
