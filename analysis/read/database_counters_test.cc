// Tables of the hardware in databases (analysis 2.5, 5.4; dump-format 3.4).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/read/read_test_support.h"
#include "analysis/read/readers.h"
#include "base/testing/temp_dir.h"

namespace profd::analysis {
namespace {

using ::testing::ElementsAre;

class DatabaseCountersTest : public ::testing::Test {
 protected:
  // "name: mean unit", of the host in brackets; of a database of device 0.
  std::vector<std::string> Read(const std::string& sql) {
    const std::string file = dir_ / "msprof_20260101000000.db";
    RunSql(file, "CREATE TABLE STRING_IDS (id, value); CREATE TABLE RANK_DEVICE_MAP (rankId, deviceId); INSERT INTO RANK_DEVICE_MAP VALUES (0, 0);" + sql);
    std::vector<Problem> problems;
    EXPECT_TRUE(ReadDatabase(file, {.problems = &problems}, &ranks_).ok());
    for (const Problem& each : problems) ADD_FAILURE() << each.where << ": " << each.what;
    std::vector<std::string> texts;
    for (const auto& series : ranks_.at(0)->hardware) {
      const std::string text = fmt::format("{}: {} {}", series->name, series->sum / static_cast<double>(series->count), series->unit);
      texts.push_back(series->device < 0 ? "[" + text + "]" : text);
    }
    return texts;
  }

