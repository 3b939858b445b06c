#include "dump/session_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "driver/abi/channels.h"
#include "dump/reader.h"
#include "dump/test_support.h"

namespace profd {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

constexpr int64_t kWall = 1'767'225'600'000'000'000;
constexpr int64_t kRaw = 876'117'208'663'770;

SessionDumpOptions Options() {
  SessionDumpOptions options;
  options.session.session_id = "s-1";
  options.session.pid = 4242;
  options.session.start_wall_ns = kWall;
  options.session.start_raw_ns = kRaw;
  options.node.hostname = "n1";
  options.node.profd_version = "0.1.0";
  for (int id : {0, 5}) {
    options.devices.push_back({.facts = {.id = id, .chip_id = 5, .counter_hz = 50e6, .aicore_mhz = 1800},
                               .clocks = DumpClocks{kRaw, 87, 176, 88, 9}});
  }
  options.host_clocks.host_ns = kRaw;
  options.host_clocks.host_count = 87;
  options.owner = Myself();
  options.sync_at_end = false;
  return options;
}

class SessionDumpTest : public testing::Test {
 protected:
  SessionDumpTest() : root_(std::move(DumpRoot::Open(tmp_ / "root")).value()) {}

  std::unique_ptr<SessionDump> Make(SessionDumpOptions options, DumpIo& io = SystemDumpIo()) {
    Result<std::unique_ptr<SessionDump>> made = SessionDump::Create(root_, std::move(options), io);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (!made.ok()) return nullptr;
    path_ = (*made)->path();
    return std::move(made).value();
  }
  static Status Put(SessionDump& dump, SessionDump::Channel channel, const std::string& text) {
    return dump.Append(channel, AsBytes(text), 1);
  }
  void ExpectFilesOfAWholeSession();
  std::string Text(const std::string& name) { return ReadText(path_ + "/" + name); }
  Manifest ManifestNow() {
    Result<Manifest> manifest = ParseManifest(Text("profd_manifest.json"));
    EXPECT_TRUE(manifest.ok()) << manifest.status().ToString();
    return manifest.value_or({});
  }

  TempDir tmp_;
  DumpRoot root_;
  std::string path_;
};

TEST_F(SessionDumpTest, IsReadableFromTheFirstMoment) {
  std::unique_ptr<SessionDump> dump = Make(Options());
  std::set<std::string> files = FilesBelow(path_);
  EXPECT_THAT(files, IsSupersetOf({"host/info.json", "host/info.json.done", "host/sample.json",
                                   "host/start_info", "host/host_start.log", "device_5/info.json.5",
                                   "device_5/sample.json", "device_5/sample.json.done",
                                   "device_5/start_info.5", "device_5/host_start.log.5",
                                   "device_5/dev_start.log.5", "device_5/dev_start.log.5.done",
                                   "profd_manifest.json"}));
  EXPECT_TRUE(fs::is_directory(path_ + "/device_0/data"));
  EXPECT_TRUE(fs::is_directory(path_ + "/host/data"));
  EXPECT_EQ(Text("device_5/dev_start.log.5"), "clock_monotonic_raw: 176\ncntvct: 88\n");
  EXPECT_THAT(Text("device_5/host_start.log.5"), HasSubstr("[Device5]"));
  EXPECT_EQ(Text("host/info.json.done"),
            "filesize:" + std::to_string(Text("host/info.json").size()) + "\n");
  Manifest manifest = ManifestNow();
  EXPECT_EQ(manifest.state, DumpState::kRunning);
  EXPECT_EQ(manifest.session_id, "s-1");
  EXPECT_EQ(manifest.devices.size(), 2u);
  EXPECT_EQ(manifest.clocks.size(), 3u);
  EXPECT_EQ(manifest.end_wall_ns, 0);
  uint64_t on_disk = 0;
  for (const std::string& file : files) on_disk += Text(file).size();
  EXPECT_EQ(dump->bytes_written(), on_disk);
}

void SessionDumpTest::ExpectFilesOfAWholeSession() {
  EXPECT_THAT(
      FilesBelow(path_),
      AllOf(IsSupersetOf({"device_5/data/hbm.data.5.slice_0", "device_5/data/hbm.data.5.slice_1",
                          "device_5/data/hbm.data.5.slice_1.done",
                          "device_0/data/hccs.data.0.slice_0",
                          "device_0/data/lpmInfoConv.data.0.slice_0.done",
                          "device_5/data/netdev_stats.data.5.slice_0",
                          "host/data/4242-CpuUsage.data.slice_0.done",
                          "host/data/host_cpu.data.slice_0", "host/profd/samples.tsv", "host/end_info",
                          "device_5/end_info.5", "device_5/end_info.5.done"}),
            Not(Contains("host/data/host_cpu.data.slice_1")),
            Not(Contains("device_0/data/pcie.data.0.slice_0"))));
}

TEST_F(SessionDumpTest, HasNoFolderTheVendorsAnalyserStumblesOver) {
  std::unique_ptr<SessionDump> dump = Make(Options());
  ASSERT_TRUE(dump->AppendOwn("marks.tsv", "1\t2\t\t2\tmark\ta\t0\n").ok());
  ASSERT_TRUE(dump->Finish({}).ok());
  std::set<std::string> folders;
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (entry.is_directory()) folders.insert(entry.path().filename().string());
  }
  EXPECT_THAT(folders, testing::ElementsAre("device_0", "device_5", "host"));
  EXPECT_THAT(FilesBelow(path_), IsSupersetOf({"host/profd/marks.tsv", "profd_manifest.json"}));
  // Nor is there a way to make one.
  Result<UniqueFd> top = root_.OpenDump(dump->name());
  ASSERT_TRUE(top.ok());
  EXPECT_EQ(MakeTopFolderAt(top->get(), "profd", Myself()).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(path_ + "/profd"));
  EXPECT_TRUE(MakeTopFolderAt(top->get(), "device_1", Myself()).ok());
}

