#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "analysis/read/read_test_support.h"
#include "analysis/read/readers.h"
#include "dump/test_support.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

// analysis 2.1: <ts> has 14 digits, and large files are cut into slices; each time msprof exports it writes all anew.
TEST(NewestExport, OneOfEachKindAndSlice) {
  const auto newest = [](const std::vector<std::string>& names, std::vector<std::string>* left_out) {
    std::vector<std::string> kept;
    for (const fs::path& path : NewestOf({names.begin(), names.end()}, left_out)) kept.push_back(path.string());
    return kept;
  };
  using Names = std::vector<std::string>;
  struct Case {
    Names kept;
    Names left_out;
  };
  const std::vector<Case> cases = {
      {{"op_summary_20260101090000.csv", "msprof_20260101080000.json"}, {"op_summary_20260101080000.csv"}},
      // A slice was written in the next hour.
      {{"op_summary_slice_0_20260101085959.csv", "op_summary_slice_1_20260101090001.csv"}, {}},
      {{"op_summary_slice_0_20260101090000.csv", "op_summary_slice_1_20260101090001.csv"},
       {"op_summary_slice_0_20260101075959.csv", "op_summary_slice_1_20260101080000.csv",
        "op_summary_slice_2_20260101080001.csv"}},
      {{"op_summary_20260101090000_slice_0.csv", "op_summary_20260101085959_slice_1.csv"},
       {"op_summary_20260101080000.csv"}},
      {{"op_summary_20260101090000.csv"},
       {"op_summary_slice_0_20260101080000.csv", "op_summary_slice_1_20260101080000.csv"}},
      {{"op_summary_slice_1_20260101090000.csv"}, {"op_summary_slice_1_20260101080000.csv"}},
      // Numbers of device, model and iteration, and of ranks.
      {{"msprof_0_2_1.json", "msprof_0_2_10.json", "profiler_info_0.json", "profiler_info_1.json"}, {}},
  };
  for (const Case& each : cases) {
    Names all = each.kept;
    all.insert(all.end(), each.left_out.begin(), each.left_out.end());
    Names left_out;
    EXPECT_EQ(newest(all, &left_out), each.kept);
    EXPECT_EQ(left_out, each.left_out);
  }
}

TEST(NewestExport, IsReadAlone) {
  const TempDir dir;
  const fs::path folder = fs::path(std::string(dir / "PROF_1")) / "mindstudio_profiler_output";
  fs::create_directories(folder);
  for (const char* time : {"20260101080000", "20260101090000"}) {
    std::ofstream(folder / (std::string("op_summary_") + time + ".csv"))
        << "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\nk,Mul,AI_CORE,1,2\n";
  }
  const Result<profd::analysis::Run> text = LoadRun({dir / "PROF_1"}, {}, {});
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  ASSERT_EQ(text->ranks.size(), 1u);
  EXPECT_EQ(text->ranks[0]->executions.size(), 1u);
  ASSERT_EQ(text->problems.size(), 1u);
  EXPECT_EQ(text->problems[0].where, folder.string());
  EXPECT_EQ(text->problems[0].what, "files of earlier exports are left out: op_summary_20260101080000.csv");

  for (const char* name : {"PROF_2", "collected"}) {
    fs::create_directories(std::string(dir / name));
    std::ofstream(dir / (std::string(name) + "/msprof_20260101080000.db"));
    std::ofstream(dir / (std::string(name) + "/msprof_20260101090000.db"));
  }
  const std::vector<Source> databases = FindSources(std::string(dir / "PROF_2"));
  ASSERT_EQ(databases.size(), 1u);
  EXPECT_EQ(databases[0].path.filename(), "msprof_20260101090000.db");
  EXPECT_THAT(databases[0].left_out, ::testing::ElementsAre("msprof_20260101080000.db"));
  EXPECT_EQ(FindSources(std::string(dir / "collected")).size(), 2u) << "of several runs";
}

