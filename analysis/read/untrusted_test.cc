// Files that their writer made to harm who reads them, or that are damaged in a way that does; and what is too much.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/read/dump_sink.h"
#include "analysis/read/read_test_support.h"
#include "analysis/read/readers.h"
#include "analysis/times.h"
#include "analysis/views/views.h"
#include "dump/test_support.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

class UntrustedFiles : public ::testing::Test {
 protected:
  UntrustedFiles() {
    fs::create_directories(Output());
    WriteText(Output() + "/kernel_details.csv", "Name,Type,Accelerator Core,Start Time(us),Duration(us)\na,Mul,AI_CORE,1,2\n");
  }
  std::string Above() const { return dir_ / "n_0_ascend_pt"; }
  std::string Output() const { return Above() + "/ASCEND_PROFILER_OUTPUT"; }
  void Read(const std::string& path) {
    run_ = Loaded(path);
    problems_.clear();
    for (const Problem& each : run_.problems) problems_.push_back(fs::path(each.where).filename().string() + ": " + each.what);
  }
  // Of rank 0 on device 0.
  std::string MakeDatabase(const std::string& sql) const {
    const std::string file = dir_ / "ascend_pytorch_profiler_0.db";
    RunSql(file, "CREATE TABLE RANK_DEVICE_MAP (rankId, deviceId); INSERT INTO RANK_DEVICE_MAP VALUES (0, 0);" + sql);
    return file;
  }
  const Rank& rank() const { return *run_.ranks.at(0); }
  static std::string Nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

  TempDir dir_;
  profd::analysis::Run run_;
  std::vector<std::string> problems_;
};

// analysis 2.1: large files are cut into slices, which are numbered from 0.
TEST_F(UntrustedFiles, SlicesThatAreMissing) {
  fs::remove(Output() + "/kernel_details.csv");
  for (const std::string slice : {"0", "2", "5"}) {
    WriteText(Output() + "/op_summary_slice_" + slice + "_20260101080000.csv",
              "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\nk,Mul,AI_CORE,1" + slice + ",1\n");
  }
  Read(Above());
  EXPECT_EQ(rank().executions.size(), 3u);
  EXPECT_THAT(problems_, ::testing::ElementsAre("op_summary_slice_2_20260101080000.csv: slice 1 before it is missing",
                                                "op_summary_slice_5_20260101080000.csv: slices 3 to 4 before it are missing"));
}

// RFC 8259, 6: numbers may be larger than a double.
TEST_F(UntrustedFiles, NumbersThatNoDoubleHolds) {
  WriteText(Output() + "/communication.json", R"j({"step1": {"collective": {"hcom_allReduce__1_0_1@1": {"Communication Time Info": {"Elapse Time(ms)": 1e999}}}}})j");
  Read(Above());
  EXPECT_THAT(problems_, ::testing::ElementsAre("communication.json: the JSON has a number that is too large: all of it is left out"));
  EXPECT_EQ(rank().executions.size(), 1u);
}