// driver-abi 5.3: a reader cannot use one of the two without the other.
TEST_F(SessionDumpTest, CountersAndTasksOfOneTimeAreRemovedTogether) {
  SessionDumpOptions options = Options();
  options.slice_bytes = 1000;
  std::unique_ptr<SessionDump> dump = Make(options);
  for (int i = 0; i < 6; ++i) {
    for (const char* file : {"aicore.data", "hwts.data"}) {
      ASSERT_TRUE(dump->AppendDeviceFile(0, file, std::string(1000, 'x')).ok());
    }
  }
  EXPECT_GT(dump->closed().AgeFor(2500), 2500u);
  ASSERT_TRUE(dump->Finish({}).ok());
  auto slices_of = [&](const std::string& base) {
    std::set<std::string> found;
    for (const std::string& file : FilesBelow(path_ + "/device_0/data")) {
      if (file.starts_with(base) && !file.ends_with(".done")) found.insert(file.substr(base.size()));
    }
    return found;
  };
  EXPECT_EQ(slices_of("aicore.data").size(), 4u);
  EXPECT_EQ(slices_of("aicore.data"), slices_of("hwts.data"));
}

TEST_F(SessionDumpTest, SlicesOfActivityAreLonger) {
  SessionDumpOptions options = Options();
  options.slice_bytes = 1000;
  std::unique_ptr<SessionDump> dump = Make(options);
  for (int i = 0; i < 17; ++i) {
    for (const char* file : {"activity_kernel.data", "host_mem.data"}) {
      ASSERT_TRUE(dump->AppendHostFile(file, std::string(500, 'x')).ok());
    }
  }
  ASSERT_TRUE(dump->Finish({}).ok());
  const auto bytes_of = [&](const char* file) { return fs::file_size(path_ + "/host/data/" + file); };
  EXPECT_EQ(bytes_of("activity_kernel.data.slice_0"), 8000u);
  EXPECT_EQ(bytes_of("activity_kernel.data.slice_1"), 500u);
  EXPECT_EQ(bytes_of("host_mem.data.slice_0"), 1000u);
}