// analysis 2.2, 2.3: exports of msprof, and those of level 0, have no communication.json.
class OutputWithoutCommunicationJson : public ::testing::Test {
 protected:
  static constexpr char kKernels[] =
      "Name,Type,Accelerator Core,Start Time(us),Duration(us)\n"
      "k,Mul,AI_CORE,110,10\nhcom_allReduce__586_0_1,hcom_allReduce_,HCCL,130,20\nreduceAivKernel,N/A,COMMUNICATION,131,5\nadam,Adam,AI_CORE,160,10\n";
  // Names of processes and threads, the step, and the operations of two groups with one of their tasks.
  static std::string Trace(const std::string& group, const std::string& operations) {
    return R"([{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"Python"}},{"ph":"M","name":"process_name","pid":2,"tid":0,"args":{"name":"Communication"}},)"
           R"({"ph":"M","name":"thread_name","pid":2,"tid":0,"args":{"name":"Group )" + group + R"( Communication"}},)"
           R"({"ph":"M","name":"thread_name","pid":2,"tid":1,"args":{"name":"Plane 0"}},)" + operations +
           R"({"ph":"X","name":"Notify_Wait","pid":2,"tid":1,"ts":"130.000","dur":5},)"
           R"({"ph":"X","name":"ProfilerStep#3","pid":1,"tid":1,"ts":"100.000","dur":100}])";
  }
  const Rank& Read(const std::string& trace, const std::string& communication = "") {
    const fs::path folder = fs::path(std::string(dir_ / "rank0_ascend_pt")) / "ASCEND_PROFILER_OUTPUT";
    fs::create_directories(folder);
    std::ofstream(folder / "kernel_details.csv") << kKernels;
    std::ofstream(folder / "trace_view.json") << trace;
    if (!communication.empty()) std::ofstream(folder / "communication.json") << communication;
    run_ = Loaded(dir_ / "rank0_ascend_pt");
    EXPECT_TRUE(run_.problems.empty());
    return *run_.ranks.at(0);
  }
  static std::vector<std::string> Describe(const Rank& rank) {
    std::vector<std::string> texts;
    for (const Collective& each : rank.collectives) {
      texts.push_back(std::string(rank.TextOf(each.name)) + " " + std::string(rank.TextOf(each.type)) + "@" + std::string(rank.TextOf(each.group)) + " at " +
                      std::to_string(each.start_ns) + " for " + std::to_string(std::lround(each.elapse_ms * 1e6)) + (each.p2p ? " p2p" : ""));
    }
    return texts;
  }

  TempDir dir_;
  profd::analysis::Run run_;
};

constexpr char kReduceOfTrace[] = R"({"ph":"X","name":"hcom_allReduce__586_0_1","pid":2,"tid":0,"ts":"130.001","dur":20.5},)";

TEST_F(OutputWithoutCommunicationJson, OperationsAreThoseOfTheTimeline) {
  const Rank& rank = Read(Trace("17522688603477080586", std::string(R"({"ph":"X","name":"hcom_send__586_1_1","pid":2,"tid":0,"ts":"180.000","dur":1},)") + kReduceOfTrace));
  EXPECT_THAT(Describe(rank), ::testing::ElementsAre("hcom_allReduce__586_0_1 hcom_allReduce_@17522688603477080586 at 130001 for 20500",
                                                     "hcom_send__586_1_1 hcom_send_@17522688603477080586 at 180000 for 1000 p2p"));
  // Backward ends before the all-reduce.
  ASSERT_EQ(rank.steps.size(), 1u);
  EXPECT_EQ(rank.steps[0].fp_ns, 110'000);
  EXPECT_EQ(rank.steps[0].bp_ns, 120'000);
  ASSERT_EQ(rank.steps[0].reduces.size(), 1u);
  EXPECT_EQ(rank.steps[0].reduces[0].end_ns, 150'501);
}

// A number within the file is of other groups in other ranks.
TEST_F(OutputWithoutCommunicationJson, GroupsThatAreOnlyNumberedAreByTheirOperations) {
  EXPECT_THAT(Describe(Read(Trace("0", kReduceOfTrace))), ::testing::ElementsAre("hcom_allReduce__586_0_1 hcom_allReduce_@586 at 130001 for 20500"));
}

TEST_F(OutputWithoutCommunicationJson, OperationsBetweenKernelsWhereTheTimelineHasNone) {
  const Rank& rank = Read(Trace("0", ""));
  EXPECT_THAT(Describe(rank), ::testing::ElementsAre("hcom_allReduce__586_0_1 hcom_allReduce_@586 at 130000 for 20000"));
  ASSERT_EQ(rank.steps.size(), 1u);
  EXPECT_EQ(rank.steps[0].bp_ns, 120'000);
}

TEST_F(OutputWithoutCommunicationJson, AreNotCountedBesideIt) {
  const Rank& rank = Read(Trace("0", kReduceOfTrace), R"json({"step3":{"collective":{"hcom_allReduce__586_0_1@17":{"Communication Time Info":
      {"Start Timestamp(us)":130,"Elapse Time(ms)":0.02}}}}})json");
  EXPECT_THAT(Describe(rank), ::testing::ElementsAre("hcom_allReduce__586_0_1 hcom_allReduce_@17 at 130000 for 20000"));
}

