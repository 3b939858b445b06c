#include "daemon/session/session_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "daemon/session/testing/fake_job_directory.h"
#include "dump/test_support.h"

namespace profd {
namespace {

using ::testing::HasSubstr;

class SessionFilesTest : public ::testing::Test, public ProcessFilesDump {
 protected:
  SessionFilesTest() : executor_("test", 1), control_(executor_), copier_(control_, clock_) {
    const auto on_idle = [this] {
      const std::lock_guard lock(mutex_);
      ++idle_;
      changed_.notify_all();
    };
    const std::shared_ptr<ProcessFilesDump> dump(std::shared_ptr<void>(), this);
    files_ = std::make_shared<SessionFiles>(SessionFiles::Deps{control_, clock_, directory_, copier_, dump, Myself(), on_idle});
    WriteText(process_ / "stars_soc", "12345");
  }
  ~SessionFilesTest() override { executor_.Stop(); }

  void BeginProcessFiles(ManifestProcessFiles facts, std::function<void(Result<UniqueFd>)> done) override {
    if (!folder_status_.ok()) return done(folder_status_);
    const std::string path = dump_ / facts.directory;
    std::filesystem::create_directory(path);
    done(UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  }
  Status ReserveForFiles(uint64_t bytes, int64_t) override {
    if (bytes > quota_) return ResourceExhausted("the dump may hold 1 byte");
    quota_ -= bytes;
    return Status::Ok();
  }
  void EndProcessFiles(ManifestProcessFiles facts, uint64_t unused, std::vector<ProcessFile> files) override {
    quota_ += unused;
    ended_.emplace_back(std::move(facts), std::move(files));
  }
  bool WaitIdle(int times) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return idle_ == times; });
  }
  void Take(pid_t pid, int code = 0, const std::string& detail = "") {
    control_.RunAndWait([&] {
      TrainingProcess process{.pid = pid, .uid = ::geteuid(), .attach_id = static_cast<uint64_t>(pid)};
      attach::CollectorReport report{.session_id = "s", .state = attach::CollectState::kFiles, .code = code,
                                     .detail = detail};
      files_->Take(process, report,
                   std::make_shared<UniqueFd>(::open(process_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    });
  }

  TempDir dump_, process_;
  ManualClock clock_;
  Status folder_status_;
  std::atomic<uint64_t> quota_{1 << 20};
  std::vector<std::pair<ManifestProcessFiles, std::vector<ProcessFile>>> ended_;
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
  control_.RunAndWait([this] {
    EXPECT_TRUE(files_->idle());
    ASSERT_EQ(files_->results().size(), 2u);
    EXPECT_EQ(files_->results()[0].directory, "host/profd/aclprof_11_1");
    EXPECT_EQ(files_->results()[0].state, "complete");
    EXPECT_EQ(files_->results()[0].files, 1u);
    EXPECT_EQ(files_->results()[0].bytes, 5u);
    EXPECT_EQ(files_->results()[0].problem, "");
    EXPECT_EQ(ReadText(dump_ / "aclprof_12_2/stars_soc"), "12345");
    ASSERT_EQ(directory_.taken().size(), 2u);
    EXPECT_EQ(directory_.taken()[0].first, 11u);
    EXPECT_EQ(directory_.taken()[0].second.code, 0);
    ASSERT_EQ(ended_.size(), 2u);
    EXPECT_EQ(ended_[0].first.directory, "aclprof_11_1") << "as it was begun";
    ASSERT_EQ(ended_[0].second.size(), 1u);
    EXPECT_EQ(ended_[0].second[0].path, "stars_soc");
    EXPECT_EQ(ended_[0].second[0].bytes, 5u);
    EXPECT_EQ(ended_[0].second[0].crc32c, Crc32c(AsBytes(std::string_view("12345"))));
    EXPECT_EQ(quota_, (1u << 20) - 10) << "what was not used is given back";
  });
}

TEST_F(SessionFilesTest, ReportsMissingFiles) {
  WriteText(process_ / "a name", "x");
  Take(11, 500005, "aclprofStop: 500005");
  ASSERT_TRUE(WaitIdle(1));
  control_.RunAndWait([this] {
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
  control_.RunAndWait([this] {
    EXPECT_EQ(files_->results()[0].problem, "");
    EXPECT_EQ(files_->results()[1].state, "partial") << "what is small still fits";
    EXPECT_EQ(files_->results()[1].files, 1u);
    EXPECT_EQ(files_->results()[1].refused, 1u);
    EXPECT_EQ(files_->results()[1].refused_bytes, 800u << 10);
    EXPECT_THAT(files_->results()[1].problem, HasSubstr("large (the dump may hold 1 byte)"));
    EXPECT_EQ(directory_.taken()[1].second.code, static_cast<int>(StatusCode::kResourceExhausted));
  });
}

TEST_F(SessionFilesTest, WithoutAFolderTheProcessIsNotified) {
  folder_status_ = Unavailable("the dump is gone");
  Take(11);
  ASSERT_TRUE(WaitIdle(1));
  control_.RunAndWait([this] {
    EXPECT_EQ(files_->results()[0].problem, "the dump is gone");
    EXPECT_EQ(directory_.taken()[0].second.message, "the dump is gone");
  });
}

TEST_F(SessionFilesTest, RefusesFilesAfterTheEnd) {
  control_.RunAndWait([this] { files_->Abandon(); });
  Take(11);
  control_.RunAndWait([this] {
    ASSERT_EQ(directory_.taken().size(), 1u);
    EXPECT_EQ(directory_.taken()[0].second.code, static_cast<int>(StatusCode::kDeadlineExceeded));
    EXPECT_TRUE(files_->idle());
  });
  EXPECT_TRUE(std::filesystem::is_empty(dump_.path()));
}

}  // namespace
}  // namespace profd
