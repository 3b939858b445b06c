#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/read/read_test_support.h"
#include "analysis/read/readers.h"
#include "analysis/views/views.h"
#include "base/testing/temp_dir.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

class DatabaseTest : public ::testing::Test {
 protected:
  DatabaseTest() {
    // Names by their place.
    Run("ascend_pytorch_profiler_0.db", R"(
        CREATE TABLE STRING_IDS (id, value); CREATE TABLE RANK_DEVICE_MAP (rankId, deviceId); INSERT INTO RANK_DEVICE_MAP VALUES (0, 0);
        INSERT INTO STRING_IDS VALUES (0, 'hcom_allReduce__1_0_1'), (1, 'group'), (2, 'hcom_allReduce_'), (3, 'k'), (4, 'Mul'), (5, 'AI_CORE'), (6, 'N/A');
        CREATE TABLE TASK (startNs, endNs, deviceId, connectionId, globalTaskId, taskType, streamId);)");
  }

  void Run(const std::string& file, const std::string& sql) { RunSql(folder_ / file, sql); }
  void Add(const std::string& sql) { Run("ascend_pytorch_profiler_0.db", sql); }

  const Rank& Read() {
    const Rank& rank = ReadWithProblems();
    for (const Problem& each : problems_) ADD_FAILURE() << each.where << ": " << each.what;
    return rank;
  }
  const Rank& ReadWithProblems() {
    ranks_.clear();
    problems_.clear();
    EXPECT_TRUE(ReadDatabase(file_, {.problems = &problems_}, &ranks_).ok());
    return *ranks_.at(0);
  }

  // Rows (name, group, step, start in us).
  void Analyse(const std::string& times, const std::string& bandwidth) {
    Run("analysis.db",
        "CREATE TABLE CommAnalyzerTime (hccl_op_name, group_name, step, start_timestamp, elapse_time, transit_time, wait_time, synchronization_time, idle_time, type);"
        "CREATE TABLE CommAnalyzerBandwidth (hccl_op_name, group_name, step, transport_type, transit_size, transit_time, bandwidth, large_packet_ratio, package_size, "
        "count, total_duration, type);"
        "INSERT INTO CommAnalyzerTime SELECT column1, column2, column3, column4, 1, 1, 0, 0, 0, 'collective' FROM (VALUES " + times + ");"
        "INSERT INTO CommAnalyzerBandwidth SELECT column1, column2, column3, 'SDMA', column4, 1, 1, 0, 1, 1, 1, 'collective' FROM (VALUES " + bandwidth + ");");
  }

  static std::vector<std::string> Describe(const Rank& rank) {
    std::vector<std::string> texts;
    for (const Collective& each : rank.collectives) {
      texts.push_back(std::string(rank.TextOf(each.name)) + "@" + std::string(rank.TextOf(each.group)) + " step " + std::to_string(each.step) + " at " +
                      std::to_string(each.start_ns));
      for (const Transport& part : each.transports) texts.back() += " " + std::to_string(static_cast<int>(part.size_mb)) + " MB";
    }
    return texts;
  }

  TempDir dir_;
  const fs::path folder_ = dir_.path();
  const fs::path file_ = folder_ / "ascend_pytorch_profiler_0.db";
  Ranks ranks_;
  std::vector<Problem> problems_;
};

using Texts = std::vector<std::string>;

TEST_F(DatabaseTest, OneWithoutDevicesIsNoRun) {
  Add("DELETE FROM RANK_DEVICE_MAP");
  EXPECT_EQ(ReadDatabase(file_, {.problems = &problems_}, &ranks_).message(),
            "no table of a device (RANK_DEVICE_MAP, TASK, HBM, AICORE_FREQ, NPU_MEM, NPU_INFO) has a row");
}

// analysis 5.3: of msprof's databases NPU_INFO lists the devices; other tables may be absent.
TEST_F(DatabaseTest, DevicesAreThoseOfTheNodeWhereNoneHasTasks) {
  Add("DELETE FROM RANK_DEVICE_MAP; DROP TABLE TASK; CREATE TABLE NPU_INFO (id, name); INSERT INTO NPU_INFO VALUES (3, 'Ascend910B');"
      "CREATE TABLE COMMUNICATION_OP (opName, startNs, endNs, connectionId, groupName, opId, opType); INSERT INTO COMMUNICATION_OP VALUES (0, 10, 30, 1, 1, 1, 2);");
  const Rank& rank = Read();
  EXPECT_EQ(rank.device, 3);
  EXPECT_EQ(rank.collectives.size(), 1u);
}

TEST_F(DatabaseTest, AnEmptyFileBesideItIsReported) {
  std::ofstream{folder_ / "analysis.db"};
  ReadWithProblems();
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_EQ(problems_[0].where, (folder_ / "analysis.db").string());
  EXPECT_EQ(problems_[0].what, "the file is empty");
}

