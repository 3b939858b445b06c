// CSVs of what training processes did.
#include "export/csv/csv_test_support.h"

namespace profd::exporting {
namespace {

class ActivityCsvTest : public CsvTest {
 protected:
  // name, type, duration, stream, pid, rank, thread, correlation
  void AddKernel(BatchBuilder& rows, int64_t at, std::string_view name, int64_t ns, int64_t rank = 3,
                 int64_t correlation = 9) {
    rows.Add(kStartNs + at, Intern(name), Intern("KERNEL_AICORE"), ns, 5, 42, rank, 43, correlation);
  }
};

TEST_F(ActivityCsvTest, KernelsAsRowsAndByNameAndType) {
  auto sink = Open(-1, "activity_kernel.data");
  for (int device : {0, 1}) {
    BatchBuilder rows(TableOf(TableId::kKernel), device, {}, *sink);
    AddKernel(rows, 1000, "Add", 2000);
    if (device == 0) {
      AddKernel(rows, 5000, "MatMul,\"x\"", 6500);
      AddKernel(rows, 20000, "Add", 1000, -1, 0);
    }
    rows.Flush();
  }
  ASSERT_TRUE(sink->Finish().ok());
  sink.reset();
  End();
  EXPECT_EQ(Csv("kernel"),
            "Device_id,Name,Type,Stream ID,Start Time(us),Duration(us),Pid,Rank,Thread,Correlation\n"
            "0,Add,KERNEL_AICORE,5,1767225600000001.000\t,2.000,42,3,43,9\n"
            "0,\"MatMul,\"\"x\"\"\",KERNEL_AICORE,5,1767225600000005.000\t,6.500,42,3,43,9\n"
            "0,Add,KERNEL_AICORE,5,1767225600000020.000\t,1.000,42,N/A,43,N/A\n"
            "1,Add,KERNEL_AICORE,5,1767225600000001.000\t,2.000,42,3,43,9\n");
  EXPECT_EQ(Csv("task_time").substr(0, 170),
            "Device_id,kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),task_stop(us)\n"
            "0,Add,KERNEL_AICORE,5,N/A,2.000,1767225600000001.000\t,1767225600000003.000\t");
  // 2 + 1 of 9.5 us: 31.579 %.
  EXPECT_EQ(Csv("op_statistic"),
            "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
            "0,\"MatMul,\"\"x\"\"\",KERNEL_AICORE,1,6.500,6.500,6.500,6.500,68.421\n"
            "0,Add,KERNEL_AICORE,2,3.000,1.000,1.500,2.000,31.579\n"
            "1,Add,KERNEL_AICORE,1,2.000,2.000,2.000,2.000,100.000\n");
}

// As the vendor's tables have it; export.md, CSV summaries.
TEST_F(ActivityCsvTest, NamesThatASpreadsheetTakesForFormulasStayAsTheyAre) {
  Feed(0, TableId::kKernel, [this](BatchBuilder& rows) { AddKernel(rows, 1000, "=A1+@B", 2000); });
  End();
  EXPECT_NE(Csv("kernel").find("\n0,=A1+@B,KERNEL_AICORE,"), std::string::npos);
}

TEST_F(ActivityCsvTest, CallsByNameAndLevelWithTheirVariance) {
  // name, level, duration, pid, rank, thread, correlation
  Feed(-1, TableId::kApi, [this](BatchBuilder& rows) {
    rows.Add(kStartNs, Intern("launch"), 3, 1000, 42, 0, 43, 7);
    rows.Add(kStartNs, Intern("launch"), 3, 4000, 42, 0, 43, 8);
    rows.Add(kStartNs, Intern("aclnnAdd"), 1, 500, 42, 0, 43, 0);
  });
  End();
  // Of 1 and 4 us: mean 2.5, population variance 2.25.
  EXPECT_EQ(Csv("api_statistic"),
            "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n"
            "host,acl,aclnnAdd,0.500,1,0.500,0.500,0.500,0.000\n"
            "host,runtime,launch,5.000,2,2.500,1.000,4.000,2.250\n");
  EXPECT_EQ(Csv("api"),
            "Device_id,Level,API Name,Start Time(us),Duration(us),Pid,Rank,Thread,Correlation\n"
            "host,runtime,launch,1767225600000000.000\t,1.000,42,0,43,7\n"
            "host,runtime,launch,1767225600000000.000\t,4.000,42,0,43,8\n"
            "host,acl,aclnnAdd,1767225600000000.000\t,0.500,42,0,43,N/A\n");
}

TEST_F(ActivityCsvTest, CommunicationMarkersAndMemory) {
  auto sink = Open(-1, "activity_x.data");
  {
    // name, communicator, algorithm, duration, stream, pid, rank, correlation, count, type, bandwidth
    BatchBuilder rows(TableOf(TableId::kCommunication), 2, {}, *sink);
    rows.Add(kStartNs, Intern("hcom_allReduce_"), Intern("tp0"), Intern(""), 8000, 4, 42, 0, 11, 1024, -1, 2.5);
    rows.Flush();
  }
  {
    // name, domain, source, kind, id, stream, pid, rank, thread
    BatchBuilder rows(TableOf(TableId::kMarker), 2, {}, *sink);
    rows.Add(kStartNs, Intern("step"), Intern("default"), 1, 2, 77, 4, 42, 0, 0);
    rows.Flush();
  }
  {
    // operation, duration, bytes, address, stream, pid, rank, correlation, is_async, detail
    BatchBuilder rows(TableOf(TableId::kMemory), 2, {}, *sink);
    rows.Add(kStartNs, 1, 300, 4096, int64_t{-16}, -1, 42, 0, 0, 0, 2);
    rows.Flush();
  }
  ASSERT_TRUE(sink->Finish().ok());
  sink.reset();
  End();
  EXPECT_EQ(Csv("communication"),
            "Device_id,Name,Communicator,Algorithm,Stream ID,Start Time(us),Duration(us),Count,Data Type,"
            "Bandwidth,Pid,Rank,Correlation\n"
            "2,hcom_allReduce_,tp0,N/A,4,1767225600000000.000\t,8.000,1024,N/A,2.5,42,0,11\n");
  EXPECT_EQ(Csv("communication_statistic"),
            "Device_id,OP Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
            "2,hcom_allReduce_,1,8.000,8.000,8.000,8.000,100.000\n");
  EXPECT_EQ(Csv("marker"),
            "Device_id,Name,Domain,Source,Kind,Time(us),Id,Stream ID,Pid,Rank,Thread\n"
            "2,step,default,device,end,1767225600000000.000\t,77,4,42,0,N/A\n");
  EXPECT_EQ(Csv("memory"),
            "Device_id,Operation,Stream ID,Start Time(us),Duration(us),Size(B),Address,Async,Detail,Pid,Rank,"
            "Correlation\n"
            "2,allocate,N/A,1767225600000000.000\t,0.300,4096,18446744073709551600,0,2,42,0,N/A\n");
}

}  // namespace
}  // namespace profd::exporting