// analysis 2.2: what one can do something about is named.
class OutputInParts : public ::testing::Test {
 protected:
  fs::path Folder() const {
    const fs::path folder = fs::path(dir_ / "rank0_ascend_pt") / "ASCEND_PROFILER_OUTPUT";
    fs::create_directories(folder);
    return folder;
  }
  profd::analysis::Run Read(const std::string& kernels, const std::string& steps) {
    const fs::path folder = Folder();
    WriteText(folder / "kernel_details.csv", kernels);
    WriteText(folder / "step_trace_time.csv", steps);
    return Loaded(dir_ / "rank0_ascend_pt");
  }
  static std::vector<std::string> Problems(const profd::analysis::Run& run) {
    std::vector<std::string> texts;
    for (const Problem& each : run.problems) texts.push_back(fs::path(each.where).filename().string() + ": " + each.what);
    return texts;
  }

  TempDir dir_;
};

constexpr char kKernelHeader[] = "Name,Type,Accelerator Core,Start Time(us),Duration(us)\n";
constexpr char kStepHeader[] = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n";

TEST_F(OutputInParts, MissingColumnsAndTheFirstOfTheLines) {
  EXPECT_THAT(Problems(Read("Name,Type,Accelerator Core,Start Time(us)\na,Mul,AI_CORE,1\nb,Mul,AI_CORE,2\n", "Step,Computing,Foo,Communication,Free\n5,1,2,3,4\n")),
              ::testing::ElementsAre("kernel_details.csv: no column Duration(us) or Task Duration(us): 2 lines make no sense: left out, the first is line 2",
                                     "step_trace_time.csv: no column Communication(Not Overlapped): 1 line makes no sense: left out, the first is line 2"));
  EXPECT_THAT(Problems(Read(std::string(kKernelHeader) + "a,Mul,AI_CORE,1,1\nb,Mul,AI_CORE,x,1\nc,Mul,AI_CORE,3,1\nd,Mul,AI_CORE,4,-1\n", kStepHeader + std::string("5,1,2,0,2,3,6,0\n"))),
              ::testing::ElementsAre("kernel_details.csv: 2 lines make no sense: left out, the first is line 3"));
  EXPECT_THAT(Problems(Read("Name\n", "Step\n")), ::testing::IsEmpty()) << "nothing is left out";
}

// Shares of the core's time are no negative numbers, nor far more than 1.
TEST_F(OutputInParts, CountersThatCannotBe) {
  const auto run = Read("Name,Type,Accelerator Core,Start Time(us),Duration(us),aic_mac_ratio,aic_mac_time(us)\na,Mul,AI_CORE,1,2,0.5,1\na,Mul,AI_CORE,4,2,-1,1\n"
                        "a,Mul,AI_CORE,7,2,1e9,1\na,Mul,AI_CORE,10,2,0.5,-1\na,Mul,AI_CORE,13,2,N/A,1e308\na,Mul,AI_CORE,16,2,1.01,1\n",
                        std::string(kStepHeader) + "5,1,2,0,2,3,6,0\n");
  EXPECT_THAT(Problems(run), ::testing::ElementsAre("kernel_details.csv: 4 lines make no sense: left out, the first is line 3"));
  ASSERT_EQ(run.ranks.at(0)->operators.size(), 1u);
  EXPECT_EQ(run.ranks[0]->operators[0].counted_ns, 4000);
  EXPECT_DOUBLE_EQ(run.ranks[0]->operators[0].Ratio(0), (0.5 + 1.01) / 2);
  EXPECT_EQ(run.ranks[0]->executions.size(), 2u);
}

constexpr char kOneKernel[] = "Name,Type,Accelerator Core,Start Time(us),Duration(us)\na,Mul,AI_CORE,1,1\n";
constexpr char kUnlikeJson[] = R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":10,"dur":5},{"ph":"X","name":"b","pid":1,"tid":1,"ts":20,"dur":NaN},)"
                               R"({"ph":"C","name":"c","pid":1,"ts":25,"args":{"value":-Infinity}},{"ph":"X","name":"d","pid":1,"tid":1,"ts":30,"dur":5}])";
