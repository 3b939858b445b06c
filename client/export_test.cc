// `profctl export` and `profctl show DUMP`, on directories made here.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "client/commands/export_parse.h"
#include "client/commands/show_dump.h"
#include "client/test_support.h"

namespace profd::client {
namespace {

constexpr int64_t kS = 1'000'000'000;

class ExportTest : public ProfctlTest {
 protected:
  // A vendor's directory of chip 5, from 2026-01-01T00:00:00Z on for ten seconds: HBM of device 0.
  std::string MakeDump(const std::string& name, int rank = 3) {
    std::string root = dir_ / name;
    std::filesystem::create_directories(root + "/host/data");
    std::filesystem::create_directories(root + "/device_0/data");
    for (const char* place : {"/host/", "/device_0/"}) {
      Put(root + place + "start_info",
          R"({"collectionTimeBegin":"1767225600000000","clockMonotonicRaw":"1000"})");
      Put(root + place + "end_info",
          R"({"collectionTimeEnd":"1767225610000000","clockMonotonicRaw":"10000001000"})");
      Put(root + place + "info.json",
          R"({"platform_version":"5","CPU":[{}],"DeviceInfo":[{"hwts_frequency":"50"}],)"
          R"("hostname":"n1","jobInfo":"j42","rank_id":)" + std::to_string(rank) + R"(,"pid":"7"})");
      Put(root + place + "host_start.log", "clock_monotonic_raw: 1000\ncntvct: 1\n");
    }
    Put(root + "/device_0/dev_start.log", "clock_monotonic_raw: 5000\ncntvct: 1\n");
    Put(root + "/device_0/sample.json", R"({"hbm_profiling_events":"read,write"})");
    std::string records;
    for (uint64_t i = 0; i < 100; ++i) {
      for (uint32_t hbm = 0; hbm < 4; ++hbm) {
        for (uint32_t event = 0; event < 2; ++event) {
          uint64_t head[2] = {i * 100000, 1000 * (i % 10)};
          uint32_t tail[2] = {event, hbm};
          records.append(reinterpret_cast<const char*>(head), sizeof head);
          records.append(reinterpret_cast<const char*>(tail), sizeof tail);
        }
      }
    }
    Put(root + "/device_0/data/hbm.data.0.slice_0", records);
    return root;
  }
  static void Put(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::set<std::string> Outputs(const std::string& path) {
    std::set<std::string> suffixes;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      suffixes.insert(entry.path().extension());
    }
    return suffixes;
  }

