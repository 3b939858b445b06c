#include "export/dump_info.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "dump/test_support.h"

namespace profd::exporting {
namespace {

using ::testing::ElementsAre;

// A directory as the vendor's collector leaves it (dump-format 7.2).
class DumpInfoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* sub : {"host/data", "device_3/data"}) {
      std::filesystem::create_directories(dir_ / "PROF_000001_20260101000000000_AAAAAAAAAAAAAAAA/" +
                                          sub);
    }
    Put("host/info.json",
        R"({"DeviceInfo":[],"netCard":[{"netCardName":"eth0","speed":10000}],"hostname":"node",)"
        R"("CPU":[{"Frequency":"100.000000"}],"platform_version":"5","pid":"4242",)"
        R"("memoryTotal":1583221744,"cpuNums":192,"sysClockFreq":100,"rank_id":7,"jobInfo":"j1"})");
    Put("host/sample.json", R"({"devices":"64","host_disk_freq":50})");
    Put("host/start_info", kStart);
    Put("host/host_start.log", "[Host]\nclock_monotonic_raw: 100\ncntvct: 10\ncntvct_diff: 0\n");
    Put("device_3/info.json.3",
        R"({"DeviceInfo":[{"ctrl_cpu":"0","ai_cpu":"2,3","hwts_frequency":"38.4",)"
        R"("aic_frequency":"1800"}],"CPU":[{"Frequency":""}],"platform_version":"4"})");
    Put("device_3/sample.json",
        R"({"llc_profiling":"write","qosEvents":"SDMA,AIC",)"
        R"("ai_core_profiling_mode":"task-based","aiv_profiling_mode":"sample-based",)"
        R"("ai_core_profiling_events":"0x8,0xa,9"})");
    Put("device_3/start_info.3", kStart);
    Put("device_3/end_info.3",
        R"({"collectionTimeEnd":"1767225601000000","clockMonotonicRaw":"9"})");
    Put("device_3/host_start.log.3", "[Device3]\nclock_monotonic_raw: 200\ncntvct: 20\n");
    Put("device_3/dev_start.log.3", "clock_monotonic_raw: 300\ncntvct: 18446744073709551615\n");
  }

  std::string Root() const { return dir_ / "PROF_000001_20260101000000000_AAAAAAAAAAAAAAAA"; }
  void Put(const std::string& path, const std::string& text) {
    WriteText(Root() + "/" + path, text);
  }
  void Data(const std::string& path, size_t bytes) { Put(path, std::string(bytes, 'x')); }
  DumpInfo Open() {
    Result<Dump> dump = Dump::Open(Root());
    EXPECT_TRUE(dump.ok()) << dump.status().ToString();
    return dump.ok() ? dump->info() : DumpInfo();
  }

  // The files that have problems.
  static std::vector<std::string> Problems(const DumpInfo& info) {
    std::vector<std::string> files;
    for (const auto& problem : info.problems) files.push_back((problem.broken ? "broken " : "") + problem.file);
    return files;
  }

  static constexpr const char* kStart =
      R"({"collectionTimeBegin":"1767225600000000","clockMonotonicRaw":"50"})";
  TempDir dir_;
};

