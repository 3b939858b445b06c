#include "daemon/jobs/process_facts.h"

#include <gtest/gtest.h>

#include <string>

#include "driver/rooted_fs.h"
#include "dump/test_support.h"

namespace profd {
namespace {

std::string Block(std::initializer_list<const char*> entries) {
  std::string text;
  for (const char* entry : entries) text.append(entry).push_back('\0');
  return text;
}

TEST(Environment, OfLaunchersIsUnderstood) {
  struct Case {
    std::string block;
    std::string job;
    std::optional<int> rank;
    std::optional<int> local;
    int world;
    std::vector<int> devices;
  };
  const std::vector<Case> kCases = {
      {Block({"SLURM_JOB_ID=4711", "SLURM_PROCID=3", "SLURM_LOCALID=1", "SLURM_NTASKS=16"}), "4711", 3, 1,
       16, {1}},
      // torchrun below srun: its own numbers count, Slurm's job does.
      {Block({"SLURM_JOB_ID=4711", "SLURM_PROCID=0", "RANK=9", "LOCAL_RANK=1", "WORLD_SIZE=16",
              "TORCHELASTIC_RUN_ID=abc"}),
       "4711", 9, 1, 16, {1}},
      {Block({"TORCHELASTIC_RUN_ID=run 1", "RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=1"}), "run-1", 0, 0, 1,
       {0}},
      {Block({"TORCHELASTIC_RUN_ID=none"}), "", {}, {}, 0, {}},
      {Block({"OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_SIZE=8",
              "OMPI_MCA_ess_base_jobid=12345"}),
       "12345", 5, 1, 8, {1}},
      {Block({"PMIX_NAMESPACE=prterun-n1-77@1", "PMIX_RANK=2"}), "prterun-n1-77-1", 2, {}, 0, {}},
      {Block({"RANK_ID=6", "RANK_SIZE=8", "DEVICE_ID=6", "RANK_TABLE_FILE=/x/hccl_8p.json"}), "hccl_8p", 6,
       {}, 8, {6}},
      {Block({"ASCEND_DEVICE_ID=5", "LOCAL_RANK=1"}), "", {}, 1, 0, {5}},
      // Numbered among the visible ones.
      {Block({"ASCEND_RT_VISIBLE_DEVICES=4,5,6,7", "LOCAL_RANK=2"}), "", {}, 2, 0, {6}},
      {Block({"ASCEND_VISIBLE_DEVICES=4-6"}), "", {}, {}, 0, {4, 5, 6}},
      {Block({"ASCEND_RT_VISIBLE_DEVICES=2", "ASCEND_VISIBLE_DEVICES=4-6"}), "", {}, {}, 0, {2}},
      {Block({"PROFD_JOB_ID=mine", "SLURM_JOB_ID=4711"}), "mine", {}, {}, 0, {}},
  };
  for (const Case& c : kCases) {
    EnvironmentFacts facts = ParseEnvironment(c.block);
    EXPECT_EQ(JobOf(facts, {}), c.job);
    EXPECT_EQ(facts.rank, c.rank) << c.job;
    EXPECT_EQ(facts.local_rank, c.local) << c.job;
    EXPECT_EQ(facts.world_size, c.world) << c.job;
    EXPECT_EQ(DevicesOf(facts), c.devices) << c.job;
  }
}

TEST(Environment, NonsenseIsLeftOut) {
  EnvironmentFacts facts = ParseEnvironment(
      Block({"RANK=-1", "LOCAL_RANK=1x", "WORLD_SIZE=99999999999", "SLURM_JOB_ID=a b\033[2J", "=x",
             "DEVICE_ID=4096", "ASCEND_VISIBLE_DEVICES=void", "ASCEND_RT_VISIBLE_DEVICES=0-100000",
             "RANK", "RANKX=3"}));
  EXPECT_EQ(facts.rank, std::nullopt);
  EXPECT_EQ(facts.local_rank, std::nullopt);
  EXPECT_EQ(facts.world_size, 0);
  EXPECT_EQ(facts.job_id, "");
  EXPECT_EQ(facts.slurm_job, "");
  EXPECT_TRUE(DevicesOf(facts).empty());
  EXPECT_EQ(ParseEnvironment("").framework, "");
  EXPECT_EQ(ParseEnvironment("RANK=7").rank, 7);  // cut off before its end
}

TEST(Environment, RecognisesTheFramework) {
  EXPECT_EQ(ParseEnvironment(Block({"MS_ROLE=MS_WORKER"})).framework, "mindspore");
  EXPECT_EQ(ParseEnvironment(Block({"TORCHELASTIC_RUN_ID=x"})).framework, "pytorch");
}

TEST(Cgroup, NamesPodAndJob) {
  struct Case {
    const char* text;
    const char* pod;
    const char* slurm;
  };
  const char* kPod = "0a1b2c3d-1111-2222-3333-444455556666";
  const std::vector<Case> kCases = {
      {"0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n", "", "4711"},
      // Slurm built for several slurmd on a machine.
      {"0::/system.slice/node-1_slurmstepd.scope/job_4712/step_batch/user/task_special\n", "", "4712"},
      {"4:cpuset:/slurm_node1/uid_0/job_13/step_0\n", "", "13"},
      {"9:memory:/slurm/uid_1000/job_12/step_batch\n1:name=systemd:/user.slice\n", "", "12"},
      {"0::/kubepods.slice/kubepods-burstable.slice/"
       "kubepods-burstable-pod0a1b2c3d_1111_2222_3333_444455556666.slice/cri-containerd-ab.scope\n",
       kPod, ""},
      {"5:cpu:/kubepods/besteffort/pod0a1b2c3d-1111-2222-3333-444455556666/ab12\n", kPod, ""},
      {"0::/../../kubelet-kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice/x\n", kPod, ""},
      // cgroupfs, as a container with a cgroup namespace sees it.
      {"0::/../../../burstable/pod0a1b2c3d-1111-2222-3333-444455556666/ab12\n", kPod, ""},
      // containerd with the driver of the other kind.
      {"7:devices:/system.slice/containerd.service/"
       "kubepods-besteffort-pod0a1b2c3d_1111_2222_3333_444455556666.slice:cri-containerd:ab12\n",
       kPod, ""},
      {"0::/user.slice/job_12\n", "", ""},                           // no Slurm
      {"0::/user.slice/my_slurmstepd.service/job_12\n", "", ""},
      {"0::/pod0a1b2c3d-1111-2222-3333-444455556666\n", "", ""},     // no Kubernetes
      {"0::/kubepods/podXYZ\n", "", ""},
      {"0::/slurm/job_12x\n", "", ""},
      {"nonsense", "", ""},
      {"", "", ""},
  };
  for (const Case& c : kCases) {
    CgroupFacts facts = ParseCgroup(c.text);
    EXPECT_EQ(facts.pod_uid, c.pod) << c.text;
    EXPECT_EQ(facts.slurm_job, c.slurm) << c.text;
  }
}

TEST(JobOfProcess, PrefersWhatPeopleType) {
  EnvironmentFacts environment = ParseEnvironment(Block({"TORCHELASTIC_RUN_ID=run"}));
  CgroupFacts cgroup{"0a1b2c3d-1111-2222-3333-444455556666", "12"};
  EXPECT_EQ(JobOf(environment, cgroup), "12");
  cgroup.slurm_job.clear();
  EXPECT_EQ(JobOf(environment, cgroup), cgroup.pod_uid);
  EXPECT_EQ(JobOf(environment, {}), "run");
  EXPECT_EQ(JobOf(ParseEnvironment(Block({"SLURM_JOB_ID=4", "TORCHELASTIC_RUN_ID=r"})), cgroup), "4");
}

TEST(DeviceList, IsIdsAndRanges) {
  std::vector<int> ids;
  EXPECT_TRUE(ParseDeviceList(" 0, 2-4 ,2", &ids));
  EXPECT_EQ(ids, (std::vector<int>{0, 2, 3, 4}));
  for (const char* wrong : {"", "all", "1-", "-1", "3-1", "1,,2", "0-64", "99999"}) {
    EXPECT_FALSE(ParseDeviceList(wrong, &ids)) << wrong;
  }
}

// A folder that looks like /proc.
class ProcessFactsTest : public ::testing::Test {
 protected:
  void WriteProcess(const std::string& pid, const std::string& state, uint64_t ticks) {
    std::filesystem::create_directories(tmp_ / pid);
    std::string stat = pid + " (a) b (c) " + state;
    for (int field = 4; field < 22; ++field) stat += " 0";
    WriteText(tmp_ / (pid + "/stat"), stat + " " + std::to_string(ticks) + " 0 0\n");
    WriteText(tmp_ / (pid + "/environ"), Block({"RANK=4", "SLURM_JOB_ID=9"}));
    WriteText(tmp_ / (pid + "/cgroup"), "0::/slurm/job_10\n");
  }
  TempDir tmp_;
};

TEST_F(ProcessFactsTest, AreReadFromBelowTheRoot) {
  WriteProcess("42", "S", 1234);
  WriteProcess("43", "Z", 1234);
  auto proc = RootedFs::OpenRoot(tmp_.path());
  ASSERT_TRUE(proc.ok());
  Result<ProcessFacts> facts = ReadProcessFacts(*proc, 42);
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_EQ(facts->start_ticks, 1234u);
  EXPECT_EQ(facts->uid, ::geteuid());
  EXPECT_EQ(facts->command, "a) b (c");
  EXPECT_EQ(facts->environment.rank, 4);
  EXPECT_EQ(facts->cgroup.slurm_job, "10");
  EXPECT_EQ(JobOf(facts->environment, facts->cgroup), "9");
  EXPECT_EQ(ReadProcessFacts(*proc, 43).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadProcessFacts(*proc, 44).status().code(), StatusCode::kNotFound);
}

TEST_F(ProcessFactsTest, AScriptIsNamedInsteadOfItsInterpreter) {
  struct {
    std::vector<std::string> arguments;
    std::string command;
  } cases[] = {{{"python3", "-u", "-X", "dev", "/job/train.py", "--epochs", "3"}, "train.py"},
               {{"python3", "-m", "pkg.train"}, "pkg.train"},
               {{"python3", "-c", "import x"}, "python3.11"},
               {{"python3"}, "python3.11"},
               {{}, "python3.11"}};
  for (const auto& each : cases) {
    WriteProcess("42", "S", 1234);
    std::string stat = "42 (python3.11) S";
    for (int field = 4; field < 22; ++field) stat += " 0";
    WriteText(tmp_ / "42/stat", stat + " 1234 0 0\n");
    std::string arguments;
    for (const std::string& argument : each.arguments) arguments += argument + '\0';
    WriteText(tmp_ / "42/cmdline", arguments);
    auto proc = RootedFs::OpenRoot(tmp_.path());
    ASSERT_TRUE(proc.ok());
    EXPECT_EQ(ReadProcessFacts(*proc, 42)->command, each.command);
  }
}

TEST_F(ProcessFactsTest, GoWithoutWhatMayNotBeRead) {
  WriteProcess("42", "S", 7);
  std::filesystem::remove(tmp_ / "42/environ");
  std::filesystem::remove(tmp_ / "42/cgroup");
  auto proc = RootedFs::OpenRoot(tmp_.path());
  Result<ProcessFacts> facts = ReadProcessFacts(*proc, 42);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->environment.rank, std::nullopt);
  EXPECT_EQ(JobOf(facts->environment, facts->cgroup), "");
}

TEST(StatusField, IsALineOfTheKernels) {
  TempDir tmp;
  for (const char* pid : {"42", "43"}) std::filesystem::create_directory(std::filesystem::path(tmp.path()) / pid);
  WriteText(tmp.path() + "/42/status", "Name:\tpython3\nGroups:\t4 27 \nCpus_allowed:\tffff0000\nCpus_allowed_list:\t16-31\n");
  WriteText(tmp.path() + "/43/status", "Name:\tpython3\n");
  const RootedFs fs = RootedFs::OpenRoot(tmp.path()).value();
  EXPECT_EQ(StatusField(fs, 42, "Cpus_allowed_list"), "16-31");
  EXPECT_EQ(StatusField(fs, 42, "Groups"), "4 27");
  EXPECT_EQ(StatusField(fs, 43, "Groups"), "") << "no such line";
  EXPECT_EQ(StatusField(fs, 44, "Groups"), "") << "it has ended";
}

}  // namespace
}  // namespace profd
