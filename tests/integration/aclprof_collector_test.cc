// The collector against the simulated libraries of an application; each test in a process of its own, since the
// libraries and the collector stay.
#include "client/libprofd/aclprof/collector.h"

#include <fcntl.h>

#include <filesystem>
#include <thread>

#include "sim/ascendcl/ascendcl.h"
#include "sim/child_test_support.h"
#include "sim/mspti/mspti.h"
#include "sim/msprofiler/msprofiler.h"

namespace profd::lib::aclprof {
namespace {

using sim::InChild;
using sim::Library;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uint64_t kBits = 0x802 | 0x4;
constexpr uint32_t kPipe = 1;

class Process {
 public:
  explicit Process(const std::string& settings = "", const char* library = PROFD_SIM_MSPROFILER) {
    char name[] = "/tmp/aclprof-test-XXXXXX";
    folder = ::mkdtemp(name);
    ::setenv("PROFD_COLLECT_DIR", folder.c_str(), 1);
    // The vendor's folder, by the links that a toolkit has.
    const std::string home = folder + "/home";
    fs::create_directories(home + "/lib64");
    fs::create_symlink(library, home + "/lib64/libmsprofiler.so");
    ::setenv("ASCEND_HOME_PATH", home.c_str(), 1);
    ::setenv("PROFD_SIM_APP", settings.c_str(), 1);
    Collector::Pauses pauses;
    // The settling stays as it is: a thread of the vendor's library reports meanwhile that another profiler runs.
    pauses.waiting = pauses.busy = Collector::Milliseconds(2);
    pauses.untaken = Collector::Milliseconds(60'000);
    collector = new Collector(pauses);
  }
  // The collector keeps trying meanwhile, and makes directories there.
  ~Process() {
    EXPECT_TRUE(Eventually([this] {
      std::error_code failed;
      fs::remove_all(folder, failed);
      return !failed;
    }));
  }

  static const Library& Acl() {
    static const Library* const library = new Library(PROFD_SIM_ASCENDCL);
    return *library;
  }
  static const Library& Msprofiler() {
    static const Library* const library = new Library(PROFD_SIM_MSPROFILER);
    return *library;
  }
  int Start(uint64_t bits = kBits, const char* items = nullptr) const {
    profd_collect_config config = {};
    config.size = sizeof config;
    config.session = "s-1";
    config.aclprof_bits = bits;
    config.aclprof_metrics = kPipe;
    config.aclprof_config = items;
    return collector->Start(config);
  }
  profd_collect_report Report() const {
    profd_collect_report report = {};
    report.size = sizeof report;
    collector->Report(&report);
    return report;
  }
  testing::AssertionResult Reaches(int32_t state) const {
    if (Eventually([&] { return Report().state == state; })) return testing::AssertionSuccess();
    return testing::AssertionFailure() << Report().state << " " << Report().code << " " << Report().detail;
  }
  testing::AssertionResult Begins(int32_t state, int device = 0) const {
    CALL(Acl(), aclrtSetDevice)(device);
    Start();
    return Reaches(state);
  }
  void Stop() const { EXPECT_TRUE(collector->Stop(Collector::Milliseconds(60'000))); }
  testing::AssertionResult StopsWithFiles() const {
    Stop();
    return Reaches(PROFD_COLLECT_FILES);
  }
  static void Launch() {
    sim::acl::Kernel kernel{};
    kernel.name = "conv";
    kernel.type = "Conv2D";
    kernel.duration_ns = 1000;
    EXPECT_EQ(CALL(Acl(), simAclLaunch)(&kernel, nullptr), 0);
    EXPECT_EQ(CALL(Acl(), aclrtSynchronizeDevice)(), 0);
  }
  // Names of all files that were handed over.
  std::set<std::string> Files() const {
    std::set<std::string> names;
    const std::string path = "/proc/self/fd/" + std::to_string(collector->files());
    for (const auto& entry : fs::recursive_directory_iterator(fs::read_symlink(path))) {
      if (entry.is_regular_file()) names.insert(entry.path().filename().string());
    }
    return names;
  }
  size_t Directories() const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
      count += entry.path().filename().string().starts_with("profd-") ? 1 : 0;
    }
    return count;
  }

  std::string folder;
  Collector* collector;
};

TEST_IN_CHILD(AclprofCollector, FilesAreHandedOverAndRemovedWhenTaken) {
  const Process process;
  CALL(Process::Acl(), aclrtSetDevice)(3);
  EXPECT_EQ(process.Start(), 0);
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_ON));
  EXPECT_EQ(process.collector->files(), -1);
  Process::Launch();
  ASSERT_TRUE(process.StopsWithFiles());
  EXPECT_EQ(process.Report().code, 0);
  EXPECT_EQ(::fcntl(process.collector->files(), F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_THAT(process.Files(), testing::IsSupersetOf({"stars_soc.data.3.slice_0", "ffts_profile.data.3.slice_0",
                                                      "aging.compact.task_track.slice_0", "end_info"}));
  EXPECT_EQ(process.Start(), EBUSY) << "until they are taken";
  process.collector->FilesTaken();
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_OFF));
  EXPECT_EQ(process.Directories(), 0u);
  EXPECT_TRUE(Eventually([&] { return process.Start() == 0; })) << "another session";
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_ON));
}

TEST_IN_CHILD(AclprofCollector, FilesThatAreNotWantedAreRemoved) {
  const Process process;
  ASSERT_TRUE(process.Begins(PROFD_COLLECT_ON));
  process.collector->FilesTaken();  // the daemon is gone
  process.Stop();
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_OFF));
  EXPECT_EQ(process.Directories(), 0u);
}