constexpr char kOneStep[] = "Step,Computing,Communication(Not Overlapped),Communication,Free\n5,1,2,3,4\n";

TEST_F(OutputInParts, MissingColumnsThatCostNoLine) {
  WriteText(Folder() / "memory_record.csv", "Timestamp(us),Total Allocated(MB)\n1,2\n");
  WriteText(Folder() / "operator_memory.csv", "Size(KB),Release Time(us)\n1,2\n");
  EXPECT_THAT(Problems(Read("Start Time(us),Duration(us)\n1,1\n", "Computing,Communication(Not Overlapped),Communication,Free\n1,2,3,4\n")),
              ::testing::UnorderedElementsAre("kernel_details.csv: no column Name or Op Name, no column Type or OP Type, no column Accelerator Core or Task Type",
                                              "step_trace_time.csv: no column Step", "memory_record.csv: no column Component",
                                              "operator_memory.csv: no column Allocation Time(us), no column Name"));
}

TEST_F(OutputInParts, AFileThatCannotBeReadIsNamedOnce) {
  fs::create_directories(Folder() / "communication.json");
  EXPECT_THAT(Problems(Read(kOneKernel, kOneStep)), ::testing::ElementsAre("communication.json: not a plain file"));
}

TEST_F(OutputInParts, CommunicationWithValuesThatAreNone) {
  const auto operation = [](const std::string& elapse, const std::string& size) {
    return R"json({"Communication Time Info": {"Start Timestamp(us)": 5.5, "Elapse Time(ms)": )json" + elapse +
           R"json(}, "Communication Bandwidth Info": {"SDMA": {"Transit Size(MB)": )json" + size + R"json(, "Transit Time(ms)": 2}}})json";
  };
  const auto written = [&](const std::string& steps) {
    WriteText(Folder() / "communication.json", R"({"step1": {"collective": {)" + steps + "}");
    return Read(kOneKernel, kOneStep);
  };
  const auto run = written(R"("hcom_a__1_\"NaN\"@7": )" + operation("1", "4") + R"(, "hcom_b__2@7": )" + operation("NaN", "4") + R"(, "hcom_c__3@7": )" +
                           operation("3", "\"abc\"") + R"(, "hcom_d__4@7": )" + operation("4", "-Infinity") + R"(, "hcom_e__5@7": )" + operation("5", "6") + R"(}}, "step2": null)");
  EXPECT_THAT(Problems(run), ::testing::ElementsAre("communication.json: 4 values make no sense: what is described there is left out, the first is Elapse Time(ms) of hcom_b__2@7"));
  const std::vector<Collective>& collectives = run.ranks.at(0)->collectives;
  ASSERT_EQ(collectives.size(), 4u);
  EXPECT_EQ(run.ranks[0]->TextOf(collectives[0].name), "hcom_a__1_\"NaN\"");
  EXPECT_EQ(collectives[0].transports.size(), 1u);
  EXPECT_TRUE(collectives[1].transports.empty());
  EXPECT_TRUE(collectives[2].transports.empty());
  EXPECT_DOUBLE_EQ(collectives[3].transports.at(0).size_mb, 6);
  EXPECT_THAT(Problems(written("}")), ::testing::ElementsAre("communication.json: the JSON is damaged at byte 29: all of it is left out"));
  WriteText(Folder() / "communication_matrix.json", R"json({"step1": {"collective": {"allreduce-total@7": {"0-1": {"Transport Type": "HCCS", "Transit Size(MB)": NaN, "Transit Time(ms)": 1},
                                                        "0-2": {"Transport Type": "HCCS", "Transit Size(MB)": 3, "Transit Time(ms)": 1}}}}})json");
  const auto links = written("}}");
  EXPECT_THAT(Problems(links), ::testing::ElementsAre("communication_matrix.json: 1 value makes no sense: what is described there is left out, the first is Transit Size(MB) of allreduce-total@7"));
  ASSERT_EQ(links.ranks.at(0)->links.size(), 1u);
  EXPECT_DOUBLE_EQ(links.ranks[0]->links[0].size_mb, 3);
}

