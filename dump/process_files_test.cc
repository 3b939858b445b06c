#include "dump/process_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "dump/data_name.h"
#include "dump/mark_files.h"
#include "dump/recovery.h"
#include "dump/verify_test_support.h"

namespace profd {
namespace {

using testing::HasSubstr;

constexpr char kProf[] = "PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP";

nlohmann::json Parse(const std::string& text) { return nlohmann::json::parse(text); }

TEST(ProcessFilesTest, PathsOfAProfDirectory) {
  ProcessPath path;
  ASSERT_TRUE(ParseProcessPath("PROF_1_2_ABCDE/device_3/data/stars_soc.data.3.slice_0", &path));
  EXPECT_EQ(path.prof, "PROF_1_2_ABCDE");
  EXPECT_EQ(path.place, "device_3");
  EXPECT_EQ(path.device, 3);
  EXPECT_EQ(path.rest, "data/stars_soc.data.3.slice_0");
  ASSERT_TRUE(ParseProcessPath("PROF_1_2_ABCDE/host/info.json", &path));
  EXPECT_EQ(path.device, -1);
  for (const char* other : {"PROF_1_2_ABCDE/evil/data/x", "PROF_1_2_ABCDE/log/x", "PROF_1_2_abcde/host/x", "host/x",
                            "PROF_1_2_ABCDE/host", "PROF_1_2_ABCDE/device_/x"}) {
    EXPECT_FALSE(ParseProcessPath(other, &path)) << other;
  }
}

TEST(ProcessFilesTest, NamesOfFiles) {
  EXPECT_EQ(BaseOfProcessFile("task_track.data.0.slice_3.done"), "task_track.data");
  EXPECT_EQ(BaseOfProcessFile("aging.compact.task_track.slice_0"), "aging.compact.task_track");
  EXPECT_EQ(BaseOfProcessFile("odd"), "odd");
  EXPECT_EQ(ControlOfProcessFile("info.json.1.done", 1), "info.json");
  EXPECT_EQ(ControlOfProcessFile("sample.json", 1), "sample.json");
  EXPECT_EQ(ControlOfProcessFile("info.json", 1), "");
  EXPECT_EQ(ControlOfProcessFile("host_start.log", -1), "host_start.log");
}

TEST(ProcessFilesTest, SampleJsonOfBoth) {
  const std::string ours = R"({"devices":"0","hbmInterval":20,"llc_profiling":"read","ai_core_profiling":"off",)"
                           R"("ai_core_metrics":"","taskTime":"off","hcclTrace":"on","prof_level":"off"})";
  const std::string theirs = R"({"devices":"7","hbmInterval":5,"llc_profiling":"write","ai_core_profiling":"on",)"
                             R"("ai_core_metrics":"PipeUtilization","taskTime":"on","hcclTrace":"off","prof_level":"l1",)"
                             R"("theirs":"x"})";
  Result<std::string> merged = MergeSampleJson(ours, theirs);
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(std::count(merged->begin(), merged->end(), '\n'), 1) << "the vendor's reader takes one line";
  EXPECT_EQ(Parse(*merged), Parse(R"({"devices":"0","hbmInterval":20,"llc_profiling":"read","ai_core_profiling":"on",)"
                                  R"("ai_core_metrics":"PipeUtilization","taskTime":"on","hcclTrace":"on",)"
                                  R"("prof_level":"l1","theirs":"x"})"));
}

TEST(ProcessFilesTest, BothNamesOfTheLevelAreTheProfilers) {
  const std::string ours = R"({"prof_level":"off","profLevel":"off"})";
  for (const char* theirs : {R"({"prof_level":"l1"})", R"({"profLevel":"l1"})", R"({"prof_level":"off","profLevel":"l1"})"}) {
    Result<std::string> merged = MergeSampleJson(ours, theirs);
    ASSERT_TRUE(merged.ok());
    EXPECT_EQ(Parse(*merged), Parse(R"({"prof_level":"l1","profLevel":"l1"})")) << theirs;
  }
  Result<std::string> merged = MergeSampleJson(R"({"prof_level":"l0","profLevel":"l0"})", R"({"prof_level":"off"})");
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(Parse(*merged), Parse(R"({"prof_level":"l0","profLevel":"l0"})"));
}

TEST(ProcessFilesTest, CountersThatTheProfilerDidNotTakeStayOurs) {
  Result<std::string> merged =
      MergeSampleJson(R"({"ai_core_profiling":"on","ai_core_profiling_mode":"sample-based","ai_core_metrics":"Memory"})",
                      R"({"ai_core_profiling":"off","ai_core_profiling_mode":"task-based","ai_core_metrics":""})");
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(Parse(*merged),
            Parse(R"({"ai_core_profiling":"on","ai_core_profiling_mode":"sample-based","ai_core_metrics":"Memory"})"));
}

TEST(ProcessFilesTest, InfoJsonOfBoth) {
  const std::string ours = R"({"pid":"1","hostname":"node","CPU":[{"Frequency":"100"}],"DeviceInfo":[{"id":0}]})";
  const std::string theirs =
      R"({"pid":"77","hostname":"x","CPU":[{"Frequency":""}],"DeviceInfo":[{"id":9,"aiv_frequency":"1800"}],"more":1})";
  const nlohmann::json device = Parse(MergeInfoJson(ours, theirs, false).value());
  EXPECT_EQ(device, Parse(R"({"pid":"77","hostname":"node","CPU":[{"Frequency":"100"}],)"
                          R"("DeviceInfo":[{"id":0,"aiv_frequency":"1800"}],"more":1})"));
  EXPECT_EQ(Parse(MergeInfoJson(ours, theirs, true).value())["CPU"], Parse(R"([{"Frequency":""}])"));
}

TEST(ProcessFilesTest, HostileControlFiles) {
  for (const std::string& text : {std::string("{"), std::string("[]"), std::string(),
                                  "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
                                  "{\"a\":\"" + std::string(2 << 20, 'x') + "\"}"}) {
    EXPECT_FALSE(MergeSampleJson("{}", text).ok());
    EXPECT_FALSE(MergeInfoJson("{}", text, true).ok());
    EXPECT_FALSE(CheckSameClocks({"{}", "", ""}, {text, "", ""}, 0).ok());
  }
  EXPECT_TRUE(MergeInfoJson(R"({"DeviceInfo":[{}]})", R"({"CPU":3,"DeviceInfo":[[]],"pid":{}})", true).ok());
  EXPECT_TRUE(MergeSampleJson("{}", R"({"ai_core_profiling":[]})").ok());
}

// A dump as VerifyTest writes it, and what aclprof left in processes.
class DumpWithProcessFilesTest : public VerifyTest {
 protected:
  bool searched_ = true;  // for training steps, as the copying thread does
  static std::string Clock(int64_t ns, uint64_t count) {
    return fmt::format("[Host]\nclock_monotonic_raw: {}\ncntvct: {}\ncntvct_diff: 0\n", ns, count);
  }
  // Of a profiler that began 1 s after the session; the device's counter is off by `off_ns`.
  static std::map<std::string, std::string> FilesOfProcess(int64_t off_ns = 0) {
    const int64_t begin = kStartNs + kNsPerSecond;
    const auto device_count = static_cast<uint64_t>(5000 + (kNsPerSecond + off_ns) / 20);
    const std::string times = R"({"collectionTimeBegin":"1","collectionTimeEnd":"2","clockMonotonicRaw":"1"})";
    return {
        {"host/info.json", R"({"platform_version":"5","pid":"77","CPU":[{"Frequency":""}],"DeviceInfo":[]})"},
        {"host/sample.json", R"({"devices":"64","taskTime":"on","llc_profiling":"write"})"},
        {"host/start_info", times},
        {"host/end_info", times},
        {"host/host_start.log", Clock(begin, 9)},
        {"host/data/aging.compact.task_track.slice_2", "track"},
        {"host/data/aging.compact.task_track.slice_2.done", "filesize:5\n"},
        {"device_0/info.json.0",
         R"({"platform_version":"5","CPU":[{"Frequency":""}],"DeviceInfo":[{"hwts_frequency":"50"}]})"},
        {"device_0/sample.json", R"({"devices":"0","ai_core_profiling":"on","ai_core_metrics":"Memory"})"},
        {"device_0/start_info.0", times},
        {"device_0/end_info.0", times},
        {"device_0/host_start.log.0", Clock(begin, 9)},
        {"device_0/dev_start.log.0", Clock(begin, device_count)},
        {"device_0/data/stars_soc.data.0.slice_0", "stars"},
        {"device_0/data/hbm.data.0.slice_99", "not ours"},
        {"device_0/data/hbm.data.0.slice_99.done", "filesize:8\n"},
    };
  }
  ManifestProcessFiles Facts(int pid, const std::string& folder) {
    return {.pid = pid, .rank = pid - 77, .directory = folder};
  }
  void Begin(int pid, const std::string& folder) { ASSERT_TRUE(dump_->BeginProcessFiles(Facts(pid, folder)).ok()); }
  // As CopyTree leaves them.
  void Copy(int pid, const std::map<std::string, std::string>& files, const std::string& prof = kProf) {
    const std::string folder = fmt::format("aclprof_{}_1", pid);
    Begin(pid, folder);
    std::vector<ProcessFile> list;
    ManifestProcessFiles facts = Facts(pid, folder);
    facts.state = "complete";
    for (const auto& [name, text] : files) {
      const std::string path = path_ + "/host/profd/" + folder + "/" + prof + "/" + name;
      fs::create_directories(fs::path(path).parent_path());
      WriteText(path, text);
      list.push_back({prof + "/" + name, text.size(), Crc32c(AsBytes(text))});
      ++facts.files;
      facts.bytes += text.size();
    }
    for (const char* place : {"/host/data/", "/device_0/data/"}) {
      const Result<UniqueFd> dir = OpenDirAt(AT_FDCWD, path_ + "/host/profd/" + folder + "/" + prof + place);
      if (!dir.ok() || !searched_) continue;
      ASSERT_TRUE(FindSteps(dir->get(), prof + place, list, [] { return Status::Ok(); }).ok());
    }
    dump_->EndProcessFiles(std::move(facts), 0, std::move(list));
  }
  void Place() { dump_->PlaceProcessFiles(*root_); }
  // Those of one process, beside samples and perhaps a step trace of the dump's own.
  void CopyAndPlace(const std::map<std::string, std::string>& files, const std::string& own_trace = "") {
    Write(0, 200);
    if (!own_trace.empty()) {
      ASSERT_TRUE(dump_->AppendDeviceFile(0, "ts_track.data", own_trace).ok());
    }
    Copy(77, files);
    Place();
    Finish(200);
  }
  std::string NameOfDump() const { return fs::path(path_).filename(); }
  VerifyReport VerifyAt(const std::string& path) {
    return VerifyDump(DumpReader::OpenPath(path).value(), fs::path(path).filename().string()).value();
  }
  Manifest ManifestAt(const std::string& path) { return DumpReader::OpenPath(path)->ReadManifest().value(); }
};

TEST_F(DumpWithProcessFilesTest, OneProcessIsMerged) {
  CopyAndPlace(FilesOfProcess());
  EXPECT_EQ(ReadText(path_ + "/host/data/aging.compact.task_track.slice_2"), "track");
  EXPECT_EQ(ReadText(path_ + "/host/data/aging.compact.task_track.slice_2.done"), "filesize:5\n");
  EXPECT_EQ(ReadText(path_ + "/device_0/data/stars_soc.data.0.slice_0"), "stars");
  const nlohmann::json sample = Parse(ReadText(path_ + "/device_0/sample.json"));
  EXPECT_EQ(sample["ai_core_metrics"], "Memory");
  EXPECT_EQ(sample["llc_profiling"], "read");
  EXPECT_EQ(Parse(ReadText(path_ + "/host/sample.json"))["taskTime"], "on");
  EXPECT_THAT(ReadText(path_ + "/device_0/dev_start.log.0"), HasSubstr("cntvct: 5000\n")) << "profd's pair";
  EXPECT_TRUE(Verify().ok()) << testing::PrintToString(Texts(Verify()));
  const Manifest manifest = ManifestAt(path_);
  ASSERT_EQ(manifest.process_files.size(), 1u);
  const ManifestProcessFiles& facts = manifest.process_files[0];
  EXPECT_EQ(facts.layout, "merged");
  EXPECT_EQ(facts.directory, NameOfDump());
  EXPECT_EQ(facts.pid, 77);
  EXPECT_EQ(facts.rank, 0);
  // What profd records itself is not overwritten and not mixed with what another writes.
  EXPECT_EQ(facts.state, "partial");
  EXPECT_THAT(facts.problem, HasSubstr("1 files stay in host/profd/aclprof_77_1: profd records this itself"));
  EXPECT_EQ(ReadText(path_ + "/host/profd/aclprof_77_1/" + kProf + "/device_0/data/hbm.data.0.slice_99"), "not ours");
  EXPECT_FALSE(fs::exists(path_ + "/device_0/data/hbm.data.0.slice_99"));
  const std::string apart = path_ + "/host/profd/aclprof_77_1/" + kProf + "/device_0/data/hbm.data.0.slice_99";
  WriteText(apart, "not OURS");
  EXPECT_THAT(Texts(Verify()), Contains(HasSubstr("CRC-32C"))) << "what stays apart has check sums, too";
  WriteText(apart, "not ours");
  WriteText(path_ + "/device_0/data/stars_soc.data.0.slice_0", "STARS");
  EXPECT_THAT(Texts(Verify()), Contains(HasSubstr("CRC-32C")));
}

TEST_F(DumpWithProcessFilesTest, WithoutCollisionsNothingStaysBehind) {
  auto files = FilesOfProcess();
  files.erase("device_0/data/hbm.data.0.slice_99");
  files.erase("device_0/data/hbm.data.0.slice_99.done");
  files["device_4/info.json.4"] = "{}";
  files["device_4/data/stars_soc.data.4.slice_0"] = "four";
  CopyAndPlace(files);
  EXPECT_FALSE(fs::exists(path_ + "/host/profd/aclprof_77_1"));
  EXPECT_EQ(ReadText(path_ + "/device_4/data/stars_soc.data.4.slice_0"), "four") << "a device that profd did not sample";
  EXPECT_EQ(ManifestAt(path_).process_files.at(0).state, "complete");
}

// Of a step trace, as the process's profiler on chip 5 writes it (dump-format 2.12).
std::string TraceRecord(uint16_t tag) {
  std::string record(kStepRecordBytes, '\0');
  record[1] = 10;
  record[36] = static_cast<char>(tag & 0xff);
  record[37] = static_cast<char>(tag >> 8);
  return record;
}

std::string OwnStep() {
  const auto step = StepRecord(5, 5001, 1, true);
  return {reinterpret_cast<const char*>(step.data()), step.size()};
}

TEST_F(DumpWithProcessFilesTest, TheStepTracesOfBothAreSlicesOfOneFile) {
  auto files = FilesOfProcess();
  files.erase("device_0/data/hbm.data.0.slice_99");
  files.erase("device_0/data/hbm.data.0.slice_99.done");
  // Flips of task ids, and what may look like a step at another place.
  const std::string flips = TraceRecord(14) + TraceRecord(4);
  for (const int slice : {0, 1, 10}) {
    const std::string name = fmt::format("device_0/data/ts_track.data.0.slice_{}", slice);
    files[name] = flips + TraceRecord(static_cast<uint16_t>(slice));
    files[name + ".done"] = "filesize:120\n";
  }
  Write(0, 200);
  const std::string ours = OwnStep();
  ASSERT_TRUE(dump_->AppendDeviceFile(0, "ts_track.data", ours).ok());
  Copy(77, files);
  Place();
  Channel("step_trace", 0, "ts_track.data").records = 1;
  Finish(200);
  const std::string data = path_ + "/device_0/data/ts_track.data.0.slice_";
  EXPECT_EQ(ReadText(data + "0"), ours);
  for (const int slice : {0, 1, 10}) {
    EXPECT_EQ(ReadText(fmt::format("{}{}", data, slice + 1)), flips + TraceRecord(static_cast<uint16_t>(slice)));
    EXPECT_EQ(ReadText(fmt::format("{}{}.done", data, slice + 1)), "filesize:120\n");
  }
  EXPECT_FALSE(fs::exists(path_ + "/host/profd/aclprof_77_1"));
  const Manifest manifest = ManifestAt(path_);
  EXPECT_EQ(manifest.process_files.at(0).state, "complete") << manifest.process_files[0].problem;
  EXPECT_TRUE(Verify().ok()) << testing::PrintToString(Texts(Verify()));
  WriteText(data + "2", flips + TraceRecord(2));
  EXPECT_THAT(Texts(Verify()), Contains(HasSubstr("CRC-32C")));
}

TEST_F(DumpWithProcessFilesTest, StepsThatBothHaveAreNotMixed) {
  auto files = FilesOfProcess();
  // Slices of the profiler may end within a record.
  const std::string cut = TraceRecord(4);
  files["device_0/data/ts_track.data.0.slice_0"] = TraceRecord(4) + cut.substr(0, 30);
  files["device_0/data/ts_track.data.0.slice_1"] = cut.substr(30) + TraceRecord(4) + TraceRecord(60001);
  CopyAndPlace(files, OwnStep());
  EXPECT_EQ(ReadText(path_ + "/device_0/data/ts_track.data.0.slice_0"), OwnStep());
  EXPECT_FALSE(fs::exists(path_ + "/device_0/data/ts_track.data.0.slice_1"));
  EXPECT_EQ(ReadText(path_ + "/host/profd/aclprof_77_1/" + kProf + "/device_0/data/ts_track.data.0.slice_0"),
            files["device_0/data/ts_track.data.0.slice_0"]);
  EXPECT_THAT(ManifestAt(path_).process_files.at(0).examples,
              Contains(testing::Field(&ManifestProcessFiles::Example::why, HasSubstr("training steps"))));
}

TEST_F(DumpWithProcessFilesTest, StepTraceThatWasNotSearchedStaysApart) {
  auto files = FilesOfProcess();
  files["device_0/data/ts_track.data.0.slice_0"] = TraceRecord(4);
  searched_ = false;
  CopyAndPlace(files, OwnStep());
  EXPECT_FALSE(fs::exists(path_ + "/device_0/data/ts_track.data.0.slice_1"));
  EXPECT_THAT(ManifestAt(path_).process_files.at(0).examples,
              Contains(testing::Field(&ManifestProcessFiles::Example::why, HasSubstr("not searched for training steps"))));
}

TEST_F(DumpWithProcessFilesTest, FilesWithASecondNameAreNotRead) {
  Write(0, 200);
  Copy(77, FilesOfProcess());
  const std::string control = path_ + "/host/profd/aclprof_77_1/" + kProf + "/host/sample.json";
  fs::remove(control);
  WriteText(temp_ / "secret", R"({"secret":"x"})");
  fs::create_hard_link(temp_ / "secret", control);
  Place();
  Finish(200);
  EXPECT_THAT(ReadText(path_ + "/host/sample.json"), testing::Not(HasSubstr("secret")));
}

TEST_F(DumpWithProcessFilesTest, SeveralProcessesAreARun) {
  auto files = FilesOfProcess();
  Write(0, 200);
  Copy(77, files);
  Copy(78, files);
  Place();
  Finish(200);
  // The path is the same, and the parent now.
  std::set<std::string> below;
  for (const auto& entry : fs::directory_iterator(path_)) below.insert(entry.path().filename());
  const std::string second = "PROF_78_2_ABCDEFGHIJKLMNOP";
  EXPECT_EQ(below, (std::set<std::string>{NameOfDump(), kProf, second})) << "one name twice";
  for (const std::string& name : below) {
    EXPECT_TRUE(DumpRoot::IsDumpName(name));
    const VerifyReport report = VerifyAt(path_ + "/" + name);
    EXPECT_TRUE(report.ok()) << name << testing::PrintToString(Texts(report));
    EXPECT_TRUE(report.has_manifest);
    for (const auto& entry : fs::directory_iterator(path_ + "/" + name)) {
      EXPECT_TRUE(!entry.is_directory() || IsTopFolder(entry.path().filename().string())) << entry.path();
    }
  }
  EXPECT_EQ(ReadText(path_ + "/" + second + "/device_0/data/hbm.data.0.slice_99"), "not ours");
  const Manifest manifest = ManifestAt(path_ + "/" + NameOfDump());
  ASSERT_EQ(manifest.process_files.size(), 2u);
  EXPECT_EQ(manifest.process_files[0].layout, "beside");
  EXPECT_EQ(manifest.process_files[0].directory, kProf);
  EXPECT_EQ(manifest.process_files[0].files, files.size());
  EXPECT_EQ(manifest.process_files[1].directory, second);
  EXPECT_EQ(manifest.process_files[1].rank, 1);
  EXPECT_EQ(ManifestAt(path_ + "/" + second).pid, 78);
  // Everything that knows the dump by its name.
  EXPECT_EQ(root_->Names()->size(), 1u);
  EXPECT_TRUE(DumpReader::Open(*root_, NameOfDump())->ReadManifest().ok());
  std::set<std::string> tops;
  const std::vector<DumpReader::File> whole = DumpReader::OpenWhole(*root_, NameOfDump())->Files().value();
  for (const DumpReader::File& file : whole) {
    tops.insert(file.path.substr(0, file.path.find('/')));
  }
  EXPECT_EQ(tops, below);
  WriteText(path_ + "/" + second + "/device_0/data/stars_soc.data.0.slice_0", "STARS");
  EXPECT_THAT(Texts(VerifyAt(path_ + "/" + second)), Contains(HasSubstr("CRC-32C")));
  fs::remove_all(path_ + "/" + second);
  EXPECT_THAT(Texts(VerifyAt(path_ + "/" + NameOfDump())), Contains(HasSubstr("the files of process 78")));
  ASSERT_TRUE(root_->Remove(NameOfDump()).ok());
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(DumpWithProcessFilesTest, OtherClocksAreNotMixed) {
  CopyAndPlace(FilesOfProcess(30 * kNsPerMs));
  const Manifest manifest = ManifestAt(path_ + "/" + NameOfDump());
  ASSERT_EQ(manifest.process_files.size(), 1u);
  EXPECT_EQ(manifest.process_files[0].layout, "beside");
  EXPECT_THAT(manifest.process_files[0].problem, HasSubstr("the device's counter differs from profd's by 30.000 ms"));
  EXPECT_EQ(ReadText(path_ + "/" + kProf + "/device_0/data/stars_soc.data.0.slice_0"), "stars");
}

TEST_F(DumpWithProcessFilesTest, FilesTheAnalyserCannotReadStayApart) {
  CopyAndPlace({{"host/data/aging.api_event.data.slice_0", "api"}, {"evil/x", "x"}});
  EXPECT_EQ(ReadText(path_ + "/host/profd/aclprof_77_1/" + kProf + "/evil/x"), "x");
  EXPECT_FALSE(fs::exists(path_ + "/evil"));
  EXPECT_EQ(ManifestAt(path_).process_files.at(0).layout, "apart");
  EXPECT_TRUE(Verify().ok()) << testing::PrintToString(Texts(Verify()));
}

TEST_F(DumpWithProcessFilesTest, ADaemonThatEndsWhileTheyAreCopied) {
  Write(0, 200);
  Begin(77, "aclprof_77_1");
  Copy(78, FilesOfProcess());
  const std::string half = path_ + "/host/profd/aclprof_77_1/" + kProf + "/host/data";
  fs::create_directories(half);
  WriteText(half + "/aging.api_event.data.slice_0", "half");
  dump_->Flush().Ignore();
  const std::string killed = temp_ / "killed";
  fs::create_directory(killed);
  ::chmod(killed.c_str(), 0755);
  fs::copy(path_, killed + "/" + NameOfDump(), fs::copy_options::recursive);
  Result<DumpRoot> root = DumpRoot::Open(killed);
  ASSERT_TRUE(root.ok()) << root.status().ToString();
  RecoveryOptions options;
  options.now_wall_ns = 1'767'225'600'000'000'000 + 10 * kNsPerSecond;
  options.now_raw_ns = kStartNs + 10 * kNsPerSecond;
  Result<RecoveredDump> recovered = RecoverDump(*root, NameOfDump(), options);
  ASSERT_TRUE(recovered.ok()) << recovered.status().ToString();
  const auto& files = recovered->manifest.process_files;
  ASSERT_EQ(files.size(), 2u);
  const auto& cut = files[0].pid == 77 ? files[0] : files[1];
  const auto& whole = files[0].pid == 77 ? files[1] : files[0];
  EXPECT_EQ(cut.state, "interrupted");
  EXPECT_EQ(cut.directory, "host/profd/aclprof_77_1");
  EXPECT_EQ(whole.state, "complete");
  EXPECT_EQ(whole.files, FilesOfProcess().size());
  const std::string dump = killed + "/" + NameOfDump();
  EXPECT_TRUE(VerifyAt(dump).ok()) << testing::PrintToString(Texts(VerifyAt(dump)));
  WriteText(dump + "/host/profd/aclprof_78_1/" + kProf + "/device_0/data/stars_soc.data.0.slice_0", "STARS");
  EXPECT_THAT(Texts(VerifyAt(dump)), Contains(HasSubstr("CRC-32C")));
}

TEST_F(DumpWithProcessFilesTest, TheyCountForTheLimit) {
  SessionDumpOptions options;
  options.owner = Myself();
  options.max_bytes = 4 << 20;
  dump_ = SessionDump::Create(*root_, std::move(options)).value();
  const uint64_t before = dump_->bytes_written();
  ASSERT_TRUE(dump_->ReserveForFiles(2 << 20).ok());
  EXPECT_EQ(dump_->bytes_written(), before + (2 << 20));
  EXPECT_TRUE(IsAtStorageLimit(dump_->ReserveForFiles(2 << 20))) << "with what the dump holds already";
  EXPECT_TRUE(dump_->AppendHostFile("a.data", std::string(1 << 20, '\n')).ok());
  EXPECT_TRUE(IsAtStorageLimit(dump_->AppendHostFile("a.data", std::string(1 << 20, '\n'))));
  dump_->EndProcessFiles(Facts(77, "none"), 1 << 20, {});
  EXPECT_TRUE(dump_->AppendHostFile("a.data", std::string(1 << 20, '\n')).ok()) << "what was not used";
}

TEST_F(DumpWithProcessFilesTest, ARunThatACrashInterruptsIsCompleted) {
  Write(0, 200);
  Finish(200);
  const std::string name = NameOfDump();
  const std::string top = temp_ / "root";
  fs::create_directory(top + "/.run_" + name);
  fs::rename(path_, top + "/.run_" + name + "/" + name);
  root_.emplace(DumpRoot::Open(top).value());
  EXPECT_TRUE(DumpReader::Open(*root_, name)->ReadManifest().ok());
  EXPECT_TRUE(VerifyAt(path_ + "/" + name).ok());
  fs::create_directory(top + "/.run_" + name);
  root_.emplace(DumpRoot::Open(top).value());
  EXPECT_FALSE(fs::exists(top + "/.run_" + name));
}

}  // namespace
}  // namespace profd