TEST_IN_CHILD(AclprofCollector, WaitsForTheRuntime) {
  const Process process;
  process.Start();
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_WAITING));
  EXPECT_FALSE(IsMapped("libmsprofiler.so"));
  EXPECT_EQ(process.Directories(), 0u);
  CALL(Process::Acl(), aclrtSetDevice)(0);
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_ON));
}

TEST_IN_CHILD(AclprofCollector, NothingOfTheDaemonsChannels) {
  const Process process;
  CALL(Process::Acl(), aclrtSetDevice)(0);
  constexpr uint64_t kSampling = 0x10000 | 0x20000 | 0x40000 | 0x80000 | 0x100000 | 0x200000;
  EXPECT_EQ(process.Start(kSampling), EINVAL);
  process.Start(kBits, "sys_io_freq=50\nstorage_limit=500MB\n");
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_PARTIAL));
  EXPECT_STREQ(process.Report().detail, "refused: sys_io_freq=50 (100000)");
  EXPECT_EQ(process.Report().code, 100000);
}

struct Code {
  const char* settings;
  int32_t state;
  int32_t code;
  const char* detail;
};

TEST(AclprofCollector, TheVendorsCodes) {
  const Code kCodes[] = {
      {"aclprof.fail=aclprofInit:100002", PROFD_COLLECT_BUSY, 100002, "switch its profiler off"},
      {"aclprof.commanded=1", PROFD_COLLECT_BUSY, 100042, "the msprof command"},
      {"aclprof.fail=aclprofInit:148047", PROFD_COLLECT_BUSY, 148047, "another interface"},
      {"aclprof.fail=aclprofStart:200007", PROFD_COLLECT_UNSUPPORTED, 200007, "this chip or CANN"},
      {"aclprof.fail=aclprofStart:500005", PROFD_COLLECT_FAILED, 500005, "channels may belong to another"},
      {"aclprof.fail=aclprofCreateConfig:1", PROFD_COLLECT_FAILED, 100000, "aclprofCreateConfig"},
      {"aclprof.throw=aclprofStart", PROFD_COLLECT_FAILED, 999, "aclprofStart threw: profd sim"},
      {"aclprof.fail=aclprofSetConfig:200006", PROFD_COLLECT_PARTIAL, 200006, "refused: storage_limit="},
  };
  for (const Code& expected : kCodes) {
    EXPECT_TRUE(InChild([&] {
      const Process process(expected.settings);
      ASSERT_TRUE(process.Begins(expected.state));
      EXPECT_EQ(process.Report().code, expected.code);
      EXPECT_THAT(process.Report().detail, HasSubstr(expected.detail));
      // One that is busy is tried again, with a directory of its own each time.
      const size_t left = expected.state == PROFD_COLLECT_PARTIAL ? 1 : 0;
      EXPECT_TRUE(Eventually([&] { return process.Directories() == left; }));
    })) << expected.settings;
  }
}

TEST_IN_CHILD(AclprofCollector, TriesAgainWhileBusy) {
  const Process process("aclprof.fail=aclprofInit:100002");
  ASSERT_TRUE(process.Begins(PROFD_COLLECT_BUSY));
  CALL(Process::Msprofiler(), simMsprofilerControl)("aclprof.fail=aclprofInit:0");
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_ON));
}