// Python writes NaN and Infinity: such an event is left out alone. The first of the bad ones ends at byte 109, 112 behind the mark.
TEST_F(OutputInParts, ATimelineWithNumbersThatAreNone) {
  for (const bool mark : {false, true}) {
    WriteText(Folder() / "trace_view.json", std::string(mark ? "\xEF\xBB\xBF" : "") + kUnlikeJson);
    const auto run = Read(kOneKernel, kOneStep);
    EXPECT_THAT(Problems(run), ::testing::ElementsAre(std::string("trace_view.json: 1 event makes no sense: left out, the first ends at byte ") + (mark ? "112" : "109")));
    ASSERT_EQ(run.ranks.at(0)->slices.size(), 2u);
    EXPECT_EQ(run.ranks[0]->TextOf(run.ranks[0]->slices[1].name), "d");
    EXPECT_TRUE(run.ranks[0]->hardware.empty());
  }
}

TEST_F(OutputInParts, AHeaderAloneWhereOtherFilesHaveWhatItLacks) {
  EXPECT_THAT(Problems(Read(kOneKernel, kStepHeader)),
              ::testing::ElementsAre("step_trace_time.csv: has a header alone, though other files have kernels: the shares of steps are left out"));
  EXPECT_THAT(Problems(Read(kKernelHeader, kOneStep)),
              ::testing::ElementsAre("kernel_details.csv: has a header alone, though other files have kernels: what it describes of them is left out"));
  WriteText(Folder() / "memory_record.csv", "Component,Timestamp(us),Total Allocated(MB)\n");
  EXPECT_THAT(Problems(Read(kOneKernel, kOneStep)), ::testing::IsEmpty()) << "memory need not have been recorded";
  WriteText(Folder() / "operator_memory.csv", "Name,Size(KB),Allocation Time(us)\nk,1,1\n");
  EXPECT_THAT(Problems(Read(kOneKernel, kOneStep)),
              ::testing::ElementsAre("memory_record.csv: has a header alone, though other files have memory of operators: memory over time is left out"));
}

TEST_F(OutputInParts, DamagedMetadata) {
  WriteText(Folder().parent_path() / "profiler_metadata.json", R"({"ENV_VARIABLES": {"HCCL_AL)");
  EXPECT_THAT(Problems(Read(kOneKernel, kOneStep)),
              ::testing::ElementsAre("profiler_metadata.json: no JSON object: environment variables, groups of ranks and sizes of parallelism are left out"));
}

// What is left of a number that was cut looks like one: of 115.303 us free 1.
TEST_F(OutputInParts, ALineThatWasCut) {
  const auto run = Read("Name,Type,Accelerator Core,Start Time(us),Duration(us),Block Dim\na,Mul,AI_CORE,1,12.5,1\nb,Mul,AI_CORE,20,1", std::string(kStepHeader) + "5,1,2,0,2,3,6,0\n6,1,2,0,2,1");
  EXPECT_THAT(Problems(run), ::testing::ElementsAre("kernel_details.csv: 1 line makes no sense: left out, the first is line 3",
                                                    "step_trace_time.csv: 1 line makes no sense: left out, the first is line 3"));
  EXPECT_EQ(run.ranks.at(0)->executions.size(), 1u);
  EXPECT_EQ(run.ranks[0]->shares.size(), 1u);
  EXPECT_THAT(Problems(Read("Name,Type,Accelerator Core,Start Time(us),Duration(us)\na,Mul,AI_CORE,1,1", std::string(kStepHeader) + "5,1,2,0,2,3,6,0")), ::testing::IsEmpty())
      << "some writers end no last line";
}

