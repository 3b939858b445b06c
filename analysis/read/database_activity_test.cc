// Databases that were exported from dumps of profd alone (export.md, Database): PROFD_KERNEL_ROWS and its like.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/read/read_test_support.h"
#include "analysis/read/readers.h"
#include "analysis/views/views.h"
#include "base/testing/temp_dir.h"

namespace profd::analysis {
namespace {

class DatabaseActivityTest : public ::testing::Test {
 protected:
  void Read(const std::string& sql) {
    const std::string file = dir_ / "msprof_20260101000000.db";
    RunSql(file, kRows + sql);
    std::vector<Problem> problems;
    EXPECT_TRUE(ReadDatabase(file, {.problems = &problems}, &ranks_).ok());
    for (const Problem& each : problems) ADD_FAILURE() << each.where << ": " << each.what;
  }

  // A kernel and an all-reduce of device 0, a kernel of device 1, and the calls of their ranks.
  const std::string kRows =
      "CREATE TABLE STRING_IDS (id, value); INSERT INTO STRING_IDS VALUES (1, 'MatMul_1'), (2, 'KERNEL_AICORE'), (3, 'hcom_allReduce_'), (4, 'world'), (5, 'aclnnMatmul'), (6, 'node'), (7, 'acl');"
      "CREATE TABLE RANK_DEVICE_MAP (rankId, deviceId); INSERT INTO RANK_DEVICE_MAP VALUES (0, 0);"
      "CREATE TABLE PROFD_KERNEL_ROWS (deviceId, timestampNs, name, type, duration, stream, pid, rank, thread, correlation);"
      "INSERT INTO PROFD_KERNEL_ROWS VALUES (0, 100, 1, 2, 50, 3, 11, 0, 9, 77), (1, 100, 1, 2, 40, 3, 12, 1, 8, 77), (0, 110, 1, 2, -1, 3, 11, 0, 9, 78);"
      "CREATE TABLE PROFD_COMMUNICATION_ROWS (deviceId, timestampNs, name, communicator, algorithm, duration, stream, pid, rank, correlation, count, dataType, bandwidth);"
      "INSERT INTO PROFD_COMMUNICATION_ROWS VALUES (0, 120, 3, 4, 0, 60, 3, 11, 0, 79, 1, 0, 0);"
      "CREATE TABLE PROFD_API_ROWS (deviceId, timestampNs, name, level, duration, pid, rank, thread, correlation);"
      "INSERT INTO PROFD_API_ROWS VALUES (-1, 10, 5, 6, 20, 11, 0, 9, 77), (-1, 40, 5, 7, 20, 11, 0, 9, 77);";
  TempDir dir_;
  Ranks ranks_;
};

TEST_F(DatabaseActivityTest, IsThatOfTheDump) {
  Read("");
  const Rank& rank = *ranks_.at(0);
  ASSERT_EQ(rank.executions.size(), 1u) << "neither of another device, nor of a negative duration";
  EXPECT_EQ(rank.executions[0].start_ns, 100);
  EXPECT_EQ(rank.executions[0].end_ns, 150);
  EXPECT_EQ(rank.TextOf(rank.operators.at(0).name), "MatMul_1");
  EXPECT_EQ(rank.TextOf(rank.operators[0].core), "AI_CORE");
  ASSERT_EQ(rank.collectives.size(), 1u);
  EXPECT_EQ(rank.TextOf(rank.collectives[0].group), "world");
  EXPECT_EQ(rank.collectives[0].elapse_ms, Ms(60));
  const auto overall = OverallOf(rank);
  ASSERT_TRUE(overall);
  EXPECT_EQ(overall->e2e_ms, Ms(80)) << "from 100 to 180";
  EXPECT_EQ(overall->shares.computing, Ms(50));
  EXPECT_EQ(overall->shares.uncovered, Ms(30));
  ASSERT_EQ(rank.flows.size(), 1u) << "the later call has the number of what the thread launched before";
  EXPECT_EQ(rank.TextOf(rank.slices.at(rank.flows[0].slice).name), "Node@launch aclnnMatmul");
  EXPECT_EQ(rank.flows[0].execution, 0u);
}

TEST_F(DatabaseActivityTest, IsNotReadBesideTheSameTasksOfTheVendorsProfiler) {
  Read("CREATE TABLE TASK (startNs, endNs, deviceId, connectionId, globalTaskId, taskType, streamId); INSERT INTO TASK VALUES (101, 151, 0, 1, 1, 8, 3);"
       "INSERT INTO STRING_IDS VALUES (8, 'AI_CORE'), (9, 'MatMulV2'), (10, 'N/A');"
       "CREATE TABLE COMPUTE_TASK_INFO (name, globalTaskId, blockNum, mixBlockNum, taskType, opType, inputDataTypes, inputShapes, outputShapes);"
       "INSERT INTO COMPUTE_TASK_INFO VALUES (1, 1, 1, 0, 8, 9, 10, 10, 10);");
  const Rank& rank = *ranks_.at(0);
  ASSERT_EQ(rank.executions.size(), 1u);
  EXPECT_EQ(rank.executions[0].start_ns, 101);
  EXPECT_TRUE(rank.collectives.empty());
  EXPECT_EQ(rank.slices.size(), 2u) << "calls are read";
}

// One with static shapes alone does not hide that all of another are dynamic.
TEST_F(DatabaseActivityTest, StatesOfShapesAreThoseOfTheDevice) {
  Read("INSERT INTO RANK_DEVICE_MAP VALUES (1, 1); INSERT INTO STRING_IDS VALUES (8, 'AI_CORE'), (9, 'MatMulV2'), (10, 'N/A'), (11, 'static'), (12, 'dynamic');"
       "CREATE TABLE TASK (startNs, endNs, deviceId, connectionId, globalTaskId, taskType, streamId); INSERT INTO TASK VALUES (101, 151, 0, 1, 1, 8, 3), (101, 151, 1, 1, 2, 8, 3);"
       "CREATE TABLE COMPUTE_TASK_INFO (name, globalTaskId, blockNum, mixBlockNum, taskType, opType, inputDataTypes, inputShapes, outputShapes, opState);"
       "INSERT INTO COMPUTE_TASK_INFO VALUES (1, 1, 1, 0, 8, 9, 10, 10, 10, 11), (1, 2, 1, 0, 8, 9, 10, 10, 10, 12);");
  ASSERT_EQ(ranks_.size(), 2u);
  EXPECT_EQ(ranks_[0]->op_states, std::set<std::string>{"static"});
  EXPECT_EQ(ranks_[1]->op_states, std::set<std::string>{"dynamic"});
}

// analysis 5.3: tables of tasks of communication may be absent, as of the lowest level.
TEST_F(DatabaseActivityTest, OperationsWithoutTasksAreOfTheDeviceOfTheirLaunch) {
  Read("INSERT INTO RANK_DEVICE_MAP VALUES (1, 1); INSERT INTO STRING_IDS VALUES (8, 'AI_CORE');"
       "CREATE TABLE TASK (startNs, endNs, deviceId, connectionId, globalTaskId, taskType, streamId); INSERT INTO TASK VALUES (200, 220, 0, 5, 1, 8, 3), (300, 320, 1, 6, 2, 8, 3);"
       "CREATE TABLE COMMUNICATION_OP (opName, startNs, endNs, connectionId, groupName, opId, opType); INSERT INTO COMMUNICATION_OP VALUES (3, 200, 220, 5, 4, 1, 3), (3, 300, 320, 6, 4, 2, 3);");
  ASSERT_EQ(ranks_.size(), 2u);
  for (const auto& rank : ranks_) {
    ASSERT_EQ(rank->collectives.size(), 1u);
    EXPECT_EQ(rank->collectives[0].start_ns, rank->device == 0 ? 200 : 300);
  }
}

TEST_F(DatabaseActivityTest, CallsAreOfTheRanksProcess) {
  Read("INSERT INTO RANK_DEVICE_MAP VALUES (1, 1); INSERT INTO PROFD_API_ROWS VALUES (-1, 15, 5, 6, 20, 12, 1, 8, 77);");
  ASSERT_EQ(ranks_.size(), 2u);
  EXPECT_EQ(ranks_[1]->executions.size(), 1u);
  EXPECT_EQ(ranks_[1]->slices.size(), 1u);
  EXPECT_EQ(ranks_[1]->flows.size(), 1u);
}

}  // namespace
}  // namespace profd::analysis