  TempDir dir_;
};

TEST_F(ExportTest, EveryFormat) {
  std::string dump = MakeDump("PROF_1");
  EXPECT_EQ(Run({"export", dump, "--out", dir_ / "out", "--format",
                 "csv,trace,perfetto,sqlite,jsonl,openmetrics"}),
            0)
      << err();
  std::set<std::string> expected = {".csv", ".db", ".json", ".jsonl", ".om", ".perfetto-trace"};
  EXPECT_EQ(Outputs(dir_ / "out"), expected);
  EXPECT_NE(out().find("hbm_"), std::string::npos) << out();
  EXPECT_EQ(err(), "");
}

// Every rank as if it were exported alone; what is made of all of them is beside.
TEST_F(ExportTest, EachRankOfARunHasAFolder) {
  MakeDump("run/PROF_1");
  MakeDump("run/PROF_2", 11);
  MakeDump("run/a_ascend_pt/PROF_3", -1);
  ASSERT_EQ(Run({"export", dir_ / "run", "--out", dir_ / "out", "--format", "csv,trace,sqlite,jsonl"}), 0) << err();
  EXPECT_EQ(Outputs(dir_ / "out/rank3"), (std::set<std::string>{".csv", ".json", ".db"}));
  EXPECT_EQ(Outputs(dir_ / "out/rank11"), (std::set<std::string>{".csv", ".json", ".db"}));
  EXPECT_EQ(Outputs(dir_ / "out/PROF_3"), (std::set<std::string>{".csv", ".json", ".db"}));
  EXPECT_EQ(Outputs(dir_ / "out"), (std::set<std::string>{"", ".json", ".db", ".jsonl"}));
  EXPECT_NE(err().find("PROF_3/host: no single rank is known of it"), std::string::npos) << err();
  // torch_npu leaves the rank beside.
  Put(dir_ / "run/a_ascend_pt/profiler_info_4.json", "{}");
  ASSERT_EQ(Run({"export", dir_ / "run", "--out", dir_ / "out2"}), 0) << err();
  EXPECT_EQ(err(), "");
  EXPECT_TRUE(std::filesystem::is_directory(dir_ / "out2/rank4"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "out2/PROF_3"));
}

TEST_F(ExportTest, DumpsOfOneRankHaveNoFolderOfIt) {
  MakeDump("run/PROF_1");
  MakeDump("run/PROF_2");
  ASSERT_EQ(Run({"export", dir_ / "run", "--out", dir_ / "out"}), 0) << err();
  EXPECT_TRUE(std::filesystem::is_directory(dir_ / "out/PROF_1"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "out/rank3"));
}

TEST_F(ExportTest, DefaultOutputAndJson) {
  std::string dump = MakeDump("PROF_1");
  working_directory_ = dir_.path();
  ASSERT_EQ(Run({"export", dump, "--format", "jsonl", "--json"}), 0) << err();
  Json json = Json::parse(out());
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["out"], dir_ / "PROF_1.export");
  EXPECT_EQ(json["input_bytes"], 19200);
  EXPECT_EQ(json["channels"][0]["file"], "hbm.data");
  EXPECT_EQ(json["channels"][0]["records"], 800);
  EXPECT_EQ(json["outputs"][0]["rows"], 800);
  // Not twice into one directory, unless --force is given.
  ExpectMessage({"export", dump}, 2, "--force");
  EXPECT_EQ(Run({"export", dump, "--force"}), 0) << err();
}

TEST_F(ExportTest, ReportsEveryProblem) {
  std::string dump = MakeDump("PROF_1");
  EXPECT_EQ(
      Run({"export", dump, dir_ / "none", "--format", "cvs,csv", "--devices", "x", "--channels",
           "hbmm", "--from", "noon", "--to", "-1h", "--threads", "0", "--gzip"}),
      2);
  for (const char* part : {"none", "\"cvs\"", "--devices", "\"hbmm\"", "\"noon\"", "--threads",
                           "--gzip", "Try \"profctl export --help\"."}) {
    EXPECT_NE(err().find(part), std::string::npos) << part << "\n" << err();
  }
  EXPECT_EQ(out(), "");
  EXPECT_FALSE(std::filesystem::exists("PROF_1.export"));
}

TEST_F(ExportTest, TimesRelativeToTheDump) {
  std::string dump = MakeDump("PROF_1");
  std::vector<std::string> problems;
  ExportCommand command;
  command.dumps = {dump};
  command.out = dir_ / "o";
  command.from = "+2s";
  command.to = "-3s";
  exporting::ExportOptions options = BuildExport(command, "", &problems).value();
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(options.window.from_ns, 1767225602 * kS);
  EXPECT_EQ(options.window.to_ns, 1767225607 * kS);
  ASSERT_EQ(Run({"export", dump, "--format", "jsonl", "--json", "--out", dir_ / "o", "--from",
                 "+2s", "--to", "-3s"}),
            0)
      << err();
  EXPECT_EQ(Json::parse(out())["outputs"][0]["rows"], 51 * 8);
  // Backwards.
  EXPECT_EQ(Run({"export", dump, "--out", dir_ / "p", "--from", "+5s", "--to", "+1s"}), 2);
}

TEST_F(ExportTest, RanksOfDumpsThatRecordNone) {
  const std::string dump = MakeDump("PROF_1", -1);
  ExpectMessage({"export", dump, "--out", dir_ / "o", "--rank", "0,4-5"}, 2,
                "--rank 0,4,5: no dump records which ranks it is of; use --devices");
}

TEST_F(ExportTest, TimesOfManyKinds) {
  auto at = [](const char* text) {
    auto point = ParseTimePoint(text);
    return point.ok() ? point->ns : -1;
  };
  EXPECT_EQ(at("2026-01-01T00:00:00Z"), 1767225600 * kS);
  EXPECT_EQ(at("2026-01-01T08:00:00.25+08:00"), 1767225600 * kS + kS / 4);
  EXPECT_EQ(at("2026-01-01 00:00:00"), 1767225600 * kS);  // TZ=UTC
  EXPECT_EQ(at("1767225600"), 1767225600 * kS);
  EXPECT_EQ(at("1767225600.000000001"), 1767225600 * kS + 1);
  EXPECT_EQ(at("1767225600000"), 1767225600 * kS);
  EXPECT_EQ(at("1767225600000000"), 1767225600 * kS);
  EXPECT_EQ(at("1767225600000000001"), 1767225600 * kS + 1);
  EXPECT_EQ(at("+500ms"), kS / 2);
  EXPECT_EQ(at("+1.45ms"), 1'450'000);
  EXPECT_EQ(at("-0.5h"), 1800 * kS);
  EXPECT_EQ(ParseTimePoint("-2m")->kind, TimePoint::Kind::kFromEnd);
  EXPECT_EQ(at("+0s"), 0);
  for (const char* bad : {"", "2026-13-01T00:00:00Z", "2026-01-01", "now", "1e9", "+5", "-", "+1.5", "+.5s", "+1.5.2s", "+9223372037s",
                          "2026-01-01T00:00:00+0800", "2026-02-30T00:00:00Z", "-5x", "1.5.2", "99999999999999999999"}) {
    EXPECT_EQ(at(bad), -1) << bad;
  }
}

TEST_F(ExportTest, OpenWantsATraceForPerfetto) {
  std::string dump = MakeDump("PROF_1");
  ExpectMessage({"export", dump, "--open", "--format", "csv", "--out", dir_ / "o"}, 2,
                "--open is for --format perfetto");
}

TEST_F(ExportTest, DirectoriesOfDumpsAreExpanded) {
  MakeDump("run/PROF_1");
  MakeDump("run/PROF_2");
  ASSERT_EQ(Run({"export", dir_ / "run", "--format", "jsonl", "--out", dir_ / "o", "--json"}), 0)
      << err();
  EXPECT_EQ(Json::parse(out())["dumps"].size(), 2u);
}

// As `profctl --nodes ... fetch` leaves it.
// The run of a session with the vendor's profiler in several processes: profd's dump, which has the run's name, and theirs.
TEST_F(ExportTest, RunsOfSeveralProcessesAreFound) {
  MakeDump("v/PROF_1/PROF_1");
  MakeDump("v/PROF_1/PROF_2", -1);
  MakeDump("v/PROF_3");
  MakeDump("run/node_a/PROF_4/PROF_4");
  const std::string v = dir_ / "v";
  EXPECT_EQ(DumpsAt(v), (std::vector<std::string>{v + "/PROF_1/PROF_1", v + "/PROF_1/PROF_2", v + "/PROF_3"}));
  EXPECT_EQ(DumpsAt(v + "/PROF_1"), (std::vector<std::string>{v + "/PROF_1/PROF_1", v + "/PROF_1/PROF_2"}));
  EXPECT_EQ(DumpsAt(dir_ / "run"), (std::vector<std::string>{dir_ / "run/node_a/PROF_4/PROF_4"}));
  EXPECT_EQ(Run({"export", v, "--out", dir_ / "out", "--format", "csv"}), 0) << err();
  Run({"verify", v, "--json"});
  const Json dumps = Json::parse(out()).at("dumps");
  ASSERT_EQ(dumps.size(), 3u) << out();
  for (const Json& dump : dumps) EXPECT_FALSE(dump.contains("error")) << dump.dump();
}

TEST_F(ExportTest, DumpsFetchedFromManyNodesAreARun) {
  MakeDump("run/rank_0/PROF_1");
  MakeDump("run/device_1/PROF_2");  // a node may have any name
  Put(dir_ / "run/fleet.json", "{}");
  std::filesystem::create_directories(dir_ / "run/rank_0/.part-1/PROF_9/host");
  auto dumps = [this](const std::string& command, const std::vector<std::string>& given) {
    std::vector<std::string> arguments = {command, "--json"};
    if (command == "export") arguments.insert(arguments.end(), {"--out", dir_ / "o", "--force"});
    arguments.insert(arguments.end(), given.begin(), given.end());
    Run(arguments);
    Json answer = Json::parse(out(), nullptr, false);
    return answer.is_object() && answer.contains("dumps") ? answer["dumps"].size() : 0;
  };
  const std::vector<std::string> all = {dir_ / "run/fleet.json", dir_ / "run/device_1",
                                        dir_ / "run/rank_0"};  // run/*
  for (const char* command : {"export", "verify"}) {
    EXPECT_EQ(dumps(command, {dir_ / "run"}), 2u) << command << err();
    EXPECT_EQ(dumps(command, all), 2u) << command << err();
    EXPECT_EQ(dumps(command, {dir_ / "run/rank_0"}), 1u) << command << err();
  }
  EXPECT_NE(Run({"export", dir_ / "run/fleet.json", "--out", dir_ / "p"}), 0);
}

TEST_F(ExportTest, ASelectionThatHasNothingIsRefused) {
  std::string dump = MakeDump("PROF_1");
  auto refused = [&](std::vector<std::string> selection, const char* why) {
    std::vector<std::string> line = {"export", dump, "--out", dir_ / "o"};
    line.insert(line.end(), selection.begin(), selection.end());
    EXPECT_EQ(Run(line), 3) << why;
    EXPECT_NE(err().find(why), std::string::npos) << err();
    EXPECT_FALSE(std::filesystem::exists(dir_ / "o")) << why;
  };
  const char* times = "it lasts 10 s, from 2026-01-01 00:00:00 to 2026-01-01 00:00:10";
  refused({"--devices", "7"}, "--devices 7: none of these is in PROF_1; its devices are 0, host");
  refused({"--from", "+100s"}, "--from +100s: nothing of PROF_1 is in there; it lasts 10 s");
  refused({"--from", "+100s"}, times);
  refused({"--from", "2025-01-01T00:00:00Z", "--to", "2025-12-31T23:59:59Z"}, times);
  refused({"--devices", "7", "--from", "+100s"}, times);
  refused({"--devices", "7", "--from", "+100s"}, "its devices are 0, host");
  EXPECT_EQ(Run({"export", dump, "--out", dir_ / "o", "--devices", "7", "--json"}), 3);
  EXPECT_EQ(Json::parse(out())["error"]["exit_code"], 3);
  // Some of it is enough.
  EXPECT_EQ(Run({"export", dump, "--out", dir_ / "o", "--devices", "0,7", "--from", "+9s"}), 0);
  EXPECT_EQ(err(), "");
}

TEST_F(ExportTest, NoRowsInASelectionIsSaidAndNoFailure) {
  std::string dump = MakeDump("PROF_1");
  ExpectMessage({"export", dump, "--out", dir_ / "o", "--from", "+9950ms"}, 0, "no file was made");
  EXPECT_NE(out().find("0 files"), std::string::npos) << out();
}

// The formats of samples hold no events; nothing is left behind that would refuse the next try.
TEST_F(ExportTest, ASelectionThatNothingShowsIsExplainedAndLeavesNoFile) {
  const std::string dump = MakeDump("PROF_1");
  const std::vector<std::string> events = {"export", dump, "--out", dir_ / "o", "--format", "jsonl", "--channels", "events"};
  EXPECT_EQ(Run(events), 4);
  EXPECT_EQ(err(), "profctl: nothing to export; the dumps have no events, --channels can be of hbm\n");
  std::filesystem::create_directories(dump + "/profd");
  Put(dump + "/profd/marks.tsv",
      "time_ns\tpid\trank\tthread\tkind\tname\tvalue\n3000\t7\t3\t1\tstep_begin\t\t5\n5000\t7\t3\t1\tstep_end\t\t5\n");
  ExpectMessage(events, 4, "; jsonl cannot show events, use --format csv or trace or perfetto or sqlite or folded");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "o"));
  EXPECT_EQ(Run({"export", dump, "--out", dir_ / "o", "--format", "trace", "--channels", "events"}), 0) << err();
}

