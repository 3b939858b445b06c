#include "export/sqlite/sqlite_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>

#include "export/durations.h"
#include "export/sqlite/sql_enums.h"
#include "export/sqlite/sql_tables.h"
#include "export/sqlite/test_support.h"

namespace profd::exporting {
namespace {

int64_t Int(const SqlCell& cell) {
  const auto* value = std::get_if<int64_t>(&cell);
  EXPECT_NE(value, nullptr);
  return value == nullptr ? -1 : *value;
}
std::string Text(const SqlCell& cell) {
  const auto* value = std::get_if<std::string>(&cell);
  return value == nullptr ? "(no text)" : *value;
}
SqlRows One(std::vector<SqlCell> row) { return {std::move(row)}; }

TEST(SqliteFormat, VendorValuesAndUnits) {
  MadeExport made(1, 2);
  auto sink = made.Open(0, 1);
  const int64_t t = kMadeBegin + 7;
  // MB/s of 2^20 bytes; behind the point nothing is left: 0.3 * 2^20 = 314572.8.
  Feed(*sink, TableId::kHccs, 1).Row(t, 1.0, 0.3);
  Feed(*sink, TableId::kHbm, 1).Row(t, 3, 1, 2.5);
  Feed(*sink, TableId::kDdr, 1).Row(t, 0, 0.3, 2.0);
  Feed(*sink, TableId::kLlc, 1).Row(t, 1, 0, 1.023, 8.0);
  Feed(*sink, TableId::kNpuMem, 1).Row(t, 0, 11, 12).Row(t, 1, 13, 14);
  Feed(*sink, TableId::kModuleMem, 1).Row(t, 3, 4096);
  Feed(*sink, TableId::kAccPmu, 1).Row(t, 2, 10, 20, 30, 40);
  Feed(*sink, TableId::kSocLevel, 1).Row(t, 5, 6);
  // A whole number becomes an INTEGER, any other stays a REAL.
  Feed(*sink, TableId::kAicoreFreq, 1).Row(t, -1, 1800.0).Row(t + 1, 1, 38.5).Row(t + 2, 2, 1.0);
  Feed(*sink, TableId::kSio, 1).Row(t, 0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 0.1);
  ASSERT_TRUE(sink->Finish().ok());
  auto host = made.Open(0, -1);
  Feed(*host, TableId::kHostCpu, -1).Row(t, 17, 12.5);
  Feed(*host, TableId::kHostMem, -1).Row(t, 50.0);
  Feed(*host, TableId::kHostDisk, -1).Row(t, 1.5, 2.0, 0.25);
  Feed(*host, TableId::kHostNetwork, -1).Row(t, 0.5, 3.0);
  ASSERT_TRUE(host->Finish().ok());
  made.End();

  auto id = [&made](const char* text) { return made.strings().Intern(text); };
  EXPECT_EQ(made.Query("SELECT * FROM HCCS"), One({1, t, 1048576, 314572}));
  EXPECT_EQ(made.Query("SELECT * FROM HBM"), One({1, t, 2621440, 3, id("write")}));
  EXPECT_EQ(made.Query("SELECT * FROM DDR"), One({1, t, 314572, 2097152}));
  EXPECT_EQ(made.Query("SELECT * FROM LLC"), One({1, 1, t, 1.023 * 100, 8388608, id("read")}));
  EXPECT_EQ(made.Query("SELECT * FROM NPU_MEM"),
            (SqlRows{{id("app"), 11, 12, t, 1}, {id("device"), 13, 14, t, 1}}));
  EXPECT_EQ(made.Query("SELECT * FROM NPU_MODULE_MEM"), One({3, t, 4096, 1}));
  EXPECT_EQ(made.Query("SELECT * FROM ACC_PMU"), One({2, 10, 20, 30, 40, t, 1}));
  EXPECT_EQ(made.Query("SELECT * FROM SOC_BANDWIDTH_LEVEL"), One({5, 6, t, 1}));
  EXPECT_EQ(made.Query("SELECT * FROM AICORE_FREQ"), (SqlRows{{1, t, 1800, -1}, {1, t + 1, 38.5, 1}}));
  EXPECT_EQ(made.Query("SELECT * FROM SIO"),
            One({1, id("die 0"), t, 1048576, 2097152, 3145728, 4194304, 5242880, 6291456, 7340032,
                 104857.6}));
  EXPECT_EQ(made.Query("SELECT labels, value FROM profd_samples WHERE metric = 'atlas_npu_sio_bandwidth_bytes_per_second' "
                       "AND labels LIKE '%kind=req,direction=rx'"),
            One({"die=0,kind=req,direction=rx", 1048576.0}));
  EXPECT_EQ(made.Query("SELECT * FROM CPU_USAGE"), One({t, 17, 12.5}));
  EXPECT_EQ(made.Query("SELECT * FROM HOST_MEM_USAGE"), One({t, 50}));
  EXPECT_EQ(made.Query("SELECT * FROM HOST_DISK_USAGE"), One({t, 1536, 2048, 0.25}));
  EXPECT_EQ(made.Query("SELECT * FROM HOST_NETWORK_USAGE"), One({t, 0.5, 3072}));
}

TEST(SqliteFormat, ValuesTheVendorWrapsAt32BitsAreComplete) {
  MadeExport made(1, 1);
  auto sink = made.Open(0, 0);
  const int64_t t = kMadeBegin;
  std::vector<uint64_t> pcie;
  for (uint64_t i = 0; i < 21; ++i) pcie.push_back(5000 + i);  // above 4294 B/us
  {
    BatchBuilder builder(TableOf(TableId::kPcie), 0, TimeWindow(), *sink);
    builder.AddCells(t, pcie);
    pcie[0] = 7000;  // minimum above maximum: nothing was measured
    builder.AddCells(t + 1, pcie);
    builder.Flush();
  }
  std::vector<uint64_t> nic{0, 100000};
  for (int i = 0; i < 18; ++i) nic.push_back(BatchBuilder::ToCell(i == 3 ? 5e9 : 0.5));
  {
    BatchBuilder builder(TableOf(TableId::kNic), 0, TimeWindow(), *sink);
    builder.AddCells(t, nic);
    builder.Flush();
  }
  int64_t stream = made.strings().Intern("SDMA");
  Feed(*sink, TableId::kQos, 0).Row(t, stream, -1, 5000);
  ASSERT_TRUE(sink->Finish().ok());
  made.End();
  EXPECT_EQ(made.Query("SELECT txPostMin, txPostMax, txNonpostLatencyMin, rxCplAvg FROM PCIE"),
            One({5000000000, 5001000000, 5009, 5020000000}));
  EXPECT_EQ(made.Query("SELECT bandwidth, rxPacketRate, rxPackets, rxBytes, funcId FROM NIC"),
            One({int64_t{100000} * 1048576, 0.5, 0, 5000000000, 0}));
  EXPECT_EQ(made.Query("SELECT bandwidth, dieId, value FROM QOS JOIN STRING_IDS ON id = eventName"),
            One({int64_t{5000} * 1048576, -1, "QoS SDMA"}));
}

TEST(SqliteFormat, ColumnsAndTypesAreTheVendors) {
  MadeExport made(1, 1);
  auto sink = made.Open(0, 0);
  Feed(*sink, TableId::kLlc, 0).Row(kMadeBegin, 0, 0, 0.5, 1.0);
  Feed(*sink, TableId::kSio, 0).Row(kMadeBegin, 0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0);
  ASSERT_TRUE(sink->Finish().ok());
  made.End();
  EXPECT_EQ(Text(made.Query("SELECT sql FROM sqlite_schema WHERE name = 'LLC'")[0][0]),
            "CREATE TABLE LLC (deviceId INTEGER, llcId INTEGER, timestampNs INTEGER, hitRate REAL, "
            "throughput INTEGER, mode INTEGER)");
  EXPECT_EQ(Text(made.Query("SELECT sql FROM sqlite_schema WHERE name = 'SIO'")[0][0]),
            "CREATE TABLE SIO (deviceId NUMERIC, name NUMERIC, timestampNs NUMERIC, rxReq NUMERIC, "
            "rxRsp NUMERIC, rxSnp NUMERIC, rxDat NUMERIC, txReq NUMERIC, txRsp NUMERIC, "
            "txSnp NUMERIC, txDat NUMERIC)");
  EXPECT_EQ(made.Query("SELECT * FROM META_DATA WHERE name = 'SCHEMA_VERSION'"),
            One({"SCHEMA_VERSION", "1.2.0"}));
  EXPECT_EQ(made.Query("SELECT * FROM SESSION_TIME_INFO"),
            One({kMadeBegin, kMadeBegin + 1'000'000'000}));
  EXPECT_EQ(made.Query("SELECT * FROM NPU_INFO"), One({0, "Ascend910B"}));
  EXPECT_EQ(ChipName(16), ChipName(15)) << "both are of the class of the 950";
  EXPECT_EQ(made.Query("SELECT * FROM RANK_DEVICE_MAP"), One({0, 0}));
  EXPECT_EQ(made.Query("SELECT * FROM HOST_INFO"), One({"0", "node0"}));
  EXPECT_EQ(made.Query("SELECT name FROM ENUM_MODULE WHERE id = 31"), One({"PROFILING"}));
  // No rows, no table, as the vendor's analyser does it.
  EXPECT_TRUE(made.Query("SELECT 1 FROM sqlite_schema WHERE name = 'HCCS'").empty());
}

TEST(SqliteFormat, EveryKindOfRowHasATable) {
  std::set<TableId> there;
  for (const SqlTable& table : SqlRowTables()) there.insert(table.source);
  for (const TableSpec& rows : Tables()) EXPECT_TRUE(there.contains(rows.id)) << rows.name;
}

TEST(SqliteFormat, RowsBeforeTheSessionAreLeftOutOfTheVendorsTablesOnly) {
  MadeExport made(1, 1);
  auto sink = made.Open(0, 0);
  Feed(*sink, TableId::kHccs, 0).Row(kMadeBegin - 1, 1.0, 1.0).Row(kMadeBegin, 2.0, 2.0);
  Feed(*sink, TableId::kVoltage, 0).Row(kMadeBegin - 1, 0, 850.0);
  ASSERT_TRUE(sink->Finish().ok());
  made.End();
  EXPECT_EQ(made.Query("SELECT timestampNs FROM HCCS"), One({kMadeBegin}));
  EXPECT_EQ(made.Query("SELECT timestampNs FROM PROFD_VOLTAGE"), One({kMadeBegin - 1}));
}

TEST(SqliteFormat, MetricsOfACoreOverTheSession) {
  MadeExport made(1, 1);
  for (Place& place : made.dump(0).places) {
    place.aicore_metrics = "Memory";
    place.aicore_events = {0x15, 0x999};  // UB read; one that no metric of the group is made of
  }
  auto sink = made.Open(0, 0);
  {
    BatchBuilder builder(TableOf(TableId::kAicorePmu), 0, TimeWindow(), *sink);
    std::vector<uint64_t> cells(14);
    cells[0] = 3;
    cells[2] = 8;
    cells[12] = 512;
    builder.AddCells(kMadeBegin, cells);
    builder.AddCells(kMadeBegin + 1000, cells);
    builder.Flush();
  }
  ASSERT_TRUE(sink->Finish().ok());
  made.End();
  // 1024 cycles at 1 GHz are 1024 ns; 16 * 256 * 4 bits in them are 2^14 / 8 bytes in 1.024 us.
  SqlRows rows = made.Query("SELECT deviceId, m.value, s.value, coreId, t.value FROM "
                            "SAMPLE_PMU_SUMMARY s JOIN STRING_IDS m ON m.id = metric JOIN "
                            "STRING_IDS t ON t.id = coreType");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0], (std::vector<SqlCell>{0, "total_time", 1024, 3, "AIC"}));
  EXPECT_EQ(Text(rows[1][1]), "ub_read_bw");
  EXPECT_NEAR(std::get<double>(rows[1][2]), 2048 / 1.024e-6, 1);
}

TEST(SqliteFormat, OneDumpHasNoDumpIdSeveralHaveItLast) {
  for (size_t dumps : {1u, 2u}) {
    MadeExport made(dumps, 1);
    for (size_t i = 0; i < dumps; ++i) {
      auto sink = made.Open(i, 0);
      Feed(*sink, TableId::kHccs, 0).Row(kMadeBegin, 1.0 + static_cast<double>(i), 1.0);
      ASSERT_TRUE(sink->Finish().ok());
    }
    made.End();
    SqlRows last = made.Query("SELECT name FROM pragma_table_info('HCCS') ORDER BY cid DESC LIMIT 1");
    EXPECT_EQ(Text(last[0][0]), dumps == 1 ? "rxThroughput" : "dumpId");
    SqlRows nodes = made.Query("SELECT node, rank, value FROM profd_samples WHERE metric = "
                               "'atlas_npu_hccs_bandwidth_bytes_per_second' AND labels = "
                               "'link=all,direction=tx' ORDER BY rank");
    ASSERT_EQ(nodes.size(), dumps);
    EXPECT_EQ(nodes[0], (std::vector<SqlCell>{"node0", 0, 1048576.0}));
    if (dumps == 1) continue;
    EXPECT_EQ(nodes[1], (std::vector<SqlCell>{"node1", 1, 2097152.0}));
  }
}

TEST(SqliteFormat, ADumpWithoutEndEndsWithItsLastRow) {
  MadeExport made(2, 1);
  for (size_t dump = 0; dump < 2; ++dump) {
    for (Place& place : made.dump(dump).places) place.clock.end_us = 0;
  }
  auto sink = made.Open(1, 0);
  Feed(*sink, TableId::kHccs, 0).Row(kMadeBegin, 1.0, 1.0).Row(kMadeBegin + 5, 1.0, 1.0);
  ASSERT_TRUE(sink->Finish().ok());
  made.End();
  EXPECT_EQ(made.Query("SELECT * FROM SESSION_TIME_INFO"),
            (SqlRows{{kMadeBegin, kMadeBegin, 0}, {kMadeBegin, kMadeBegin + 5, 1}}));
}

TEST(SqliteFormat, RowsAreByDumpDeviceAndTimeWhateverTheThreadsDo) {
  constexpr int kRows = 30000;
  MadeExport made(2, 3);
  made.Begin();
  std::vector<std::thread> threads;
  for (size_t dump = 0; dump < 2; ++dump) {
    for (int device = 2; device >= 0; --device) {
      threads.emplace_back([&made, dump, device] {
        auto sink = made.Open(dump, device);
        {
          Feed hccs(*sink, TableId::kHccs, device);
          for (int i = 0; i < kRows; ++i) hccs.Row(kMadeBegin + i * kMs, i * 0.5, 1.0);
        }
        EXPECT_TRUE(sink->Finish().ok());
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<OutputFile> files = made.End();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].rows, 6u * kRows);
  EXPECT_EQ(files[0].bytes, std::filesystem::file_size(made.path()));
  EXPECT_EQ(Text(made.Query("PRAGMA integrity_check")[0][0]), "ok");
  EXPECT_EQ(made.Query("SELECT count(*), sum(txThroughput) FROM HCCS"),
            One({6 * kRows, int64_t{6} * kRows * (kRows - 1) / 2 * 524288}));
  EXPECT_EQ(Int(made.Query("SELECT count(*) FROM (SELECT dumpId * 1e6 + deviceId * 1e5 + "
                           "(timestampNs - 1767225600000000000) / 1000000 AS now, lag(dumpId * 1e6 + "
                           "deviceId * 1e5 + (timestampNs - 1767225600000000000) / 1000000) OVER "
                           "(ORDER BY rowid) AS before FROM HCCS) WHERE now <= before")[0][0]),
            0);
}

// Python's reader refuses every query of a text that is not UTF-8.
TEST(SqliteFormat, NamesOfDumpsAreValidText) {
  MadeExport made(1, 1);
  made.dump(0).name = "bad\xff";
  made.dump(0).path = "run1/bad\xff";
  auto sink = made.Open(0, 0);
  ASSERT_TRUE(sink->Finish().ok());
  made.End();
  const SqlRows rows = made.Query("SELECT name, path FROM PROFD_DUMPS");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(Text(rows[0][0]), "bad\xEF\xBF\xBD");
  EXPECT_EQ(Text(rows[0][1]), "run1/bad\xEF\xBF\xBD");
}

TEST(SqliteFormat, EventsAreMarksStepsAndGaps) {
  MadeExport made(1, 1);
  auto sink = made.Open(0, 0);
  Event event;
  event.t_ns = kMadeBegin;
  event.pid = 4242;
  event.tid = 7;
  event.name = "epoch 1";
  sink->TakeEvent(event);
  event.kind = EventKind::kRange;
  event.dur_ns = 5;
  event.name = "forward";
  sink->TakeEvent(event);
  event.domain = "communication";
  event.lane = 0;
  sink->TakeEvent(event);
  event.kind = EventKind::kStep;
  event.value = 12;
  event.name = "step";
  sink->TakeEvent(event);
  event.kind = EventKind::kIteration;
  event.device = 0;
  event.name = "Iteration 3";
  event.value = 3;
  event.args = {{"FP Start", 2.0}, {"BP End", 4.0}, {"Reduce Start", 1.0}, {"Reduce End", 3.0}, {"Reduce Start", 2.0},
                {"Reduce End", 5.0}};
  sink->TakeEvent(event);
  event.kind = EventKind::kLoss;
  event.name = "hbm.data";
  event.value = 9;
  sink->TakeEvent(event);
  ASSERT_TRUE(sink->Finish().ok());
  made.End();
  const int64_t tid = int64_t{4242} << 32 | 7;
  auto id = [&made](const char* text) { return made.strings().Intern(text); };
  EXPECT_EQ(made.Query("SELECT * FROM MSTX_EVENTS"),
            (SqlRows{{kMadeBegin, kMadeBegin, 0, 4294967295, 4294967295, id("epoch 1"), tid, tid,
                      id("default"), 4000000000},
                     {kMadeBegin, kMadeBegin + 5, 1, 4294967295, 4294967295, id("forward"), tid, tid,
                      id("default"), 4000000000},
                     {kMadeBegin, kMadeBegin + 5, 2, 4294967295, 4294967295, id("forward"), tid, tid,
                      id("communication"), 4000000000}}));
  EXPECT_EQ(made.Query("SELECT kind, name, step, pid, end_ns - start_ns FROM profd_steps"),
            (SqlRows{{"step", "step", 12, 4242, 5}, {"iteration", "Iteration 3", 3, 4242, 5}}));
  EXPECT_EQ(made.Query("SELECT count(*), sum(value) FROM PROFD_STEP_ARGS WHERE step = 3"), One({6, 17}));
  EXPECT_EQ(made.Query("SELECT device, name, records FROM profd_gaps"), One({0, "hbm.data", 9}));
  EXPECT_EQ(made.Query("SELECT pid, tid, name FROM profd_marks WHERE end_ns > start_ns"),
            (SqlRows{{4242, 7, "forward"}, {4242, 7, "forward"}}));
}

// One dump of a whole node: two ranks with a device each, a third device both use, a fourth without a process.
TEST(SqliteFormat, RanksAreThoseOfTheProcesses) {
  MadeExport made(1, 4);
  made.dump(0).rank.reset();
  made.dump(0).manifest.emplace().processes = {{100, 0, true, {0, 2}, "train.py"},
                                               {101, 1, true, {1, 2}, "train.py"}};
  for (int device = 0; device < 4; ++device) {
    auto sink = made.Open(0, device);
    Feed(*sink, TableId::kHccs, device).Row(kMadeBegin, 1.0, 1.0);
    Event step;
    step.kind = EventKind::kDeviceStep;
    step.device = device;
    step.dur_ns = 2;
    step.name = "Step 1";
    if (device < 2) sink->TakeEvent(step);
    ASSERT_TRUE(sink->Finish().ok());
  }
  auto sink = made.Open(0, -1);
  for (int64_t pid : {100, 101, 102}) {
    Event step;
    step.kind = EventKind::kStep;
    step.pid = pid;
    step.dur_ns = pid;
    if (pid == 102) step.rank = 7;  // its marks say so, the manifest does not know it
    sink->TakeEvent(step);
    step.kind = EventKind::kRange;
    step.name = "forward";
    sink->TakeEvent(step);
  }
  ASSERT_TRUE(sink->Finish().ok());
  made.End();
  const SqlCell none;
  EXPECT_EQ(made.Query("SELECT device, rank FROM profd_samples WHERE labels = 'link=all,direction=tx' "
                       "ORDER BY device"),
            (SqlRows{{0, 0}, {1, 1}, {2, none}, {3, none}}));
  EXPECT_EQ(made.Query("SELECT pid, rank, process FROM profd_steps WHERE kind = 'step' ORDER BY pid"),
            (SqlRows{{100, 0, "train.py"}, {101, 1, "train.py"}, {102, 7, none}}));
  EXPECT_EQ(made.Query("SELECT device, rank FROM profd_steps WHERE kind = 'device_step' ORDER BY 1"),
            (SqlRows{{0, 0}, {1, 1}}));
  EXPECT_EQ(made.Query("SELECT pid, rank FROM profd_marks ORDER BY pid"),
            (SqlRows{{100, 0}, {101, 1}, {102, 7}}));
  EXPECT_EQ(made.Query("SELECT * FROM RANK_DEVICE_MAP ORDER BY deviceId, rankId"),
            (SqlRows{{0, 0}, {1, 1}, {0, 2}, {1, 2}, {-1, 3}}));
}

// As `profctl show` and the CSV have them: the value at rank ceil(q n), partial ones left out.
TEST(SqliteFormat, DurationsHavePercentiles) {
  MadeExport made(1, 1);
  auto sink = made.Open(0, -1);
  DurationStats stats;
  Event event;
  event.rank = 0;
  for (int64_t ns = 250; ns > 0; --ns) {
    event.kind = ns % 2 == 0 ? EventKind::kStep : EventKind::kRange;
    event.name = ns % 3 == 0 ? "forward" : "backward";
    event.dur_ns = ns * ns;
    sink->TakeEvent(event);
    stats.Add(event, {});
  }
  event.dur_ns = kMs;
  MarkPartial(&event);
  sink->TakeEvent(event);
  ASSERT_TRUE(sink->Finish().ok());
  made.End();
  SqlRows expected;
  for (const auto& [key, group] : stats.groups()) {
    expected.push_back({0, -1, std::string(DurationKind(key.kind)), key.name,
                        static_cast<int64_t>(group.count()), group.mean(), group.Percentile(50),
                        group.Percentile(99), group.max()});
  }
  ASSERT_EQ(expected.size(), 3u);
  std::ranges::sort(expected);
  EXPECT_EQ(made.Query("SELECT rank, device, kind, name, count, mean_ns, p50_ns, p99_ns, max_ns "
                       "FROM profd_durations ORDER BY kind, name"),
            expected);
  EXPECT_EQ(expected[2][6], SqlCell(int64_t{126 * 126}));  // 125 steps: the 63rd
}

TEST(SqliteFormat, EveryMetricOfTheTableIsInTheSamples) {
  MadeExport made(1, 1);
  auto sink = made.Open(0, 0);
  std::set<std::string> expected;
  for (const TableSpec& table : Tables()) {
    BatchBuilder builder(table, 0, TimeWindow(), *sink);
    std::vector<uint64_t> cells;
    for (const Column& column : table.columns) {
      bool name = column.type == ColumnType::kName;
      cells.push_back(name                  ? static_cast<uint64_t>(made.strings().Intern("of_own"))
                      : IsKey(column.type)  ? 0
                      : IsReal(column.type) ? BatchBuilder::ToCell(8.0)
                                            : 8);
      if (!column.metric.empty()) expected.emplace(column.metric_of_die.empty() ? column.metric : column.metric_of_die);
    }
    if (table.id == TableId::kSample) expected.emplace("of_own");
    builder.AddCells(kMadeBegin, cells);
    builder.AddCells(kMadeBegin + kMs, cells);
    builder.Flush();
  }
  ASSERT_TRUE(sink->Finish().ok());
  made.End();
  std::set<std::string> found;
  for (auto& row : made.Query("SELECT DISTINCT metric FROM profd_samples")) found.insert(Text(row[0]));
  EXPECT_EQ(found, expected);
  EXPECT_EQ(made.Query("SELECT DISTINCT labels, value FROM profd_samples WHERE metric = "
                       "'atlas_npu_hbm_bandwidth_bytes_per_second'"),
            One({"hbm=0,direction=read", 8388608.0}));
  EXPECT_EQ(made.Query("SELECT DISTINCT labels, value FROM profd_samples WHERE metric = "
                       "'atlas_npu_llc_slice_hit_ratio'"),
            One({"llc=0,op=read", 8.0}));
  // 8 B/s * 8 / (8 Mb/s * 2^20)
  EXPECT_EQ(made.Query("SELECT DISTINCT value FROM profd_samples WHERE metric = "
                       "'atlas_npu_network_port_utilization_ratio'"),
            One({64.0 / 8388608}));
  EXPECT_EQ(made.Query("SELECT DISTINCT value FROM profd_samples WHERE metric = "
                       "'atlas_npu_network_port_speed_bytes_per_second'"),
            One({1000000.0}));
}

TEST(SqliteFormat, AnExportOfNothingIsADatabase) {
  MadeExport made(1, 0);
  made.Begin();
  std::vector<OutputFile> files = made.End();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].rows, 0u);
  EXPECT_EQ(Text(made.Query("PRAGMA integrity_check")[0][0]), "ok");
  EXPECT_EQ(Int(made.Query("SELECT count(*) FROM profd_samples")[0][0]), 0);
  EXPECT_EQ(made.Query("SELECT * FROM NPU_INFO"), One({-1, "UNKNOWN"}));
}

TEST(SqliteFormat, AnAbortedExportLeavesNothing) {
  MadeExport made(1, 1);
  auto sink = made.Open(0, 0);
  Feed(*sink, TableId::kHccs, 0).Row(kMadeBegin, 1.0, 1.0);
  ASSERT_TRUE(sink->Finish().ok());
  std::vector<OutputFile> files;
  EXPECT_TRUE(made.format().End(false, &files).ok());
  EXPECT_TRUE(files.empty());
  EXPECT_TRUE(std::filesystem::is_empty(made.dir()));
}

TEST(SqliteFormat, LossesAndChannelsOfTheManifest) {
  MadeExport made(1, 1);
  ManifestChannel channel;
  channel.collector = "hbm";
  channel.device = 0;
  channel.channel = 9;
  channel.file = "hbm.data";
  channel.state = "finished";
  channel.hz_effective = 100;
  channel.records = 1000;
  for (LossReason reason : {LossReason::kQueueFull, LossReason::kStorageLimit}) {
    ManifestLoss& loss = channel.dropped.emplace_back();
    loss.reason = reason;
    loss.records = loss.reason == LossReason::kQueueFull ? 7 : 3;
  }
  made.dump(0).manifest.emplace().channels.push_back(channel);
  made.Begin();
  made.End();
  EXPECT_EQ(made.Query("SELECT node, device, file, reason, records FROM profd_losses ORDER BY reason"),
            (SqlRows{{"node0", 0, "hbm.data", "queue_full", 7},
                     {"node0", 0, "hbm.data", "storage_limit", 3}}));
  EXPECT_EQ(made.Query("SELECT hz, records, lost_records FROM profd_channels"),
            One({100.0, 1000, 10}));
}

}  // namespace
}  // namespace profd::exporting
