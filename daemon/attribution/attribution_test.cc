#include "daemon/attribution/attribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>

#include "base/manual_executor.h"
#include "collectors/metric_table.h"
#include "daemon/attribution/kube_test_support.h"
#include "daemon/attribution/source.h"
#include "daemon/attribution/test_support.h"
#include "daemon/attribution/user_names.h"
#include "daemon/session/testing/fake_job_directory.h"
#include "driver/rooted_fs.h"
#include "dump/test_support.h"

namespace profd {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class AttributionTest : public ::testing::Test {
 protected:
  AttributionTest() : control_(time_.executor()) {
    auto fs = RootedFs::OpenRoot(folder_.path());
    EXPECT_TRUE(fs.ok());
    fs_.emplace(std::move(fs).value());
    host_.emplace(Host{clock_, *fs_, *fs_, nullptr, input_.devices, 0});
    config_.pod_resources_socket = folder_.path() + "/kubelet.sock";
    config_.cri_socket = "";
    for (const DeviceInfo& device : input_.devices) {
      store_.SetDeviceLabels(device.id, std::to_string(device.physical_id), device.uuid);
    }
  }
  void Start() {
    Attribution::Deps deps{control_, clock_, *host_, directory_, store_};
    deps.names_or_null = &names_;
    deps.notice = [this](const std::string& source, const std::string& what) {
      notices_.push_back(source + ": " + what);
    };
    deps.more_devices = [this] { return more_devices_; };
    attribution_ = std::make_unique<Attribution>(std::move(deps), config_);
  }
  // "name{labels without uuid}" of what a scrape would show.
  std::vector<std::string> Shown(MetricId metric) {
    std::vector<std::string> out;
    store_.VisitFresh(clock_.MonotonicRawNs(), [&](const SeriesValue& series) {
      if (series.metric != metric) return;
      std::string line;
      for (const auto& [name, value] : *series.labels) {
        if (name != "uuid") line += (line.empty() ? "" : "|") + value;
      }
      if (series.value != 1) line += " = " + std::to_string(series.value);
      out.push_back(line);
    });
    return out;
  }
  // Rounds until it holds, while the sources answer on their threads. Time passes slowly, so that a source whose
  // answer came too late on a busy machine is asked again.
  void RoundsUntil(const std::function<bool()>& condition) {
    EXPECT_TRUE(time_.RunUntil([&] {
      clock_.Advance(kNsPerMs);
      attribution_->Tick();
      return condition();
    }));
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(std::filesystem::path(folder_.path()) / name) << text;
  }