// As the user "nobody" where the tests run as root, to whom everything is readable.
class Nobody {
 public:
  Nobody() {
    if (geteuid() == 0) {
      EXPECT_EQ(seteuid(65534), 0);
    }
  }
  ~Nobody() {
    if (getuid() == 0) {
      EXPECT_EQ(seteuid(0), 0);
    }
  }
};

TEST_F(ExportTest, VerifyContinuesAfterADumpThatCannotBeRead) {
  std::filesystem::create_directories(dir_ / "run");
  for (const char* name : {"run/PROF_1", "run/PROF_3"}) {
    std::filesystem::copy(
        "dump/testdata/golden/PROF_000002_20260101000000000_BBBBBBBBBBBBBBBB", dir_ / name,
        std::filesystem::copy_options::recursive);
  }
  ASSERT_EQ(Run({"verify", dir_ / "run"}), 0) << out() << err();
  std::filesystem::create_directories(dir_ / "run/PROF_2/host");
  chmod(dir_.path().c_str(), 0755);
  chmod((dir_ / "run/PROF_2").c_str(), 0);
  {
    Nobody nobody;
    EXPECT_EQ(Run({"verify", "--quiet", dir_ / "run"}), 5) << err();
    EXPECT_EQ(out().rfind("PROF_2: cannot be read, not checked\n  read: ", 0), 0u) << out();
    EXPECT_NE(out().find("run/PROF_2: Permission denied; "), std::string::npos) << out();
    EXPECT_EQ(err(), "");
    EXPECT_EQ(Run({"verify", dir_ / "run"}), 5);
    EXPECT_NE(out().find("PROF_1: valid"), std::string::npos) << out();
    EXPECT_NE(out().find("PROF_3: valid"), std::string::npos) << out();
    EXPECT_EQ(Run({"verify", "--json", dir_ / "run"}), 5);
  }
  Json json = Json::parse(out());
  EXPECT_EQ(json["ok"], false);
  ASSERT_EQ(json["dumps"].size(), 3u);
  EXPECT_EQ(json["dumps"][1]["ok"], false);
  EXPECT_EQ(json["dumps"][1]["problems"][0]["check"], "read");
  EXPECT_EQ(json["dumps"][2]["ok"], true);
  // A dump that is none counts for more.
  {
    Nobody nobody;
    EXPECT_EQ(Run({"verify", dir_ / "none", dir_ / "run"}), 4);
  }
  EXPECT_NE(err().find("none: No such file"), std::string::npos) << err();
  chmod((dir_ / "run/PROF_2").c_str(), 0700);
}

