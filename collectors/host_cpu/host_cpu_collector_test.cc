#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "collectors/collector_list.h"
#include "collectors/proc/proc_text.h"
#include "collectors/proc/testing/host_fixture.h"

namespace profd {
namespace {

using testing::All;
using testing::AndAll;
using testing::FakeHost;
using ::testing::HasSubstr;
using testing::Job;
using ::testing::Not;
using testing::PolledRig;
using testing::Roots;

constexpr char kCpuLines[] =
    "cpu  3000 200 1000 50000 400 60 70 80 5 1\n"
    "cpu0 1000 100 500 25000 200 30 40 50 5 1\n"
    "cpu1 2000 100 500 25000 200 30 30 30 0 0\n";
constexpr char kTotal[] = "cpu  3000 200 1000 50000 400 60 70 80 5 1";

// What the raw files and labels show of comm is the caller's business; the file has it as it is.
std::string StatLine(int pid, std::string_view comm, int ppid = 1, int utime = 250, int start = 0) {
  return fmt::format("{} ({}) S {} 5 5 0 -1 4194304 1 0 0 0 {} 50 0 0 20 0 2 0 {} 4096 9 0 17 3\n",
                     pid, comm, ppid, utime, start == 0 ? pid : start);
}

std::string FirstBlock(const std::string& body) {
  return fmt::format("TimeStamp:1000000000\nIndex:0\nDataLen:{}\n{}\n\n", body.size(), body);
}

PollOptions Only(ProcessScope scope) {
  PollOptions options;
  options.system = false;
  options.processes = std::move(scope);
  return options;
}

class HostCpuTest : public ::testing::Test {
 protected:
  HostCpuTest() {
    fake_.proc.Write("stat", std::string(kCpuLines) + "intr " + std::string(100000, '7') +
                                 "\nctxt 1\nbtime 2\n");
    fake_.proc.Write("loadavg", "1.25 0.50 0.10 2/345 6789\n");
    fake_.proc.Write("uptime", "1000.50 3000.25\n");
  }
  void AddProcess(int pid, std::string_view comm, int ppid = 1) {
    fake_.proc.Write(std::to_string(pid) + "/stat", StatLine(pid, comm, ppid));
    fake_.proc.Write(std::to_string(pid) + "/environ", "");
    AddThread(pid, pid, comm);
  }
  void AddThread(int pid, int tid, std::string_view comm) {
    fake_.proc.Write(fmt::format("{}/task/{}/stat", pid, tid), StatLine(tid, comm));
  }

  FakeHost fake_;
};

TEST_F(HostCpuTest, SystemSamples) {
  PolledRig rig(kHostCpuCollector, fake_);
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.Samples(),
            "atlas_host_cpu_seconds_total{mode=\"user\"} 30\n"
            "atlas_host_cpu_seconds_total{mode=\"nice\"} 2\n"
            "atlas_host_cpu_seconds_total{mode=\"system\"} 10\n"
            "atlas_host_cpu_seconds_total{mode=\"idle\"} 500\n"
            "atlas_host_cpu_seconds_total{mode=\"iowait\"} 4\n"
            "atlas_host_cpu_seconds_total{mode=\"irq\"} 0.6\n"
            "atlas_host_cpu_seconds_total{mode=\"softirq\"} 0.7\n"
            "atlas_host_cpu_seconds_total{mode=\"steal\"} 0.8\n"
            "atlas_host_cpu_core_busy_seconds_total{cpu=\"0\"} 17.2\n"
            "atlas_host_cpu_core_busy_seconds_total{cpu=\"1\"} 26.9\n"
            "atlas_host_cpus 2\n"
            "atlas_host_load1 1.25\n");
}

TEST_F(HostCpuTest, SystemRawFile) {
  PolledRig rig(kHostCpuCollector, fake_);
  EXPECT_TRUE(rig.PollAt(0).ok());
  const std::string body(kCpuLines, sizeof kCpuLines - 2);
  EXPECT_EQ(body.size(), 123u);
  EXPECT_EQ(rig.sink.files["host_sys_cpu.data"],
            "TimeStamp:1000000000\nIndex:0\nDataLen:123\n" + body + "\n\n");
  EXPECT_TRUE(rig.PollAt(20).ok());
  EXPECT_THAT(rig.sink.files["host_sys_cpu.data"],
              HasSubstr("TimeStamp:1020000000\nIndex:1\nDataLen:123\n"));
  EXPECT_EQ(rig.sink.files.size(), 1u);
}

TEST_F(HostCpuTest, CpusThatGoOfflineLoseTheirSeries) {
  PolledRig rig(kHostCpuCollector, fake_);
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.registry.live(), 12u);
  fake_.proc.Write("stat", "cpu  1 1 1 1 1 1 1 1 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\nintr 1\n");
  EXPECT_TRUE(rig.PollAt(1000).ok());
  EXPECT_EQ(rig.registry.live(), 11u);
  EXPECT_THAT(rig.Samples(), HasSubstr("atlas_host_cpus 1\n"));
}