TEST_F(DumpInfoTest, ReadsControlFiles) {
  DumpInfo info = Open();
  EXPECT_EQ(info.name, "PROF_000001_20260101000000000_AAAAAAAAAAAAAAAA");
  EXPECT_FALSE(info.manifest);
  EXPECT_EQ(info.hostname, "node");
  EXPECT_EQ(info.pid, 4242);
  EXPECT_EQ(info.job_id, "j1");
  EXPECT_EQ(info.rank, 7);
  EXPECT_EQ(info.memory_total_kb, 1583221744);
  EXPECT_EQ(info.cpu_count, 192);
  ASSERT_EQ(info.cards.size(), 1u);
  EXPECT_EQ(info.cards[0].speed_mbps, 10000);
  ASSERT_EQ(info.places.size(), 2u);
  EXPECT_EQ(info.places[0].host_disk_hz, 50);
  EXPECT_EQ(info.places[0].clock.host_hz, 100e6);
  EXPECT_EQ(info.places[0].clock.end_us, 1767225601000000);  // the device knows
  const Place* device = info.Find(Place::Kind::kDevice, 3);
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->chip, 4);
  EXPECT_EQ(device->clock, (ClockFacts{.begin_us = 1767225600000000, .begin_raw_ns = 50, .end_us = 1767225601000000, .end_raw_ns = 9, .host_ns = 200,
                                       .host_count = 20, .device_ns = 300, .device_count = UINT64_MAX, .device_hz = 38.4e6}));
  EXPECT_EQ(device->aicore_mhz, 1800);
  EXPECT_EQ(device->ai_cpus, (std::vector<int>{2, 3}));
  EXPECT_EQ(device->llc_mode, "write");
  EXPECT_EQ(device->qos_events, (std::vector<std::string>{"SDMA", "AIC"}));
  EXPECT_EQ(device->aicore_mode, "task-based");
  EXPECT_EQ(device->aiv_mode, "sample-based");
  EXPECT_EQ(device->aicore_events, (std::vector<uint32_t>{8, 10, 9}));
  EXPECT_TRUE(info.problems.empty());
}

// The host's clocks are in the logs of its devices, too. A device's own pair is in none but its own.
TEST_F(DumpInfoTest, TakesThePairOfTheHostFromADevice) {
  Data("host/data/unaging.api_event.data.slice_0", 40);
  Data("device_3/data/pcie.data.3.slice_0", 96);
  std::filesystem::remove(Root() + "/host/host_start.log");
  DumpInfo info = Open();
  EXPECT_EQ(info.places[0].clock.host_ns, 200);
  EXPECT_EQ(info.places[0].clock.host_count, 20u);
  EXPECT_THAT(Problems(info), ElementsAre());

  Put("host/host_start.log", "[Host]\nclock_monotonic_raw: 100\ncntvct: 10\ncntvct_diff: 0\n");
  std::filesystem::remove(Root() + "/device_3/host_start.log.3");
  info = Open();
  EXPECT_EQ(info.places[1].clock.host_ns, 0);
  EXPECT_THAT(Problems(info), ElementsAre("broken device_3"));
}

// A dump of six seconds, in which wall clock was set an hour back, or two hours ahead: every other time of it is by the
// clock of its start.
TEST_F(DumpInfoTest, EndIsByTheClockOfTheStart) {
  Manifest manifest;
  manifest.start_wall_ns = 1767225600000000000;
  manifest.start_raw_ns = 50;
  manifest.end_raw_ns = 6'000'000'050;
  for (const int64_t step_s : {-3600, 7200, 0}) {
    manifest.end_wall_ns = 1767225606000000000 + step_s * 1'000'000'000;
    Put("profd_manifest.json", Serialize(manifest));
    Put("device_3/end_info.3", R"({"collectionTimeEnd":")" + std::to_string(manifest.end_wall_ns / 1000) + R"(","clockMonotonicRaw":"6000000050"})");
    DumpInfo info = Open();
    ASSERT_TRUE(info.manifest);
    EXPECT_EQ(info.manifest->end_wall_ns, 1767225606000000000) << step_s;
    for (const Place& place : info.places) EXPECT_EQ(place.clock.end_us, 1767225606000000) << step_s;
  }
}

// Without a manifest it is the vendor's, whose analyser takes the time as it is.
TEST_F(DumpInfoTest, EndOfTheVendorIsTakenAsItIs) {
  Put("device_3/end_info.3", R"({"collectionTimeEnd":"1767229206000000","clockMonotonicRaw":"6000000050"})");
  EXPECT_EQ(Open().places[1].clock.end_us, 1767229206000000);
}