// Like /etc: nothing in it is looked into.
TEST_F(ExportTest, ADirectoryWithoutDumpsIsRefused) {
  std::filesystem::create_directories(dir_ / "etc/munge");
  chmod(dir_.path().c_str(), 0755);
  chmod((dir_ / "etc/munge").c_str(), 0);
  {
    Nobody nobody;
    for (const auto& [command, code] :
         {std::pair{"verify", 4}, std::pair{"export", 2}, std::pair{"show", 3}}) {
      EXPECT_EQ(Run({command, dir_ / "etc"}), code) << command;
      EXPECT_NE(err().find("etc: not a profile dump: no manifest"), std::string::npos) << err();
      EXPECT_NE(err().find("no PROF_* directory"), std::string::npos) << err();
      EXPECT_EQ(err().find("munge"), std::string::npos) << err();
    }
  }
  chmod((dir_ / "etc/munge").c_str(), 0700);
}

TEST_F(ExportTest, WarnsOfWhatIsSkippedAndBad) {
  std::string dump = MakeDump("PROF_1");
  Put(dump + "/device_0/data/strange.data.0.slice_0", "x");
  std::ofstream(dump + "/device_0/data/hbm.data.0.slice_0", std::ios::app) << "tail";
  ExpectMessage({"export", dump, "--out", dir_ / "o"}, 5, "strange.data.0.slice_0: nothing here reads it");
  EXPECT_NE(err().find("npu0 hbm.data: 0 records (4 bytes) could not be decoded and were skipped"),
            std::string::npos)
      << err();
  EXPECT_NE(err().find("the dump is damaged"), std::string::npos) << err();
  EXPECT_NE(err().find("profctl verify DUMP shows more, but does not check operator files"), std::string::npos) << err();
  EXPECT_EQ(Run({"export", dump, "--force", "--out", dir_ / "o", "--allow-damaged"}), 0) << err();
  EXPECT_EQ(Run({"export", dump, "--force", "--out", dir_ / "o", "--json"}), 5);
  EXPECT_EQ(Json::parse(out())["damaged"], true);
}

