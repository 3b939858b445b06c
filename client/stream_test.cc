// watch, stream and fetch: what comes in messages.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "client/dump_sink.h"
#include "client/test_support.h"
#include "proto/testing/text_message.h"

namespace profd::client {
namespace {

class StreamTest : public ProfctlTest {};

v1::Session State(v1::Session::State state, uint64_t records) {
  v1::Session session;
  session.set_session_id("s1");
  session.mutable_status()->set_state(state);
  session.mutable_status()->set_records(records);
  session.mutable_status()->set_dump_bytes(records * 100);
  session.mutable_status()->set_started_ns(1'767'225'590'000'000'000);
  if (state != v1::Session::STATE_RUNNING) session.mutable_status()->set_ended_ns(1'767'225'600'000'000'000);
  return session;
}

TEST_F(StreamTest, WatchPrintsChangesOnly) {
  daemon_.watch = {State(v1::Session::STATE_RUNNING, 10), State(v1::Session::STATE_RUNNING, 10),
                   State(v1::Session::STATE_RUNNING, 20), State(v1::Session::STATE_DONE, 20)};
  EXPECT_EQ(Run({"watch", "s1", "--interval", "250ms"}), 0);
  EXPECT_EQ(daemon_.watch_request.interval_ms(), 250u);
  ExpectGolden(out(), "watch.txt");
  EXPECT_EQ(Run({"watch", "s1", "--json"}), 0);
  std::istringstream lines(out());
  std::string line;
  int count = 0;
  while (std::getline(lines, line)) {
    ++count;
    EXPECT_EQ(Json::parse(line)["session_id"], "s1");
  }
  EXPECT_EQ(count, 4);
}

TEST_F(StreamTest, WatchRewritesItsLineOnATerminal) {
  io_.out_tty = true;
  daemon_.watch = {State(v1::Session::STATE_RUNNING, 10), State(v1::Session::STATE_RUNNING, 20),
                   State(v1::Session::STATE_DONE, 20)};
  EXPECT_EQ(Run({"watch", "s1"}), 0);
  EXPECT_EQ(OutLines(), 2) << out();
  EXPECT_NE(out().find("\r\033[K"), std::string::npos);
}

TEST_F(StreamTest, WatchReportsABadEnd) {
  daemon_.watch = {State(v1::Session::STATE_RUNNING, 10), State(v1::Session::STATE_FAILED, 10)};
  EXPECT_EQ(Run({"watch", "s1"}), 5);
}

TEST_F(StreamTest, ControlCEndsWatchAndStreamCleanly) {
  daemon_.before_stream = [] { kill(getpid(), SIGINT); };
  daemon_.watch = {State(v1::Session::STATE_RUNNING, 10), State(v1::Session::STATE_RUNNING, 20)};
  EXPECT_EQ(Run({"watch", "s1"}), 0);
  EXPECT_EQ(OutLines(), 1) << out();
  daemon_.samples.resize(3);
  EXPECT_EQ(Run({"stream"}), 0);
  EXPECT_EQ(err(), "");
}

v1::SampleChunk Samples() {
  return FromText<v1::SampleChunk>(R"pb(
    series {
      id: 1 metric: "atlas_npu_hccs_bandwidth_bytes_per_second" device: 0 collector: "hccs"
      labels { key: "npu" value: "0" }
      labels { key: "direction" value: "tx, \"all\"" }
    }
    series { id: 2 metric: "host_load" collector: "host_cpu" }
    samples { series: 1 time_ns: 1000000000 value: 0 }
    samples { series: 2 time_ns: 1000000001 value: 1.5 }
    samples { series: 1 time_ns: 1000000002 value: 3 }
    samples { series: 2 time_ns: 1000000003 value: 4.5 }
    wall_offset_ns: 1767225599000000000
  )pb");
}

TEST_F(StreamTest, StreamHasThreeFormats) {
  daemon_.samples = {Samples()};
  EXPECT_EQ(Run({"stream"}), 0);
  ExpectGolden(out(), "stream.txt");
  EXPECT_EQ(Run({"stream", "--format", "csv"}), 0);
  ExpectGolden(out(), "stream.csv");
  EXPECT_EQ(Run({"stream", "--raw-time"}), 0);
  EXPECT_EQ(out().substr(0, out().find(' ')), "1.000000");
  EXPECT_EQ(Run({"stream", "--raw-time", "--format", "csv"}), 0);
  EXPECT_NE(out().find("\n1000000001,1.5,host_load"), std::string::npos) << out();
  EXPECT_EQ(Run({"stream", "--json"}), 0);
  ExpectGolden(out(), "stream.json");
  std::istringstream lines(out());
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(Json::accept(line)) << line;
}

// Seconds 9, 10 of one process at first; then the second 11 of it, and second 10 and 11 of another one.
std::vector<v1::GetActivityResponse> Activity() {
  const std::string second_10 = R"pb(
    spans {
      begin_ns: 10000000000 end_ns: 11000000000
      computation_ratio: 0.625 communication_ratio: 0.25 not_overlapped_ratio: 0.125 free_ratio: 0.25
      kernels: 38210
      steps: 2
      longest_kernel_ns: 1534000
      longest_kernel: "aclnnMatmul_MatMulV3Common_MatMulV3"
      lost_records: 7
    })pb";
  const std::string wall = "wall_offset_ns: 1767225590000000123\n";
  const std::string process = R"pb(pid: 4700 job_id: "j42" rank: 3)pb";
  return {FromText<v1::GetActivityResponse>(wall + "processes { " + process + R"pb( spans { begin_ns: 9000000000 end_ns: 10000000000 })pb" + second_10 + "}"),
          FromText<v1::GetActivityResponse>(wall + "processes { " + process + second_10 + R"pb(
            spans { begin_ns: 11000000000 end_ns: 12000000000 free_ratio: 1 }
          }
          processes {
            pid: 4701
            spans { begin_ns: 10000000000 end_ns: 11000000000 }
            spans { begin_ns: 11000000000 end_ns: 12000000000 kernels: 1 longest_kernel_ns: 2500 }
          })pb")};
}

TEST_F(StreamTest, ActivityIsALineForEachSecondAndProcess) {
  daemon_.activity = Activity();
  EXPECT_EQ(Run({"stream", "--activity", "--job", "j42", "--count", "3"}), 0) << err();
  ExpectGolden(out(), "stream_activity.txt");
  ASSERT_EQ(daemon_.activity_requests.size(), 2u);
  EXPECT_EQ(daemon_.activity_requests[0].job_id(), "j42");
  EXPECT_EQ(daemon_.activity_requests[0].from_ns(), 0);
  EXPECT_EQ(daemon_.activity_requests[1].from_ns(), 11 * kNsPerSecond);
  daemon_.activity_requests.clear();
  EXPECT_EQ(Run({"stream", "--activity", "--json", "--count", "3"}), 0) << err();
  ExpectGolden(out(), "stream_activity.json");
  daemon_.activity_requests.clear();
  EXPECT_EQ(Run({"stream", "--activity", "--raw-time", "--count", "1"}), 0) << err();
  EXPECT_NE(out().find("\n10  "), std::string::npos) << out();
}

TEST_F(StreamTest, ActivityReportsThatNothingIsCollected) {
  daemon_.activity = Activity();
  daemon_.activity.insert(daemon_.activity.begin(), v1::GetActivityResponse());
  ExpectMessage({"stream", "--activity", "--count", "1"}, 0, "no process is being collected from");
  daemon_.error = Status(StatusCode::kPermissionDenied, "no");
  EXPECT_EQ(Run({"stream", "--activity"}), 3) << err();
}

// docs/profctl.md: a stream in which nothing comes for the time of --timeout ends with 4.
TEST_F(StreamTest, ActivityEndsAfterTheTimeout) {
  daemon_.on_activity = [this] { clock_.Advance(2 * kNsPerSecond); };
  EXPECT_EQ(Run({"stream", "--activity", "--job", "nope", "--timeout", "3s"}), kExitNotFound) << err();
  EXPECT_EQ(daemon_.activity_requests.size(), 2U);
  EXPECT_NE(err().find("no second of a process came within the time of --timeout"), std::string::npos) << err();
  // The second 10 at 2 s, 11 at 4 s; then nothing new.
  daemon_.activity = Activity();
  daemon_.activity_requests.clear();
  EXPECT_EQ(Run({"stream", "--activity", "--json", "--timeout", "3s"}), kExitNotFound) << err();
  EXPECT_EQ(daemon_.activity_requests.size(), 4U);
  EXPECT_NE(err().find("no further second"), std::string::npos) << err();
}

TEST_F(StreamTest, ActivityHasNoFiltersOfSamples) {
  for (const char* flag : {"--devices-only", "--collectors=hccs", "--devices=0", "--interval=1s", "--format=csv"}) {
    EXPECT_EQ(Run({"stream", "--activity", flag}), 2) << flag;
  }
  ExpectMessage({"stream", "--job", "j42"}, 2, "--job needs --activity");
}

// A daemon takes the list as a filter, and would never send anything.
TEST_F(StreamTest, StreamOfNoDeviceIsRefused) {
  ExpectMessage({"stream", "--devices", "99"}, 3, "devices: no device 99 on this node (there are none)");
  for (uint32_t id : {0, 1, 5}) daemon_.node.add_devices()->set_id(id);
  ExpectMessage({"stream", "--devices", "0,4,99", "--devices-only", "--json"}, 3,
                "devices: no device 4 on this node (there are 0, 1, 5)\n");
  EXPECT_NE(err().find("devices: no device 99 on this node"), std::string::npos) << err();
  EXPECT_EQ(Json::parse(out())["error"]["exit_code"], 3);
  EXPECT_EQ(daemon_.stream_request.devices_size(), 0) << "was not sent";
  EXPECT_EQ(Run({"stream", "--devices", "0-1,5"}), 0) << err();
}

TEST_F(StreamTest, AnIntervalOutOfRangeNamesTheFlag) {
  daemon_.stream_end = Status(StatusCode::kInvalidArgument,
                              Problem{.field = "interval_ms", .value = "1", .text = "must be 10ms..10s"});
  ExpectMessage({"stream", "--interval", "1ms"}, 3, "--interval 1ms: must be 10ms..10s");
  ExpectMessage({"watch", "s1", "--interval", "1ms"}, 3, "--interval 1ms: must be 10ms..10s");
}

TEST_F(StreamTest, StreamSendsItsFilters) {
  for (uint32_t id : {0, 1}) daemon_.node.add_devices()->set_id(id);
  EXPECT_EQ(Run({"stream", "--collectors", "hccs,hbm", "--devices", "0-1", "--interval", "50ms",
                 "--count", "3", "--devices-only"}),
            0);
  const auto& r = daemon_.stream_request;
  EXPECT_EQ(r.collectors_size(), 2);
  EXPECT_EQ(r.devices_size(), 2);
  EXPECT_EQ(r.interval_ms(), 50u);
  EXPECT_EQ(r.max_samples(), 3u);
  EXPECT_TRUE(r.devices_only());
}

TEST_F(StreamTest, CountHoldsEvenIfTheDaemonSendsMore) {
  daemon_.samples = {Samples(), Samples()};
  EXPECT_EQ(Run({"stream", "--count", "3"}), 0);
  EXPECT_EQ(OutLines(), 3);
}

TEST_F(StreamTest, LossAndUnknownSeriesAreReported) {
  v1::SampleChunk chunk = Samples();
  chunk.set_dropped(7);
  v1::SampleChunk stray;
  stray.add_samples()->set_series(99);
  stray.set_dropped(9);
  daemon_.samples = {chunk, stray};
  ExpectMessage({"stream"}, 0, "7 samples lost (7 in all)");
  EXPECT_NE(err().find("2 samples lost (9 in all)"), std::string::npos) << err();
  EXPECT_NE(err().find("did not describe"), std::string::npos) << err();
}

// The stream is open, and nothing records what is asked for.
TEST_F(StreamTest, NoSampleInTimeIsNotTheDaemonsFault) {
  daemon_.stream_end = DeadlineExceeded("the daemon went silent");
  ExpectMessage({"--timeout", "3s", "stream", "--collectors", "dvpp", "--count", "1"}, 4,
                "no sample of dvpp came within the time of --timeout; perhaps nothing records it: see `profctl list --active`");
  EXPECT_EQ(err().find("went silent"), std::string::npos) << err();
  ExpectMessage({"--timeout", "3s", "stream"}, 4, "no sample came");
  daemon_.error = DeadlineExceeded("Deadline Exceeded");
  EXPECT_EQ(Run({"--timeout", "3s", "stream"}), 6) << "the daemon is silent for other calls, too";
}

TEST_F(StreamTest, SamplesThatCameAndStoppedAreSaid) {
  daemon_.samples = {Samples()};
  daemon_.stream_end = DeadlineExceeded("the daemon went silent");
  ExpectMessage({"--timeout", "3s", "stream", "--collectors", "hccs"}, 4,
                "no further sample of hccs came within the time of --timeout, after 4 samples; ");
  EXPECT_EQ(err().find("perhaps nothing records it"), std::string::npos) << err();
}

TEST_F(StreamTest, HintsOnceThatNothingMayRecordIt) {
  daemon_.samples = {v1::SampleChunk(), v1::SampleChunk(), v1::SampleChunk()};
  EXPECT_EQ(Run({"stream", "--collectors", "dvpp"}), 0);
  EXPECT_EQ(err(), "");
  daemon_.before_stream = [this] { clock_.Advance(6 * kNsPerSecond); };
  EXPECT_EQ(Run({"stream", "--collectors", "dvpp"}), 0);
  const std::string hint = "no sample of dvpp so far";
  EXPECT_NE(err().find(hint), std::string::npos) << err();
  EXPECT_EQ(err().find(hint), err().rfind(hint)) << err();
}

class FetchTest : public ProfctlTest {
 protected:
  void Send(const std::string& path, const std::string& data, bool last) {
    v1::DumpChunk chunk;
    if (daemon_.dump.empty()) {
      chunk.set_dump_name("PROF_1");
      chunk.set_total_bytes(total_);
    }
    chunk.set_path(path);
    chunk.set_data(data);
    chunk.set_last(last);
    daemon_.dump.push_back(chunk);
  }
  void SendGoodDump() {
    Send("host/info.json", "{}", true);
    Send("device_0/data/hbm.slice_0", "abc", false);
    Send("", "defg", true);
    Send("empty", "", true);
  }
  int Fetch(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"fetch", "s1", "--out", dir_.path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
  bool Exists(const std::string& name) const { return access((dir_ / name).c_str(), F_OK) == 0; }

  TempDir dir_;
  uint64_t total_ = 9;
};

TEST_F(FetchTest, WritesEveryFile) {
  SendGoodDump();
  EXPECT_EQ(Fetch({"--json"}), 0) << err();
  EXPECT_EQ(ReadText(dir_ / "PROF_1/host/info.json"), "{}");
  EXPECT_EQ(ReadText(dir_ / "PROF_1/device_0/data/hbm.slice_0"), "abcdefg");
  EXPECT_TRUE(Exists("PROF_1/empty"));
  auto json = Json::parse(out());
  EXPECT_EQ(json["path"], dir_ / "PROF_1");
  EXPECT_EQ(json["files"], 3);
  EXPECT_EQ(json["bytes"], 9);
}

TEST_F(FetchTest, CreatesTheOutDirectoryAndPrintsIt) {
  SendGoodDump();
  EXPECT_EQ(Run({"fetch", "s1", "--out", dir_ / "new"}), 0) << err();
  EXPECT_EQ(out(), (dir_ / "new/PROF_1") + "  3 files, 9 B in 0.0 s\n");
}

TEST_F(FetchTest, DoesNotTouchWhatIsThere) {
  mkdir((dir_ / "PROF_1").c_str(), 0700);
  std::ofstream(dir_ / "PROF_1/mine") << "mine";
  SendGoodDump();
  EXPECT_EQ(Fetch(), 3);
  EXPECT_EQ(ReadText(dir_ / "PROF_1/mine"), "mine");
  EXPECT_FALSE(Exists("PROF_1/host"));
}

TEST_F(FetchTest, RefusesEveryNameThatLeavesTheDirectory) {
  for (const char* evil : {"/etc/evil", "../evil", "a/../../evil", "a/..", "..", ".", "a//b", "a/",
                           "a/./b", "a\nb", "a\033b"}) {
    daemon_.dump.clear();
    Send("ok", "12", true);
    Send(evil, "3456789", true);
    EXPECT_EQ(Fetch(), 5) << evil;
    EXPECT_FALSE(Exists("PROF_1")) << evil;
    EXPECT_FALSE(Exists("evil")) << evil;
    EXPECT_NE(err().find("not acceptable"), std::string::npos) << err();
    EXPECT_EQ(err().find('\033'), std::string::npos);
  }
  std::string deep = "a";
  for (int i = 0; i < 40; ++i) deep += "/a";
  EXPECT_FALSE(SplitDumpPath(deep).ok());
  EXPECT_FALSE(SplitDumpPath(std::string(256, 'a')).ok());
  EXPECT_FALSE(SplitDumpPath(std::string(5000, 'a')).ok());
  EXPECT_FALSE(SplitDumpPath(std::string_view("a\0b", 3)).ok());
}

TEST_F(FetchTest, RefusesDumpNamesWithPaths) {
  for (const char* evil : {"", "..", ".", "/tmp/evil", "a/b", "../evil"}) {
    daemon_.dump.clear();
    SendGoodDump();
    daemon_.dump[0].set_dump_name(evil);
    EXPECT_EQ(Fetch(), 5) << evil;
    EXPECT_TRUE(std::filesystem::is_empty(dir_.path())) << evil;
  }
}

TEST_F(FetchTest, FollowsNoSymbolicLink) {
  TempDir outside;
  v1::DumpChunk first;
  first.set_dump_name("PROF_1");
  first.set_total_bytes(10);
  DumpSink sink(dir_.path());
  ASSERT_TRUE(sink.Write(first).ok());
  ASSERT_EQ(symlink(outside.path().c_str(), (dir_ / "PROF_1/link").c_str()), 0);
  ASSERT_EQ(symlink((outside / "file").c_str(), (dir_ / "PROF_1/file").c_str()), 0);
  v1::DumpChunk chunk;
  chunk.set_path("link/file");
  chunk.set_data("x");
  EXPECT_FALSE(sink.Write(chunk).ok());
  chunk.set_path("file");
  EXPECT_FALSE(sink.Write(chunk).ok());
  EXPECT_TRUE(std::filesystem::is_empty(outside.path()));
}

TEST_F(FetchTest, SaysThatAnotherFetchIsUnderWay) {
  SendGoodDump();
  {
    DumpSink other(dir_.path());
    v1::DumpChunk first;
    first.set_dump_name("PROF_1");
    ASSERT_TRUE(other.Write(first).ok());
    EXPECT_NE(Fetch(), 0);
    EXPECT_NE(err().find("PROF_1: another fetch is writing it"), std::string::npos) << err();
  }
  EXPECT_NE(Fetch(), 0);
  EXPECT_NE(err().find("PROF_1 is already there"), std::string::npos) << err();
}

// Whatever version the daemon is of.
TEST_F(FetchTest, OurOwnFolderIsWhereTheVendorsAnalyserLetsIt) {
  Send("profd/marks.tsv", "12", true);
  Send("host/profd/samples.tsv", "3456789", true);
  EXPECT_EQ(Fetch(), 0) << err();
  EXPECT_TRUE(Exists("PROF_1/host/profd/marks.tsv"));
  EXPECT_TRUE(Exists("PROF_1/host/profd/samples.tsv"));
  EXPECT_FALSE(Exists("PROF_1/profd"));
}

TEST_F(FetchTest, NeverOverwritesAFileOfItsOwn) {
  Send("a", "12", true);
  Send("a", "3456789", true);
  EXPECT_EQ(Fetch(), 5);
  EXPECT_FALSE(Exists("PROF_1"));
}

TEST_F(FetchTest, IncompleteIsPartialAndRemoved) {
  // Too little.
  Send("a", "1234", true);
  EXPECT_EQ(Fetch(), 5);
  EXPECT_NE(err().find("4 of 9 bytes were received"), std::string::npos) << err();
  EXPECT_FALSE(Exists("PROF_1"));
  // Too much.
  daemon_.dump.clear();
  Send("a", "1234567890", true);
  EXPECT_EQ(Fetch(), 5);
  EXPECT_FALSE(Exists("PROF_1"));
  // No end.
  daemon_.dump.clear();
  Send("a", "123456789", false);
  EXPECT_EQ(Fetch(), 5);
  EXPECT_FALSE(Exists("PROF_1"));
  // A file in a file, and bytes of no file.
  daemon_.dump.clear();
  Send("a", "1", false);
  Send("b", "23456789", true);
  EXPECT_EQ(Fetch(), 5);
  daemon_.dump.clear();
  Send("", "123456789", true);
  EXPECT_EQ(Fetch(), 5);
  // Nothing at all.
  daemon_.dump.clear();
  EXPECT_EQ(Fetch(), 5);
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

TEST_F(FetchTest, ABreakInTheMiddleIsPartial) {
  Send("sub/dir/a", "1234", true);
  daemon_.stream_end = Unavailable("connection lost");
  EXPECT_EQ(Fetch(), 5);
  EXPECT_FALSE(Exists("PROF_1"));
  EXPECT_EQ(Fetch({"--keep"}), 5);
  EXPECT_EQ(ReadText(dir_ / "PROF_1/sub/dir/a"), "1234");
  EXPECT_NE(err().find("4 of 9 bytes kept"), std::string::npos) << err();
}

TEST_F(FetchTest, ControlCRemovesWhatArrived) {
  SendGoodDump();
  daemon_.before_stream = [] { kill(getpid(), SIGINT); };
  EXPECT_EQ(Fetch(), 5);
  EXPECT_EQ(err(), "profctl: cancelled: the fetch was interrupted\nprofctl: partial results (2 of 9 bytes) were removed; the same command fetches all again\n");
  EXPECT_FALSE(Exists("PROF_1"));
  // While it waits for the end of the session.
  EXPECT_EQ(Fetch({"--wait"}), 5);
  EXPECT_EQ(err(), "profctl: cancelled: the fetch was interrupted\n");
}

TEST_F(FetchTest, ShowsProgressOnATerminalAfterASecond) {
  SendGoodDump();
  EXPECT_EQ(Fetch(), 0);
  EXPECT_EQ(err(), "");
  std::filesystem::remove_all(dir_ / "PROF_1");
  io_.err_tty = true;
  EXPECT_EQ(Fetch(), 0);
  EXPECT_EQ(err(), "") << "it was quick";
  std::filesystem::remove_all(dir_ / "PROF_1");
  daemon_.before_stream = [this] { clock_.Advance(2 * kNsPerSecond); };
  EXPECT_EQ(Fetch(), 0);
  EXPECT_EQ(err(), "\r\033[Kfetching  2.0 s  2 B of 9 B  22 %  1 B/s\r\033[K");
}

TEST_F(FetchTest, AnErrorBeforeTheFirstByteKeepsItsCode) {
  daemon_.error = FailedPrecondition("the session is running");
  EXPECT_EQ(Fetch(), 3);
  daemon_.error = NotFound("no session s1");
  EXPECT_EQ(Fetch(), 4);
}

}  // namespace
}  // namespace profd::client