// proc(5): iowait "can decrease in certain conditions"; Prometheus takes each fall for a restart.
TEST_F(HostCpuTest, TimesThatGoBackALittleStandStill) {
  PolledRig rig(kHostCpuCollector, fake_);
  EXPECT_TRUE(rig.PollAt(0).ok());
  rig.registry.Hold(rig.batch);
  fake_.proc.Write("stat", "cpu  3000 200 1000 49800 399 60 70 80 5 1\nintr 1\n");
  EXPECT_TRUE(rig.PollAt(1000).ok());
  EXPECT_THAT(rig.Samples(), HasSubstr("{mode=\"idle\"} 500\n"));
  EXPECT_THAT(rig.Samples(), HasSubstr("{mode=\"iowait\"} 4\n"));
  rig.registry.Hold(rig.batch);
  fake_.proc.Write("stat", "cpu  3000 200 1000 50001 401 60 70 80 5 1\nintr 1\n");
  EXPECT_TRUE(rig.PollAt(2000).ok());
  EXPECT_THAT(rig.Samples(), HasSubstr("{mode=\"idle\"} 500.01\n"));
  EXPECT_THAT(rig.Samples(), HasSubstr("{mode=\"iowait\"} 4.01\n"));
  rig.registry.Hold(rig.batch);
  fake_.proc.Write("stat", "cpu  3000 200 1000 40000 401 60 70 80 5 1\nintr 1\n");
  EXPECT_TRUE(rig.PollAt(3000).ok());
  EXPECT_THAT(rig.Samples(), HasSubstr("{mode=\"idle\"} 400\n"));
}

TEST_F(HostCpuTest, GarbageInProcStat) {
  PolledRig rig(kHostCpuCollector, fake_);
  for (const std::string& text : {std::string(), std::string("cpu"), std::string(300000, 'c'),
                                  std::string("cpu  1 2 3"), std::string("\xff\0cpu\n", 6)}) {
    fake_.proc.Write("stat", text);
    EXPECT_EQ(rig.PollAt(0).code(), StatusCode::kInternal) << text.substr(0, 20);
    EXPECT_TRUE(rig.sink.files.empty());
  }
  fake_.proc.Write("stat",
                   "cpu  1 2 x\ncpuX 1 1 1 1 1 1 1 1\ncpu-1 1 1 1 1 1 1 1 1\n"
                   "cpu7 1 1 1 1 1 1 1 99999999999999999999999\n");
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.Samples(), "atlas_host_load1 1.25\n");
  fake_.proc.Remove("stat");
  fake_.proc.Write("loadavg", "many\n");
  EXPECT_FALSE(rig.PollAt(0).ok());
}

TEST_F(HostCpuTest, AllProcesses) {
  AddProcess(42, "python3");
  AddProcess(43, "tmux: server");
  PolledRig rig(kHostCpuCollector, fake_, Only(All()));
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.Samples(),
            "atlas_host_process_cpu_seconds_total{pid=\"42\",comm=\"python3\"} 3\n"
            "atlas_host_process_cpu_seconds_total{pid=\"43\",comm=\"tmux: server\"} 3\n");
  ASSERT_EQ(rig.sink.files.size(), 2u);
  const std::string body42 = StatLine(42, "python3") + "ProcessName:python3\n" + kTotal;
  EXPECT_EQ(rig.sink.files["42-CpuUsage.data"], FirstBlock(body42));
  const std::string body43 = StatLine(43, "tmux:_server") + "ProcessName:tmux:_server\n" + kTotal;
  EXPECT_EQ(rig.sink.files["43-CpuUsage.data"], FirstBlock(body43));
  EXPECT_TRUE(rig.PollAt(20).ok());
  EXPECT_THAT(rig.sink.files["42-CpuUsage.data"], HasSubstr("TimeStamp:1020000000\nIndex:1\n"));
}

TEST_F(HostCpuTest, JobThreads) {
  AddProcess(42, "python3");
  AddThread(42, 50, "acl (rt) 1");
  AddProcess(43, "child", 42);
  AddProcess(99, "other");
  PolledRig rig(kHostCpuCollector, fake_, Only(Roots({42})));
  EXPECT_TRUE(rig.PollAt(20).ok());
  ASSERT_EQ(rig.sink.files.size(), 1u);
  EXPECT_EQ(rig.sink.files["host_cpu.data"],
            "time 1020000000\n1000.50 3000.25\n" + StatLine(42, "python3") +
                StatLine(50, "acl_(rt)_1") + StatLine(43, "child"));
  EXPECT_EQ(rig.registry.live(), 2u);
}