TEST_F(DatabaseTest, AnalysedOperationsOfOneNameAreOfTheirGroupAndStep) {
  Add("CREATE TABLE COMMUNICATION_OP (opName, startNs, endNs, connectionId, groupName, opId, opType);"
      "INSERT INTO COMMUNICATION_OP VALUES (0, 10000000, 11000000, 1, 1, 1, 2), (0, 50000000, 51000000, 1, 1, 2, 2);");
  // In another order, on a clock that is 20 us off; the last is not in the rank's database.
  Analyse("('hcom_allReduce__1_0_1', '9', 'step2', 50020), ('hcom_allReduce__1_0_1', '9', 'step1', 10020), ('hcom_allReduce__1_0_1', '8', 'step1', 30000), "
          "('Total Op Info', '9', 'step1', 0)",
          "('hcom_allReduce__1_0_1', '9', 'step1', 1), ('hcom_allReduce__1_0_1', '9', 'step2', 2), ('hcom_allReduce__1_0_1', '8', 'step1', 3)");
  const Rank& rank = Read();
  EXPECT_EQ(Describe(rank), (Texts{"hcom_allReduce__1_0_1@9 step 1 at 10020000 1 MB", "hcom_allReduce__1_0_1@8 step 1 at 30000000 3 MB",
                                   "hcom_allReduce__1_0_1@9 step 2 at 50020000 2 MB"}));
  for (const Collective& each : rank.collectives) EXPECT_EQ(rank.TextOf(each.type), "hcom_allReduce_");
}

TEST_F(DatabaseTest, AnalysedOperationsNeedNoneInTheDatabase) {
  Analyse("('hcom_send__1_0_1', '9', 'step1', 10)", "('hcom_send__1_0_1', '9', 'step1', 7), ('hcom_send__1_0_1', '9', 'step2', 8)");
  EXPECT_EQ(Describe(Read()), (Texts{"hcom_send__1_0_1@9 step 1 at 10000 7 MB"}));
}

// They are communication of the rank all the same: 1 ms from 10 ms on, of which 0.5 ms are computed.
TEST_F(DatabaseTest, AnalysedOperationsAreCommunicationOfTheRank) {
  Add("CREATE TABLE COMPUTE_TASK_INFO (name, globalTaskId, blockNum, mixBlockNum, taskType, opType, inputDataTypes, inputShapes, outputShapes);"
      "INSERT INTO TASK VALUES (8000000, 10500000, 0, 1, 1, 5, 2), (12000000, 13000000, 0, 2, 2, 5, 2);"
      "INSERT INTO COMPUTE_TASK_INFO VALUES (3, 1, 1, 0, 5, 4, 6, 6, 6), (3, 2, 1, 0, 5, 4, 6, 6, 6);");
  Analyse("('hcom_allReduce__1_0_1', '9', 'step1', 10000), ('hcom_send__1_0_1', '9', 'step1', 0)", "('hcom_allReduce__1_0_1', '9', 'step1', 7)");
  const Overlap& overlap = Read().overlap;
  const auto times = [&overlap](OverlapKind kind) {
    std::vector<std::pair<int64_t, int64_t>> found;
    for (const Interval& each : overlap[kind]) found.emplace_back(each.start_ns, each.end_ns);
    return found;
  };
  using Times = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(times(OverlapKind::kCommunication), (Times{{10000000, 11000000}})) << "one without a start is at no time";
  EXPECT_EQ(times(OverlapKind::kNotOverlapped), (Times{{10500000, 11000000}}));
  EXPECT_EQ(times(OverlapKind::kFree), (Times{{11000000, 12000000}}));
}

// What ran before and behind the steps is not of the time from end to end, from 10 to 20 ms.
TEST_F(DatabaseTest, EndToEndIsWithinTheSteps) {
  Add("CREATE TABLE STEP_TIME (id, startNs, endNs); INSERT INTO STEP_TIME VALUES (1, 9000000, 15000000), (2, 15000000, 21000000);"
      "CREATE TABLE COMPUTE_TASK_INFO (name, globalTaskId, blockNum, mixBlockNum, taskType, opType, inputDataTypes, inputShapes, outputShapes);"
      "INSERT INTO TASK VALUES (0, 8000000, 0, 1, 1, 5, 2), (10000000, 12000000, 0, 2, 2, 5, 2), (20500000, 40000000, 0, 3, 3, 5, 2);"
      "INSERT INTO COMPUTE_TASK_INFO VALUES (3, 1, 1, 0, 5, 4, 6, 6, 6), (3, 2, 1, 0, 5, 4, 6, 6, 6), (3, 3, 1, 0, 5, 4, 6, 6, 6);"
      "CREATE TABLE COMMUNICATION_OP (opName, startNs, endNs, connectionId, groupName, opId, opType); INSERT INTO COMMUNICATION_OP VALUES (0, 11000000, 20000000, 1, 1, 1, 2);");
  const auto overall = OverallOf(Read());
  ASSERT_TRUE(overall);
  EXPECT_EQ(overall->e2e_ms, 10);
  EXPECT_EQ(overall->shares.computing, 2);
  EXPECT_EQ(overall->shares.communication, 9);
  EXPECT_EQ(overall->shares.uncovered, 8);
  EXPECT_EQ(overall->shares.free, 0);
}