TEST_F(SessionDumpTest, SlicesOfActivityAreShorterInASmallDump) {
  SessionDumpOptions options = Options();
  options.slice_bytes = 100'000;
  options.max_bytes = 32 * 300'000;
  std::unique_ptr<SessionDump> dump = Make(options);
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(dump->AppendHostFile("activity_kernel.data", std::string(50'000, 'x')).ok());
  ASSERT_TRUE(dump->Finish({}).ok());
  EXPECT_EQ(fs::file_size(path_ + "/host/data/activity_kernel.data.slice_0"), 300'000u);
}

// Records that have them may be written at once; a daemon that is killed loses what is in its memory.
TEST_F(SessionDumpTest, NamesAreNotBuffered) {
  std::unique_ptr<SessionDump> dump = Make(Options());
  ASSERT_TRUE(dump->AppendOwn("activity_names.tsv", "1\tMatMul\n").ok());
  EXPECT_THAT(Text("host/profd/activity_names.tsv"), testing::EndsWith("\n1\tMatMul\n"));
  ASSERT_TRUE(dump->AppendOwn("activity_names.tsv", "2\tAdd\n").ok());
  EXPECT_THAT(Text("host/profd/activity_names.tsv"), testing::EndsWith("\n1\tMatMul\n2\tAdd\n"));
}

TEST_F(SessionDumpTest, WritesASessionToTheEnd) {
  SessionDumpOptions options = Options();
  options.slice_bytes = 100;
  ManifestChannel entry{.collector = "hbm", .device = 5, .channel = 1, .state = "running"};
  options.manifest.channels.push_back(entry);
  options.manifest.label = "my run";
  std::unique_ptr<SessionDump> dump = Make(options);
  Result<SessionDump::Channel> hbm = dump->OpenChannel(5, 1);
  Result<SessionDump::Channel> hccs = dump->OpenChannel(0, 9);
  Result<SessionDump::Channel> lp = dump->OpenChannel(0, 132, abi::kLpInfoFile);
  Result<SessionDump::Channel> silent = dump->OpenChannel(0, 3);
  ASSERT_TRUE(hbm.ok() && hccs.ok() && lp.ok() && silent.ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Put(*dump, *hbm, std::string(24, 'h')).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Put(*dump, *hccs, "1:000000001 2 3\n").ok());
  ASSERT_TRUE(Put(*dump, *lp, std::string(888, 'l')).ok());
  ASSERT_TRUE(dump->AppendHostFile("4242-CpuUsage.data", "TimeStamp:1\n").ok());
  ASSERT_TRUE(dump->AppendHostFile("host_cpu.data", std::string(99, 'c') + "\n").ok());
  ASSERT_TRUE(dump->AppendHostFile("host_cpu.data", std::string(99, 'd') + "\n").ok());
  ASSERT_TRUE(dump->AppendDeviceFile(5, "netdev_stats.data", "1 2 3\n").ok());
  ASSERT_TRUE(dump->AppendOwn(kOwnSamplesFile, "1\tm\t0\t\t2\n").ok());
  ASSERT_TRUE(dump->Flush().ok());
  EXPECT_THAT(FilesBelow(path_), Not(Contains("host/end_info")));
  EndFacts end{.wall_ns = kWall + 1'500'000'000, .raw_ns = kRaw + 1'500'000'000, .reason = "stopped by uid 0"};
  ASSERT_TRUE(dump->Finish(end).ok());
  EXPECT_FALSE(Put(*dump, *hbm, "x").ok());
  EXPECT_FALSE(dump->Finish(end).ok());

  ExpectFilesOfAWholeSession();
  EXPECT_EQ(Text("host/profd/samples.tsv"), std::string(kOwnSamplesHeading) + "1\tm\t0\t\t2\n");
  EXPECT_TRUE(Text("device_0/data/hccs.data.0.slice_1").starts_with(abi::kHccsHeader));
  EXPECT_THAT(Text("device_5/end_info.5"), HasSubstr("\"collectionTimeEnd\":\"1767225601500000\""));
  Manifest manifest = ManifestNow();
  EXPECT_EQ(manifest.state, DumpState::kDone);
  EXPECT_EQ(manifest.reason, "stopped by uid 0");
  EXPECT_EQ(manifest.label, "my run");
  EXPECT_EQ(manifest.channels[0].records, 10u);
  EXPECT_EQ(manifest.channels[0].bytes, 240u);
  EXPECT_EQ(manifest.channels[0].file, "hbm.data");
  std::map<std::string, uint64_t> sizes;
  for (const ManifestFile& file : manifest.files) sizes[file.path] = file.bytes;
  EXPECT_EQ(sizes["device_5/data/hbm.data.5.slice_0"], 120u);
  EXPECT_EQ(sizes.count("device_5/data/hbm.data.5.slice_0.done"), 0u);
  EXPECT_EQ(sizes["device_5/data/hbm.data.5.slice_1"], 120u);
  EXPECT_EQ(sizes.count("device_5/data/hbm.data.5.slice_2"), 0u);
  EXPECT_EQ(dump->open_fds(), 0u);
}

TEST_F(SessionDumpTest, DirectoriesAndFilesBelongToTheOwner) {
  SessionDumpOptions options = Options();
  if (::geteuid() == 0) options.owner = {4711, 4712};
  std::unique_ptr<SessionDump> dump = Make(options);
  ASSERT_TRUE(dump->AppendHostFile("host_cpu.data", "x\n").ok());
  ASSERT_TRUE(dump->AppendOwn(kOwnSamplesFile, "x\n").ok());
  ASSERT_TRUE(dump->Finish({}).ok());
  size_t seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    struct stat st {};
    ASSERT_EQ(::lstat(entry.path().c_str(), &st), 0);
    EXPECT_EQ(st.st_uid, options.owner.uid) << entry.path();
    EXPECT_EQ(st.st_gid, options.owner.gid) << entry.path();
    EXPECT_EQ(st.st_mode & 07777, entry.is_directory() ? 0750u : 0640u) << entry.path();
    ++seen;
  }
  EXPECT_GT(seen, 30u);
}

TEST_F(SessionDumpTest, AbandonedItKeepsWhatItWasGiven) {
  {
    std::unique_ptr<SessionDump> dump = Make(Options());
    Result<SessionDump::Channel> hbm = dump->OpenChannel(0, 1);
    ASSERT_TRUE(Put(*dump, *hbm, std::string(24, 'h')).ok());
  }
  EXPECT_EQ(Text("device_0/data/hbm.data.0.slice_0"), std::string(24, 'h'));
  EXPECT_EQ(ManifestNow().state, DumpState::kRunning);
  EXPECT_THAT(FilesBelow(path_), Not(Contains("device_0/end_info.0")));
}

TEST_F(SessionDumpTest, RefusesInvalidNames) {
  std::unique_ptr<SessionDump> dump = Make(Options());
  for (std::string_view name : {"../../etc/passwd", "a/b", "", ".", "..", "a b", "/abs"}) {
    EXPECT_EQ(dump->AppendHostFile(name, "x\n").code(), StatusCode::kInvalidArgument) << name;
    EXPECT_FALSE(dump->OpenChannel(0, 1, name.empty() ? "a/b" : name).ok()) << name;
  }
  EXPECT_EQ(dump->AppendDeviceFile(1, "x.data", "x\n").code(), StatusCode::kNotFound);
  EXPECT_EQ(dump->AppendDeviceFile(64, "x.data", "x\n").code(), StatusCode::kNotFound);
  EXPECT_EQ(dump->OpenChannel(64, 1).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(dump->OpenChannel(0, 999).status().code(), StatusCode::kUnimplemented);
  ASSERT_TRUE(dump->OpenChannel(0, 1).ok());
  EXPECT_EQ(dump->OpenChannel(0, 1).status().code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(dump->OpenChannel(5, 1).ok());
}

TEST_F(SessionDumpTest, HundredsOfProcessesNeedFewDescriptors) {
  SessionDumpOptions options = Options();
  options.max_dynamic_fds = 16;
  options.max_dynamic_files = 300;
  options.slice_bytes = 2000;
  std::unique_ptr<SessionDump> dump = Make(options);
  std::string line = std::string(99, 'x') + "\n";
  for (int round = 0; round < 30; ++round) {
    for (int pid = 0; pid < 300; ++pid) {
      if (round >= 20 && pid < 250) continue;  // most processes end
      ASSERT_TRUE(dump->AppendHostFile(std::to_string(pid) + "-CpuUsage.data", line).ok());
    }
    if (round % 5 == 4) {
      ASSERT_TRUE(dump->Flush().ok());
    }
    EXPECT_LE(dump->open_fds(), 16u);
  }
  EXPECT_EQ(dump->AppendHostFile("one-more.data", "x\n").code(), StatusCode::kOutOfRange);
  ASSERT_TRUE(dump->Finish({}).ok());
  EXPECT_EQ(Text("host/data/7-CpuUsage.data.slice_0").size(), 2000u);
  EXPECT_EQ(Text("host/data/299-CpuUsage.data.slice_1").size(), 1000u);
  EXPECT_EQ(Text("host/data/299-CpuUsage.data.slice_1.done").substr(0, 14), "filesize:1000\n");
}

TEST_F(SessionDumpTest, EndsCleanlyAtItsLimit) {
  SessionDumpOptions options = Options();
  options.max_bytes = 1 << 20;
  std::unique_ptr<SessionDump> dump = Make(options);
  Result<SessionDump::Channel> hbm = dump->OpenChannel(0, 1);
  Status status;
  for (int i = 0; i < 2000 && status.ok(); ++i) status = Put(*dump, *hbm, std::string(2400, 'h'));
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(IsAtStorageLimit(status)) << status.ToString();
  EXPECT_TRUE(dump->Flush().ok());
  ASSERT_TRUE(dump->Finish({kWall, kRaw, DumpState::kDone, "storage_limit"}).ok());
  uint64_t total = 0;
  for (const std::string& file : FilesBelow(path_)) total += Text(file).size();
  EXPECT_LE(total, options.max_bytes);
  EXPECT_GT(total, options.max_bytes / 2);
}

TEST_F(SessionDumpTest, AFullDiskIsAnOutcome) {
  FullDiskIo io;
  SessionDumpOptions options = Options();
  ManifestChannel entry{.device = 0, .channel = 1};
  options.manifest.channels.push_back(entry);
  std::unique_ptr<SessionDump> dump = Make(options, io);
  Result<SessionDump::Channel> hbm = dump->OpenChannel(0, 1);
  ASSERT_TRUE(Put(*dump, *hbm, std::string(24, 'a')).ok());
  ASSERT_TRUE(dump->Flush().ok());
  ASSERT_TRUE(Put(*dump, *hbm, std::string(24, 'b')).ok());
  io.free_bytes = 0;
  EXPECT_EQ(dump->Flush().code(), StatusCode::kResourceExhausted);
  Status end = dump->Finish({kWall, kRaw, DumpState::kFailed, "dump volume full"});
  EXPECT_EQ(end.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(dump->open_fds(), 0u);
  EXPECT_EQ(dump->manifest().channels[0].gaps.at(0).lost_records, 1u);
  EXPECT_EQ(Text("device_0/data/hbm.data.0.slice_0"), std::string(24, 'a'));
  EXPECT_EQ(ManifestNow().state, DumpState::kRunning);  // the old one, whole
}

TEST_F(SessionDumpTest, AFullVolumeKeepsTheLastSliceThatHasSomething) {
  FullDiskIo io;
  SessionDumpOptions options = Options();
  options.slice_bytes = 48;
  std::unique_ptr<SessionDump> dump = Make(options, io);
  const SessionDump::Channel hbm = dump->OpenChannel(0, 1).value();
  ASSERT_TRUE(Put(*dump, hbm, std::string(48, 'a')).ok());
  ASSERT_TRUE(Put(*dump, hbm, std::string(24, 'b')).ok());
  io.free_bytes = 0;
  // What is only buffered may never get there.
  EXPECT_EQ(dump->closed().OldestNs(), 0);
  EXPECT_EQ(dump->closed().AgeFor(1), 0u);
  EXPECT_TRUE(FilesBelow(path_).contains("device_0/data/hbm.data.0.slice_1"));
  EXPECT_FALSE(dump->Finish({kWall, kRaw, DumpState::kFailed, "dump volume full"}).ok());
  EXPECT_EQ(Text("device_0/data/hbm.data.0.slice_0"), std::string(48, 'a'));
  // Who completes the dump removes what has no record, and the journal would still have it.
  EXPECT_FALSE(FilesBelow(path_).contains("device_0/data/hbm.data.0.slice_1"));
  EXPECT_THAT(Text("host/profd/slices.tsv"), AllOf(HasSubstr("slice_0"), Not(HasSubstr("slice_1"))));
}

// Between the last record in its file, or the start, and the last one that is missing, or the end.
TEST_F(SessionDumpTest, WhatIsGivenUpIsLocatedInTime) {
  constexpr int64_t kSecond = 1'000'000'000;
  FullDiskIo io;
  SessionDumpOptions options = Options();
  options.manifest.channels.resize(2);
  options.manifest.channels[0].device = 0;
  options.manifest.channels[0].channel = 1;
  options.manifest.channels[1].collector = "host_cpu";
  std::unique_ptr<SessionDump> dump = Make(options, io);
  const SessionDump::Channel hbm = dump->OpenChannel(0, 1).value();
  ASSERT_TRUE(dump->Append(hbm, AsBytes(std::string(24, 'a')), 1, kRaw + kSecond).ok());
  ASSERT_TRUE(dump->Flush().ok());
  ASSERT_TRUE(dump->Append(hbm, AsBytes(std::string(24, 'b')), 1, kRaw + 2 * kSecond).ok());
  ASSERT_TRUE(dump->Append(hbm, AsBytes(std::string(48, 'c')), 2, kRaw + 3 * kSecond).ok());
  for (const char* file : {"1-CpuUsage.data", "2-CpuUsage.data"}) {
    ASSERT_TRUE(dump->AppendHostFile(file, "lines\n", {1, 0, "host_cpu"}).ok());
  }
  io.free_bytes = 0;
  EXPECT_FALSE(dump->Finish({kWall, kRaw + 5 * kSecond, DumpState::kFailed, "dump volume full"}).ok());
  const std::vector<ManifestChannel>& channels = dump->manifest().channels;
  const ManifestLoss lost[] = {{LossReason::kWriteError, 3, 72, kRaw + kSecond, kRaw + 3 * kSecond},
                               {LossReason::kWriteError, 2, 12, kRaw, kRaw + 5 * kSecond}};
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(channels[i].dropped, std::vector{lost[i]});
    const ManifestGap gap{lost[i].to_ns, lost[i].records, LossReason::kWriteError, lost[i].from_ns};
    EXPECT_EQ(channels[i].gaps, std::vector{gap});
  }
}

TEST_F(SessionDumpTest, AFailedBeginLeavesNothing) {
  FullDiskIo io;
  for (size_t free_bytes : {0u, 100u, 3000u, 8000u}) {
    io.free_bytes = free_bytes;
    Result<std::unique_ptr<SessionDump>> made = SessionDump::Create(root_, Options(), io);
    EXPECT_FALSE(made.ok());
    EXPECT_TRUE(fs::is_empty(root_.path())) << free_bytes;
  }
  SessionDumpOptions twice = Options();
  twice.devices.push_back(twice.devices[0]);
  EXPECT_FALSE(SessionDump::Create(root_, twice).ok());
  EXPECT_TRUE(fs::is_empty(root_.path()));
}

TEST_F(SessionDumpTest, ADeviceWithoutClocksIsWarnedAbout) {
  SessionDumpOptions options = Options();
  options.devices[0].clocks.reset();
  std::unique_ptr<SessionDump> dump = Make(options);
  EXPECT_THAT(ManifestNow().warnings, Contains(HasSubstr("clocks of device 0")));
  EXPECT_FALSE(Text("device_0/dev_start.log.0").empty());
  // It answers 2 s later: 100,000,000 cycles of its 50 MHz.
  dump->manifest().clocks.push_back({0, "periodic", {kRaw + 2'000'000'000, 99, 10'000'000'000, 500'000'000, 9}});
  ASSERT_TRUE(dump->Finish({}).ok());
  EXPECT_EQ(Text("device_0/dev_start.log.0"), "clock_monotonic_raw: 8000000000\ncntvct: 400000000\n");
  EXPECT_EQ(Text("device_0/dev_start.log.0.done"), "filesize:50\n");
  EXPECT_THAT(Text("device_0/host_start.log.0"), HasSubstr("clock_monotonic_raw: " + std::to_string(kRaw) + "\ncntvct: 87\n"));
  EXPECT_THAT(ManifestNow().warnings, Not(Contains(HasSubstr("unknown amount"))));
}

TEST_F(SessionDumpTest, ADeviceWithoutACounterOrAClockIsWarnedAbout) {
  SessionDumpOptions options = Options();
  options.devices[0].clocks->device_count = 0;
  options.devices[1].clocks->device_ns = options.devices[1].clocks->host_ns;
  std::unique_ptr<SessionDump> dump = Make(options);
  EXPECT_THAT(ManifestNow().warnings, Contains(HasSubstr("no counter (SYS_COUNT) of device 0")));
  EXPECT_THAT(ManifestNow().warnings, Contains(HasSubstr("no clock (MONOTONIC_RAW) of device")));
}

TEST_F(SessionDumpTest, TheReaderServesFilesAndOnlyThem) {
  std::unique_ptr<SessionDump> dump = Make(Options());
  ASSERT_TRUE(dump->AppendHostFile("host_cpu.data", "hello\n").ok());
  ASSERT_TRUE(dump->Finish({}).ok());
  WriteText(tmp_ / "secret", "secret");
  fs::create_symlink(tmp_ / "secret", path_ + "/link");
  fs::create_hard_link(tmp_ / "secret", path_ + "/host/hard");
  fs::create_directory_symlink(tmp_.path(), path_ + "/host/up");
  ASSERT_EQ(::mkfifo((path_ + "/pipe").c_str(), 0600), 0);
  WriteText(path_ + "/odd name", "x");

  Result<DumpReader> reader = DumpReader::Open(root_, dump->name());
  ASSERT_TRUE(reader.ok());
  DumpReader::NotRead not_read;
  Result<std::vector<DumpReader::File>> files = reader->Files(&not_read);
  ASSERT_TRUE(files.ok()) << files.status().ToString();
  EXPECT_EQ(not_read.files, 1u);
  EXPECT_EQ(not_read.first, "host/hard");
  std::set<std::string> paths;
  for (const DumpReader::File& file : *files) {
    paths.insert(file.path);
    Result<UniqueFd> fd = reader->OpenFile(file.path);
    ASSERT_TRUE(fd.ok()) << file.path;
    EXPECT_EQ(ReadWhole(fd->get(), 1 << 20)->size(), file.bytes);
  }
  EXPECT_THAT(paths, IsSupersetOf({"host/data/host_cpu.data.slice_0", "profd_manifest.json"}));
  for (const char* path : {"link", "host/hard", "host/up/secret", "pipe", "odd name"}) {
    EXPECT_THAT(paths, Not(Contains(path)));
    EXPECT_FALSE(reader->OpenFile(path).ok()) << path;
  }
  // A listing that would become too long ends early.
  DumpReader::ListLimits few;
  few.entries = 3;
  EXPECT_EQ(reader->Files(few).status().code(), StatusCode::kOutOfRange);
  DumpReader::ListLimits terse;
  terse.name_bytes = 20;
  EXPECT_EQ(reader->Files(terse).status().code(), StatusCode::kOutOfRange);
  for (const char* path : {"", "/etc/passwd", "../root", "host/../profd_manifest.json",
                           "host//data", "host/", "host", "nothing"}) {
    EXPECT_FALSE(reader->OpenFile(path).ok()) << path;
  }
  EXPECT_EQ(reader->ReadManifest()->state, DumpState::kDone);
  EXPECT_TRUE(DumpReader::OpenPath(path_)->ReadManifest().ok());
  EXPECT_FALSE(DumpReader::Open(root_, "../root").ok());
}

TEST_F(SessionDumpTest, TheManifestIsReplacedAtomically) {
  std::unique_ptr<SessionDump> dump = Make(Options());
  for (int i = 0; i < 5; ++i) {
    dump->manifest().warnings.push_back("warning " + std::to_string(i));
    ASSERT_TRUE(dump->WriteManifest().ok());
    EXPECT_EQ(ManifestNow().warnings.size(), static_cast<size_t>(i + 1));
  }
  EXPECT_THAT(FilesBelow(path_), Not(Contains(".profd_manifest.json.tmp")));
}

}  // namespace
}  // namespace profd