  RoundInput input_;
  std::vector<DeviceInfo> more_devices_;
  TempDir folder_;
  ManualClock clock_;
  ManualExecutor time_{clock_};
  std::optional<RootedFs> fs_;
  std::optional<Host> host_;
  DaemonConfig config_;
  MetricStore store_;
  ProcessNames names_;
  testing::FakeJobDirectory directory_;
  std::vector<std::string> notices_;
  Strand control_;
  std::unique_ptr<Attribution> attribution_;
};

constexpr MetricId kJob = MetricByName("atlas_npu_job_info");
constexpr MetricId kProcess = MetricByName("atlas_npu_process_info");
constexpr MetricId kUp = MetricByName("profd_attribution_source_up");
constexpr MetricId kErrors = MetricByName("profd_attribution_source_errors_total");  // "source": one error

// Without the HAL libdcmi alone knows NPUs.
TEST_F(AttributionTest, KnowsNpusThatTheHalDoesNotList) {
  more_devices_ = {{.id = 9, .physical_id = 19}};
  store_.SetDeviceLabels(9, "19", "");
  config_.job_map_dir = folder_.path() + "/map";
  std::filesystem::create_directory(config_.job_map_dir);
  Write("map/19", "mapped\n");
  directory_.processes = {ProcessOf(10, 0, "4711", {9})};
  Start();
  RoundsUntil([&] { return Shown(kJob).size() == 2; });
  EXPECT_THAT(Shown(kJob), UnorderedElementsAre(StartsWith("19|4711|"), StartsWith("19|mapped|")));
  EXPECT_THAT(Shown(kProcess), ElementsAre(StartsWith("19|10|4711|")));
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(AttributionTest, SeriesComeAndGoWithProcesses) {
  directory_.processes = {ProcessOf(10, 0, "4711", {0})};
  Start();
  RoundsUntil([&] { return !Shown(kProcess).empty(); });
  std::string root = *UserNames::FromSystem(0);
  EXPECT_THAT(Shown(kProcess), Contains("4|10|4711||" + (root.empty() ? "0" : root) + "|python3|"));
  EXPECT_THAT(Shown(kJob), SizeIs(1));
  EXPECT_EQ(names_.Of(10).job, "4711");
  size_t with = store_.size();
  directory_.processes.clear();
  attribution_->Tick();
  EXPECT_THAT(Shown(kProcess), IsEmpty());
  EXPECT_THAT(Shown(kJob), IsEmpty());
  EXPECT_EQ(store_.size(), with - 2);
  EXPECT_EQ(names_.Of(10), ProcessName{});
}

TEST_F(AttributionTest, ManyJobsComeAndGoWithoutGrowth) {
  Start();
  size_t most = 0;
  for (int round = 0; round < 200; ++round) {
    directory_.processes.clear();
    for (int i = 0; i < 50; ++i) {
      directory_.processes.push_back(ProcessOf(round * 50 + i + 1, 0, std::to_string(round), {i % 4}));
      directory_.processes.back().attach_id = 1;
      directory_.processes.back().step = round;
    }
    attribution_->Tick();
    most = std::max(most, store_.size());
  }
  EXPECT_LE(most, 50u * 3 + 4 + 16);
  EXPECT_EQ(store_.refused(), 0u);
}

TEST_F(AttributionTest, JobMapIsReadAgain) {
  config_.pod_resources_socket = "";  // no other source is under way when time leaps
  config_.job_map_dir = folder_.path();
  Write("5", "4711\n");
  Write("77", "4712\n");
  Start();
  RoundsUntil([&] { return !Shown(kJob).empty(); });
  EXPECT_THAT(Shown(kJob), Contains("5|4711||job_map"));
  EXPECT_THAT(Shown(MetricByName("profd_attribution_ignored_files")), SizeIs(1));
  Write("5", "");
  clock_.Advance(6 * kNsPerSecond);
  RoundsUntil([&] { return Shown(kJob).empty(); });
  // Said once, however many rounds there were.
  EXPECT_THAT(notices_, ::testing::ElementsAre("job_map: not used: 77: this node has no NPU 77"));
  std::filesystem::remove_all(folder_.path());
  clock_.Advance(6 * kNsPerSecond);
  RoundsUntil([&] { return std::ranges::count(Shown(kErrors), "job_map") == 1; });
  EXPECT_THAT(Shown(kUp), Contains("job_map = 0.000000"));
  EXPECT_THAT(notices_, Contains(HasSubstr("No such file")));
}

TEST_F(AttributionTest, SourcesThatAreNotThereSayNothing) {
  Start();
  attribution_->Tick();
  EXPECT_THAT(Shown(kUp), ::testing::ElementsAre("users"));
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(AttributionTest, ASourceReportsChanges) {
  GuardedThread thread("source", clock_);
  std::vector<std::string> said;
  std::vector<int> taken;
  auto source = std::make_unique<Source<int>>(
      control_, clock_, thread, Source<int>::Options{"x", 0},
      [&](const std::string& name, const std::string& what) { said.push_back(name + ": " + what); });
  auto round = [&](const Result<int>& answer) {
    source->Ask([answer] { return answer; }, [&](int n) { taken.push_back(n); });
    EXPECT_TRUE(time_.RunUntil([&] { return source->IsDue(); }));
  };
  round(NotFound("no process"));
  EXPECT_FALSE(source->state().in_use);
  EXPECT_TRUE(source->IsStale());
  round(1);
  round(Unavailable("broken"));
  round(Unavailable("still broken"));
  EXPECT_EQ(source->state().errors, 2u);
  EXPECT_FALSE(source->state().up);
  round(2);
  round(NotFound("went away"));
  round(NotFound("went away"));
  EXPECT_FALSE(source->state().in_use);
  EXPECT_TRUE(source->IsStale());
  EXPECT_EQ(taken, (std::vector<int>{1, 2}));
  EXPECT_EQ(said, (std::vector<std::string>{"x: broken", "x: answers again", "x: went away"}));
  source.reset();
}

// Where no process uses an NPU the rounds do nothing but keep what is shown from going stale.
TEST_F(AttributionTest, QuietRoundsKeepWhatIsShown) {
  constexpr MetricId kHidden = MetricByName("profd_attribution_hidden_processes");
  Start();
  for (int round = 0; round < 20; ++round) {
    clock_.Advance(9 * kNsPerSecond);
    attribution_->Tick();
    ASSERT_THAT(Shown(kHidden), SizeIs(1)) << round;
  }
}

TEST_F(AttributionTest, NothingAfterTheStop) {
  directory_.processes = {ProcessOf(10, 0, "4711", {0})};
  Start();
  attribution_->Stop();
  attribution_->Tick();
  EXPECT_EQ(store_.size(), 0u);
}

constexpr MetricId kContainer = MetricByName("atlas_npu_container_info");

TEST_F(AttributionTest, KubeletAndRuntimeNameContainers) {
  FakeKubelet kubelet;
  kubelet.Give("train-1", "huawei.com/Ascend910", "Ascend910-5");
  FakeRuntime runtime;
  runtime.Run("c1", "train-0", "main");
  auto kubelet_server = ServeOn(config_.pod_resources_socket, kubelet);
  config_.cri_socket = folder_.path() + "/cri.sock";
  auto runtime_server = ServeOn(config_.cri_socket, runtime);
  directory_.processes = {ProcessOf(10, 0, "4711", {0})};
  directory_.processes[0].container_id = "c1";
  directory_.processes[0].pod_uid = "uid-0";
  Start();
  RoundsUntil([&] { return Shown(kUp).size() == 3 && names_.Of(10).container == "main"; });
  EXPECT_THAT(Shown(kContainer), ::testing::ElementsAre("4|ml|train-0|main|c1", "5|ml|train-1|main|"));
  // The kubelet is gone: what it said counts for a while, and then no more. Names stay.
  kubelet_server->Shutdown();
  kubelet_server.reset();
  std::filesystem::remove(config_.pod_resources_socket);
  clock_.Advance(11 * kNsPerSecond);
  RoundsUntil([&] { return Shown(kContainer).size() == 1; });
  EXPECT_THAT(Shown(kContainer), ::testing::ElementsAre("4|ml|train-0|main|c1"));
  EXPECT_THAT(notices_, Contains(HasSubstr("kubelet: ")));
  runtime_server->Shutdown();
}

TEST_F(AttributionTest, KubeletThatHangsCostsItsOwnLabels) {
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  config_.pod_resources_socket.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  directory_.processes = {ProcessOf(10, 0, "4711", {0})};
  Start();
  RoundsUntil([&] { return !Shown(kJob).empty(); });
  RoundsUntil([&] { return std::ranges::count(Shown(kErrors), "kubelet") == 1; });
  EXPECT_THAT(Shown(kUp), Contains("kubelet = 0.000000"));
  EXPECT_THAT(Shown(kJob), SizeIs(1));
}

// What a test may still be doing when it ends.
struct Hanging {
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
};

TEST_F(AttributionTest, UserDatabaseThatHangsCostsNames) {
  Hanging hanging;
  auto users = std::make_unique<UserNames>(
      control_, clock_, [wait = hanging.released](uint32_t uid) -> Result<std::string> {
        if (uid == 7) wait.wait();
        return "name" + std::to_string(uid);
      });
  auto until = [&](uint32_t uid, const std::string& name) {
    EXPECT_TRUE(time_.RunUntil([&] {
      users->Tick();
      return users->Of(uid) == name;
    }));
  };
  until(1, "name1");
  EXPECT_EQ(users->Of(7), std::nullopt);
  clock_.Advance(3 * kNsPerSecond);
  until(7, "7");
  EXPECT_FALSE(users->up());
  EXPECT_GE(users->errors(), 1u);
  hanging.release.set_value();
  users.reset();
}

TEST_F(AttributionTest, UserWithoutANameIsANumber) {
  auto found = UserNames::FromSystem(0x7ffffff0);
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_EQ(*found, "");
}

}  // namespace
}  // namespace profd