// export.md, Database: PROFD_STEP_ROWS and PROFD_STEP_ARGS. Marked steps come before those of devices and of the framework.
class StepsOfAnExportTest : public DatabaseTest {
 protected:
  StepsOfAnExportTest() {
    Add("CREATE TABLE PROFD_STEP_ROWS (startNs, endNs, deviceId, kind, name, step, pid, tid, partial);"
        "CREATE TABLE PROFD_STEP_ARGS (startNs, deviceId, step, name, value); CREATE TABLE PROFD_PROCESSES (dumpId, pid, rank, command);"
        "INSERT INTO PROFD_PROCESSES VALUES (0, 11, 0, 'python3'), (0, 12, 1, 'python3');"
        "INSERT INTO STRING_IDS VALUES (40, 'step'), (41, 'device_step'), (42, 'iteration'), (43, 'FP Start'), (44, 'BP End'), (45, 'Reduce Start'), (46, 'Reduce End');"
        "INSERT INTO PROFD_STEP_ROWS VALUES (110, 190, 0, 41, 41, 7, 0, 0, 0), (310, 390, 0, 42, 42, 1, 0, 5, 0), (410, 490, 1, 42, 42, 2, 0, 5, 0);"
        "INSERT INTO PROFD_STEP_ARGS VALUES (110, 0, 7, 43, 10.0), (110, 0, 7, 44, 60.0), (110, 0, 7, 45, 20.0), (110, 0, 7, 46, 40.0), (310, 0, 1, 44, 50.0);");
  }
  static std::vector<std::string> TextsOf(const Rank& rank) {
    std::vector<std::string> texts;
    for (const Step& step : rank.steps) {
      texts.push_back(std::to_string(step.number) + ": " + std::to_string(step.start_ns) + ".." + std::to_string(step.end_ns));
      if (step.fp_ns) texts.back() += " fp " + std::to_string(*step.fp_ns);
      if (step.bp_ns) texts.back() += " bp " + std::to_string(*step.bp_ns);
      for (const Reduce& each : step.reduces) texts.back() += " reduce " + std::to_string(each.start_ns) + ".." + std::to_string(each.end_ns);
    }
    return texts;
  }
};

TEST_F(StepsOfAnExportTest, AreThoseThatTheRanksProcessMarked) {
  Add("INSERT INTO PROFD_STEP_ROWS VALUES (0, 100, -1, 40, 40, 6, 11, 1, 1), (200, 300, -1, 40, 40, 8, 11, 1, 0), (100, 200, -1, 40, 40, 7, 11, 1, 0), (150, 260, -1, 40, 40, 7, 12, 1, 0);"
      "CREATE TABLE STEP_TIME (id, startNs, endNs); INSERT INTO STEP_TIME VALUES (3, 0, 500);");
  EXPECT_EQ(TextsOf(Read()), (Texts{"7: 100..200 fp 120 bp 170 reduce 130..150", "8: 200..300"})) << "without those cut by the session, and those of rank 1";
}

TEST_F(StepsOfAnExportTest, AreThoseOfItsDeviceWhereNoneWasMarked) {
  EXPECT_EQ(TextsOf(Read()), (Texts{"7: 110..190 fp 120 bp 170 reduce 130..150"}));
  Add("DELETE FROM PROFD_STEP_ROWS WHERE kind = 41");
  EXPECT_EQ(TextsOf(Read()), (Texts{"1: 310..390 bp 360"}));
}

// FindPoints looks there, and names the operators.
TEST_F(StepsOfAnExportTest, HaveNoPartsThatTheExportFoundWhereOperatorsAre) {
  Add("CREATE TABLE COMPUTE_TASK_INFO (name, globalTaskId, blockNum, mixBlockNum, taskType, opType, inputDataTypes, inputShapes, outputShapes);"
      "INSERT INTO TASK VALUES (120, 170, 0, 1, 1, 5, 2), (200, 300, 0, 2, 2, 5, 2);"
      "INSERT INTO COMPUTE_TASK_INFO VALUES (3, 1, 1, 0, 5, 4, 6, 6, 6), (3, 2, 1, 0, 5, 4, 6, 6, 6);");
  EXPECT_EQ(TextsOf(Read()), (Texts{"7: 110..190"}));
  EXPECT_EQ(OverallOf(*ranks_[0])->e2e_ms, Ms(180)) << "as of the dump, also what ran outside of steps";
  ASSERT_TRUE(ranks_[0]->recorded) << "the step begins before it";
  EXPECT_EQ(ranks_[0]->recorded->start_ns, 120);
  EXPECT_EQ(ranks_[0]->recorded->end_ns, 300);
  Add("DELETE FROM PROFD_STEP_ROWS WHERE kind = 41");
  EXPECT_EQ(TextsOf(Read()), (Texts{"1: 310..390 bp 360"})) << "those of an iteration were recorded";
}

TEST_F(StepsOfAnExportTest, AreRangesOfTheFrameworkWhereNothingElseIs) {
  Add("DELETE FROM PROFD_STEP_ROWS; INSERT INTO STRING_IDS VALUES (50, 'ProfilerStep#12'), (51, 'ProfilerStep#13 (partial)');"
      "CREATE TABLE MSTX_EVENTS (startNs, endNs, message, domainId, eventType, globalTid);"
      "INSERT INTO MSTX_EVENTS VALUES (10, 20, 50, 6, 1, 47244640257), (30, 40, 51, 6, 1, 47244640257), (12, 25, 50, 6, 1, 51539607553);");
  EXPECT_EQ(TextsOf(Read()), (Texts{"12: 10..20"})) << "of process 11, not 12";
}