TEST_F(ExportTest, RangesAcrossTheBorderAreOneLineAndNotDamage) {
  std::string dump = MakeDump("PROF_1");
  std::filesystem::create_directories(dump + "/profd");
  Put(dump + "/profd/marks.tsv",
      "time_ns\tpid\trank\tthread\tkind\tname\tvalue\n"
      "2000\t7\t3\t1\tstep_end\t\t4\n3000\t7\t3\t1\tstep_begin\t\t5\n"
      "4000\t7\t3\t1\tpush\tforward\t0\n5000\t7\t3\t1\tstep_end\t\t5\n");
  EXPECT_EQ(Run({"export", dump, "--out", dir_ / "o", "--format", "sqlite"}), 0) << err();
  EXPECT_EQ(err(), "profctl: 2 begin/end marks crossed the session border and were clipped\n");
  ASSERT_EQ(Run({"show", dump, "--ascii"}), 0);
  EXPECT_NE(out().find("RANK  STEP OR RANGE"), std::string::npos) << out();
  EXPECT_NE(out().find("2 us"), std::string::npos) << out();  // step 5: the only whole one
  ASSERT_EQ(Run({"show", dump, "--json"}), 0);
  Json durations = Json::parse(out())["durations"];
  ASSERT_EQ(durations.size(), 1u) << durations;
  EXPECT_EQ(durations[0]["kind"], "step");
  EXPECT_EQ(durations[0]["count"], 1);
  EXPECT_EQ(durations[0]["p99_ns"], 2000);
}