  TempDir dir_;
  Ranks ranks_;
};

TEST_F(DatabaseCountersTest, OfAccelerators) {
  EXPECT_THAT(Read("CREATE TABLE ACC_PMU (accId, readBwLevel, writeBwLevel, readOstLevel, writeOstLevel, timestampNs, deviceId);"
                   "INSERT INTO ACC_PMU VALUES (0, 1, 2, 3, 4, 10, 0), (0, 3, 2, 3, 4, 20, 0), (1, 5, 6, 7, 8, 15, 0), (0, 99, 99, 99, 99, 10, 1);"),
              ElementsAre("Acc 0 Read bandwidth: 2 level", "Acc 1 Read bandwidth: 5 level", "Acc 0 Write bandwidth: 2 level", "Acc 1 Write bandwidth: 6 level",
                          "Acc 0 Read outstanding: 3 level", "Acc 1 Read outstanding: 7 level", "Acc 0 Write outstanding: 4 level", "Acc 1 Write outstanding: 8 level"));
}

TEST_F(DatabaseCountersTest, OfDiesAndModules) {
  EXPECT_THAT(Read("INSERT INTO STRING_IDS VALUES (1, 'die 0'), (2, 'AIC'), (3, 'QoS mata');"
                   "CREATE TABLE ENUM_MODULE (id, name); INSERT INTO ENUM_MODULE VALUES (3, 'HCCL');"
                   "CREATE TABLE NPU_MODULE_MEM (moduleId, timestampNs, totalReserved, deviceId); INSERT INTO NPU_MODULE_MEM VALUES (3, 10, 4096, 0);"
                   "CREATE TABLE AICORE_FREQ (deviceId, timestampNs, freq, dieId); INSERT INTO AICORE_FREQ VALUES (0, 10, 1800, 0), (0, 11, 800, 1);"
                   "CREATE TABLE QOS (deviceId, eventName, bandwidth, timestampNs, dieId); INSERT INTO QOS VALUES (0, 3, 7, 10, 0), (0, 3, 8, 11, 1);"
                   "CREATE TABLE SIO (deviceId, name, timestampNs, rxReq, txDat); INSERT INTO SIO VALUES (0, 1, 10, 5, 6);"
                   "CREATE TABLE SAMPLE_PMU_TIMELINE (deviceId, timestampNs, totalCycle, usage, freq, coreId, coreType);"
                   "INSERT INTO SAMPLE_PMU_TIMELINE VALUES (0, 10, 100, NULL, 1800, 7, 2), (0, 20, 100, 50, 1800, 7, 2);"),
              ElementsAre("AI Core Freq: 1800 MHz", "AI Core Freq Die 1: 800 MHz", "NPU Module MEM HCCL: 4096 B", "QoS mata: 7 B/s", "QoS mata Die 1: 8 B/s", "SIO die 0 Rx req: 5 B/s", "SIO die 0 Tx dat: 6 B/s",
                          "AI Core Utilization AIC 7: 50 %"));
}

// What counts up is shown by its growth per second; where it starts anew nothing is known.
TEST_F(DatabaseCountersTest, OfPorts) {
  EXPECT_THAT(Read("CREATE TABLE ROCE (deviceId, timestampNs, rxByteRate, txByteRate, rxErrors, rxDropped, funcId);"
                   "INSERT INTO ROCE VALUES (0, 0, 1, 2, 10, 0, 0), (0, 500000000, 1, 2, 13, 0, 0), (0, 1000000000, 1, 2, 2, 0, 0);"
                   "CREATE TABLE NETDEV_STATS (deviceId, timestampNs, macRxPfcPkt, roceNewPktRty, nicTxBandwidth); INSERT INTO NETDEV_STATS VALUES (0, 10, 7, 8, 9);"),
              ElementsAre("RoCE 0 Rx: 1 B/s", "RoCE 0 Tx: 2 B/s", "RoCE 0 Rx errors: 6 1/s", "RoCE 0 Rx dropped: 0 1/s", "Network Device MAC Rx PFC packets: 7 ",
                          "Network Device RoCE new packet retries: 8 ", "Network Device NIC Tx: 9 B/s"));
}

// export.md, Database: as a dump has them, whose names the checks know.
TEST_F(DatabaseCountersTest, ThatProfdSampled) {
  EXPECT_THAT(Read("INSERT INTO STRING_IDS VALUES (1, 'atlas_npu_throttle_reason'), (2, 'npu=0,reason=bit5'), (3, 'atlas_host_pressure_waiting_seconds_total'), (4, 'resource=io');"
                   "CREATE TABLE PROFD_SAMPLE_ROWS (deviceId, timestampNs, metric, labels, value);"
                   "INSERT INTO PROFD_SAMPLE_ROWS VALUES (0, 10, 1, 2, 1), (0, 20, 1, 2, 0), (1, 10, 1, 2, 1), (-1, 0, 3, 4, 5), (-1, 2000000000, 3, 4, 6);"),
              ElementsAre("[atlas_host_pressure_waiting_seconds_total resource=io: 0.5 s/s]", "throttle_reason npu=0 reason=bit5: 0.5 "));
}

// operator-data f: of the graph engine; a block until the next release of its address.
TEST_F(DatabaseCountersTest, OfMemoryOfTheGraphEngine) {
  Read("INSERT INTO STRING_IDS VALUES (1, 'Conv'), (2, 'allocate'), (3, 'release'), (4, 'GE');"
       "CREATE TABLE NPU_OP_MEM (operatorName, addr, type, size, timestampNs, globalTid, totalAllocate, totalReserve, component, deviceId);"
       "INSERT INTO NPU_OP_MEM VALUES (1, 7, 2, 2048, 10, 5, 2097152, 4194304, 4, 0), (1, 8, 2, 1024, 15, 5, 3145728, 4194304, 4, 0), (1, 7, 3, 2048, 20, 5, 1048576, 4194304, 4, 0), "
       "(1, 9, 2, 4096, 10, 5, 0, 0, 4, 1);");
  const Rank& rank = *ranks_.at(0);
  ASSERT_EQ(rank.blocks.size(), 2u);
  EXPECT_EQ(rank.blocks[0].size_kb, 2);
  EXPECT_EQ(rank.blocks[0].released_ns, 20);
  EXPECT_EQ(rank.blocks[1].released_ns, std::nullopt);
  const std::vector<MemorySample>& memory = rank.memory.at("GE");
  ASSERT_EQ(memory.size(), 3u);
  EXPECT_EQ(memory[1].allocated, 3);
  EXPECT_EQ(memory[2].reserved, 4);
}

}  // namespace
}  // namespace profd::analysis