TEST_F(StepsOfAnExportTest, MarksAreOfTheRanksProcess) {
  Add("CREATE TABLE MSTX_EVENTS (startNs, endNs, message, domainId, eventType, globalTid);"
      "INSERT INTO MSTX_EVENTS VALUES (10, 20, 3, 6, 1, 47244640257), (12, 25, 3, 6, 1, 51539607553), (14, 26, 3, 6, 1, 55834574849);");
  const Rank& rank = Read();
  ASSERT_EQ(rank.marks.size(), 2u) << "of process 11 and of 13, whose rank is not known";
  EXPECT_EQ(rank.marks[0].start_ns, 10);
  EXPECT_EQ(rank.marks[1].start_ns, 14);
  // Two nodes may have processes of one number.
  Add("ALTER TABLE MSTX_EVENTS ADD COLUMN dumpId DEFAULT 1; INSERT INTO PROFD_PROCESSES VALUES (1, 11, 1, 'python3'), (1, 12, 0, 'python3');");
  EXPECT_EQ(Read().marks.at(0).start_ns, 12);
}

// analysis 2.5: values are numbers or nothing.
TEST_F(DatabaseTest, ValuesThatAreNoNumbersAreLeftOut) {
  Add("CREATE TABLE COMPUTE_TASK_INFO (name, globalTaskId, blockNum, mixBlockNum, taskType, opType, inputDataTypes, inputShapes, outputShapes);"
      "CREATE TABLE TASK_PMU_INFO (globalTaskId, name, value); INSERT INTO STRING_IDS VALUES (20, 'aic_mac_ratio'), (21, 'aic_mte2_ratio'), (22, 'aic_total_time');"
      "INSERT INTO TASK VALUES (0, 100, 0, 1, 1, 5, 2), (200, 500, 0, 2, 2, 5, 2);"
      "INSERT INTO COMPUTE_TASK_INFO VALUES (3, 1, 1, 0, 5, 4, 6, 6, 6), (3, 2, 1, 0, 5, 4, 6, 6, 6);"
      "INSERT INTO TASK_PMU_INFO VALUES (1, 20, 'abc'), (1, 21, NULL), (1, 22, -7), (2, 20, '0.5'), (2, 21, 101), (2, 22, 250);"
      "CREATE TABLE AICORE_FREQ (deviceId, timestampNs, freq); INSERT INTO AICORE_FREQ VALUES (0, 10, 1800), (0, 20, 'N/A'), (0, NULL, 1700), (0, 30, NULL);"
      "CREATE TABLE OP_MEMORY (name, size, allocationTime, releaseTime, deviceId); INSERT INTO OP_MEMORY VALUES (3, 'x', 1, 2, 0), (3, 2048, 1, NULL, 0);"
      "CREATE TABLE MEMORY_RECORD (component, timestamp, totalAllocated, totalReserved, totalActive, deviceId);"
      "INSERT INTO MEMORY_RECORD VALUES (3, 5, 1048576, 'x', NULL, 0);");
  const Rank& rank = ReadWithProblems();
  EXPECT_EQ(TextsOf(problems_), (Texts{"AICORE_FREQ: 1 value makes no sense: left out", "MEMORY_RECORD: 1 value makes no sense: left out",
                                       "OP_MEMORY: 1 value makes no sense: left out", "TASK_PMU_INFO: 3 values make no sense: left out"}));
  ASSERT_EQ(rank.operators.size(), 1u);
  EXPECT_EQ(rank.operators[0].counted_ns, 300) << "the first task has no ratio";
  ASSERT_EQ(rank.ratio_names, (Texts{"aic_mac"}));
  EXPECT_DOUBLE_EQ(rank.operators[0].Ratio(0), 0.5);
  EXPECT_EQ(rank.operators[0].unit_ns, (std::vector<double>{250}));
  ASSERT_EQ(rank.hardware.size(), 1u);
  EXPECT_EQ(rank.hardware[0]->count, 1u);
  EXPECT_EQ(rank.hardware[0]->min, 1800);
  ASSERT_EQ(rank.blocks.size(), 1u);
  EXPECT_EQ(rank.blocks[0].size_kb, 2);
  const MemorySample& memory = rank.memory.at("k").at(0);
  EXPECT_EQ(memory.allocated, 1);
  EXPECT_EQ(memory.reserved, std::nullopt);
}

TEST_F(DatabaseTest, AnalysedValuesThatAreNoNumbersAreAProblem) {
  Analyse("('hcom_send__1_0_1', '9', 'step1', 10)", "('hcom_send__1_0_1', '9', 'step1', 'x'), ('hcom_send__1_0_1', '9', 'step1', 7)");
  Run("analysis.db", "UPDATE CommAnalyzerTime SET elapse_time = '2.5', wait_time = 'abc', idle_time = NULL");
  const Rank& rank = ReadWithProblems();
  EXPECT_EQ(TextsOf(problems_), (Texts{"CommAnalyzerBandwidth: 1 value makes no sense: left out", "CommAnalyzerTime: 1 value makes no sense: left out"}));
  EXPECT_EQ(rank.collectives.at(0).elapse_ms, 2.5);
  EXPECT_EQ(rank.collectives[0].parts->wait_ms, 0);
}