// What fails for all devices that the process sees may succeed for its own.
TEST(AclprofCollector, ItsOwnDeviceAloneWhereAllCannotBeStarted) {
  for (const char* variable : {"LOCAL_RANK", "DEVICE_ID"}) {
    EXPECT_TRUE(InChild([variable] {
      ::setenv(variable, "3", 1);
      const Process process("aclprof.unset_device_fails=1");
      ASSERT_TRUE(process.Begins(PROFD_COLLECT_ON, 3));
      EXPECT_THAT(process.Report().detail, HasSubstr("device 3 only, since for all: aclprofStart: 500005"));
      EXPECT_EQ(process.Directories(), 1u);
      Process::Launch();
      ASSERT_TRUE(process.StopsWithFiles());
      EXPECT_THAT(process.Files(), testing::Contains("stars_soc.data.3.slice_0"));
    }));
  }
}

TEST(AclprofCollector, TriesAgainWhatTheDriverRefused) {
  for (const char* rank : {"", "x", "64", "2"}) {  // none, or that of another device
    EXPECT_TRUE(InChild([rank] {
      ::setenv("LOCAL_RANK", rank, 1);
      const Process process("aclprof.unset_device_fails=1");
      ASSERT_TRUE(process.Begins(PROFD_COLLECT_FAILED, 3));
      EXPECT_EQ(process.Report().code, 500005);
      CALL(Process::Msprofiler(), simMsprofilerControl)("aclprof.unset_device_fails=0");
      ASSERT_TRUE(process.Reaches(PROFD_COLLECT_ON));
    }));
  }
}

TEST_IN_CHILD(AclprofCollector, WithoutTheLibraryItIsUnsupported) {
  const Process process;
  fs::remove_all(process.folder + "/home");
  ASSERT_TRUE(process.Begins(PROFD_COLLECT_UNSUPPORTED));
  EXPECT_THAT(process.Report().detail, HasSubstr("libmsprofiler.so"));
  process.Stop();
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_OFF));
}

TEST_IN_CHILD(AclprofCollector, AnOlderVersionHasNoLimit) {
  const Process process("", PROFD_SIM_MSPROFILER_OLD_FILE);
  ASSERT_TRUE(process.Begins(PROFD_COLLECT_PARTIAL));
  EXPECT_THAT(process.Report().detail, HasSubstr("storage_limit"));
  Process::Launch();
  ASSERT_TRUE(process.StopsWithFiles());
}

TEST_IN_CHILD(AclprofCollector, AFullDiskHandsOverWhatThereIs) {
  const Process process("aclprof.disk_bytes=4000");
  ASSERT_TRUE(process.Begins(PROFD_COLLECT_ON));
  Process::Launch();
  ASSERT_TRUE(process.StopsWithFiles());
  EXPECT_EQ(process.Report().code, 500005);
  EXPECT_THAT(process.Report().detail, HasSubstr("aclprofStop: 500005: some files may be missing"));
  EXPECT_FALSE(process.Files().empty());
}

TEST_IN_CHILD(AclprofCollector, WithoutSpaceItReportsWhatToDo) {
  const Process process;
  ::setenv("PROFD_COLLECT_DIR", "/nowhere", 1);
  ASSERT_TRUE(process.Begins(PROFD_COLLECT_FAILED));
  EXPECT_THAT(process.Report().detail, HasSubstr("PROFD_COLLECT_DIR"));
}

TEST_IN_CHILD(AclprofCollector, AnotherProfilerIsSeenBeforeItBegins) {
  const Process process;
  CALL(Process::Acl(), aclrtSetDevice)(0);
  ::setenv("PROFILER_SAMPLECONFIG", "x", 1);
  ASSERT_TRUE(process.Begins(PROFD_COLLECT_BUSY));
  EXPECT_THAT(process.Report().detail, HasSubstr("msprof"));
  EXPECT_FALSE(IsMapped("libmsprofiler.so"));
  ::unsetenv("PROFILER_SAMPLECONFIG");
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_ON));
}

