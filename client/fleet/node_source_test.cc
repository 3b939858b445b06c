#include "client/fleet/node_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "client/fleet/run_program.h"
#include "client/test_support.h"

namespace profd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Programs of a directory of the test's own, found before the system's.
class NodeSourceTest : public ::testing::Test {
 protected:
  void Program(const std::string& name, const std::string& script) {
    std::string path = dir_ / name;
    std::ofstream(path) << "#!/bin/sh\n" << script;
    chmod(path.c_str(), 0755);
  }
  std::string SearchPath() const { return dir_.path() + ":/usr/bin:/bin"; }
  Result<SourcedNodes> Find(const NodeSource& source) {
    problems_.clear();
    return FindNodes(source, SearchPath(), &problems_);
  }
  static std::vector<std::string> Texts(const Result<SourcedNodes>& found) {
    std::vector<std::string> texts;
    if (found.ok()) {
      for (const NodeName& node : found->list.nodes) texts.push_back(node.text);
    }
    return texts;
  }

  TempDir dir_;
  std::vector<std::string> problems_;
};

TEST_F(NodeSourceTest, FileOrText) {
  EXPECT_THAT(Texts(Find({.nodes = "a[1-2]", .nodes_file = {}, .slurm = {}, .k8s = {}, .k8s_namespace = {}, .port = "7"})),
              ElementsAre("a1", "a2"));
  std::string path = dir_ / "nodes";
  std::ofstream(path) << "# two\nb1\nb2\n";
  NodeSource source;
  source.nodes_file = path;
  EXPECT_THAT(Texts(Find(source)), ElementsAre("b1", "b2"));
  source.nodes_file = dir_ / "missing";
  source.port = "0";
  (void)Find(source);
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("--node-port \"0\""), HasSubstr("No such file")));
}

TEST_F(NodeSourceTest, Slurm) {
  Program("scontrol",
          "case \"$2\" in\n"
          "job) [ \"$3 $4\" = '-o 42' ] || exit 9\n"
          "  echo 'JobId=42 JobState=RUNNING ReqNodeList=(null) NodeList=n[1-2] BatchHost=n1';;\n"
          "hostnames) [ \"$3\" = 'n[1-2]' ] || exit 9; printf 'n1\\nn2\\n';;\n"
          "esac\n");
  NodeSource source;
  source.slurm = "42.0";
  auto found = Find(source);
  EXPECT_THAT(problems_, IsEmpty());
  EXPECT_THAT(Texts(found), ElementsAre("n1", "n2"));
  EXPECT_EQ(found->job_id, "42");
  for (const char* wrong : {"", "-o", "x", "42;reboot"}) {
    source.slurm = wrong;
    (void)Find(source);
    EXPECT_THAT(problems_, ElementsAre(HasSubstr("is not a Slurm job id"))) << wrong;
  }
}

// As Slurm 22.05 prints an array of which tasks wait, and a heterogeneous job.
TEST(SlurmJobs, HaveTheIdOfTheirProcesses) {
  constexpr std::string_view kTask = "JobId=8 ArrayJobId=5 ArrayTaskId=3 JobName=a HetJobId=7 JobState=RUNNING NodeList=n[1-2] BatchHost=n1\n";
  auto task = FindSlurmJob(kTask, "5_3");
  ASSERT_TRUE(task.ok()) << task.status().ToString();
  EXPECT_EQ(task->id, "8");
  EXPECT_EQ(task->nodes, "n[1-2]");

  const std::string waits = "JobId=5 ArrayJobId=5 ArrayTaskId=4-7%2 JobName=a JobState=PENDING NodeList=\n";
  EXPECT_THAT(FindSlurmJob(waits + std::string(kTask), "5").status().message(),
              HasSubstr("has no nodes (state PENDING); of an array name a task: 5_0"));
  // The last task has the number of the array.
  auto last = FindSlurmJob(std::string(kTask) + "JobId=5 ArrayJobId=5 ArrayTaskId=7 JobState=RUNNING NodeList=n4\n", "5");
  ASSERT_TRUE(last.ok()) << last.status().ToString();
  EXPECT_EQ(last->id + " on " + last->nodes, "5 on n4");

  const std::string component = "JobId=43 HetJobId=42 HetJobOffset=1 HetJobIdSet=42-43 JobState=RUNNING NodeList=n2\n";
  auto both = FindSlurmJob("JobId=42 HetJobId=42 HetJobOffset=0 HetJobIdSet=42-43 JobState=RUNNING NodeList=n1\n" + component, "42");
  ASSERT_TRUE(both.ok()) << both.status().ToString();
  EXPECT_EQ(both->id + " on " + both->nodes, "42 on n1,n2");
  for (const char* name : {"42+1", "43"}) {
    auto one = FindSlurmJob(component, name);
    ASSERT_TRUE(one.ok()) << one.status().ToString();
    EXPECT_EQ(one->id + " on " + one->nodes, "42 on n2") << name;
  }
}