TEST_F(DatabaseTest, TheOnlyOperationOfANameIsItAtAnyTime) {
  Add("CREATE TABLE COMMUNICATION_OP (opName, startNs, endNs, connectionId, groupName, opId, opType);"
      "INSERT INTO COMMUNICATION_OP VALUES (0, 10000000, 11000000, 1, 1, 1, 2);");
  Analyse("('hcom_allReduce__1_0_1', '9', 'step1', 5000000)", "('hcom_allReduce__1_0_1', '9', 'step1', 1)");
  EXPECT_EQ(Describe(Read()), (Texts{"hcom_allReduce__1_0_1@9 step 1 at 5000000000 1 MB"}));
}

// A task may lack the ratio that another has first; its time counts once all the same.
TEST_F(DatabaseTest, RatiosAreOfTheTimeOfTheirTasks) {
  Add("CREATE TABLE COMPUTE_TASK_INFO (name, globalTaskId, blockNum, mixBlockNum, taskType, opType, inputDataTypes, inputShapes, outputShapes);"
      "CREATE TABLE TASK_PMU_INFO (globalTaskId, name, value);"
      "INSERT INTO STRING_IDS VALUES (20, 'aic_mac_ratio'), (21, 'aiv_vec_ratio'), (22, 'aiv_mte2_ratio'), (23, 'v'), (24, 'AI_VECTOR_CORE');"
      "INSERT INTO TASK VALUES (0, 100, 0, 1, 1, 5, 2), (200, 500, 0, 2, 2, 5, 2), (600, 700, 0, 3, 3, 5, 2);"
      "INSERT INTO COMPUTE_TASK_INFO VALUES (3, 1, 1, 0, 5, 4, 6, 6, 6), (23, 2, 1, NULL, 24, 4, 6, 6, 6), (23, 3, 1, 2, 24, 4, 6, 6, 6);"
      "INSERT INTO TASK_PMU_INFO VALUES (1, 20, 0.5), (2, 21, 0.9), (2, 22, 0.1), (3, 21, 0.5), (3, 22, 0.5);");
  const Rank& rank = Read();
  ASSERT_EQ(rank.operators.size(), 2u);
  EXPECT_EQ(rank.operators[0].counted_ns, 100);
  EXPECT_EQ(rank.operators[1].counted_ns, 400);
  const auto vec = static_cast<size_t>(std::ranges::find(rank.ratio_names, "aiv_vec") - rank.ratio_names.begin());
  EXPECT_DOUBLE_EQ(rank.operators[1].Ratio(vec), (0.9 * 300 + 0.5 * 100) / 400);
  ASSERT_EQ(rank.executions.size(), 3u);
  EXPECT_EQ(rank.executions[0].mix_blocks, 0);
  EXPECT_EQ(rank.executions[1].mix_blocks, kNoBlocks);
  EXPECT_EQ(rank.executions[2].mix_blocks, 2);
}

// analysis 1.6: quotes removed, as of the text form.
TEST_F(DatabaseTest, ShapesAreWithoutTheirQuotes) {
  Add("CREATE TABLE COMPUTE_TASK_INFO (name, globalTaskId, blockNum, mixBlockNum, taskType, opType, inputDataTypes, inputShapes, outputShapes);"
      "CREATE TABLE TASK_PMU_INFO (globalTaskId, name, value);"
      "INSERT INTO STRING_IDS VALUES (20, 'aic_mac_ratio'), (21, '\"4096,4095;4095,4096\"'), (22, '\"4096,4096\"'), (23, 'FLOAT;FLOAT'), (24, '\"\"');"
      "INSERT INTO TASK VALUES (0, 100, 0, 1, 1, 5, 2), (200, 300, 0, 2, 2, 5, 2), (400, 500, 0, 3, 3, 5, 2);"
      "INSERT INTO COMPUTE_TASK_INFO VALUES (3, 1, 1, 0, 5, 4, 23, 21, 22), (3, 2, 1, 0, 5, 4, 6, 6, 6), (3, 3, 1, 0, 5, 4, 24, 24, 24);"
      "INSERT INTO TASK_PMU_INFO VALUES (1, 20, 0.5);");
  const Rank& rank = Read();
  ASSERT_EQ(rank.operators.size(), 2u) << "no shapes are an empty text or 'N/A'";
  EXPECT_EQ(rank.TextOf(rank.operators[0].input_shapes), "4096,4095;4095,4096");
  EXPECT_EQ(rank.TextOf(rank.operators[0].output_shapes), "4096,4096");
  EXPECT_EQ(rank.TextOf(rank.operators[0].input_types), "FLOAT;FLOAT");
  EXPECT_EQ(rank.operators[0].counted_ns, 100) << "counters are of the same operator";
  EXPECT_EQ(rank.TextOf(rank.operators[1].input_shapes), "");
  EXPECT_EQ(rank.TextOf(rank.operators[1].input_types), "");
  EXPECT_EQ(rank.TextOf(rank.operators[1].output_shapes), "");
}

