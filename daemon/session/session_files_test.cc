#include "daemon/session/session_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "daemon/session/testing/fake_job_directory.h"
#include "dump/test_support.h"

namespace profd {
namespace {

using ::testing::HasSubstr;

class SessionFilesTest : public ::testing::Test {
 protected:
  SessionFilesTest() : executor_("test", 1), control_(executor_), copier_(control_, clock_) {
    SessionFiles::Deps deps{control_, clock_, directory_, copier_, nullptr, Myself(), 1 << 20, nullptr};
    deps.make_folder = [this](const std::string& name, const std::function<void(Result<UniqueFd>)>& done) {
      if (!folder_status_.ok()) return done(folder_status_);
      std::filesystem::create_directory(dump_ / name);
      done(UniqueFd(::open((dump_ / name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    };
    deps.on_idle = [this] {
      const std::lock_guard lock(mutex_);
      ++idle_;
      changed_.notify_all();
    };
    files_ = std::make_shared<SessionFiles>(std::move(deps));
    WriteText(process_ / "stars_soc", "12345");
  }
  ~SessionFilesTest() override { executor_.Stop(); }

  template <class Body>
  void OnControl(Body body) {
    std::unique_lock lock(mutex_);
    bool done = false;
    control_.Post([&] {
      body();
      const std::lock_guard held(mutex_);
      done = true;
      changed_.notify_all();
    });
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return done; }));
  }
  bool WaitIdle(int times) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return idle_ == times; });
  }
  void Take(pid_t pid, int code = 0, const std::string& detail = "") {
    OnControl([&] {
      TrainingProcess process;
      process.pid = pid;
      process.attach_id = static_cast<uint64_t>(pid);
      process.uid = ::geteuid();
      attach::CollectorReport report;
      report.session_id = "s";
      report.state = "files";
      report.code = code;
      report.detail = detail;
      files_->Take(process, report,
                   std::make_shared<UniqueFd>(::open(process_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    });
  }

  TempDir dump_, process_;
  ManualClock clock_;
  Status folder_status_;
  testing::FakeJobDirectory directory_;
  Executor executor_;
  Strand control_;
  FileCopier copier_;
  std::shared_ptr<SessionFiles> files_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int idle_ = 0;
};

TEST_F(SessionFilesTest, EachProcessGetsAFolder) {
  Take(11);
  ASSERT_TRUE(WaitIdle(1));
  Take(12);
  ASSERT_TRUE(WaitIdle(2));
  OnControl([this] {
    EXPECT_TRUE(files_->idle());
    ASSERT_EQ(files_->results().size(), 2u);
    EXPECT_EQ(files_->results()[0].folder, "host/profd/aclprof_11_1");
    EXPECT_EQ(files_->results()[0].files, 1u);
    EXPECT_EQ(files_->results()[0].bytes, 5u);
    EXPECT_EQ(files_->results()[0].problem, "");
    EXPECT_EQ(ReadText(dump_ / "aclprof_12_2/stars_soc"), "12345");
    ASSERT_EQ(directory_.taken().size(), 2u);
    EXPECT_EQ(directory_.taken()[0].first, 11u);
    EXPECT_EQ(directory_.taken()[0].second.code, 0);
  });
}

TEST_F(SessionFilesTest, WhatIsMissingIsSaid) {
  WriteText(process_ / "a name", "x");
  Take(11, 500005, "aclprofStop: 500005");
  ASSERT_TRUE(WaitIdle(1));
  OnControl([this] {
    const std::string& problem = files_->results()[0].problem;
    EXPECT_THAT(problem, HasSubstr("aclprofStop: 500005"));
    EXPECT_THAT(problem, HasSubstr("1 left out, for instance a name"));
  });
}

TEST_F(SessionFilesTest, TheLimitIsOfAllProcesses) {
  WriteText(process_ / "large", std::string(800 << 10, 'x'));
  Take(11);
  ASSERT_TRUE(WaitIdle(1));
  Take(12);
  ASSERT_TRUE(WaitIdle(2));
  OnControl([this] {
    EXPECT_EQ(files_->results()[0].problem, "");
    EXPECT_THAT(files_->results()[1].problem, HasSubstr("more than"));
    EXPECT_EQ(directory_.taken()[1].second.code, static_cast<int>(StatusCode::kResourceExhausted));
  });
}

TEST_F(SessionFilesTest, WithoutAFolderTheProcessIsNotified) {
  folder_status_ = Unavailable("the dump is gone");
  Take(11);
  ASSERT_TRUE(WaitIdle(1));
  OnControl([this] {
    EXPECT_EQ(files_->results()[0].problem, "the dump is gone");
    EXPECT_EQ(directory_.taken()[0].second.message, "the dump is gone");
  });
}

TEST_F(SessionFilesTest, WhatComesAfterTheEndIsRefused) {
  OnControl([this] { files_->Abandon(); });
  Take(11);
  OnControl([this] {
    ASSERT_EQ(directory_.taken().size(), 1u);
    EXPECT_EQ(directory_.taken()[0].second.code, static_cast<int>(StatusCode::kDeadlineExceeded));
    EXPECT_TRUE(files_->idle());
  });
  EXPECT_TRUE(std::filesystem::is_empty(dump_.path()));
}

}  // namespace
}  // namespace profd
