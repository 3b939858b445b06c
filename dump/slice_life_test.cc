// What becomes of slices while they are opened, written, closed, compressed and removed by a limit. The
// process that does it is killed before each of its calls that change the volume, one after the other:
// whatever is there then is completed by a recovery, and whole. And a dump that is being written may be
// verified at any time.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/bytes.h"
#include "base/clock.h"
#include "dump/reader.h"
#include "dump/recovery.h"
#include "dump/session_dump.h"
#include "dump/test_support.h"
#include "dump/verify.h"

namespace profd {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRaw = 876'117'208'663'770;
constexpr int kKilled = 77;
constexpr int kRounds = 12;
constexpr int kPartsPerRound = 5;
constexpr int kRecordsPerRound = 80;
constexpr uint64_t kLimit = 330'000;

// What the process has promised; outlives it.
struct Promised {
  std::atomic<uint64_t> flushed{0};  // records
  std::atomic<int64_t> steps{0};
};

// As kill -9 ends a process: _exit is where ThreadSanitizer reports a thread that has not been joined yet.
[[noreturn]] void End(int code) {
  ::syscall(SYS_exit_group, code);
  __builtin_unreachable();
}

class KillingIo : public DumpIo {
 public:
  KillingIo(Promised* promised, int64_t at) : promised_(promised), at_(at) {}
  Result<UniqueFd> Create(int dir, const std::string& name, DumpOwner owner) override {
    Step();
    return DumpIo::Create(dir, name, owner);
  }
  ssize_t Write(int fd, const void* data, size_t size) override {
    Step();
    return DumpIo::Write(fd, data, size);
  }
  ssize_t WriteV(int fd, const struct iovec* parts, int count) override {
    Step();
    return DumpIo::WriteV(fd, parts, count);
  }
  int Unlink(int dir, const std::string& name) override {
    Step();
    return DumpIo::Unlink(dir, name);
  }
  int Sync(int /*fd*/) override {
    Step();
    return 0;
  }
  std::atomic<bool> armed{false};