// The second step ends at 50: the rest of the number is not there. The third one ends before it starts.
TEST_F(OutputInParts, LinesOfOtherToolsThatWereCut) {
  for (const char* folder : {"a", "b/cluster_analysis_output"}) fs::create_directories(std::string(dir_ / folder));
  WriteText(dir_ / "a/step_trace_raw_0_detail_time.csv", "step_num,start_point,end_point,total,fp_point,bp_point\n1,100,300,200,110,200\n2,300,50\n3,400,399,1,1,1\n");
  WriteText(dir_ / "a/ascend_cluster_analyse_data-parallel_1_1_0.csv", "computation_time,communication_alone_time,stage_time\n0.001,0.0005,0.002\n0.0\n");
  WriteText(dir_ / "a/minddata_pipeline_raw_0.csv", "op_id,op_type,num_workers,children_id\n0,Batch,4,[1]\n1,Map,4\n");
  WriteText(dir_ / "b/cluster_analysis_output/cluster_step_trace_time.csv",
            "Step,Type,Index,Computing,Communication(Not Overlapped),Communication,Free,Preparing\n1,rank,0,1,1,1,1,0\n1,rank,1,1,1,1\n1,rank,2,1,1,1,1");
  auto run = Loaded(dir_ / "a");
  EXPECT_THAT(Problems(run), ::testing::ElementsAre("step_trace_raw_0_detail_time.csv: 2 lines make no sense: left out, the first is line 3",
                                                     "ascend_cluster_analyse_data-parallel_1_1_0.csv: 1 line makes no sense: left out, the first is line 3",
                                                     "minddata_pipeline_raw_0.csv: 1 line makes no sense: left out, the first is line 3"));
  EXPECT_EQ(run.ranks.at(0)->steps.size(), 1u);
  EXPECT_EQ(run.ranks[0]->pipeline.operators.size(), 1u);
  EXPECT_EQ(run.ranks[0]->shares.at(1).computing, 0.001);
  run = Loaded(dir_ / "b");
  EXPECT_THAT(Problems(run), ::testing::ElementsAre("cluster_step_trace_time.csv: 2 lines make no sense: left out, the first is line 3"));
  EXPECT_EQ(run.ranks.size(), 1u);
}

// The columns are those of each rank's own file (analysis 2.4), and earlier releases do not write "Preparing".
TEST_F(OutputInParts, RanksOfACluster) {
  WriteText(dir_ / "cluster_step_trace_time.csv", "Step,Type,Index,Computing,Communication(Not Overlapped),Communication,Free,Preparing,DP Index,PP Index,TP Index\n"
                                                  "1,rank,0,1000,1,1,1,5000,0,1,2\n1,rank,1,2000,1,1,1,3,4,5\n");
  const auto run = LoadRun({dir_.path()}, {}, {});
  ASSERT_TRUE(run.ok() && run->ranks.size() == 2 && run->problems.empty()) << run.status().ToString();
  EXPECT_EQ(run->ranks[0]->shares.at(1).preparing, 5);
  EXPECT_EQ(run->ranks[1]->shares.at(1).preparing, std::nullopt);
  EXPECT_EQ(run->ranks[1]->parallel_index, (std::array<int64_t, 3>{3, 4, 5}));
}

// analysis 2.2: a column's unit is in its name.
TEST_F(OutputInParts, UnitsOfMemoryAreThoseOfTheirColumns) {
  WriteText(Folder() / "memory_record.csv", "Component,Timestamp(us),Total Reserved(MB),Total Active(KB)\nPTA,1,200,512\n");
  const auto run = Read(kOneKernel, kOneStep);
  const auto& samples = run.ranks.at(0)->memory.at("PTA");
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].allocated, std::nullopt);
  EXPECT_EQ(samples[0].reserved, 200);
  EXPECT_EQ(samples[0].active, 0.5);
}

TEST_F(OutputInParts, AWaitForDataThatEndsBeforeItStarts) {
  WriteText(dir_ / "minddata_aicpu_0.txt", "GetNext_dequeue_wait 100000 50 0\nGetNext_dequeue_wait 1000 1250 3\n");
  const auto run = Loaded(dir_.path());
  EXPECT_THAT(run.ranks.at(0)->pipeline.get_next_ms, ::testing::ElementsAre(0.25));
  EXPECT_THAT(Problems(run), ::testing::ElementsAre("minddata_aicpu_0.txt: 1 line makes no sense: left out, the first is line 1"));
}