TEST_F(NodeSourceTest, ErrorHasTheProgramsOutput) {
  NodeSource source;
  source.slurm = "42";
  Program("scontrol", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1\n");
  auto found = Find(source);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.status().message(), HasSubstr("exit code 1: slurm_load_jobs error: Invalid job"));
  EXPECT_EQ(found.status().code(), StatusCode::kUnavailable) << "profctl's exit code 6";
  Program("scontrol", "echo 'JobId=42 JobState=PENDING NodeList= BatchHost='\n");
  EXPECT_THAT(Find(source).status().message(), HasSubstr("Slurm job 42: has no nodes (state PENDING)"));
}

TEST_F(NodeSourceTest, ProgramsAreBounded) {
  Program("slow", "exec sleep 600\n");
  auto slow = RunProgram({"slow"}, SearchPath(), {.deadline_ms = 50, .max_output = 100});
  EXPECT_EQ(slow.status().code(), StatusCode::kDeadlineExceeded);
  Program("much", "exec yes\n");
  auto much = RunProgram({"much"}, SearchPath(), {.deadline_ms = 60'000, .max_output = 100});
  EXPECT_EQ(much.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(RunProgram({"profd-no-such-program"}, SearchPath()).status().code(), StatusCode::kUnavailable) << "profctl's exit code 6";
  Program("arguments", "printf '%s|' \"$@\"; cat\n");
  auto printed = RunProgram({"arguments", "a b", "$HOME", "'"}, SearchPath());
  ASSERT_TRUE(printed.ok()) << printed.status().ToString();
  EXPECT_EQ(*printed, "a b|$HOME|'|");
  Program("killed", "kill -9 $$\n");
  EXPECT_THAT(RunProgram({"killed"}, SearchPath()).status().message(), HasSubstr("by signal 9"));
}

TEST_F(NodeSourceTest, Pods) {
  constexpr const char* kPods = R"({"items": [
      {"spec": {"nodeName": "b"}, "status": {"phase": "Running", "hostIP": "10.0.0.2"}},
      {"spec": {"nodeName": "a"}, "status": {"phase": "Running", "hostIP": "fd00::1"}},
      {"spec": {"nodeName": "b"}, "status": {"phase": "Running", "hostIP": "10.0.0.2"}},
      {"spec": {}, "status": {"phase": "Pending"}}, 7, {"status": "x"}]})";
  Program("kubectl", std::string("[ \"$3\" = --selector=app=train ] && [ \"$5\" = --namespace=ml ]"
                                 " || exit 3\ncat <<'X'\n") + kPods + "\nX\n");
  NodeSource source;
  source.k8s = "app=train";
  source.k8s_namespace = "ml";
  auto found = Find(source);
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_THAT(Texts(found), ElementsAre("a", "b"));
  EXPECT_EQ(found->list.nodes[0].endpoint.address, "[fd00::1]:9465");
  EXPECT_EQ(found->list.nodes[1].endpoint.address, "10.0.0.2:9465");
  EXPECT_THAT(found->notes, ElementsAre(HasSubstr("2 pods")));
  source.k8s = "-x";
  (void)Find(source);
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("is not a label selector")));
}

TEST(Pods, NothingUsable) {
  for (const char* text : {"", "[]", "{}", R"({"items": 3})"}) {
    EXPECT_EQ(NodesOfPods(text, 1).status().code(), StatusCode::kInternal) << text;
  }
  EXPECT_EQ(NodesOfPods(R"({"items": []})", 1).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(NodesOfPods(
      R"({"items": [{"status": {"phase": "Running", "hostIP": "a b"}}]})", 1).ok());
}

}  // namespace
}  // namespace profd::client