 private:
  void Step() {
    if (armed && ++promised_->steps == at_) End(kKilled);
  }
  Promised* promised_;
  const int64_t at_;
};

class SliceLifeTest : public testing::Test {
 protected:
  SliceLifeTest() {
    void* shared = ::mmap(nullptr, sizeof(Promised), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    promised_ = new (shared) Promised;
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    wall_ = now.tv_sec * kNsPerSecond + now.tv_nsec;
  }
  ~SliceLifeTest() override { ::munmap(promised_, sizeof(Promised)); }

  SessionDumpOptions Options() const {
    SessionDumpOptions options;
    options.session.session_id = "s-1";
    options.session.start_wall_ns = wall_;
    options.session.start_raw_ns = kRaw;
    options.devices.push_back({.facts = {.id = 0, .chip_id = 5, .counter_hz = 50e6},
                               .clocks = DumpClocks{kRaw, 87, 176, 88, 9}});
    options.host_clocks = {kRaw, 87, 0, 0, 0};
    options.owner = Myself();
    options.sync_at_end = false;
    options.slice_bytes = 8 << 10;
    options.max_bytes = kLimit;
    options.age_at_limit = true;
    options.compress = 1;
    ManifestChannel entry{.collector = "hbm", .device = 0, .channel = 1, .file = "hbm.data", .state = "running",
                          .hz_effective = 1000};
    options.manifest.channels.push_back(entry);
    return options;
  }

  // One slice and a little more.
  static Status Round(SessionDump& dump, SessionDump::Channel hbm, uint64_t* records) {
    for (int part = 0; part < kPartsPerRound; ++part) {
      std::vector<std::byte> block(24 * kRecordsPerRound);
      for (size_t i = 0; i < kRecordsPerRound; ++i, ++*records) {
        std::span<std::byte> record = std::span(block).subspan(24 * i);
        StoreUnchecked(record, 0, *records * 1000);
        StoreUnchecked(record, 8, *records * 0x9E3779B97F4A7C15u);
      }
      RETURN_IF_ERROR(dump.Append(hbm, block, kRecordsPerRound,
                                  kRaw + static_cast<int64_t>(*records) * kNsPerMs));
    }
    return dump.Flush();
  }

  // In the process that is killed.
  void Write(const std::string& root_path, int64_t at) {
    KillingIo io(promised_, at);
    DumpRoot root = DumpRoot::Open(root_path).value();
    std::unique_ptr<SessionDump> dump = SessionDump::Create(root, Options(), io).value();
    const SessionDump::Channel hbm = dump->OpenChannel(0, 1).value();
    io.armed = true;
    uint64_t records = 0;
    for (int round = 0; round < kRounds; ++round) {
      if (!Round(*dump, hbm, &records).ok()) End(1);
      promised_->flushed = records;
      dump->closed().AgeFor(round % 4 == 3 ? 1 : 0);
    }
    EndFacts end;
    end.wall_ns = wall_ + static_cast<int64_t>(records) * kNsPerMs;
    end.raw_ns = kRaw + static_cast<int64_t>(records) * kNsPerMs;
    if (!dump->Finish(end).ok()) End(1);
    End(0);
  }

  // False: the process came to its end.
  bool KillAt(int64_t at) {
    const std::string path = tmp_ / ("root" + std::to_string(at));
    promised_->flushed = 0;
    promised_->steps = 0;
    const pid_t child = ::fork();
    if (child == 0) Write(path, at);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    const int code = WEXITSTATUS(status);
    EXPECT_TRUE(code == 0 || code == kKilled) << code;
    ExpectWhole(path, at, code == kKilled);
    fs::remove_all(path);
    return code == kKilled;
  }

  void ExpectWhole(const std::string& path, int64_t at, bool killed) {
    SCOPED_TRACE(testing::Message() << "killed at step " << at);
    DumpRoot root = DumpRoot::Open(path).value();
    const std::vector<std::string> names = root.Names().value();
    ASSERT_EQ(names.size(), 1u);
    RecoveryOptions options;
    const int64_t ran = static_cast<int64_t>(promised_->flushed) * kNsPerMs + kNsPerSecond;
    options.now_wall_ns = wall_ + ran;
    options.now_raw_ns = kRaw + ran;
    Result<RecoveredDump> recovered = RecoverDump(root, names[0], options);
    ASSERT_TRUE(recovered.ok()) << recovered.status().ToString();
    EXPECT_EQ(recovered->outcome, killed ? RecoveredDump::Outcome::kRecovered
                                         : RecoveredDump::Outcome::kWasComplete);
    const ManifestChannel& hbm = recovered->manifest.channels.at(0);
    EXPECT_GE(hbm.records + hbm.aged.records, promised_->flushed.load());
    for (const ManifestFile& file : recovered->manifest.files) {
      if (FileOfSlice(file.path).empty()) continue;
      EXPECT_TRUE(file.crc32c.has_value()) << file.path;
    }
    DumpReader reader = DumpReader::Open(root, names[0]).value();
    Result<VerifyReport> report = VerifyDump(reader, names[0]);
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    for (const VerifyProblem& problem : report->problems) {
      ADD_FAILURE() << ToString(problem.check) << ": " << problem.where << ": " << problem.what;
    }
  }

  TempDir tmp_;
  Promised* promised_ = nullptr;
  int64_t wall_ = 0;
};

TEST_F(SliceLifeTest, KilledAtEveryStepNothingIsLost) {
  int64_t at = 1;
  while (KillAt(at)) {
    ++at;
    ASSERT_LT(at, 5000);
    if (HasFailure()) return;
  }
  EXPECT_GT(at, 50);
}

TEST_F(SliceLifeTest, IsConsistentWhileItIsWritten) {
  DumpRoot root = DumpRoot::Open(tmp_ / "root").value();
  std::unique_ptr<SessionDump> dump = SessionDump::Create(root, Options()).value();
  const SessionDump::Channel hbm = dump->OpenChannel(0, 1).value();
  std::atomic<int> verified{0};
  std::thread writer([&] {
    uint64_t records = 0;
    // As long as it takes to be looked at in many states, and not without end.
    for (int round = 0; (round < 200 || verified < 30) && round < 100'000; ++round) {
      const Status written = Round(*dump, hbm, &records);
      EXPECT_TRUE(written.ok()) << written.ToString();
      EXPECT_TRUE(dump->WriteManifestIfDue().ok());
    }
  });
  const std::string name = dump->name();
  uint64_t checksums = 0;
  for (; verified < 30; ++verified) {
    Result<VerifyReport> report = VerifyDump(DumpReader::Open(root, name).value(), name);
    EXPECT_TRUE(report.ok()) << report.status().ToString();
    if (!report.ok()) continue;
    checksums += report->checksums;
    EXPECT_EQ(report->state, DumpState::kRunning);
    for (const VerifyProblem& problem : report->problems) {
      ADD_FAILURE() << ToString(problem.check) << ": " << problem.where << ": " << problem.what;
    }
  }
  writer.join();
  EXPECT_GT(checksums, 0u);
  EXPECT_GT(dump->manifest().channels.at(0).aged.slices, 0u);
}

}  // namespace
}  // namespace profd