TEST_F(HostCpuTest, AJobWithoutProcessesWritesNothing) {
  AddProcess(42, "python3");
  PolledRig rig(kHostCpuCollector, fake_, Only(Job("j1")));
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_TRUE(rig.sink.files.empty());
  EXPECT_EQ(rig.registry.total(), 0u);
}

TEST_F(HostCpuTest, AllAndAJobTogetherWriteBothKinds) {
  AddProcess(42, "python3");
  AddProcess(43, "other");
  PollOptions options = Only(AndAll(Roots({42})));
  options.system = true;
  PolledRig rig(kHostCpuCollector, fake_, options);
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.sink.files.size(), 4u);
  EXPECT_THAT(rig.sink.files["host_cpu.data"], Not(HasSubstr("other")));
}

TEST_F(HostCpuTest, HostileNamesReachNeitherLabelsNorFiles) {
  AddProcess(42, "a) S 1\n666 (b\x1b[2J\xff\n");
  PolledRig rig(kHostCpuCollector, fake_, Only(AndAll(Roots({42}))));
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.Samples(),
            "atlas_host_process_cpu_seconds_total{pid=\"42\",comm=\"a) S 1?666 (b?[\"} 3\n");
  const std::string line = "\n42 (a)_S_1?666_(b?[2J?\?) S 1 5 5";
  EXPECT_THAT(rig.sink.files["42-CpuUsage.data"], HasSubstr(line));
  EXPECT_THAT(rig.sink.files["host_cpu.data"], HasSubstr(line));
}

TEST_F(HostCpuTest, ProcessesThatGoTakeTheirSeriesAlong) {
  AddProcess(42, "python3");
  AddProcess(43, "python3");
  PolledRig rig(kHostCpuCollector, fake_, Only(All()));
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.registry.live(), 2u);
  fake_.proc.Remove("42");
  EXPECT_TRUE(rig.PollAt(1000).ok());
  EXPECT_EQ(rig.registry.live(), 1u);
  EXPECT_THAT(rig.Samples(), Not(HasSubstr("42")));
}

TEST_F(HostCpuTest, AReusedNumberIsAnotherProcess) {
  AddProcess(42, "old");
  PolledRig rig(kHostCpuCollector, fake_, Only(All()));
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_TRUE(rig.PollAt(20).ok());
  fake_.proc.Write("42/stat", StatLine(42, "new", 1, 7, 900));
  EXPECT_TRUE(rig.PollAt(40).ok());
  EXPECT_EQ(rig.Samples(), "");  // nothing of the new one under the old one's name
  EXPECT_TRUE(rig.PollAt(1040).ok());
  EXPECT_EQ(rig.Samples(), "atlas_host_process_cpu_seconds_total{pid=\"42\",comm=\"new\"} 0.57\n");
  EXPECT_THAT(rig.sink.files["42-CpuUsage.data"], HasSubstr("Index:0\n"));
  EXPECT_EQ(rig.registry.live(), 1u);
}

TEST_F(HostCpuTest, ANewNameIsANewSeries) {
  AddProcess(42, "bash");
  PolledRig rig(kHostCpuCollector, fake_, Only(All()));
  EXPECT_TRUE(rig.PollAt(0).ok());
  fake_.proc.Write("42/stat", StatLine(42, "python3"));
  EXPECT_TRUE(rig.PollAt(20).ok());
  EXPECT_THAT(rig.Samples(), HasSubstr("comm=\"python3\""));
  EXPECT_EQ(rig.registry.live(), 1u);
  EXPECT_THAT(rig.sink.files["42-CpuUsage.data"], HasSubstr("Index:1\n"));
}

TEST_F(HostCpuTest, AProcessFileThatTurnsToGarbageIsAnErrorAndNoMore) {
  AddProcess(42, "python3");
  AddProcess(43, "python3");
  PolledRig rig(kHostCpuCollector, fake_, Only(All()));
  EXPECT_TRUE(rig.PollAt(0).ok());
  fake_.proc.Write("42/stat", "hello");
  Status status = rig.PollAt(20);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("/proc/42/stat"));
  EXPECT_EQ(rig.batch.samples().size(), 1u);
}