TEST_F(DatabaseTest, OperatorsOfTheFrameworkByTheirKind) {
  Add("CREATE TABLE ENUM_API_TYPE (id, name); INSERT INTO ENUM_API_TYPE VALUES (50001, 'op'), (50002, 'queue');"
      "CREATE TABLE PYTORCH_API (startNs, endNs, globalTid, connectionId, name, type); INSERT INTO PYTORCH_API VALUES (1, 2, 7, NULL, 3, 50001), (3, 4, 7, NULL, 4, 50002);"
      "CREATE TABLE CANN_API (startNs, endNs, globalTid, connectionId, name, type); INSERT INTO CANN_API VALUES (5, 6, 7, 1, 3, 50001);");
  const Rank& rank = Read();
  ASSERT_EQ(rank.slices.size(), 3u);
  EXPECT_TRUE(rank.slices[0].is_operator);
  EXPECT_FALSE(rank.slices[1].is_operator);
  EXPECT_FALSE(rank.slices[2].is_operator);
}

TEST_F(DatabaseTest, MarkedCollectionsOfGarbage) {
  Add("INSERT INTO STRING_IDS VALUES (30, 'gc'); CREATE TABLE MSTX_EVENTS (startNs, endNs, message, domainId, eventType, globalTid);"
      "INSERT INTO MSTX_EVENTS VALUES (10, 20, 30, 6, 2, 7), (30, 40, 3, 6, 2, 7);");
  const Rank& rank = Read();
  EXPECT_EQ(rank.marks.size(), 2u);
  ASSERT_EQ(rank.garbage.size(), 1u);
  EXPECT_EQ(rank.garbage[0].end_ns, 20);
}

TEST_F(DatabaseTest, LongestOperationOfCommunication) {
  Add("CREATE TABLE COMMUNICATION_OP (opName, startNs, endNs, connectionId, groupName, opId, opType);"
      "INSERT INTO COMMUNICATION_OP VALUES (0, 10, 30, 1, 1, 1, 2), (0, 50, 90, 1, 1, 2, 2);");
  const Rank& rank = Read();
  EXPECT_EQ(std::pair(rank.longest_communication_ns, rank.communication_sum_ns), std::pair(int64_t{40}, int64_t{60}));
}

// operator-data d.4: srcRank is the rank's own number, dstRank the other's; 2^32-1: none.
TEST_F(DatabaseTest, MessagesAreBetweenTheRanksOfTheirTasks) {
  Add("CREATE TABLE COMMUNICATION_OP (opName, startNs, endNs, connectionId, groupName, opId, opType); INSERT INTO STRING_IDS VALUES (20, 'hcom_send__1_0_1'), (21, 'hcom_send__1_1_1');"
      "INSERT INTO COMMUNICATION_OP VALUES (20, 10, 30, 1, 1, 1, 2), (21, 50, 90, 1, 1, 2, 2), (0, 100, 110, 1, 1, 3, 2); INSERT INTO TASK VALUES (10, 20, 0, 1, 1, 5, 2);"
      "CREATE TABLE COMMUNICATION_TASK_INFO (name, globalTaskId, taskType, planeId, groupName, srcRank, dstRank, transportType, size, linkType, opId);"
      "INSERT INTO COMMUNICATION_TASK_INFO VALUES (20, 1, 5, 0, 1, 2, 1, 0, 0, 0, 1), (20, 1, 5, 0, 1, 2, 4294967295, 0, 0, 0, 1), (20, 1, 5, 0, 1, 2, 2, 0, 0, 0, 1),"
      "(21, 1, 5, 0, 1, 2, 1, 0, 0, 0, 2), (21, 1, 5, 0, 1, 2, 3, 0, 0, 0, 2), (0, 1, 5, 0, 1, 2, 1, 0, 0, 0, 3);");
  const Rank& rank = Read();
  ASSERT_EQ(rank.collectives.size(), 3u);
  EXPECT_EQ(rank.collectives[0].between, std::pair(1, 2));
  EXPECT_EQ(rank.collectives[1].between, kUnknownEnds) << "with two others";
  EXPECT_EQ(rank.collectives[2].between, kUnknownEnds) << "of all ranks of its group";
}

// analysis 5.3: older databases have no opType.
TEST_F(DatabaseTest, OperationsWithoutATypeHaveThatOfTheirName) {
  Add("CREATE TABLE COMMUNICATION_OP (opName, startNs, endNs, connectionId, groupName, opId);"
      "INSERT INTO COMMUNICATION_OP VALUES (0, 10, 30, 1, 1, 1);");
  const Rank& rank = Read();
  ASSERT_EQ(rank.collectives.size(), 1u);
  EXPECT_EQ(rank.TextOf(rank.collectives[0].type), "hcom_allReduce_");
}

