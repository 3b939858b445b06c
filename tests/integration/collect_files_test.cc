// Collecting files as sessions request it, with the real plug-ins and the simulated libraries of an application. Each test
// is a process of its own: what it loads stays for good.
#include <sys/stat.h>

#include <filesystem>

#include "client/libprofd/fake_daemon_test_support.h"
#include "sim/ascendcl/ascendcl.h"
#include "sim/child_test_support.h"
#include "sim/msprofiler/msprofiler.h"

namespace profd::lib {
namespace {

using attach::CollectProvider;
using attach::CollectState;
using attach::CollectorReport;
using attach::FilesTaken;
using attach::SessionNotice;
using sim::InChild;
using testing::HasSubstr;
namespace fs = std::filesystem;

class CollectFilesTest : public LibprofdTest {
 protected:
  void SetUp() override {
    LibprofdTest::SetUp();
    const std::string library = PROFD_SIM_ASCENDCL;
    ::setenv("ASCEND_HOME_PATH", library.substr(0, library.rfind('/')).c_str(), 1);
    ::setenv("PROFD_COLLECT_DIR", folder_.path().c_str(), 1);
    ::unsetenv("PROFD_SIM_APP");
  }
  static void SetDevice() {
    static const sim::Library* const acl = new sim::Library(PROFD_SIM_ASCENDCL);
    EXPECT_EQ(CALL(*acl, aclrtSetDevice)(0), 0);
  }
  static SessionNotice Requesting(const std::string& id, CollectProvider provider) {
    SessionNotice notice;
    notice.session_id = id;
    notice.state = "running";
    notice.collect.emplace();
    notice.collect->kinds = {attach::CollectKind::kKernel};
    notice.collect->flush_ms = 20;
    notice.collect->provider = provider;
    if (provider != CollectProvider::kMspti) notice.collect->aclprof = attach::AclprofRequest{0x802, 0xFF, {{"storage_limit", "500MB"}}};
    return notice;
  }
  static SessionNotice Ended(const std::string& id) {
    SessionNotice notice;
    notice.session_id = id;
    notice.state = "ended";
    return notice;
  }
  // The first report of a session that has this state.
  static CollectorReport Reaches(FakeDaemon& daemon, const std::string& id, CollectState state) {
    CollectorReport found;
    for (size_t n = 0;; ++n) {
      found = daemon.Expect<CollectorReport>(n);
      if ((found.session_id == id && found.state == state) || HasFailure()) return found;
    }
  }
  static CollectorReport Begins(FakeDaemon& daemon, const std::string& id, CollectState state,
                                CollectProvider provider = CollectProvider::kAclprof) {
    daemon.Send(Requesting(id, provider));
    return Reaches(daemon, id, state);
  }
  size_t Directories() const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_.path())) count += entry.is_directory() ? 1 : 0;
    return count;
  }
  // A daemon that takes all files at once.
  static std::vector<attach::ToProcess> TakeFiles(const attach::ToDaemon& message) {
    const auto* report = std::get_if<CollectorReport>(&message);
    if (report == nullptr || report->state != CollectState::kFiles) return {};
    return {FilesTaken{report->session_id, 0, ""}};
  }
};

TEST_F(CollectFilesTest, ASessionsFilesAreHandedOverWhenItEnds) {
  EXPECT_TRUE(InChild([this] {
    ::setenv("PROFD_SIM_APP", "aclprof.stop_ms=60000", 1);
    FakeDaemon daemon(path_);
    Attach();
    SetDevice();
    const CollectorReport on = Begins(daemon, "s", CollectState::kOn);
    EXPECT_EQ(on.provider, attach::CollectProvider::kAclprof);
    EXPECT_FALSE(on.has_ring);
    EXPECT_EQ(daemon.RingCount(), 1u) << "of marks";
    daemon.Send(Ended("s"));
    Reaches(daemon, "s", CollectState::kStopping);
    CALL(sim::Library(PROFD_SIM_MSPROFILER), simMsprofilerControl)("aclprof.stop_ms=0");
    const CollectorReport files = Reaches(daemon, "s", CollectState::kFiles);
    EXPECT_TRUE(files.has_files);
    ASSERT_EQ(daemon.RingCount(), 2u);
    struct stat info {};
    ASSERT_EQ(::fstat(daemon.RingFd(1), &info), 0);
    EXPECT_TRUE(S_ISDIR(info.st_mode));
    EXPECT_EQ(Directories(), 1u);
    daemon.Send(FilesTaken{"another", 0, ""});
    daemon.Send(FilesTaken{"s", 0, ""});
    EXPECT_TRUE(Eventually([this] { return Directories() == 0; }));
    Begins(daemon, "t", CollectState::kOn);
    const size_t reports = daemon.Count<CollectorReport>();
    for (size_t n = 0, count = 0; n < reports; ++n) {
      const CollectorReport report = daemon.Expect<CollectorReport>(n);
      count += report.session_id == "s" && (report.state == CollectState::kFiles || report.state == CollectState::kOff) ? 1 : 0;
      EXPECT_LE(count, 1u) << "the last word of a session is said once";
    }
  }));
}