TEST_F(DumpInfoTest, SortsSlicesByNumber) {
  for (int k : {10, 9, 8}) Data("device_3/data/hbm.data.3.slice_" + std::to_string(k), 10);
  Data("device_3/data/hbm.data.3.slice_8.zst", 5);  // of the same: left out
  Data("device_3/data/hbm.data.3.slice_11.zst", 7);
  Data("device_3/data/hbm.data.3.slice_12", 0);
  Data("device_3/data/hbm.data.3.slice_8.done", 9);
  Data("device_3/data/all_file.complete", 1);
  DumpInfo info = Open();
  const DataFile& file = info.places[1].files.at(0);
  EXPECT_EQ(file.base, "hbm.data");
  std::vector<uint64_t> numbers;
  for (const auto& slice : file.slices) numbers.push_back(slice.number);
  EXPECT_EQ(numbers, (std::vector<uint64_t>{8, 9, 10, 11}));
  EXPECT_FALSE(file.slices[0].compressed);
  EXPECT_TRUE(file.slices[3].compressed);
  EXPECT_EQ(file.slices[3].path, "device_3/data/hbm.data.3.slice_11.zst");
  EXPECT_EQ(file.bytes, 37u);
  EXPECT_EQ(info.bytes, 37u);
  EXPECT_TRUE(info.problems.empty());
}

TEST_F(DumpInfoTest, ReportsWhatItDoesNotKnow) {
  Data("device_3/data/hbm.data.4.slice_0", 10);
  Data("device_3/data/what", 10);
  Data("device_3/notes.txt", 10);
  std::filesystem::create_directories(Root() + "/mindstudio_profiler_output");
  Data("mindstudio_profiler_output/hccs.csv", 10);
  Data("strange", 10);
  DumpInfo info = Open();
  const std::vector<std::string> files = Problems(info);
  EXPECT_THAT(std::set(files.begin(), files.end()), ElementsAre("device_3/data/hbm.data.4.slice_0", "device_3/data/what", "device_3/notes.txt", "strange"));
  EXPECT_EQ(info.bytes, 0u);
}

TEST_F(DumpInfoTest, BrokenControlFilesAreProblems) {
  Put("host/info.json", "{\"a\":");
  Put("device_3/info.json.3", "[1,2]");
  Put("device_3/dev_start.log.3", "cntvct: many\n");
  std::filesystem::remove(Root() + "/device_3/start_info.3");
  Data("device_3/data/hbm.data.3.slice_0", 24);
  DumpInfo info = Open();
  EXPECT_THAT(Problems(info), ::testing::IsSupersetOf({"broken host/info.json", "broken device_3/info.json.3", "broken device_3/dev_start.log.3",
                                                       "broken device_3"}));
  EXPECT_EQ(info.places[1].clock.begin_us, 1767225600000000);  // from the host
}

TEST_F(DumpInfoTest, TheManifestHelpsOut) {
  Manifest manifest;
  manifest.job_id = "j2";
  manifest.rank = 3;
  manifest.start_wall_ns = 1767225600000000000;
  manifest.start_raw_ns = 77;
  manifest.stop_raw_ns = 88;
  ManifestDevice device;
  device.id = 3;
  device.chip_id = 5;
  device.counter_hz = 50e6;
  device.aicore_mhz = 1650;
  manifest.devices = {device};
  ManifestClock clock;
  clock.device = 3;
  clock.when = "start";
  clock.clocks = {1000, 10, 2000, 20, 0};
  manifest.clocks = {clock};
  Put("profd_manifest.json", Serialize(manifest));
  for (const char* file : {"host/start_info", "device_3/start_info.3", "device_3/info.json.3",
                           "device_3/dev_start.log.3", "device_3/host_start.log.3"}) {
    std::filesystem::remove(Root() + "/" + file);
  }
  for (const char* earlier : {"profd", "host/profd"}) {
    SCOPED_TRACE(earlier);
    std::filesystem::create_directories(Root() + "/" + earlier);
    Data(std::string(earlier) + "/marks.tsv", 5);
    const DumpInfo one = Open();
    const Place* own = one.Find(Place::Kind::kOwn, -1);
    ASSERT_NE(own, nullptr);
    ASSERT_EQ(own->files.size(), 1u);
    EXPECT_EQ(own->files[0].base, "marks.tsv");
    EXPECT_EQ(own->files[0].bytes, 5u);
    EXPECT_EQ(own->clock.begin_us, 1767225600000000);
  }
  DumpInfo info = Open();
  ASSERT_TRUE(info.manifest);
  EXPECT_EQ(info.job_id, "j2");
  EXPECT_EQ(info.rank, 3);
  const Place* place = info.Find(Place::Kind::kDevice, 3);
  EXPECT_EQ(place->chip, 5);
  EXPECT_EQ(place->aicore_mhz, 1650);
  EXPECT_EQ(place->clock.begin_raw_ns, 77);
  EXPECT_EQ(place->clock.stop_raw_ns, 88);
  EXPECT_EQ(place->clock.host_ns, 1000);
  EXPECT_EQ(place->clock.device_count, 20u);
}