// Copies and texts of a value take stack for each level.
TEST_F(UntrustedFiles, DeepJson) {
  WriteText(Above() + "/profiler_metadata.json", R"({"parallel_group_info": )" + Nested(2'000'000) + "}");
  const std::string device = Above() + "/PROF_1/device_0";
  fs::create_directories(device);
  WriteText(device + "/info.json.0", R"({"DeviceInfo": [{"ai_core_num": )" + Nested(500'000) + "}]}");
  Read(Above());
  EXPECT_THAT(problems_, ::testing::UnorderedElementsAre("profiler_metadata.json: no JSON object: environment variables, groups of ranks and sizes of parallelism are left out",
                                                         "info.json.0: no JSON with DeviceInfo"));
  const std::string cluster = dir_ / "cluster_analysis_output";
  fs::create_directories(cluster);
  WriteText(cluster + "/cluster_step_trace_time.csv", "Step,Type,Index,Computing,Communication(Not Overlapped),Communication,Free\n1,rank,0,1,1,1,1\n");
  WriteText(cluster + "/communication_group.json", R"({"comm_group_parallel_info": [{"rank_set": )" + Nested(2'000'000) + "}]}");
  Read(cluster);
  EXPECT_THAT(problems_, ::testing::ElementsAre("communication_group.json: no JSON object"));
}

TEST_F(UntrustedFiles, MetadataThatIsTooLong) {
  const std::string path = Above() + "/profiler_metadata.json";
  WriteText(path, "{}");
  fs::resize_file(path, (64u << 20) + 1);
  Read(Above());
  EXPECT_THAT(problems_, ::testing::ElementsAre("profiler_metadata.json: 67108865 bytes; at most 67108864 are read"));
}

// To open a FIFO for reading waits for a writer.
TEST_F(UntrustedFiles, Pipes) {
  for (const char* name : {"trace_view.json", "step_trace_time.csv"}) ASSERT_EQ(::mkfifo((Output() + "/" + name).c_str(), 0600), 0);
  Read(Above());
  EXPECT_THAT(problems_, ::testing::UnorderedElementsAre("trace_view.json: not a plain file", "step_trace_time.csv: not a plain file"));
}

// Each of 60 operators without a queue has the next one twice: 2^60 ways lead to the last one.
TEST_F(UntrustedFiles, PipelinesOfWhichManyWaysLeadToOneOperator) {
  std::string operators = R"({"op_id": 0, "op_type": "Batch", "children": [1], "metrics": {"output_queue": {"size": [1], "length": 10}}})";
  for (int id = 1; id <= 60; ++id) {
    operators += ", {\"op_id\": " + std::to_string(id) + R"(, "op_type": "Rename", "children": [)" + std::to_string(id + 1) + ", " + std::to_string(id + 1) + "]}";
  }
  operators += R"(, {"op_id": 61, "op_type": "Map", "children": [1], "metrics": {"output_queue": {"size": [9], "length": 10}}})";
  WriteText(dir_ / "pipeline_profiling_0.json", R"({"sampling_interval": 10, "op_info": [)" + operators + "]}");
  fs::remove_all(Above());
  Read(dir_.path());
  // Analysis 4.3: the queue of its child is much fuller.
  EXPECT_EQ(DataPipelineView(rank())["bottleneck_operators"], Json::parse(R"(["Batch 0"])"));
}

TEST_F(UntrustedFiles, TextsThatAreNoFiniteNumbers) {
  const std::string logs = dir_ / "logs";
  fs::create_directories(logs);
  WriteText(logs + "/minddata_aicpu_1.txt", "GetNext_dequeue_wait 1 nan 3\nGetNext_dequeue_wait 1 2 inf\nGetNext_dequeue_wait 1000 3000 3\n");
  WriteText(logs + "/device_queue_profiling_1.txt", "0 0 1 nan\n0 0 1 3\n1 64 1 inf\n");
  WriteText(logs + "/output_data_preprocess_aicpu_1.txt", "serial_number node_type_name total_time(ms) dispatch_time(ms) run_start run_end\n"
                                                          "--- --- --- --- --- ---\n1 Cast 2 1 10 20\n2 Cast nan 1 10 20\n3 Cast 2 1 10\n");
  Read(logs);
  EXPECT_THAT(problems_, ::testing::UnorderedElementsAre("minddata_aicpu_1.txt: 2 lines make no sense: left out, the first is line 1",
                                                         "device_queue_profiling_1.txt: 2 lines make no sense: left out, the first is line 1",
                                                         "output_data_preprocess_aicpu_1.txt: 2 lines make no sense: left out, the first is line 4"));
  EXPECT_EQ(rank().pipeline.get_next_ms, std::vector<double>{2});
  EXPECT_EQ(rank().pipeline.get_ms, std::vector<double>{3});
  EXPECT_EQ(rank().cpu_operators.size(), 1u);
}

// Each value of the column would take part of a second, and 400 MB.
TEST_F(UntrustedFiles, AGeneratedColumnOfADatabaseHasALimit) {
  Read(MakeDatabase("CREATE TABLE STRING_IDS (id, value GENERATED ALWAYS AS (hex(zeroblob(200000000)))); INSERT INTO STRING_IDS (id) VALUES (1);"));
  EXPECT_THAT(problems_, ::testing::Contains("ascend_pytorch_profiler_0.db: a value or a row is larger than 16 MiB"));
}

TEST_F(UntrustedFiles, AStatementOnADatabaseCanBeEnded) {
  const std::string file = MakeDatabase("CREATE TABLE STRING_IDS (id, value); WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 10000) "
                                        "INSERT INTO STRING_IDS SELECT i, i FROM n;");
  int looks = 0;
  const auto run = LoadRun({file}, [&looks] { return ++looks < 2; }, {});
  EXPECT_EQ(run.status().code(), StatusCode::kCancelled);
}

// Differences of two times do not overflow.
TEST_F(UntrustedFiles, TimesOfADatabaseHaveLimits) {
  Read(MakeDatabase("CREATE TABLE STRING_IDS (id, value); INSERT INTO STRING_IDS VALUES (1, 'PTA');"
                    "CREATE TABLE GC_RECORD (startNs, endNs); INSERT INTO GC_RECORD VALUES (-9223372036854775807, 9223372036854775807);"
                    "CREATE TABLE MEMORY_RECORD (component, timestamp, totalAllocated, totalReserved, totalActive, deviceId);"
                    "INSERT INTO MEMORY_RECORD VALUES (1, -9223372036854775807, 1, 1, 1, 0), (1, 9223372036854775807, 1, 1, 1, 0);"));
  const std::vector<MemorySample>& samples = rank().memory.at("PTA");
  ASSERT_EQ(samples.size(), 2u);
  for (const MemorySample& each : samples) EXPECT_TRUE(IsTime(each.t_ns));
  ASSERT_EQ(rank().garbage.size(), 1u);
  EXPECT_TRUE(IsTime(rank().garbage[0].start_ns) && IsTime(rank().garbage[0].end_ns));
}

// What is too much for memory is counted.
TEST(DumpSinkTest, EventsBeyondItsLimitsAreCounted) {
  const exporting::Strings strings;
  Gathered gathered;
  gathered.parts.resize(1);
  gathered.marks.resize(1);
  Mutex mutex;
  const auto sink = MakeDumpSink(0, strings, &gathered, &mutex, {.steps = 1, .marks = 2});
  for (const exporting::EventKind kind : {exporting::EventKind::kDeviceStep, exporting::EventKind::kMark, exporting::EventKind::kRange, exporting::EventKind::kLoss,
                                          exporting::EventKind::kDeviceStep, exporting::EventKind::kMark}) {
    exporting::Event event;
    event.kind = kind;
    sink->TakeEvent(event);
  }
  ASSERT_TRUE(sink->Finish().ok());
  EXPECT_EQ(gathered.parts[0].size(), 1u);
  EXPECT_EQ(gathered.marks[0].size(), 2u);
  EXPECT_EQ(gathered.left_out_events, 3u);
  EXPECT_EQ(gathered.left_out_samples, 0u);
}

}  // namespace
}  // namespace profd::analysis
