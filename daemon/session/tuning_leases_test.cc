// Who may tune where, and how a lease ends, in time that the test moves.
#include "daemon/session/tuning_leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/session/testing/session_manager_fixture.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using profd::testing::kAlice;
using profd::testing::kBob;
using profd::testing::SessionManagerTest;

class TuningLeasesTest : public ::testing::Test {
 protected:
  TuningLeasesTest() { processes_.alive = {{10, {kAlice, 100}}, {11, {kAlice, 110}}, {20, {kBob, 200}}}; }
  static std::vector<DeviceInfo> FourDevices() {
    std::vector<DeviceInfo> devices(4);
    for (int id = 0; id < 4; ++id) devices[static_cast<size_t>(id)].id = devices[static_cast<size_t>(id)].physical_id = id;
    return devices;
  }
  TuningLeases::Deps Deps() {
    return {control_, clock_, devices_, processes_, node_devices_, states_, [this](const Peer&, std::span<const uint32_t>) { return profiled_by_; }, "boot-1"};
  }
  static Peer As(uint32_t uid, pid_t pid, bool admin = false) { return {.pid = pid, .uid = uid, .admin = admin}; }
  Result<v1::TuningLease> Acquire(const Peer& peer, std::vector<uint32_t> devices,
                                  const std::function<void(v1::AcquireTuningLeaseRequest*)>& more = nullptr) {
    v1::AcquireTuningLeaseRequest request;
    for (const uint32_t device : devices) request.add_devices(device);
    if (more) more(&request);
    v1::TuningLease lease;
    Status answer = Internal("no answer");
    leases_.Acquire(peer, request, &lease, [&answer](const Status& status) { answer = status; });
    if (!answer.ok()) return answer;
    return lease;
  }
  std::vector<v1::TuningLease> List(const Peer& peer) {
    google::protobuf::RepeatedPtrField<v1::TuningLease> out;
    leases_.List(peer, &out);
    return {out.begin(), out.end()};
  }

  ManualClock clock_;
  ManualExecutor time_{clock_};
  Strand control_{time_.executor()};
  std::vector<DeviceInfo> devices_ = FourDevices();
  profd::testing::FakeProcesses processes_;
  profd::testing::FakeDevices node_devices_;
  profd::testing::FakeStates states_;
  std::string profiled_by_;
  TuningLeases leases_{Deps()};
};

TEST_F(TuningLeasesTest, AnotherUserDoesNotTuneOnTheDevice) {
  const Result<v1::TuningLease> lease = Acquire(As(kAlice, 10), {1, 0, 1}, [](auto* request) { request->set_job_id("bert"); });
  ASSERT_TRUE(lease.ok()) << lease.status().ToString();
  EXPECT_EQ(lease->devices_size(), 2);
  EXPECT_EQ(lease->pid(), 10);
  const Status busy = Acquire(As(kBob, 20), {1}).status();
  EXPECT_EQ(busy.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(busy.message(), AllOf(HasSubstr("NPU 0,1"), HasSubstr("another user"), HasSubstr(lease->lease_id()), Not(HasSubstr("bert"))));
  EXPECT_EQ(leases_.refused_total(), 1u);
  // An administrator is shown who it is, and is another user all the same.
  EXPECT_THAT(Acquire(As(0, 20, true), {0}).status().message(), AllOf(HasSubstr("uid 1000"), HasSubstr("process 10"), HasSubstr("bert")));
  EXPECT_TRUE(Acquire(As(kBob, 20), {2}).ok());
  EXPECT_TRUE(Acquire(As(kAlice, 11), {1}).ok()) << "one user may tune twice";
}

TEST_F(TuningLeasesTest, ProfilingAndTuningExcludeEachOther) {
  profiled_by_ = "session 71bd of another user";
  EXPECT_THAT(Acquire(As(kAlice, 10), {0}).status().message(), HasSubstr("session 71bd of another user profiles inside an application on NPU 0"));
  EXPECT_EQ(Acquire(As(kAlice, 10), {0}).status().code(), StatusCode::kFailedPrecondition);
  profiled_by_.clear();
  ASSERT_TRUE(Acquire(As(kAlice, 10), {0}).ok());
  const int one[] = {1}, both[] = {1, 0};
  EXPECT_TRUE(leases_.MayProfile(As(kBob, 20), one).ok());
  const Status refused = leases_.MayProfile(As(kAlice, 10), both);
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr("NPU 0"), HasSubstr("process 10 of yours"), HasSubstr("with provider off")));
}

TEST_F(TuningLeasesTest, EndsWithItsProcess) {
  ASSERT_TRUE(Acquire(As(kAlice, 10), {0}).ok());
  leases_.Tick();
  EXPECT_EQ(leases_.active(), 1u);
  processes_.alive[10].start_ticks = 101;  // another process of the same number
  leases_.Tick();
  EXPECT_EQ(leases_.active(), 0u);
  EXPECT_THAT(states_.files["tuning.json"], Not(HasSubstr("lease_id")));
  ASSERT_TRUE(Acquire(As(kAlice, 11), {0}).ok());
  processes_.alive.erase(11);
  leases_.Tick();
  EXPECT_TRUE(Acquire(As(kBob, 20), {0}).ok());
}

TEST_F(TuningLeasesTest, EndsAtItsTimeOrWhenItIsReleased) {
  ASSERT_TRUE(Acquire(As(kAlice, 10), {0}, [](auto* request) { request->set_duration_ms(5000); }).ok());
  clock_.Advance(5 * kNsPerSecond - 1);
  leases_.Tick();
  EXPECT_EQ(leases_.active(), 1u);
  clock_.Advance(1);
  leases_.Tick();
  EXPECT_EQ(leases_.active(), 0u);
  const std::string id = Acquire(As(kAlice, 10), {0})->lease_id();
  EXPECT_EQ(leases_.Release(As(kBob, 20), id).code(), StatusCode::kNotFound);
  EXPECT_TRUE(leases_.Release(As(kAlice, 10), id).ok());
  const Status gone = leases_.Release(As(kAlice, 10), id);
  EXPECT_EQ(gone.code(), StatusCode::kNotFound);
  EXPECT_THAT(gone.message(), HasSubstr("not found, or not owned by you"));
}