// dump-format 1.4, 1.7: without a frequency the host's timestamps are ns, without a CPU they are not known to be.
TEST_F(DumpInfoTest, TheHostCountersFrequencyIsAlsoThatOfADevice) {
  Data("host/data/host_cpu.data.slice_0", 10);
  const std::string theirs = R"({"DeviceInfo":[{"hwts_frequency":"50"}],"platform_version":"5","CPU":[{"Frequency":")";
  for (const char* mhz : {"100.000000", ""}) {
    SCOPED_TRACE(mhz);
    Put("device_3/info.json.3", theirs + mhz + "\"}]}");
    std::filesystem::remove(Root() + "/host/info.json");
    DumpInfo info = Open();
    EXPECT_EQ(info.places[0].clock.host_hz, *mhz == 0 ? 0 : 100e6);
    EXPECT_THAT(Problems(info), ElementsAre("host"));
    // A value, not the lack of one.
    Put("host/info.json", R"({"platform_version":"5","CPU":[{"Frequency":""}]})");
    info = Open();
    EXPECT_EQ(info.places[0].clock.host_hz, 0);
    EXPECT_TRUE(info.problems.empty());
  }
  std::filesystem::remove(Root() + "/host/info.json");
  Put("device_3/info.json.3", R"({"DeviceInfo":[{"hwts_frequency":"50"}],"platform_version":"5"})");
  EXPECT_THAT(Problems(Open()), ElementsAre(::testing::_, "broken host"));
  Put("device_3/info.json.3", theirs + "\"}]}");
  Manifest manifest;
  manifest.host_counter_hz = 25e6;
  Put("profd_manifest.json", Serialize(manifest));
  EXPECT_EQ(Open().places[0].clock.host_hz, 25e6);
}

// dump-format 1.4: MHz, or "". What is neither is damage, and the frequency that another file has is used.
TEST_F(DumpInfoTest, AFrequencyOfTheHostThatIsNoneIsDamage) {
  Data("host/data/host_cpu.data.slice_0", 10);
  Manifest manifest;
  manifest.host_counter_hz = 25e6;
  Put("profd_manifest.json", Serialize(manifest));
  for (const char* mhz : {"nan", "inf", "-100.0", "fast"}) {
    SCOPED_TRACE(mhz);
    Put("host/info.json", R"({"platform_version":"5","CPU":[{"Frequency":")" + std::string(mhz) + "\"}]}");
    const DumpInfo info = Open();
    EXPECT_EQ(info.places[0].clock.host_hz, 25e6);
    EXPECT_THAT(Problems(info), ElementsAre("broken host/info.json", "host"));
  }
  // driver-abi: the driver's answer 0 is printed so.
  Put("host/info.json", R"({"platform_version":"5","CPU":[{"Frequency":"0.000000"}]})");
  EXPECT_EQ(Open().places[0].clock.host_hz, 0);
  EXPECT_THAT(Problems(Open()), ElementsAre());
}

// operator-data a.5: two pairs differ by some us.
TEST_F(DumpInfoTest, TheStartOfAnotherPlaceIsReported) {
  Data("device_3/data/hbm.data.3.slice_0", 24);
  std::filesystem::remove(Root() + "/device_3/start_info.3");
  const DumpInfo info = Open();
  EXPECT_EQ(info.places[1].clock.begin_us, 1767225600000000);
  EXPECT_THAT(Problems(info), ElementsAre("device_3"));
}