// Computing 50, uncovered communication 20, overlapped 5 and free 10 ms; stage and bubble are these, too.
TEST_F(OutputInParts, ACellOfAStepFollowsFromTheOthers) {
  for (const char* row : {"N/A,20000,5000,25000,10000,79000,1000", "-1,20000,5000,25000,10000,79000,1000", "50000,20000,5000,25000,1e308,79000,1000", "50000,N/A,5000,25000,10000,79000,1000", "50000,20000,5000,,10000,79000,1000",
                          "50000,20000,5000,25000,nan,79000,1000", "50000,20000,N/A,25000,10000,N/A,N/A"}) {
    const auto run = Read(kOneKernel, std::string(kStepHeader) + "5," + row + "\n");
    EXPECT_THAT(Problems(run), ::testing::IsEmpty()) << row;
    ASSERT_EQ(run.ranks.at(0)->shares.size(), 1u) << row;
    const Shares& shares = run.ranks[0]->shares.at(5);
    EXPECT_DOUBLE_EQ(shares.computing, 50) << row;
    EXPECT_DOUBLE_EQ(shares.uncovered, 20) << row;
    EXPECT_DOUBLE_EQ(shares.communication, 25) << row;
    EXPECT_DOUBLE_EQ(shares.free, 10) << row;
  }
  // Two are missing of one sum, the sum is missing, the parts are more than all.
  for (const char* row : {"-1,20000,5000,25000,1e308,79000,1000", "N/A,20000,5000,25000,N/A,79000,1000", "N/A,20000,5000,25000,10000,N/A,1000", "N/A,20000,5000,25000,90000,79000,1000"}) {
    const auto run = Read(kOneKernel, std::string(kStepHeader) + "5," + row + "\n");
    EXPECT_THAT(Problems(run), ::testing::ElementsAre("step_trace_time.csv: 1 line makes no sense: left out, the first is line 2")) << row;
    EXPECT_TRUE(run.ranks.at(0)->shares.empty()) << row;
  }
}

// A rank of which nothing can be read is a problem; the others are read.
class BrokenRank : public ::testing::Test {
 protected:
  fs::path Output(const std::string& rank) const {
    const fs::path folder = fs::path(std::string(dir_ / "run")) / (rank + "_ascend_pt") / "ASCEND_PROFILER_OUTPUT";
    fs::create_directories(folder);
    return folder;
  }
  static void WriteKernels(const fs::path& folder) { std::ofstream(folder / "kernel_details.csv") << "Name,Type,Accelerator Core,Start Time(us),Duration(us)\nk,Mul,AI_CORE,1,2\n"; }
  Result<profd::analysis::Run> Load() const { return LoadRun({dir_ / "run"}, {}, {}); }

  TempDir dir_;
};

// Two recordings of a rank in one folder, and one folder twice.
TEST_F(BrokenRank, OfOneNumberTheOneThatBeganLastIsRead) {
  const auto write = [this](const std::string& name, int rank, int start_us) {
    const fs::path folder = Output(name);
    WriteText(folder / "kernel_details.csv", "Name,Type,Accelerator Core,Start Time(us),Duration(us)\nk,Mul,AI_CORE," + std::to_string(start_us) + ",2\n");
    WriteText(folder.parent_path() / ("profiler_info_" + std::to_string(rank) + ".json"), "{}");
    return folder.string();
  };
  const std::string later = write("a", 0, 20);
  const std::string earlier = write("b", 0, 10);
  const std::string other = write("c", 1, 10);
  const auto run = LoadRun({dir_ / "run", later}, {}, {});
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  ASSERT_EQ(run->ranks.size(), 2u);
  EXPECT_EQ(run->ranks[0]->rank, 0);
  EXPECT_EQ(run->ranks[0]->path, later);
  EXPECT_EQ(run->ranks[1]->path, other);
  ASSERT_EQ(run->problems.size(), 1u);
  EXPECT_EQ(run->problems[0].where, earlier);
  EXPECT_EQ(run->problems[0].what, "rank 0 is left out: it is read from " + later);
}

constexpr char kEmpty[] = "the file is empty";

TEST_F(BrokenRank, DatabasesSayWhyTheyCannotBeRead) {
  WriteKernels(Output("n_0"));
  const fs::path empty = Output("n_1") / "ascend_pytorch_profiler_1.db";
  const fs::path overwritten = Output("n_2") / "ascend_pytorch_profiler_2.db";
  std::ofstream{empty};
  std::ofstream(overwritten) << std::string(8192, 'x');
  const auto run = Load();
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  EXPECT_EQ(run->ranks.size(), 1u);
  ASSERT_EQ(run->problems.size(), 2u);
  EXPECT_EQ(run->problems[0].where, empty.string());
  EXPECT_EQ(run->problems[0].what, kEmpty);
  EXPECT_EQ(run->problems[1].where, overwritten.string());
  EXPECT_EQ(run->problems[1].what, "file is not a database") << "as SQLite has it";
}

TEST_F(BrokenRank, TheOnlyOneIsNamed) {
  const fs::path empty = Output("n_0") / "ascend_pytorch_profiler_0.db";
  std::ofstream{empty};
  EXPECT_EQ(Load().status().message(), "run: nothing in it could be read: " + empty.string() + ": " + kEmpty);
}

