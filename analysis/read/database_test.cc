#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/read/readers.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

class DatabaseTest : public ::testing::Test {
 protected:
  DatabaseTest() : folder_(fs::temp_directory_path() / ("profd_database_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    // Names by their place.
    Run("ascend_pytorch_profiler_0.db", R"(
        CREATE TABLE STRING_IDS (id, value); CREATE TABLE RANK_DEVICE_MAP (rankId, deviceId); INSERT INTO RANK_DEVICE_MAP VALUES (0, 0);
        INSERT INTO STRING_IDS VALUES (0, 'hcom_allReduce__1_0_1'), (1, 'group'), (2, 'hcom_allReduce_'), (3, 'k'), (4, 'Mul'), (5, 'AI_CORE'), (6, 'N/A');
        CREATE TABLE TASK (startNs, endNs, deviceId, connectionId, globalTaskId, taskType, streamId);)");
  }
  ~DatabaseTest() override { fs::remove_all(folder_); }

  void Run(const std::string& file, const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((folder_ / file).c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  void Add(const std::string& sql) { Run("ascend_pytorch_profiler_0.db", sql); }

  const Rank& Read() {
    ranks_.clear();
    problems_.clear();
    const ReadContext context{.problems = &problems_};
    EXPECT_TRUE(ReadDatabase(folder_ / "ascend_pytorch_profiler_0.db", context, &ranks_).ok());
    for (const Problem& each : problems_) ADD_FAILURE() << each.where << ": " << each.what;
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

  fs::path folder_;
  Ranks ranks_;
  std::vector<Problem> problems_;
};

using Texts = std::vector<std::string>;

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

TEST_F(DatabaseTest, TheOnlyOperationOfANameIsItAtAnyTime) {
  Add("CREATE TABLE COMMUNICATION_OP (opName, startNs, endNs, connectionId, groupName, opId, opType);"
      "INSERT INTO COMMUNICATION_OP VALUES (0, 10000000, 11000000, 1, 1, 1, 2);");
  Analyse("('hcom_allReduce__1_0_1', '9', 'step1', 5000000)", "('hcom_allReduce__1_0_1', '9', 'step1', 1)");
  EXPECT_EQ(Describe(Read()), (Texts{"hcom_allReduce__1_0_1@9 step 1 at 5000000000 1 MB"}));
}

TEST_F(DatabaseTest, StepWithoutANumber) {
  Run("analysis.db", "CREATE TABLE StepTraceTime (step TEXT, computing, communication_not_overlapped, overlapped, communication, free);"
                     "INSERT INTO StepTraceTime VALUES ('', 1000, 2000, 0, 2000, 3000);");
  const Rank& rank = Read();
  ASSERT_EQ(rank.shares.size(), 1u);
  EXPECT_EQ(rank.shares.begin()->first, -1);
  EXPECT_EQ(rank.shares.begin()->second.free, 3);
}

}  // namespace
}  // namespace profd::analysis