// operator-data g.1: columns of counters need what sample.json has.
TEST_F(DumpInfoTest, CountersWithoutTheirEventsAreReported) {
  std::filesystem::remove(Root() + "/device_3/sample.json");
  Data("device_3/data/hbm.data.3.slice_0", 24);
  EXPECT_THAT(Problems(Open()), ElementsAre());
  Data("device_3/data/ffts_profile.data.3.slice_0", 128);
  EXPECT_THAT(Problems(Open()), ElementsAre("broken device_3"));
}

TEST_F(DumpInfoTest, FilesMissingFromTheDirectoryAreDamage) {
  Manifest manifest;
  manifest.state = DumpState::kDone;
  auto file = [&](int slice, uint64_t bytes, uint64_t records) {
    const std::string path = fmt::format("device_3/data/hbm.data.3.slice_{}", slice);
    manifest.files.push_back({path, bytes, records});
    return path;
  };
  Data(file(0, 240, 10), 240);
  Data(file(1, 240, 10), 230);
  file(2, 240, 10);
  file(3, 120, 5);
  manifest.files.push_back({"host/info.json", 1, {}});  // no data: its own reader checks it
  Put("profd_manifest.json", Serialize(manifest));
  DumpInfo info = Open();
  ASSERT_THAT(Problems(info), ElementsAre("broken device_3/data/hbm.data"));
  EXPECT_EQ(info.problems[0].what,
            "damaged: 2 of 4 files missing (15 records), 1 of 4 files shorter than written (10 bytes)");
  EXPECT_EQ(info.places[1].files.at(0).slices.at(1).missing, 10u);
  // A session that runs replaces its manifest now and then only.
  manifest.state = DumpState::kRunning;
  Put("profd_manifest.json", Serialize(manifest));
  EXPECT_TRUE(Open().problems.empty());
}

// driver-abi 5.2 and dump-format 1.1: the .done beside a slice states its size; the earliest releases have empty ones.
TEST_F(DumpInfoTest, SlicesMayBeShorterThanTheirDoneStates) {
  for (int i = 0; i < 4; ++i) Data(fmt::format("host/data/unaging.additional.hash_dic.slice_{}", i), 64);
  Put("host/data/unaging.additional.hash_dic.slice_0.done", "filesize:64\nstarttime:0\nendtime  :0\n");
  Put("host/data/unaging.additional.hash_dic.slice_1.done", "filesize: 80\n");
  Put("host/data/unaging.additional.hash_dic.slice_2.done", "");
  Put("host/data/unaging.additional.hash_dic.slice_3.done", "filesize:80");  // not complete
  DumpInfo info = Open();
  ASSERT_THAT(Problems(info), ElementsAre("broken host/data/unaging.additional.hash_dic"));
  EXPECT_EQ(info.problems[0].what, "damaged: 1 of 4 files shorter than written (16 bytes)");
  const std::vector<DataFile::Slice>& slices = info.Find(Place::Kind::kHost, -1)->files.at(0).slices;
  ASSERT_EQ(slices.size(), 4u);
  EXPECT_EQ(slices[0].missing, 0u);
  EXPECT_EQ(slices[1].missing, 16u);
}

// A limit removes the first slices of a file, but never those of "unaging" ones (operator-data a.1).
TEST_F(DumpInfoTest, SlicesMissingBetweenOthersAreDamage) {
  for (const int k : {3, 4, 7}) Data(fmt::format("host/data/aging.compact.task_track.slice_{}", k), 64);
  for (const int k : {1, 2}) Data(fmt::format("host/data/unaging.compact.node_basic_info.slice_{}", k), 64);
  for (const int k : {5, 6}) Data(fmt::format("device_3/data/hbm.data.3.slice_{}", k), 24);
  for (const int k : {0, 2}) Data(fmt::format("device_3/data/llc.data.3.slice_{}", k), 24);
  for (const int k : {0, 1, 2, 3}) Put(fmt::format("device_3/data/llc.data.3.slice_{}.done", k), "filesize:24\n");
  const DumpInfo info = Open();
  ASSERT_THAT(Problems(info), ElementsAre("broken device_3/data/llc.data", "broken host/data/aging.compact.task_track",
                                          "broken host/data/unaging.compact.node_basic_info"));
  EXPECT_EQ(info.problems[0].what, "damaged: 2 files missing by the numbers of the others and of .done files");
  EXPECT_EQ(info.problems[1].what, "damaged: 2 files missing by the numbers of the others and of .done files");
  EXPECT_EQ(info.problems[2].what, "damaged: 1 file missing by the numbers of the others and of .done files");
}