TEST_F(HostCpuTest, AFullRegistryDoesNotStopIt) {
  AddProcess(42, "python3");
  PolledRig rig(kHostCpuCollector, fake_, Only(All()));
  rig.registry = testing::FakeRegistry(0);
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.batch.samples().size(), 0u);
  EXPECT_EQ(rig.sink.files.size(), 1u);
}

TEST_F(HostCpuTest, AllocatesNothingPerPoll) {
  for (int pid = 100; pid < 120; ++pid) {
    AddProcess(pid, "python3");
    AddThread(pid, pid + 1000, "worker");
  }
  PollOptions options = Only(AndAll(Roots({100, 101, 102})));
  options.system = true;
  PolledRig rig(kHostCpuCollector, fake_, options);
  EXPECT_EQ(rig.AllocationsOf(100), 0u);
  rig.collector.reset();
  EXPECT_EQ(rig.registry.live(), 0u);
}

TEST_F(HostCpuTest, ProbeReportsWhyNot) {
  EXPECT_TRUE(kHostCpuCollector.probe_host(fake_.host()).ok());
  fake_.proc.Remove("stat");
  EXPECT_EQ(kHostCpuCollector.probe_host(fake_.host()).message(), "/proc/stat is missing");
}

// The real /proc, without a subscriber for text records: what has not run is not read again, and shows the same.
class SamplesOnlyTest : public ::testing::Test {
 protected:
  class NoSubscriber final : public RawSink {
   public:
    void WriteHostFile(std::string_view, std::string_view) override { ADD_FAILURE(); }
    bool Wanted() const override { return false; }
    char* Reserve(std::string_view, size_t) override {
      ADD_FAILURE();
      return nullptr;
    }
  };

  SamplesOnlyTest() : proc_(std::move(RootedFs::OpenRoot("/proc").value())) {}

  // Of process `pid`, polled now; -1: it has no sample.
  double Poll(PolledCollector& collector, int pid) {
    batch_.Clear();
    NoSubscriber raw;
    PollOutput out{batch_, raw};
    collector.Poll(testing::TickAt(20 * ticks_++), out).Ignore();
    const std::string text = registry_.PrintValues(batch_);
    const std::string key = fmt::format("{{pid=\"{}\"", pid);
    const size_t at = text.find(key);
    return at == std::string::npos ? -1 : std::stod(text.substr(text.find(' ', at)));
  }
  // As the file has it.
  double Read(int pid) {
    const std::string text = proc_.ReadFile(fmt::format("{}/stat", pid), 4096).value_or("");
    PidStat stat;
    EXPECT_TRUE(ParsePidStat(text, &stat)) << text;
    return static_cast<double>(stat.utime_ticks + stat.stime_ticks) /
           static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  std::unique_ptr<PolledCollector> Make(PollOptions options) {
    const Host host{clock_, proc_, fake_.sys_fs, nullptr, {}, 0};
    return std::move(kHostCpuCollector.make_poller(host, options, registry_)).value();
  }

  FakeHost fake_;
  SystemClock clock_;
  RootedFs proc_;
  testing::FakeRegistry registry_;
  SampleBatch batch_;
  int ticks_ = 0;
};

TEST_F(SamplesOnlyTest, ShowWhatTheFileShows) {
  PollOptions options;
  options.processes = Roots({getpid()});
  std::unique_ptr<PolledCollector> collector = Make(options);
  double last = 0;
  for (int round = 0; round < 20; ++round) {
    const double before = Read(getpid());
    last = Poll(*collector, getpid());
    EXPECT_GE(last, before);
    EXPECT_LE(last, Read(getpid()));
  }
  while (Poll(*collector, getpid()) < last + 0.02) continue;  // we run, so it grows
}

TEST_F(SamplesOnlyTest, OfAProcessThatSleepsStayAndGoWithIt) {
  int commands[2];
  ASSERT_EQ(pipe(commands), 0);
  const pid_t child = fork();
  if (child == 0) {  // waits, then runs until it is killed
    char byte = 0;
    (void)!read(commands[0], &byte, 1);
    for (;;) getppid();
  }
  std::unique_ptr<PolledCollector> collector = Make(Only(Roots({child})));
  for (int round = 0; round < 50; ++round) {
    const double before = Read(child);
    const double shown = Poll(*collector, child);
    EXPECT_GE(shown, before);
    EXPECT_LE(shown, Read(child));
  }
  ASSERT_EQ(write(commands[1], "x", 1), 1);
  while (Poll(*collector, child) < 0.02) continue;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(Poll(*collector, child), -1);
  Poll(*collector, child);
  EXPECT_EQ(registry_.live(), 0u);
  close(commands[0]);
  close(commands[1]);
}

}  // namespace
}  // namespace profd