TEST_F(DatabaseTest, RowsWithoutAnEndAreAProblem) {
  Add("INSERT INTO TASK VALUES (100, NULL, 0, 1, 1, 5, 2), (300, 200, 0, 1, 2, 5, 2), (100, 200, 0, 1, 3, 5, 2), (100, 'abc', 0, 1, 4, 5, 2), ('x', 200, 0, 1, 5, 5, 2);"
      "CREATE TABLE STEP_TIME (id, startNs, endNs); INSERT INTO STEP_TIME VALUES (1, 100, 200), (2, 200, NULL);"
      "CREATE TABLE COMPUTE_TASK_INFO (name, globalTaskId, blockNum, mixBlockNum, taskType, opType, inputDataTypes, inputShapes, outputShapes);"
      "CREATE TABLE TASK_PMU_INFO (globalTaskId, name, value); INSERT INTO STRING_IDS VALUES (20, 'aic_mac_ratio');"
      "INSERT INTO COMPUTE_TASK_INFO VALUES (3, 2, 1, 0, 5, 4, 6, 6, 6), (3, 3, 1, 0, 5, 4, 6, 6, 6), (3, 4, 1, 0, 5, 4, 6, 6, 6), (3, 5, 1, 0, 5, 4, 6, 6, 6);"
      "INSERT INTO TASK_PMU_INFO VALUES (2, 20, 0.5), (3, 20, 0.5), (4, 20, 0.5), (5, 20, 0.5);"
      "CREATE TABLE COMMUNICATION_OP (opName, startNs, endNs, connectionId, groupName, opId, opType); INSERT INTO COMMUNICATION_OP VALUES (0, 10, NULL, 1, 1, 1, 2);"
      "CREATE TABLE PYTORCH_API (startNs, endNs, globalTid, connectionId, name); INSERT INTO PYTORCH_API VALUES ('9', '10', 7, NULL, 3);");
  ReadWithProblems();
  for (const Problem& each : problems_) EXPECT_EQ(each.where, file_.string());
  EXPECT_EQ(TextsOf(problems_),
            (Texts{"STEP_TIME: 1 row has no end, or one before its start: left out", "TASK: 4 rows have no end, or one before their start: left out",
                   "COMMUNICATION_OP: 1 row has no end, or one before its start: left out"}));
  ASSERT_EQ(ranks_.size(), 1u);
  ASSERT_EQ(ranks_[0]->steps.size(), 1u);
  EXPECT_EQ(ranks_[0]->steps[0].number, 1);
  EXPECT_EQ(ranks_[0]->slices.size(), 1u) << "times of older writers are texts";
  ASSERT_EQ(ranks_[0]->executions.size(), 1u) << "a text that is no number is no time";
  EXPECT_EQ(ranks_[0]->executions[0].end_ns, 200);
  EXPECT_EQ(ranks_[0]->operators.at(0).counted_ns, 100);
}

// As in step_trace_time.csv: what makes no sense follows from the others, or its row is left out (analysis 2.2, 2.5).
TEST_F(DatabaseTest, SharesOfAStepThatMakeNoSense) {
  Run("analysis.db", "CREATE TABLE StepTraceTime (step, computing, communication_not_overlapped, overlapped, communication, free, stage, bubble, "
                     "communication_not_overlapped_and_exclude_receive, preparing);"
                     "INSERT INTO StepTraceTime VALUES (1, 50000, 20000, 5000, 25000, -1e-10, 70000, 0, 20000, 0), (2, -1, 20000, 5000, 25000, 10000, 79000, 1000, 20000, 0), "
                     "(3, NULL, 20000, 5000, 25000, 1e308, 79000, 1000, 20000, 0), (4, 'x', NULL, 5000, 25000, 10000, 79000, 1000, 20000, 0);");
  const auto& shares = ReadWithProblems().shares;
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_EQ(shares.at(1).free, 0);
  EXPECT_FALSE(std::signbit(shares.at(1).free));
  EXPECT_EQ(shares.at(2).computing, 50);
  EXPECT_EQ(shares.at(4).uncovered, 20);
  EXPECT_EQ(shares.at(4).computing, 50);
  EXPECT_EQ(TextsOf(problems_), Texts{"StepTraceTime: 1 row makes no sense: left out"});
}

// Columns without a type keep texts that are numbers as texts.
TEST_F(DatabaseTest, SharesOfAStepThatAreTexts) {
  Run("analysis.db", "CREATE TABLE StepTraceTime (step, computing, communication_not_overlapped, overlapped, communication, free, stage, bubble, "
                     "communication_not_overlapped_and_exclude_receive, preparing);"
                     "INSERT INTO StepTraceTime VALUES ('7', '50000', '20000.0', '5000', '25000', '1e4', '80000', '0', '20000', '0'), "
                     "('8', '50000 us', '20000', '5000', '25000', '10000', '80000', '0', '20000', 'nan');");
  const auto& shares = ReadWithProblems().shares;
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares.at(7).computing, 50);
  EXPECT_EQ(shares.at(7).uncovered, 20);
  EXPECT_EQ(shares.at(7).free, 10);
  EXPECT_EQ(shares.at(7).bubble, 0);
  EXPECT_EQ(shares.at(8).computing, 50) << "of stage less what else is in it: its own text is no number";
}