TEST_F(DumpInfoTest, SlicesThatLostAllTheirBytesAreDamage) {
  Data("device_3/data/hbm.data.3.slice_0", 24);
  Data("device_3/data/hbm.data.3.slice_1", 0);
  Put("device_3/data/hbm.data.3.slice_1.done", "filesize:48\n");
  Data("device_3/data/hbm.data.3.slice_2", 24);
  Data("device_3/data/llc.data.3.slice_0", 0);
  Put("device_3/data/llc.data.3.slice_0.done", "filesize:0\n");
  const DumpInfo info = Open();
  ASSERT_THAT(Problems(info), ElementsAre("broken device_3/data/hbm.data"));
  EXPECT_EQ(info.problems[0].what, "damaged: 1 of 3 files shorter than written (48 bytes)");
}

TEST_F(DumpInfoTest, RanksOfDevicesAreThoseOfTheProcessesThatHaveThem) {
  DumpInfo info;
  EXPECT_EQ(info.RankOf(0), std::nullopt);
  info.manifest.emplace().processes = {{10, 4, true, {0, 2}, "train.py"},
                                       {11, 5, true, {1, 2}, ""},
                                       {12, std::nullopt, false, {3}, "top"}};
  EXPECT_EQ(info.RankOf(0), 4);
  EXPECT_EQ(info.RankOf(1), 5);
  EXPECT_EQ(info.RankOf(2), std::nullopt);
  EXPECT_EQ(info.RanksOf(2), (std::vector<int>{4, 5}));
  EXPECT_EQ(info.RankOf(3), std::nullopt);
  EXPECT_EQ(info.RankOf(-1), std::nullopt);
  EXPECT_EQ(info.ProcessName(10, std::nullopt), "rank 4, train.py, pid 10");
  EXPECT_EQ(info.ProcessName(11, std::nullopt), "rank 5, pid 11");
  EXPECT_EQ(info.ProcessName(13, 6), "rank 6, pid 13");
  info.manifest->processes.resize(1);
  EXPECT_EQ(info.RankOf(-1), 4);
  info.rank = 9;  // what the request says
  EXPECT_EQ(info.RankOf(0), 9);
}

TEST_F(DumpInfoTest, OtherPathsAreNotDumps) {
  EXPECT_EQ(Dump::Open(dir_ / "none").status().code(), StatusCode::kNotFound);
  std::filesystem::create_directories(dir_ / "empty");
  Result<Dump> dump = Dump::Open(dir_ / "empty");
  EXPECT_EQ(dump.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(dump.status().message().find("empty"), std::string::npos);
  std::filesystem::create_directories(dir_ / "empty/host/data");
  dump = Dump::Open(dir_ / "empty");
  EXPECT_NE(dump.status().message().find("it has no file in host/ or device_<N>/"), std::string::npos) << dump.status().message();
}

TEST_F(DumpInfoTest, HardLinksAreReportedTogether) {
  Data("device_3/data/hbm.data.3.slice_0", 24);
  Data("device_3/data/ddr.data.3.slice_0", 20);
  for (const char* name : {"hbm", "ddr"}) {
    const std::string path = Root() + "/device_3/data/" + name + ".data.3.slice_0";
    std::filesystem::create_hard_link(path, dir_ / name);
  }
  DumpInfo info = Open();
  const auto found = std::ranges::find_if(info.problems, [](const auto& problem) {
    return problem.what == "2 files are hard links or belong to another user: not read";
  });
  ASSERT_NE(found, info.problems.end());
  EXPECT_EQ(found->file, "device_3/data/ddr.data.3.slice_0");
  EXPECT_TRUE(found->broken) << "shown by exports and analyses";
}

}  // namespace
}  // namespace profd::exporting