// docs/profctl.md: 4, there is no such thing; 3, not allowed.
TEST_F(BrokenRank, ADumpWithoutRecordsAndOneOfAnotherUser) {
  const fs::path dump = fs::path(std::string(dir_ / "run")) / "PROF_1";
  fs::create_directories(dump / "host" / "data");
  std::ofstream(dump / "host/start_info") << R"({"collectionTimeBegin":"1767225600000000","clockMonotonicRaw":"1000"})";
  std::ofstream(dump / "host/end_info") << R"({"collectionTimeEnd":"1767225610000000","clockMonotonicRaw":"10000001000"})";
  std::ofstream(dump / "host/info.json") << R"({"platform_version":"5","CPU":[{}],"DeviceInfo":[{"hwts_frequency":"50"}],"hostname":"n1","pid":"7"})";
  std::ofstream(dump / "host/host_start.log") << "clock_monotonic_raw: 1000\ncntvct: 1\n";
  EXPECT_EQ(Load().status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Load().status().message(), "run: it holds no records to analyse");
  for (const fs::path& folder : {fs::path(dir_.path()), dump.parent_path()}) {
    fs::permissions(folder, fs::perms::all);  // its group is that of the test
  }
  fs::permissions(dump, fs::perms::none);
  const bool root = geteuid() == 0;
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const Status status = LoadRun({dump.string()}, {}, {}).status();
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(status.message(), dump.string() + ": Permission denied; its owner and root can read it, and profctl fetch brings a copy");
  fs::permissions(dump, fs::perms::owner_all);
}

TEST_F(BrokenRank, TextIsReadInPlaceOfADatabase) {
  const fs::path folder = Output("n_0");
  std::ofstream{folder / "ascend_pytorch_profiler_0.db"};
  WriteKernels(folder);
  auto run = Load();
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  ASSERT_EQ(run->ranks.size(), 1u);
  EXPECT_EQ(run->ranks[0]->source, "PyTorch, text");
  EXPECT_EQ(run->ranks[0]->executions.size(), 1u);
  ASSERT_EQ(run->problems.size(), 1u);
  EXPECT_EQ(run->problems[0].where, (folder / "ascend_pytorch_profiler_0.db").string());
  EXPECT_EQ(run->problems[0].what, std::string(kEmpty) + ": the text beside it is read instead");
  // Of which of two databases the text is, is not known.
  std::ofstream{folder / "ascend_pytorch_profiler_1.db"};
  EXPECT_FALSE(Load().ok());
}

TEST_F(BrokenRank, AnEmptyOutputIsAProblem) {
  WriteKernels(Output("n_0"));
  const fs::path empty = Output("n_1");
  // Not yet analysed: raw data stands beside it.
  fs::create_directories(Output("n_2").parent_path() / "PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP" / "host");
  std::vector<fs::path> found;
  for (const Source& source : FindSources(std::string(dir_ / "run"))) {
    if (source.kind == SourceKind::kEmpty) found.push_back(source.path);
  }
  EXPECT_THAT(found, ::testing::ElementsAre(empty));
  fs::remove_all(dir_ / "run/n_2_ascend_pt");
  const auto run = Load();
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  ASSERT_EQ(run->problems.size(), 1u);
  EXPECT_EQ(run->problems[0].where, empty.string());
  EXPECT_EQ(run->problems[0].what, "neither a database nor CSV or JSON of an export is in it");
}

TEST_F(BrokenRank, AClusterAnalysisStandsForEmptyOutputs) {
  Output("n_0");
  const fs::path cluster = fs::path(std::string(dir_ / "run")) / "cluster_analysis_output";
  fs::create_directories(cluster);
  std::ofstream(cluster / "cluster_step_trace_time.csv") << "Step,Type,Index,Computing,Communication(Not Overlapped),Communication,Free\n1,rank,0,1,1,1,1\n";
  const std::vector<Source> sources = FindSources(std::string(dir_ / "run"));
  ASSERT_EQ(sources.size(), 1u);
  EXPECT_EQ(sources[0].kind, SourceKind::kCluster);
  WriteText(cluster / "cluster_step_trace_time.csv", "Step,Type,Index,Computing,Communication(Not Overlapped),Communication,Free\n");
  EXPECT_EQ(Load().status().message(), "run: nothing in it could be read: " + (cluster / "cluster_step_trace_time.csv").string() +
                                           ": has a header alone: the shares of steps are left out");
}

}  // namespace
}  // namespace profd::analysis