TEST_F(DatabaseTest, StepWithoutANumber) {
  Run("analysis.db", "CREATE TABLE StepTraceTime (step TEXT, computing, communication_not_overlapped, overlapped, communication, free);"
                     "INSERT INTO StepTraceTime VALUES ('', 1000, 2000, 0, 2000, 3000);");
  const Rank& rank = Read();
  ASSERT_EQ(rank.shares.size(), 1u);
  EXPECT_EQ(rank.shares.begin()->first, -1);
  EXPECT_EQ(rank.shares.begin()->second.free, 3);
}

// analysis 1.3: before CANN 8 ge_info.db has them, "0" is static.
TEST_F(DatabaseTest, StatesOfShapesBesideAnOutput) {
  const fs::path output = folder_ / "ASCEND_PROFILER_OUTPUT";
  const std::string info = "PROF_1/host/sqlite/ge_info.db";
  fs::create_directories(output);
  fs::create_directories((folder_ / info).parent_path());
  Run(info, "CREATE TABLE TaskInfo (op_name TEXT, op_state TEXT); INSERT INTO TaskInfo VALUES ('a', '1'), ('b', 'N/A'), ('c', NULL);");
  const auto states = [&](const auto& read, const fs::path& path) {
    ranks_.clear();
    EXPECT_TRUE(read(path, ReadContext{.problems = &problems_}, &ranks_).ok());
    return ranks_.at(0)->op_states;
  };
  using States = std::set<std::string>;
  std::ofstream(output / "kernel_details.csv") << "Name,Type,Accelerator Core,Start Time(us),Duration(us)\na,Mul,AI_CORE,1,2\n";
  fs::copy_file(folder_ / "ascend_pytorch_profiler_0.db", output / "ascend_pytorch_profiler_0.db");
  EXPECT_EQ(states(ReadProfilerOutput, output), States{"dynamic"});
  EXPECT_EQ(states(ReadDatabase, output / "ascend_pytorch_profiler_0.db"), States{"dynamic"});
  Run(info, "INSERT INTO TaskInfo VALUES ('d', '0')");
  EXPECT_EQ(states(ReadProfilerOutput, output), (States{"dynamic", "static"}));
  std::ofstream(output / "kernel_details.csv") << "Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us)\na,Mul,dynamic,AI_CORE,1,2\n";
  EXPECT_EQ(states(ReadProfilerOutput, output), States{"dynamic"}) << "the table has them";
  EXPECT_TRUE(problems_.empty()) << problems_[0].what;
  fs::resize_file(folder_ / info, 100);
  EXPECT_EQ(states(ReadDatabase, output / "ascend_pytorch_profiler_0.db"), States{});
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_EQ(problems_[0].where, (folder_ / info).string());
}

// analysis 2.1: where the raw data is gone, what msprof made of it is left.
TEST_F(DatabaseTest, IsReadOfADirectoryWithoutRawData) {
  const fs::path prof = folder_ / "PROF_1";
  fs::create_directories(prof / "device_0");
  std::ofstream(prof / "device_0" / "info.json.0") << "{}";
  ASSERT_EQ(FindSources(prof).size(), 1u);
  EXPECT_EQ(FindSources(prof)[0].kind, SourceKind::kDump) << "its reader says what is missing";
  Run("PROF_1/msprof_20260101080000.db", "CREATE TABLE STRING_IDS (id, value)");
  ASSERT_EQ(FindSources(prof).size(), 1u);
  EXPECT_EQ(FindSources(prof)[0].kind, SourceKind::kDatabase);
  fs::create_directories(prof / "device_0" / "data");
  ASSERT_EQ(FindSources(prof).size(), 1u);
  EXPECT_EQ(FindSources(prof)[0].kind, SourceKind::kDump);
}

// analysis 2.3: profiler_info_N.json.
TEST(ProfilerInfo, WhetherOnlyTheDeviceWasRecorded) {
  const auto only_device = [](const std::string& activities, const std::string& level) {
    Rank rank;
    EXPECT_TRUE(AddProfilerInfo(R"({"cann_version": "7.0.0", "config": {"common_config": {"activities": )" + activities +
                                    R"(}, "experimental_config": {"_profiler_level": )" + level + "}}}", &rank));
    EXPECT_EQ(rank.cann_version, "7.0.0");
    return rank.only_device;
  };
  EXPECT_TRUE(only_device(R"(["ProfilerActivity.NPU"])", R"("Level0")"));
  EXPECT_TRUE(only_device("[]", R"("Level_none")"));
  EXPECT_FALSE(only_device(R"(["ProfilerActivity.NPU"])", R"("Level1")"));
  EXPECT_FALSE(only_device(R"(["ProfilerActivity.NPU", "ProfilerActivity.CPU"])", R"("Level0")"));
  EXPECT_FALSE(only_device("7", "7"));
  Rank rank;
  EXPECT_TRUE(AddProfilerInfo(R"({"config": ["common_config"], "cann_version": 7})", &rank));
  EXPECT_FALSE(rank.only_device);
  EXPECT_FALSE(AddProfilerInfo("[]", &rank));
}

}  // namespace
}  // namespace profd::analysis
