// What profd recorded itself, in tables and timelines that `profctl export` made (export.md, CSV).
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/read/readers.h"
#include "analysis/views/views.h"
#include "dump/test_support.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

class RecordedTablesTest : public ::testing::Test {
 protected:
  static constexpr int64_t kStartNs = 1'767'225'600'000'000'000;

  void Put(const std::string& name, const std::string& text) { WriteText(dir_ / name, text); }
  // Two kernels of a device, then an all-reduce, with a call that launched the first kernel and one that launched nothing.
  void PutTables() {
    Put("kernel_20260101000000.csv",
        "Device_id,Name,Type,Stream ID,Start Time(us),Duration(us),Pid,Rank,Thread,Correlation\n"
        "2,\"Add,x\",KERNEL_AIVEC,3,1767225600000010.000\t,5.000,42,7,43,11\n"
        "2,MatMul,KERNEL_AICORE,3,1767225600000020.000\t,10.000,42,7,43,18446744073709551615\n"
        "2,MatMul,KERNEL_AICORE,3,1767225600000040.000\t,-1.000,42,7,43,12\n"
        "host,MatMul,KERNEL_AICORE,3,1767225600000050.000\t,1.000,42,7,43,13\n");
    Put("communication_20260101000000.csv",
        "Device_id,Name,Communicator,Algorithm,Stream ID,Start Time(us),Duration(us),Count,Data Type,Bandwidth,Pid,Rank,Correlation\n"
        "2,hcom_allReduce_,world,N/A,4,1767225600000030.000\t,8.000,64,0,N/A,42,7,N/A\n");
  }
  void PutCalls() {
    Put("api_20260101000000.csv",
        "Device_id,Level,API Name,Start Time(us),Duration(us),Pid,Rank,Thread,Correlation\n"
        "host,node,aclnnAdd,1767225600000001.000\t,2.000,42,7,43,11\n"
        "host,runtime,rtEventQuery,1767225600000004.000\t,1.000,42,7,43,11\n");
  }
  const Rank& Read() {
    EXPECT_TRUE(ReadProfilerOutput(fs::path(dir_.path()), {.problems = &problems_}, &ranks_).ok());
    return *ranks_.at(0);
  }

  TempDir dir_;
  Ranks ranks_;
  std::vector<Problem> problems_;
};