TEST_F(ExportTest, SamplesAreTidyCsv) {
  std::string dump = MakeDump("PROF_1");
  ASSERT_EQ(Run({"export", dump, "--out", dir_ / "o", "--format", "samples", "--json"}), 0) << err();
  Json json = Json::parse(out());
  const std::string path = json["outputs"][0]["path"];
  std::ifstream in(path);
  std::string heading;
  std::string line;
  std::getline(in, heading);
  EXPECT_EQ(heading, "time_ns,time,node,job,rank,device,metric,labels,value,unit");
  std::getline(in, line);
  EXPECT_EQ(line,
            "1767225600000000000,2026-01-01T00:00:00.000000000Z,n1,j42,3,0,"
            "atlas_npu_hbm_bandwidth_bytes_per_second,\"hbm=0,direction=read\",0,bytes_per_second");
  size_t lines = 1;
  while (std::getline(in, line)) ++lines;
  EXPECT_EQ(lines, json["outputs"][0]["rows"]);
}

TEST_F(ExportTest, ClockIsOneOfTwo) {
  std::string dump = MakeDump("PROF_1");
  ExpectMessage({"export", dump, "--out", dir_ / "o", "--clock", "later"}, 2,
                "--clock \"later\": must be all or start");
  EXPECT_EQ(Run({"export", dump, "--out", dir_ / "o", "--clock", "start"}), 0) << err();
}

TEST_F(ExportTest, ShowOfADirectory) {
  std::string dump = MakeDump("PROF_1");
  ASSERT_EQ(Run({"show", dump, "--ascii"}), 0) << err();
  for (const char* part : {"PROF_1\n", "job j42", "rank 3", "node n1", "10 s", "hbm.data",
                           "hbm=3 write", "written by the vendor's collector"}) {
    EXPECT_NE(out().find(part), std::string::npos) << part << "\n" << out();
  }
  for (char c : out()) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
  ASSERT_EQ(Run({"show", dump, "--json"}), 0);
  Json json = Json::parse(out());
  EXPECT_EQ(json["rank"], 3);
  EXPECT_EQ(json["end_ns"].get<int64_t>() - json["start_ns"].get<int64_t>(), 10 * kS);
  ASSERT_EQ(json["series"].size(), 8u);
  EXPECT_EQ(json["series"][0]["count"], 100);
  EXPECT_EQ(json["series"][0]["course"].size(), 60u);
}