TEST_F(TuningLeasesTest, OthersSeeThatThereIsOneAndNotWhose) {
  ASSERT_TRUE(Acquire(As(kAlice, 10), {0}, [](auto* request) { request->set_job_id("bert"); }).ok());
  ASSERT_EQ(List(As(kBob, 20)).size(), 1u);
  EXPECT_FALSE(List(As(kBob, 20))[0].has_uid() || List(As(kBob, 20))[0].has_pid());
  EXPECT_EQ(List(As(kBob, 20))[0].job_id(), "");
  EXPECT_EQ(List(As(0, 1, true))[0].uid(), kAlice);
  EXPECT_EQ(List(As(kAlice, 11))[0].job_id(), "bert");
}

TEST_F(TuningLeasesTest, ReportsProblemsOfARequest) {
  EXPECT_THAT(Acquire(As(kAlice, 10), {},
                      [](auto* request) {
                        request->set_mode(static_cast<v1::TuningLease::Mode>(9));
                        request->set_job_id("a b");
                        request->set_duration_ms(1);
                        request->set_pid(99);
                      })
                  .status()
                  .message(),
              AllOf(HasSubstr("devices"), HasSubstr("mode = 9"), HasSubstr("job_id"), HasSubstr("duration_ms = 1"), HasSubstr("pid = 99: no such process")));
  EXPECT_EQ(Acquire(As(kAlice, 10), {7}).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Acquire(As(kAlice, 10), {0}, [](auto* request) { request->set_pid(20); }).status().code(), StatusCode::kPermissionDenied);
  Peer remote = As(kAlice, 0);
  remote.remote = true;
  EXPECT_THAT(Acquire(remote, {0}).status().message(), HasSubstr("acquire it there, over the unix socket"));
  EXPECT_EQ(leases_.active(), 0u);
}

TEST_F(TuningLeasesTest, ACheckTakesNothing) {
  EXPECT_TRUE(Acquire(As(kAlice, 10), {0}, [](auto* request) { request->set_check_only(true); }).ok());
  EXPECT_EQ(leases_.active(), 0u);
  EXPECT_EQ(states_.files["tuning.json"], "");
}

TEST_F(TuningLeasesTest, LimitsForAUserAndForTheNode) {
  for (size_t i = 0; i < TuningLeases::kMaxPerUser; ++i) ASSERT_TRUE(Acquire(As(kAlice, 10), {0}).ok());
  EXPECT_THAT(Acquire(As(kAlice, 10), {0}).status().message(), HasSubstr("the limit for one user"));
  // Root has no limit of its own, but the node has one.
  processes_.alive[30] = {};
  while (leases_.active() < TuningLeases::kMaxPerNode) ASSERT_TRUE(Acquire(As(0, 30, true), {1}).ok());
  EXPECT_THAT(Acquire(As(0, 30, true), {1}).status().message(), HasSubstr("the limit of this node"));
}

TEST_F(TuningLeasesTest, TheNextDaemonKnowsThoseWhoseProcessesLive) {
  ASSERT_TRUE(Acquire(As(kAlice, 10), {0}).ok());
  ASSERT_TRUE(Acquire(As(kAlice, 11), {1}).ok());
  const std::string saved = states_.files["tuning.json"];
  processes_.alive.erase(11);
  TuningLeases next(Deps());
  next.Load(saved);
  EXPECT_EQ(next.active(), 1u);
  const int zero[] = {0}, one[] = {1};
  EXPECT_FALSE(next.MayProfile(As(kBob, 20), zero).ok());
  EXPECT_TRUE(next.MayProfile(As(kBob, 20), one).ok());
  TuningLeases::Deps other_boot = Deps();
  other_boot.boot_id = "boot-2";
  TuningLeases later(other_boot);
  later.Load(saved);
  EXPECT_EQ(later.active(), 0u);
  for (const char* broken : {"", "{", "[]", R"({"version": 9})"}) later.Load(broken);
  EXPECT_EQ(later.active(), 0u);
}

// A session's half of it: refused where its processes' devices are kept, and named where it profiles.
TEST_F(SessionManagerTest, ProfilingInsideIsRefusedWhereSomeoneTunes) {
  TrainingProcess process = Process(10, kAlice, 0, 1);
  process.devices = {0};
  jobs_.Add(process);
  gate_.answer = FailedPrecondition("NPU 0 is kept for tuning");
  gate_.device = 0;
  v1::SessionSpec inside = Spec("job");
  (*inside.mutable_options()).set_task_time("on");
  EXPECT_EQ(Start(As(kAlice), inside).status().message(), "NPU 0 is kept for tuning");
  EXPECT_EQ(Dumps(), 0u);
  // Sampling disturbs nothing.
  Stop(Started(As(kAlice), Spec("job")));
  gate_.answer = Status::Ok();
  const std::string id = Started(As(kAlice), inside);
  const uint32_t zero[] = {0}, one[] = {1};
  EXPECT_THAT(records_.ProfilingOn(As(kBob), zero), AllOf(HasSubstr(id), HasSubstr("of another user")));
  EXPECT_EQ(records_.ProfilingOn(As(kBob), one), "");
  Stop(id);
  EXPECT_EQ(records_.ProfilingOn(As(kBob), zero), "");
}

}  // namespace
}  // namespace profd
