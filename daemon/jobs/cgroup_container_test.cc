#include "daemon/jobs/cgroup_container.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/jobs/process_facts.h"

namespace profd {
namespace {

const std::string kId = "4f0e3b1c5a7d9e8f6b2a1c3d5e7f9a0b4f0e3b1c5a7d9e8f6b2a1c3d5e7f9a0b";
const std::string kOther(64, 'a');
const std::string kPod = "0d1e2f3a-4b5c-6d7e-8f90-a1b2c3d4e5f6";
const std::string kPodUnderscored = "0d1e2f3a_4b5c_6d7e_8f90_a1b2c3d4e5f6";

TEST(CgroupContainer, PathsOfTheRuntimes) {
  struct Case {
    std::string path;
    std::string id;
    std::string runtime;
  };
  const std::vector<Case> kCases = {
      // Kubernetes, systemd driver.
      {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + kPodUnderscored +
           ".slice/cri-containerd-" + kId + ".scope",
       kId, "containerd"},
      {"/kubepods.slice/kubepods-pod" + kPodUnderscored + ".slice/crio-" + kId + ".scope", kId, "cri-o"},
      {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + kPodUnderscored +
           ".slice/docker-" + kId + ".scope",
       kId, "docker"},
      {"/kubepods.slice/kubepods-pod" + kPodUnderscored + ".slice/crio-" + kId + ".scope/container", kId,
       "cri-o"},
      // Kubernetes, cgroupfs.
      {"/kubepods/burstable/pod" + kPod + "/" + kId, kId, ""},
      {"/kubepods/pod" + kPod + "/" + kId, kId, ""},
      {"/kubepods/pod" + kPod + "/crio-" + kId, kId, "cri-o"},
      // containerd with the driver of the other kind.
      {"/system.slice/containerd.service/kubepods-burstable-pod" + kPodUnderscored +
           ".slice:cri-containerd:" + kId,
       kId, "containerd"},
      // A cgroup namespace's view.
      {"/../../kubepods-pod" + kPodUnderscored + ".slice/cri-containerd-" + kId + ".scope", kId,
       "containerd"},
      {"/../cri-containerd-" + kId + ".scope", kId, "containerd"},
      {"/../../pod" + kPod + "/" + kId + "/docker/" + kOther, kId, ""},
      // In a pod the pod's container counts, not one that was started inside; kind's node is none.
      {"/kubepods/burstable/pod" + kPod + "/" + kId + "/docker/" + kOther, kId, ""},
      {"/docker/" + kOther + "/kubelet/kubepods/besteffort/pod" + kPod + "/" + kId, kId, ""},
      {"/docker/" + kOther + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" +
           kPodUnderscored + ".slice/cri-containerd-" + kId + ".scope/docker/" + kOther,
       kId, "containerd"},
      // Without Kubernetes.
      {"/docker/" + kId, kId, "docker"},
      {"/system.slice/docker-" + kId + ".scope", kId, "docker"},
      {"/isulad/" + kId, kId, "isulad"},
      {"/system.slice/isulad-" + kId + ".scope", kId, "isulad"},
      {"/machine.slice/libpod-" + kId + ".scope", kId, "podman"},
      {"/machine.slice/libpod-" + kId + ".scope/container", kId, "podman"},
      {"/libpod_parent/libpod-" + kId, kId, "podman"},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope", kId, "podman"},
      {"/default/" + kId, kId, ""},
      {"/system.slice/nerdctl-" + kId + ".scope", kId, "containerd"},
      {"/ecs/task/" + kId, kId, ""},
      {"/docker/" + kOther + "/docker/" + kId, kId, "docker"},
      {"/lxc/web-1", "web-1", "lxc"},
      {"/lxc.payload.web-1/system.slice/x.service", "web-1", "lxc"},
      {"/lxc.payload/web-1", "web-1", "lxc"},
      // None.
      {"/", "", ""},
      {"", "", ""},
      {"/user.slice/user-1000.slice/session-3.scope", "", ""},
      {"/slurm/uid_1000/job_4711/step_0/task_0", "", ""},
      {"/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0", "", ""},
      {"/machine.slice/libpod-conmon-" + kId + ".scope", "", ""},
      {"/kubepods.slice/kubepods-pod" + kPodUnderscored + ".slice/crio-conmon-" + kId + ".scope", "", ""},
      {"/lxc.monitor.web-1", "", ""},
      {"/docker/" + kId.substr(0, 63), "", ""},
      {"/docker/" + kId + "a", "", ""},
      {"/docker-.scope", "", ""},
      {"/x:" + kId + "!", "", ""},
      {"/lxc/../x y", "", ""},
  };
  for (const Case& c : kCases) {
    CgroupContainer found = ContainerOfPath(c.path);
    EXPECT_EQ(found.id, c.id) << c.path;
    EXPECT_EQ(found.runtime, c.runtime) << c.path;
  }
}

TEST(CgroupContainer, IsPartOfACgroupFile) {
  CgroupFacts v2 = ParseCgroup("0::/kubepods.slice/kubepods-pod" + kPodUnderscored +
                               ".slice/cri-containerd-" + kId + ".scope\n");
  EXPECT_EQ(v2.container_id, kId);
  EXPECT_EQ(v2.pod_uid, kPod);
  CgroupFacts v1 = ParseCgroup("12:cpuset:/\n11:memory:/docker/" + kId + "\n10:pids:/docker/" + kOther +
                               "\n");
  EXPECT_EQ(v1.container_id, kId);
  EXPECT_EQ(ParseCgroup("0::/init.scope\n").container_id, "");
}

TEST(Scheduler, IsTakenFromEnvironmentAndCgroup) {
  auto of = [](std::string environment, std::string cgroup) {
    return SchedulerOf(ParseEnvironment(environment), ParseCgroup(cgroup));
  };
  EXPECT_EQ(of("SLURM_JOB_ID=7", ""), "slurm");
  EXPECT_EQ(of("", "0::/system.slice/slurmstepd.scope/job_12/step_0\n"), "slurm");
  EXPECT_EQ(of("VC_TASK_INDEX=0", "0::/kubepods/pod" + kPod + "/" + kId + "\n"), "volcano");
  EXPECT_EQ(of("", "0::/kubepods/pod" + kPod + "/" + kId + "\n"), "kubernetes");
  EXPECT_EQ(of("PBS_JOBID=1.n", ""), "pbs");
  EXPECT_EQ(of("HOME=/", "0::/\n"), "none");
}

}  // namespace
}  // namespace profd