TEST_F(CollectFilesTest, NeverBothAtOnce) {
  EXPECT_TRUE(InChild([this] {
    FakeDaemon daemon(path_, TakeFiles);
    Attach();
    SetDevice();
    Begins(daemon, "live", CollectState::kOn, CollectProvider::kMspti);
    EXPECT_THAT(Begins(daemon, "first", CollectState::kBusy).detail, HasSubstr("mspti"));
    daemon.Send(Ended("live"));
    Reaches(daemon, "live", CollectState::kOff);
    Reaches(daemon, "first", CollectState::kOn);
    EXPECT_THAT(Begins(daemon, "second", CollectState::kBusy).detail, HasSubstr("session first"));
    EXPECT_THAT(Begins(daemon, "live again", CollectState::kBusy, CollectProvider::kMspti).detail, HasSubstr("aclprof"));
    daemon.Send(Ended("first"));
    Reaches(daemon, "first", CollectState::kFiles);
    Reaches(daemon, "second", CollectState::kOn);
    daemon.Send(Ended("second"));
    Reaches(daemon, "second", CollectState::kFiles);
    Reaches(daemon, "live again", CollectState::kOn);
  }));
}

TEST_F(CollectFilesTest, ASessionThatOnlyWaitedHasNoFiles) {
  EXPECT_TRUE(InChild([this] {
    FakeDaemon daemon(path_);
    Attach();
    Begins(daemon, "s", CollectState::kWaiting);
    daemon.Send(Ended("s"));
    EXPECT_FALSE(Reaches(daemon, "s", CollectState::kOff).has_files);
  }));
}

TEST_F(CollectFilesTest, TheEnvironmentChooses) {
  EXPECT_TRUE(InChild([this] {
    ::setenv("PROFD_COLLECT", "aclprof", 1);
    FakeDaemon daemon(path_);
    Attach();
    SetDevice();
    EXPECT_EQ(Begins(daemon, "m", CollectState::kOff, CollectProvider::kMspti).detail, "PROFD_COLLECT=aclprof");
    EXPECT_EQ(Begins(daemon, "a", CollectState::kOn, CollectProvider::kAuto).provider, attach::CollectProvider::kAclprof);
  }));
}

TEST_F(CollectFilesTest, TheApplicationMayForbidIt) {
  EXPECT_TRUE(InChild([this] {
    profd_collect_allow(PROFD_ALLOW_MSPTI);
    FakeDaemon daemon(path_, TakeFiles);
    Attach();
    SetDevice();
    EXPECT_THAT(Begins(daemon, "s", CollectState::kOff).detail, HasSubstr("profd_collect_allow"));
    profd_collect_allow(PROFD_ALLOW_ALL);
    Reaches(daemon, "s", CollectState::kOn);
  }));
}

TEST_F(CollectFilesTest, WithoutItsDaemonNothingIsKept) {
  EXPECT_TRUE(InChild([this] {
    FakeDaemon daemon(path_);
    Attach();
    SetDevice();
    Begins(daemon, "s", CollectState::kOn);
    EXPECT_EQ(Directories(), 1u);
    daemon.DropConnections();
    EXPECT_TRUE(Eventually([this] { return Directories() == 0; }));
  }));
}

TEST_F(CollectFilesTest, ShutdownHandsTheFilesOver) {
  EXPECT_TRUE(InChild([this] {
    FakeDaemon daemon(path_, TakeFiles);
    Attach();
    SetDevice();
    Begins(daemon, "s", CollectState::kOn);
    profd_shutdown();
    Reaches(daemon, "s", CollectState::kFiles);
    daemon.Expect<attach::Bye>();
    EXPECT_TRUE(Eventually([this] { return Directories() == 0; }));
  }));
}

TEST_F(CollectFilesTest, AProcessThatEndsHandsThemOverFirst) {
  const sim::ChildResult result = sim::RunChild([this] {
    auto* const daemon = new FakeDaemon(path_, TakeFiles);
    Attach();
    SetDevice();
    Begins(*daemon, "s", CollectState::kOn);
    std::exit(HasFailure() ? 1 : 0);
  });
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(Directories(), 0u);
}

}  // namespace
}  // namespace profd::lib