TEST_F(ExportTest, ADumpThatIsStillBeingWrittenIsSaid) {
  const std::string dump = MakeDump("PROF_1");
  Manifest manifest;
  manifest.state = DumpState::kRunning;
  Put(dump + "/" + std::string(kManifestFile), Serialize(manifest));
  ASSERT_EQ(Run({"export", dump, "--out", dir_ / "o", "--json"}), 0) << err();
  const std::string what = "is still being written: what follows is missing in the files";
  EXPECT_NE(err().find("PROF_1: " + what), std::string::npos) << err();
  EXPECT_EQ(Json::parse(out()).at("problems"), Json::array({{{"file", "PROF_1"}, {"what", what}, {"broken", false}}}));
  manifest.state = DumpState::kDone;
  Put(dump + "/" + std::string(kManifestFile), Serialize(manifest));
  ASSERT_EQ(Run({"export", dump, "--out", dir_ / "p"}), 0) << err();
  EXPECT_EQ(err().find(what), std::string::npos) << err();
  // Without an end in the manifest its control files have it.
  EXPECT_EQ(Run({"export", dump, "--out", dir_ / "q", "--from", "-1s"}), 0) << err();
}

// The picture has no rows of operators, nor of collectors that share a file.
TEST_F(ExportTest, ShowCountsWhatItDoesNotReadAsTheManifestDoes) {
  const std::string dump = MakeDump("PROF_1");
  Manifest manifest;
  manifest.state = DumpState::kDone;
  ManifestChannel& hbm = manifest.channels.emplace_back();
  hbm.collector = "hbm";
  hbm.device = 0;
  hbm.file = "hbm.data";
  hbm.state = "finished";
  hbm.records = 999;
  ManifestChannel& api = manifest.channels.emplace_back();
  api.collector = "activity_api";
  api.state = "finished";
  api.records = 7;
  api.bytes = 280;
  Put(dump + "/" + std::string(kManifestFile), Serialize(manifest));
  ASSERT_EQ(Run({"show", dump, "--json"}), 0) << err();
  const Json files = Json::parse(out()).at("files");
  ASSERT_EQ(files.size(), 2u) << files.dump();
  EXPECT_EQ(files[0]["file"], "activity_api");
  EXPECT_EQ(files[0]["records"], 7);
  EXPECT_EQ(files[0]["bytes"], 280);
  EXPECT_EQ(files[1]["file"], "hbm.data");
  EXPECT_EQ(files[1]["records"], 800);
  // Losses are shown with the first file of the dump, which is not read for that.
  Put(dump + "/host/data/activity_api.data.slice_0", std::string(280, '\0'));
  manifest.channels[1].AddLoss(LossReason::kRingFull, 3, 0, 2000);
  manifest.channels[1].AddGap({2000, 3, LossReason::kRingFull, 1500});
  Put(dump + "/" + std::string(kManifestFile), Serialize(manifest));
  ASSERT_EQ(Run({"show", dump, "--json"}), 0) << err();
  const Json lossy = Json::parse(out()).at("files");
  ASSERT_EQ(lossy.size(), 2u) << lossy.dump();
  EXPECT_EQ(lossy[0]["file"], "activity_api");
  EXPECT_EQ(lossy[0]["records"], 7);
  EXPECT_EQ(lossy[0]["bytes"], 280);
  EXPECT_EQ(lossy[0]["lost_records"], 3);
}

TEST_F(ExportTest, ShowOfNoDump) {
  ExpectMessage({"show", dir_ / "none"}, 4, "none");
  EXPECT_EQ(Run({"show", dir_.path()}), ExitCodeFor(StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace profd::client