// What it returns ends the subscription.
auto BecomeClientOfMspti() {
  const std::string folder = PROFD_SIM_ASCENDCL;
  ::setenv("ASCEND_HOME_PATH", folder.substr(0, folder.rfind('/')).c_str(), 1);
  static const Library mspti(PROFD_SIM_MSPTI);
  sim::mspti::Subscriber* subscriber = nullptr;
  EXPECT_EQ(CALL(mspti, msptiSubscribe)(&subscriber, nullptr, nullptr), 0);
  EXPECT_EQ(CALL(mspti, msptiActivityEnable)(sim::mspti::kKernel), 0);
  return [subscriber] { EXPECT_EQ(CALL(mspti, msptiUnsubscribe)(subscriber), 0); };
}

TEST_IN_CHILD(AclprofCollector, MsptisSubscriptionKeepsItBusy) {
  const Process process;
  CALL(Process::Acl(), aclrtSetDevice)(0);
  const auto end_client = BecomeClientOfMspti();
  ASSERT_TRUE(process.Begins(PROFD_COLLECT_BUSY));
  end_client();
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_ON));
}

TEST_IN_CHILD(AclprofCollector, AClientOfMsptiThatComesLaterIsReported) {
  const Process process;
  ASSERT_TRUE(process.Begins(PROFD_COLLECT_ON));
  const auto end_client = BecomeClientOfMspti();
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_PARTIAL));
  EXPECT_THAT(process.Report().detail, HasSubstr("client of MSPTI"));
  ASSERT_TRUE(process.StopsWithFiles());
  EXPECT_THAT(process.Report().detail, HasSubstr("client of MSPTI"));
  process.collector->FilesTaken();
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_OFF));
  EXPECT_TRUE(Eventually([&] { return process.Start() == 0; }));
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_BUSY)) << "it is still there";
  end_client();
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_ON));
  EXPECT_STREQ(process.Report().detail, "");
}

TEST_IN_CHILD(AclprofCollector, ItsOwnCommandsAreNotTakenForOthers) {
  const Process process;
  CALL(Process::Acl(), aclrtSetDevice)(0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Eventually([&] { return process.Start() == 0; }));
    ASSERT_TRUE(process.Reaches(PROFD_COLLECT_ON));
    CALL(Process::Acl(), aclrtSetDevice)(i + 1);  // is started on the application's thread
    ASSERT_TRUE(process.StopsWithFiles());
    process.collector->FilesTaken();
    ASSERT_TRUE(process.Reaches(PROFD_COLLECT_OFF));
  }
}

TEST_IN_CHILD(AclprofCollector, StopDoesNotWaitLongerThanItMay) {
  const Process process("aclprof.stop_ms=60000");
  ASSERT_TRUE(process.Begins(PROFD_COLLECT_ON));
  EXPECT_FALSE(process.collector->Stop(Collector::Milliseconds(0)));
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_STOPPING));
  CALL(Process::Msprofiler(), simMsprofilerControl)("aclprof.stop_ms=0");
  ASSERT_TRUE(process.Reaches(PROFD_COLLECT_FILES));
}

TEST_IN_CHILD(AclprofCollector, AForkedChildLeavesItAlone) {
  const Process process;
  ASSERT_TRUE(process.Begins(PROFD_COLLECT_ON));
  EXPECT_TRUE(InChild([&] {
    EXPECT_EQ(process.Start(), ECHILD);
    EXPECT_TRUE(process.collector->Stop(Collector::Milliseconds(0)));
    process.collector->AtExit();
    EXPECT_EQ(process.Report().state, PROFD_COLLECT_OFF);
  }));
  EXPECT_EQ(process.Directories(), 1u);
  ASSERT_TRUE(process.StopsWithFiles());
}

TEST(AclprofCollector, TheEndOfTheProcessWaitsForTheCopy) {
  std::string folder;
  const sim::ChildResult result = sim::RunChild([] {
    static Process* const process = new Process;  // still reachable at the exit
    std::fprintf(stderr, "%s", process->folder.c_str());
    ASSERT_TRUE(process->Begins(PROFD_COLLECT_ON));
    std::thread([] {
      Eventually([] { return process->Report().state == PROFD_COLLECT_FILES; });
      if (process->Files().empty()) std::abort();
      process->collector->FilesTaken();
    }).detach();
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  });
  EXPECT_EQ(result.exit_code, 0) << result.output;
  for (const auto& entry : fs::directory_iterator(result.output)) EXPECT_EQ(entry.path().filename(), "home");
  fs::remove_all(result.output);
}

}  // namespace
}  // namespace profd::lib::aclprof