TEST_F(RecordedTablesTest, AreThatOfTheDump) {
  PutTables();
  PutCalls();
  const Rank& rank = Read();
  EXPECT_EQ(rank.rank, 7);
  EXPECT_EQ(rank.device, 2);
  ASSERT_EQ(rank.executions.size(), 2u);
  EXPECT_EQ(rank.executions[0].start_ns, kStartNs + 10'000);
  EXPECT_EQ(rank.executions[1].end_ns, kStartNs + 30'000);
  EXPECT_EQ(rank.TextOf(rank.operators.at(0).name), "Add,x");
  EXPECT_EQ(rank.TextOf(rank.operators[0].core), "AI_VECTOR_CORE");
  EXPECT_EQ(rank.TextOf(rank.operators.at(1).core), "AI_CORE");
  ASSERT_EQ(rank.collectives.size(), 1u);
  EXPECT_EQ(rank.TextOf(rank.collectives[0].group), "world");
  EXPECT_EQ(rank.collectives[0].elapse_ms, Ms(8000));
  const auto overall = OverallOf(rank);
  ASSERT_TRUE(overall);
  EXPECT_EQ(overall->e2e_ms, Ms(28'000)) << "from 10 to 38 us";
  EXPECT_EQ(overall->shares.computing, Ms(15'000));
  EXPECT_EQ(overall->shares.uncovered, Ms(8'000));
  ASSERT_EQ(rank.flows.size(), 1u);
  EXPECT_EQ(rank.TextOf(rank.slices.at(rank.flows[0].slice).name), "Node@launch aclnnAdd");
  EXPECT_EQ(rank.flows[0].execution, 0u);
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_NE(problems_[0].what.find("the first is line 4"), std::string::npos) << problems_[0].what;
}

// Calls, collectives and what launched what are on the timeline, as trace_format writes them.
TEST_F(RecordedTablesTest, OfATimelineBesideThemOnlyItsCallsAreRead) {
  PutTables();
  PutCalls();
  Put("msprof_20260101000000.json",
      R"([{"name":"process_name","pid":1,"tid":0,"ph":"M","args":{"name":"Ascend Hardware"}},
{"name":"thread_name","pid":1,"tid":3,"ph":"M","args":{"name":"Stream 3"}},
{"name":"Add,x","pid":1,"tid":3,"ts":"1767225600000010.000","dur":5.0,"ph":"X","args":{"stream":3,"type":"KERNEL_AIVEC"}},
{"name":"HostToDevice","pid":1,"tid":3,"ph":"f","bp":"e","cat":"HostToDevice","id":"42_11","ts":"1767225600000010.000","args":{}},
{"name":"process_name","pid":2,"tid":0,"ph":"M","args":{"name":"CANN"}},
{"name":"aclnnAdd","pid":2,"tid":9,"ts":"1767225600000001.000","dur":2.0,"ph":"X","args":{"level":"node"}},
{"name":"HostToDevice","pid":2,"tid":9,"ph":"s","cat":"HostToDevice","id":"42_11","ts":"1767225600000001.000","args":{}},
{"name":"process_name","pid":3,"tid":0,"ph":"M","args":{"name":"Communication"}},
{"name":"hcom_allReduce_","pid":3,"tid":4,"ts":"1767225600000030.000","dur":8.0,"ph":"X","args":{"communicator":"world"}}])");
  const Rank& rank = Read();
  EXPECT_EQ(rank.executions.size(), 2u);
  EXPECT_EQ(rank.collectives.size(), 1u);
  EXPECT_EQ(rank.slices.size(), 2u) << "a call and the collective";
  ASSERT_EQ(rank.flows.size(), 1u);
  EXPECT_EQ(rank.flows[0].execution, 0u);
}

TEST_F(RecordedTablesTest, ATimelineAloneHasTheKernelsToo) {
  Put("msprof_20260101000000.json",
      R"([{"name":"process_name","pid":1,"tid":0,"ph":"M","args":{"name":"Ascend Hardware"}},
{"name":"MatMul","pid":1,"tid":3,"ts":"1767225600000010.000","dur":5.0,"ph":"X","args":{"stream":3,"type":"KERNEL_AICORE"}},
{"name":"copy","pid":1,"tid":3,"ts":"1767225600000020.000","dur":5.0,"ph":"X","args":{"stream":3,"type":"MEMCPY_ASYNC"}}])");
  const Rank& rank = Read();
  ASSERT_EQ(rank.executions.size(), 1u);
  EXPECT_EQ(rank.TextOf(rank.operators.at(0).core), "AI_CORE");
}

TEST_F(RecordedTablesTest, AreNotReadBesideTheSameTasksOfTheVendorsProfiler) {
  PutTables();
  Put("op_summary_20260101000000.csv",
      "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\n0,MatMul_1,MatMulV2,AI_CORE,1767225600000010.100,4.9\n");
  const Rank& rank = Read();
  ASSERT_EQ(rank.executions.size(), 1u);
  EXPECT_EQ(rank.executions[0].start_ns, kStartNs + 10'100);
  EXPECT_TRUE(rank.collectives.empty());
}

TEST_F(RecordedTablesTest, AreARunUnlessThereAreDumps) {
  const auto kinds = [this] {
    std::vector<SourceKind> found;
    for (const Source& each : FindSources(dir_.path())) found.push_back(each.kind);
    return found;
  };
  Put("kernel.csv", "a table of another tool\n");
  EXPECT_EQ(kinds(), std::vector<SourceKind>());
  PutTables();
  EXPECT_EQ(kinds(), std::vector{SourceKind::kText});
  MakeSmallDump(std::string(dir_ / "PROF_1"));
  EXPECT_EQ(kinds(), std::vector{SourceKind::kDump});
}

}  // namespace
}  // namespace profd::analysis
