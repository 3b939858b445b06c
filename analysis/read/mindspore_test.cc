#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/read/read_test_support.h"
#include "analysis/read/readers.h"
#include "analysis/views/views.h"
#include "dump/test_support.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

// analysis 4.1: a step without its end or start is left out; the others keep their numbers.
TEST(MindSporeTrace, ALostEndOfAStepCostsItAndTheNext) {
  const TempDir dir;
  std::string bytes;
  const auto add = [&bytes](uint64_t tag, uint16_t stream, uint64_t count) {
    const uint16_t task = 0;
    bytes.append(reinterpret_cast<const char*>(&tag), sizeof tag).append(reinterpret_cast<const char*>(&task), sizeof task);
    bytes.append(reinterpret_cast<const char*>(&stream), sizeof stream).append(reinterpret_cast<const char*>(&count), sizeof count);
  };
  for (const uint64_t number : {1, 2, 3, 4}) {
    const uint64_t at = number * 1000;
    add(0, 0, at);
    add(1, 0, at + 100);
    add(2, 0, at + 500);
    add(3, 20, at + 200);
    add(4, 20, at + 300);
    if (number != 2) add(255, 0, at + 900);
  }
  WriteText(dir / "training_trace.46.dev.profiler_default_tag.3.slice_0", bytes);
  const auto run = Loaded(dir.path());
  ASSERT_EQ(run.ranks.size(), 1u);
  const std::vector<Step>& steps = run.ranks[0]->steps;
  ASSERT_EQ(steps.size(), 2u);
  // Counts are of 10 ns.
  EXPECT_EQ(steps[0].number, 1);
  EXPECT_EQ(steps[0].end_ns, 19'000);
  EXPECT_EQ(steps[1].number, 4);
  EXPECT_EQ(steps[1].start_ns, 39'000);
  EXPECT_EQ(steps[1].fp_ns, 41'000);
  EXPECT_EQ(steps[1].bp_ns, 45'000);
  EXPECT_EQ(steps[1].end_ns, 49'000);
  EXPECT_EQ(steps[1].reduces.size(), 1u);
  EXPECT_THAT(TextsOf(run.problems), ::testing::ElementsAre("1 step lacks its end, and so that behind it its start (the first are steps 2 and 3): left out"));
}

class MindSporeSlices : public ::testing::Test {
 protected:
  static std::string Record(uint64_t tag, uint64_t count) {
    std::string bytes(20, '\0');
    std::memcpy(bytes.data(), &tag, sizeof tag);
    std::memcpy(bytes.data() + 12, &count, sizeof count);
    return bytes;
  }
  // It begins at number * 1000 and ends at number * 1000 + 900.
  static std::string StepOf(uint64_t number) {
    const uint64_t at = number * 1000;
    return Record(10010, at) + Record(1, at + 100) + Record(2, at + 500) + Record(255, at + 900);
  }
  void Write(int slice, const std::string& bytes) { WriteText(dir_ / ("training_trace.46.dev.profiler_default_tag.3.slice_" + std::to_string(slice)), bytes); }
  void Read() {
    run_ = Loaded(dir_.path());
    ends_.clear();
    for (const Step& step : run_.ranks.at(0)->steps) ends_.push_back(step.end_ns / 10);
    texts_ = TextsOf(run_.problems);
  }

  TempDir dir_;
  profd::analysis::Run run_;
  std::vector<int64_t> ends_;  // of steps
  std::vector<std::string> texts_;
};

// The third step begins in slice 0, and the sixth ends in slice 2; of the seventh, the start is known.
TEST_F(MindSporeSlices, NoStepIsMadeAcrossAMissingSlice) {
  Write(0, StepOf(1) + StepOf(2) + Record(10010, 3000) + Record(1, 3100) + "cut");
  Write(2, Record(2, 6500) + Record(255, 6900) + StepOf(7));
  Read();
  EXPECT_THAT(ends_, ::testing::ElementsAre(1900, 2900, 7900));
  EXPECT_EQ(run_.ranks[0]->steps.back().start_ns, 69'000);
  EXPECT_THAT(texts_, ::testing::ElementsAre("slice 1 before it is missing", "steps of which records are missing are left out; numbers from 3 on may have been higher"));
  EXPECT_EQ(fs::path(run_.problems[0].where).filename(), "training_trace.46.dev.profiler_default_tag.3.slice_2");
  fs::remove(dir_ / "training_trace.46.dev.profiler_default_tag.3.slice_0");
  Read();
  EXPECT_THAT(ends_, ::testing::ElementsAre(7900));
  EXPECT_THAT(texts_, ::testing::ElementsAre("slices 0 to 1 before it are missing", "steps of which records are missing are left out; numbers from 1 on may have been higher"));
}

// analysis 4.1: the id of another job is an error.
TEST_F(MindSporeSlices, RecordsOfNoTraceAreAProblem) {
  Write(0, StepOf(1) + StepOf(2));
  Write(1, std::string(60, '\xEE'));
  Write(2, StepOf(6) + StepOf(7));
  Read();
  EXPECT_THAT(ends_, ::testing::ElementsAre(1900, 2900, 7900));
  EXPECT_THAT(texts_, ::testing::ElementsAre("3 records have the id of another job, or are damaged: left out",
                                             "steps of which records are missing are left out; numbers from 3 on may have been higher"));
}

// analysis 4.1: inference has no end of backward; a training that lacks one of a step has others.
TEST_F(MindSporeSlices, ForwardOfInferenceLastsToTheEndOfTheStep) {
  std::string bytes;
  for (uint64_t at = 1000; at < 3000; at += 1000) bytes += Record(10010, at) + Record(1, at + 100) + Record(255, at + 900);
  Write(0, bytes);
  Read();
  EXPECT_THAT(ends_, ::testing::ElementsAre(1900, 2900));
  EXPECT_EQ(run_.ranks[0]->steps[1].start_ns, 19'000);
  EXPECT_EQ(run_.ranks[0]->steps[1].fp_ns, 21'000);
  EXPECT_EQ(run_.ranks[0]->steps[1].bp_ns, 29'000);
  EXPECT_TRUE(texts_.empty());
  Write(0, bytes + StepOf(3));
  Read();
  EXPECT_THAT(ends_, ::testing::ElementsAre(3900));
  EXPECT_THAT(texts_, ::testing::ElementsAre("2 steps lack where forward starts or backward ends: left out"));
}

// analysis 4.1: a step ends with 255, of data since the end of 2020 with 65535.
TEST_F(MindSporeSlices, OneDamagedRecordDoesNotMakeTheTraceALaterOne) {
  std::string bytes = StepOf(1) + StepOf(2);
  bytes += Record(10010, 3000) + Record(1, 3100) + Record(65535, 3300) + Record(2, 3500) + Record(255, 3900);
  Write(0, bytes + StepOf(4) + StepOf(5));
  Read();
  EXPECT_THAT(ends_, ::testing::ElementsAre(1900, 2900, 4900, 5900));
  EXPECT_THAT(texts_, ::testing::ElementsAre("1 record has the id of another job, or is damaged: left out",
                                             "steps of which records are missing are left out; numbers from 3 on may have been higher"));
}

// The second step is cut behind its 127th pair of points.
TEST_F(MindSporeSlices, PointsOfLaterTracesMayHaveTheNumberOfAnEarlierEnd) {
  std::string bytes = Record(0, 1000) + Record(1, 1100) + Record(255, 1200) + Record(256, 1300) + Record(2, 1500) + Record(65535, 1900);
  Write(0, bytes + Record(0, 2000) + Record(1, 2100) + Record(255, 2200) + Record(256, 2300));
  Read();
  EXPECT_THAT(ends_, ::testing::ElementsAre(1900));
  EXPECT_EQ(run_.ranks.at(0)->steps.at(0).reduces.size(), 1u);
}

// analysis 4.1: an odd number of points on a stream is dropped with a warning.
TEST_F(MindSporeSlices, PointsWithoutPartnersAreOneProblem) {
  std::string bytes = StepOf(1);
  for (uint64_t at = 2000; at < 5000; at += 1000) {
    bytes += Record(10010, at) + Record(1, at + 100) + Record(3, at + 200) + Record(2, at + 500) + Record(255, at + 900);
  }
  Write(0, bytes);
  Read();
  EXPECT_THAT(ends_, ::testing::ElementsAre(1900, 2900, 3900, 4900));
  EXPECT_THAT(texts_, ::testing::ElementsAre("a point of stream 0 has no partner in 3 steps (the first is step 2): its reduces are left out there"));
}

// Of several devices and directories, each with such logs.
TEST_F(MindSporeSlices, ProblemsNameTheLog) {
  Write(0, StepOf(1) + "cut");
  Read();
  EXPECT_THAT(texts_, ::testing::ElementsAre("ends in 3 bytes of a record"));
  EXPECT_EQ(run_.problems[0].where, std::string(dir_ / "training_trace.46.dev.profiler_default_tag.3"));
}

TEST_F(MindSporeSlices, AnEmptyLogIsAProblem) {
  Write(0, StepOf(1));
  WriteText(dir_ / "hwts.log.data.45.dev.profiler_default_tag.3.slice_0", "");
  Read();
  EXPECT_THAT(texts_, ::testing::ElementsAre("the file is empty"));
  EXPECT_EQ(run_.problems[0].where, std::string(dir_ / "hwts.log.data.45.dev.profiler_default_tag.3.slice_0"));
  WriteText(dir_ / "hwts.log.data.45.dev.profiler_default_tag.3.slice_0", std::string(64, '\0'));
  WriteText(dir_ / "hwts.log.data.45.dev.profiler_default_tag.3.slice_1", "");  // it had just been opened
  Read();
  EXPECT_THAT(texts_, ::testing::Not(::testing::Contains("the file is empty")));
}

TEST(MindSporeOperators, OperatorsOfTheAiCpuWithoutTimesAreOneProblem) {
  const TempDir logs;
  WriteText(logs / "DATA_PREPROCESS.dev.AICPU.3.slice_0",
            "[1] Node:GetNext, Run start:1, Run end:2 Thread[1], dispatchTime=87 us, totalTime=989 us\n"
            "[2] Node:Default/Cast-op1, Run start:3\n[3] Node:Default/Add-op2, Run start:4\n");
  const auto run = Loaded(logs.path());
  EXPECT_EQ(run.ranks.at(0)->cpu_operators.size(), 1u);
  ASSERT_THAT(TextsOf(run.problems), ::testing::ElementsAre("2 operators have no times: left out, the first is Cast"));
  EXPECT_EQ(run.problems[0].where, std::string(logs / "DATA_PREPROCESS.dev.AICPU.3"));
}

// analysis 4.2: the line of a node is followed by that of a thread, which has no name.
TEST(MindSporeOperators, ThreadsOfTheAiCpuWithoutANodeAreAProblem) {
  const TempDir logs;
  const std::string thread = "Thread[ 1] process device[0]:aicpu[ 0] task end, dispatchTime=";
  WriteText(logs / "DATA_PREPROCESS.dev.AICPU.3.slice_0", thread + "1 us, totalTime=2 us\n[1] Node:GetNext, Run start:1, Run end:2\n" + thread + "87 us, totalTime=989 us\n" +
                                                              thread + "5 us, totalTime=6 us\n");
  const auto run = Loaded(logs.path());
  ASSERT_EQ(run.ranks.at(0)->cpu_operators.size(), 1u);
  EXPECT_EQ(run.ranks[0]->cpu_operators[0].total_ms, 0.989);
  EXPECT_THAT(TextsOf(run.problems), ::testing::ElementsAre("2 lines of threads have no node in front: left out, the operator is not known"));
}

// A file that was cut in its last line.
TEST(MindSporeOperators, TensorsThatAreCutAreReported) {
  const TempDir parsed;
  WriteText(parsed / "output_timeline_data_1.txt", "op_name,stream_id,start_time(ms),duration(ms)\nDefault/Mul-op1,3,1.0,2.0\n");
  WriteText(parsed / "framework_raw_1.csv", "task_id,stream_id,block_dim,full_op_name,op_name,op_type,subgraph,op_info\n"
                                            "30001,3,1,Default/Mul-op1,Mul-op1,Mul,Default,{}\n30002,3,1,Default/Mul-op2,Mul-op2,Mul,Default,{\n");
  const auto run = Loaded(parsed.path());
  EXPECT_THAT(TextsOf(run.problems), ::testing::ElementsAre("1 line makes no sense: left out, the first is line 3"));
}

// What MindInsight made of the log is read where the log itself is damaged.
TEST(MindSporeOperators, ADamagedPipelineLogBesideItsTable) {
  const TempDir logs;
  WriteText(logs / "pipeline_profiling_0.json", "{");
  WriteText(logs / "minddata_pipeline_raw_0.csv",
            "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,output_queue_usage_rate,sample_interval,parent_id,children_id\n"
            "0,Batch,4,,,,,10,,[1]\n1,Shuffle,1,\"[10, 20]\",15,64,0.23,10,0,\n");
  const auto run = Loaded(logs.path());
  EXPECT_THAT(TextsOf(run.problems), ::testing::ElementsAre("no JSON with op_info"));
  EXPECT_EQ(run.ranks.at(0)->pipeline.operators.size(), 2u);
}

// analysis 4.2: scalars have an empty shape. 31, 39 and 40 are MindSpore's numbers, as real data has them; the eleventh input is not
// the second in order.
TEST(MindSporeOperators, TensorsInRawAndParsedLogs) {
  const TempDir raw;
  WriteText(raw / "Framework.host.vm.task_desc_info.1.slice_0", "Default/Mul-op1 1 30001 3\n");
  WriteText(raw / "Framework.host.vm.graph_desc_info.1.slice_0",
            "op_name:Default/Mul-op1 op_type:Mul input_id:0 input_format:DefaultFormat input_data_type:40 input_shape:\"\" "
            "input_id:1 input_format:FRACTAL_NZ input_data_type:39 input_shape:\"7,8\" "
            "output_id:0 output_format:DefaultFormat output_data_type:31 output_shape:\"\"\n");
  std::string task(64, '\0');
  task[6] = 0x31;  // 30001
  task[7] = 0x75;
  WriteText(raw / "hwts.log.data.45.dev.profiler_default_tag.1.slice_0", task);
  const auto text = [](const Rank& rank, TextId id) { return std::string(rank.TextOf(id)); };
  const auto run = Loaded(raw.path());
  ASSERT_EQ(run.ranks.at(0)->operators.size(), 1u);
  const Operator& mul = run.ranks[0]->operators[0];
  EXPECT_EQ(text(*run.ranks[0], mul.input_shapes), ";7,8");
  EXPECT_EQ(text(*run.ranks[0], mul.input_types), "NUMBER_TYPE_FLOAT32;NUMBER_TYPE_FLOAT16");
  EXPECT_EQ(text(*run.ranks[0], mul.input_formats), "DefaultFormat;FRACTAL_NZ");
  EXPECT_EQ(text(*run.ranks[0], mul.output_shapes), "");
  EXPECT_EQ(text(*run.ranks[0], mul.output_types), "NUMBER_TYPE_INT32");
  EXPECT_EQ(text(*run.ranks[0], mul.output_formats), "DefaultFormat");

  const TempDir parsed;
  std::string info;
  for (int i = 0; i < 11; ++i) {
    info += fmt::format(R"(""input_{0}"": {{""format"": ""F{0}"", ""data_type"": ""T{0}"", ""shape"": ""{1}""}}, )", i, i == 0 ? "" : std::to_string(i));
  }
  WriteText(parsed / "framework_raw_1.csv", "task_id,stream_id,block_dim,full_op_name,op_name,op_type,subgraph,op_info\n30001,3,1,Default/Mul-op1,Mul-op1,Mul,Default,\"{" +
                                                info + R"(""output_0"": {""format"": ""NCHW"", ""data_type"": ""T"", ""shape"": ""5""}}")" + "\n");
  WriteText(parsed / "output_timeline_data_1.txt", "op_name,stream_id,start_time(ms),duration(ms)\nDefault/Mul-op1,3,1.0,2.0\n");
  const auto made = Loaded(parsed.path());
  ASSERT_EQ(made.ranks.at(0)->operators.size(), 1u);
  const Operator& wide = made.ranks[0]->operators[0];
  EXPECT_EQ(text(*made.ranks[0], wide.input_shapes), ";1;2;3;4;5;6;7;8;9;10");
  EXPECT_EQ(text(*made.ranks[0], wide.input_types), "T0;T1;T2;T3;T4;T5;T6;T7;T8;T9;T10");
  EXPECT_EQ(text(*made.ranks[0], wide.input_formats), "F0;F1;F2;F3;F4;F5;F6;F7;F8;F9;F10");
  EXPECT_EQ(text(*made.ranks[0], wide.output_types), "T");
  EXPECT_EQ(text(*made.ranks[0], wide.output_formats), "NCHW");
}

// The third line of both files is of the third step, though the second step has no line that makes sense.
TEST(MindInsightSteps, SharesStayWithTheirStepBehindOneThatIsLeftOut) {
  const TempDir dir;
  WriteText(dir / "step_trace_raw_0_detail_time.csv", "step_num,start_point,end_point,total,fp_point,bp_point\n1,0,300000,300000,10,200\n2,300000,50\n"
                                                       "3,600000,900000,300000,650000,700000\n-,600000,900000,300000,650000,700000\n");
  WriteText(dir / "ascend_cluster_analyse_data-parallel_1_1_0.csv", "computation_time,communication_alone_time,stage_time\n1,0.5,2\n2,0.5,2\n1.5,0.25,2\n1.25,0.375,2\n");
  const auto run = Loaded(dir.path());
  const auto& shares = run.ranks.at(0)->shares;
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares.at(1).computing, 1);
  EXPECT_EQ(shares.at(3).computing, 1.5);
  EXPECT_EQ(shares.at(3).free, 1.25);
}

// analysis 4.1: with InitDataSetQueue in the graph, the first step is dropped, and no other if that one has no points itself.
TEST(MindSporeTrace, TheStepThatFillsTheQueueIsDropped) {
  for (const bool points : {true, false}) {
    const TempDir dir;
    std::string bytes;
    const auto add = [&bytes](uint64_t tag, uint64_t count) {
      const uint32_t task_and_stream = 0;
      bytes.append(reinterpret_cast<const char*>(&tag), sizeof tag).append(reinterpret_cast<const char*>(&task_and_stream), sizeof task_and_stream);
      bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
    };
    for (const uint64_t number : {1, 2, 3}) {
      add(0, number * 1000);
      if (number > 1 || points) {
        add(1, number * 1000 + 100);
        add(2, number * 1000 + 500);
      }
      add(255, number * 1000 + 900);
    }
    WriteText(dir / "training_trace.46.dev.profiler_default_tag.0.slice_0", bytes);
    WriteText(dir / "Framework.host.vm.graph_desc_info.0.slice_0", "op_name:Default/InitDataSetQueue-op0 op_type:InitDataSetQueue\n");
    const auto run = Loaded(dir.path());
    EXPECT_TRUE(run.problems.empty()) << run.problems.front().what;
    const std::vector<Step>& steps = run.ranks.at(0)->steps;
    ASSERT_EQ(steps.size(), 2u) << points;
    EXPECT_EQ(steps[0].number, 1);
    EXPECT_EQ(steps[0].start_ns, 19000);
    EXPECT_EQ(steps[0].end_ns, 29000);
    EXPECT_EQ(steps[1].number, 2);
  }
}

// MindInsight takes its columns from the first step, and writes 0 for what another one lacks.
TEST(MindInsightSteps, ZerosOfAReduceOrAPointAreNone) {
  const TempDir dir;
  WriteText(dir / "step_trace_raw_0_detail_time.csv",
            "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail,stream_3_0_start_point,stream_3_0_end_point,stream_3_0\n"
            "1,1000,2000,1000,1000,1800,0,800,200,1100,1200,100\n2,2000,3000,1000,2100,2800,100,700,200,0,0,0\n3,3000,4000,1000,3100,0,100,0,1000,3200,3300,100\n");
  const auto run = Loaded(dir.path());
  const std::vector<Step>& steps = run.ranks.at(0)->steps;
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].reduces.size(), 1u);
  EXPECT_TRUE(steps[1].reduces.empty());
  EXPECT_EQ(steps[1].bp_ns, 28000);
  ASSERT_EQ(steps[2].reduces.size(), 1u);
  EXPECT_EQ(steps[2].reduces[0].start_ns, 32000);
  EXPECT_EQ(steps[2].fp_ns, 31000);
  EXPECT_EQ(steps[2].bp_ns, std::nullopt);
}

// analysis 4.1: of inference the column is `fp`, to which the tail is added, and there is no point of backward.
TEST(MindInsightSteps, ForwardOfInferenceLastsToTheEndOfTheStep) {
  const TempDir dir;
  WriteText(dir / "step_trace_raw_0_detail_time.csv",
            "step_num,start_point,end_point,total,fp_point,iteration_interval,fp\n1,1000,2000,1000,1000,0,1000\n2,2000,3000,1000,2100,100,900\n-,2000,3000,1000,2100,100,900\n");
  const auto run = Loaded(dir.path());
  const nlohmann::json steps = StepsView(*run.ranks.at(0));
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1]["fp_and_bp_ms"], 0.009);
  EXPECT_EQ(steps[1]["tail_ms"], 0);
}

// analysis 4.3: each line has its step.
TEST(MindDataQueue, ValuesAreInTheOrderOfTheirSteps) {
  const TempDir dir;
  WriteText(dir / "device_queue_profiling_0.txt", "0 0 10 3\n0 1 10 2\n0 2 10 5\n1 64 10 64\n0 0 2 30\n0 1 2 20\n0 2 2 50\n1 64 2 0\n0 0 9 1\n0 1 9 1\n0 2 9 2\n1 64 9 7\n");
  const auto run = Loaded(dir.path());
  const Pipeline& pipeline = run.ranks.at(0)->pipeline;
  ASSERT_TRUE(pipeline.host.has_value());
  EXPECT_THAT(pipeline.host->sizes, ::testing::ElementsAre(0, 7, 64));
  EXPECT_THAT(pipeline.get_ms, ::testing::ElementsAre(30, 1, 3));
  EXPECT_THAT(pipeline.push_ms, ::testing::ElementsAre(20, 1, 2));
  EXPECT_THAT(pipeline.total_ms, ::testing::ElementsAre(50, 2, 5));
}

TEST(MindSporeOperators, LinesThatAreCutAndTasksWithoutANameAreProblems) {
  const TempDir dir;
  WriteText(dir / "hwts.log.data.45.dev.profiler_default_tag.1.slice_0", std::string(64, '\0'));
  WriteText(dir / "Framework.host.vm.task_desc_info.1.slice_0", "Default/Mul-op1 1 30001 3\n\nDefault/Add-op2 1 30");
  WriteText(dir / "minddata_aicpu_1.txt", "node_name start_time end_time queue_size\n---- --- --- ---\nGetNext_dequeue_wait 1 2 3\nGetNext_dequeue_wait 1 x 3\nGetNext_de");
  WriteText(dir / "device_queue_profiling_1.txt", "0 0 1 3\n0 1\n1 64 1 5\n");
  const auto run = Loaded(dir.path());
  std::vector<std::string> problems;
  for (const Problem& each : run.problems) problems.push_back(fs::path(each.where).filename().string() + " " + each.what);
  EXPECT_THAT(problems, ::testing::UnorderedElementsAre("Framework.host.vm.task_desc_info.1 1 line makes no sense: left out, the first is line 3",
                                                        "hwts.log.data.45.dev.profiler_default_tag.1 task_desc_info names none of its tasks: they are left out",
                                                        "minddata_aicpu_1.txt 2 lines make no sense: left out, the first is line 4",
                                                        "device_queue_profiling_1.txt 1 line makes no sense: left out, the first is line 2"));
}

}  // namespace
}  // namespace profd::analysis
