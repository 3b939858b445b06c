#include <algorithm>
#include <thread>

#include "export/csv/csv_test_support.h"

namespace profd::exporting {
namespace {

using RecordCsvTest = CsvTest;

TEST_F(RecordCsvTest, NpuMemHasIntegerKilobytes) {
  Feed(1, TableId::kNpuMem, [](BatchBuilder& rows) {
    rows.Add(kStartNs + 9'999'872, 1, 0, int64_t{3347013} * 1024 + 1023);
    rows.Add(kStartNs - 1, 1, 1, 1);  // before the start
  });
  Feed(0, TableId::kNpuMem, [](BatchBuilder& rows) { rows.Add(kStartNs, 0, 1024, 2048); });
  End();
  EXPECT_EQ(Csv("npu_mem"),
            "Device_id,event,ddr(KB),hbm(KB),memory(KB),timestamp(us)\n"
            "0,APP,1,2,3,1767225600000000.000\t\n"
            "1,Device,0,3347013,3347013,1767225600009999.872\t\n");
}

TEST_F(RecordCsvTest, NpuMemOfPythonHasFractions) {
  set_chip(1);
  Feed(0, TableId::kNpuMem, [](BatchBuilder& rows) {
    rows.Add(kStartNs - 1000, 0, 1, 2048);
    rows.Add(kStartNs, 5, 0, 0);
  });
  End();
  EXPECT_EQ(Csv("npu_mem"),
            "Device_id,event,ddr(KB),hbm(KB),memory(KB),timestamp(us)\n"
            "0,APP,0.001,2.0,2.001,1767225599999999.000\t\n"
            "0,,0.0,0.0,0.0,1767225600000000.000\t\n");
}

TEST_F(RecordCsvTest, ModulesAreSortedOverAllDevices) {
  Feed(1, TableId::kModuleMem, [](BatchBuilder& rows) {
    rows.Add(kStartNs + 10'000, 0, int64_t{880096} * 1024 + 5);
    rows.Add(kStartNs + 20'000, 45, 1024);
    rows.Add(kStartNs + 30'000, 0, 2048);
  });
  Feed(0, TableId::kModuleMem, [](BatchBuilder& rows) {
    rows.Add(kStartNs + 10'000, 0, 1024);
    rows.Add(kStartNs + 5'000, 0, -1);  // late
    rows.Add(kStartNs + 40'000, 200, 0);
    rows.Add(kStartNs - 1, 1, 0);  // before the start
  });
  End();
  EXPECT_EQ(Csv("npu_module_mem"),
            "Device_id,Component,Timestamp(us),Total Reserved(KB),Device\n"
            "0,SLOG,1767225600000005.000\t,-1,NPU:0\n"
            "0,SLOG,1767225600000010.000\t,1,NPU:0\n"
            "1,SLOG,1767225600000010.000\t,880096,NPU:1\n"
            "1,SLOG,1767225600000030.000\t,2,NPU:1\n"
            "1,GE,1767225600000020.000\t,1,NPU:1\n"
            "0,UNKNOWN,1767225600000040.000\t,0,NPU:0\n");
}

// Long enough for several blocks, some of which overlap: what is late by less than a block, and
// more.
TEST_F(RecordCsvTest, ManyModuleRowsAreSorted) {
  constexpr int kRows = 5000;
  for (int device : {0, 1}) {
    Feed(device, TableId::kModuleMem, [&](BatchBuilder& rows) {
      for (int i = 0; i < kRows; ++i) {
        int at = i % 7 == 0 ? i - 3 : i;
        if (i == 4000) at = 10;
        rows.Add(kStartNs + int64_t{at + 100} * 1000, i % 2, int64_t{1024} * i);
      }
    });
  }
  End();
  std::string text = Csv("npu_module_mem");
  std::vector<std::string> lines;
  for (size_t at = text.find('\n') + 1; at < text.size();) {
    size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  ASSERT_EQ(lines.size(), 2u * kRows);
  auto key = [](const std::string& line) {
    size_t name = line.find(',') + 1;
    size_t time = line.find(',', name) + 1;
    bool second = line.substr(name, time - name - 1) == "IDEDD";
    return std::make_pair(second, line.substr(time, 20));
  };
  EXPECT_TRUE(std::ranges::is_sorted(lines, {}, key));
  std::ranges::sort(lines);
  EXPECT_EQ(std::adjacent_find(lines.begin(), lines.end()), lines.end());
}

TEST_F(RecordCsvTest, ModulesOfPythonStayInOrder) {
  set_chip(3);
  Feed(0, TableId::kModuleMem, [](BatchBuilder& rows) {
    rows.Add(kStartNs + 2000, 33, 1536);
    rows.Add(kStartNs, 0, -1);
    rows.Add(kStartNs, 12, 0);
  });
  End();
  EXPECT_EQ(Csv("npu_module_mem"),
            "Device_id,Component,Timestamp(us),Total Reserved(KB),Device\n"
            "0,APP,1767225600000002.000\t,1.5,NPU:0\n"
            "0,SLOG,1767225600000000.000\t,-1,NPU:0\n"
            "0,UNKNOWN,1767225600000000.000\t,0,NPU:0\n");
}

void AddRows(BatchBuilder& rows, int count) {
  for (int i = 0; i < count; ++i) rows.Add(kStartNs + i * 1000, 0, 0, 1024);
}

TEST_F(RecordCsvTest, LongOnesAreSliced) {
  limits_.rows_per_file = 1000;
  Feed(0, TableId::kNpuMem, [](BatchBuilder& rows) { AddRows(rows, 30000); });
  Feed(1, TableId::kNpuMem, [](BatchBuilder& rows) { AddRows(rows, 500); });
  End();
  std::vector<std::string> names = FileNames();
  ASSERT_EQ(names.size(), 31u);
  EXPECT_EQ(outputs_.size(), 31u);
  std::string header = "Device_id,event,ddr(KB),hbm(KB),memory(KB),timestamp(us)\n";
  std::string second = Text("npu_mem_slice_1_20260101080000.csv");
  EXPECT_EQ(second.substr(0, header.size() + 35), header + "0,APP,0,1,1,1767225600001000.000\t\n0");
  EXPECT_EQ(std::ranges::count(second, '\n'), 1001);
  std::string last = Text("npu_mem_slice_30_20260101080000.csv");
  EXPECT_EQ(std::ranges::count(last, '\n'), 501);
  EXPECT_EQ(last.substr(header.size(), 2), "1,");
  uint64_t rows = 0;
  for (const OutputFile& file : outputs_) {
    rows += file.rows;
    EXPECT_EQ(file.bytes, std::filesystem::file_size(file.path)) << file.path;
  }
  EXPECT_EQ(rows, 30500u);
}

// What exactly fills a file is a slice for the vendor's Python, not for its C++.
TEST_F(RecordCsvTest, AFullFileIsASliceInPythonOnly) {
  limits_.rows_per_file = 1000;
  Feed(0, TableId::kNpuMem, [](BatchBuilder& rows) { AddRows(rows, 1000); });
  End();
  EXPECT_EQ(FileNames(), std::vector<std::string>{"npu_mem_20260101080000.csv"});
}
TEST_F(RecordCsvTest, AFullFileIsASliceInPython) {
  set_chip(4);
  limits_.rows_per_file = 1000;
  Feed(0, TableId::kNpuMem, [](BatchBuilder& rows) { AddRows(rows, 1000); });
  End();
  EXPECT_EQ(FileNames(), std::vector<std::string>{"npu_mem_slice_0_20260101080000.csv"});
}

TEST_F(RecordCsvTest, SeveralDumpsHaveAFolderEach) {
  AddDump("PROF_2");
  AddDump("PROF_2");
  auto rows = [](BatchBuilder& builder) { AddRows(builder, 1); };
  for (size_t dump : {0u, 1u, 2u}) PlaceOf(0, dump);
  for (size_t dump : {2u, 0u, 1u}) Feed(0, TableId::kNpuMem, rows, "npu_mem.data", dump);
  End();
  for (std::string dir : {dump().name, std::string("PROF_2"), std::string("PROF_2_2")}) {
    std::string text = Text(dir + "/npu_mem_20260101080000.csv");
    EXPECT_EQ(std::ranges::count(text, '\n'), 2) << dir;
  }
}

TEST_F(RecordCsvTest, AnUnfinishedExportLeavesNothing) {
  Feed(0, TableId::kNpuMem, [](BatchBuilder& rows) { AddRows(rows, 30000); });
  End(false);
  EXPECT_TRUE(FileNames().empty());
  EXPECT_TRUE(outputs_.empty());
}

TEST_F(RecordCsvTest, FilesAreReadOnSeveralThreads) {
  constexpr int kDevices = 8;
  for (int device = 0; device < kDevices; ++device) PlaceOf(device);
  std::vector<std::unique_ptr<FormatSink>> sinks;
  for (int device = 0; device < kDevices; ++device) sinks.push_back(Open(device));
  std::vector<std::thread> threads;
  for (int device = 0; device < kDevices; ++device) {
    threads.emplace_back([&, device] {
      FormatSink& sink = *sinks[static_cast<size_t>(device)];
      BatchBuilder memory(TableOf(TableId::kNpuMem), device, {}, sink);
      BatchBuilder modules(TableOf(TableId::kModuleMem), device, {}, sink);
      AddRows(memory, 20000);
      for (int i = 0; i < 20000; ++i) modules.Add(kStartNs + i, i % 60, 1024);
      memory.Flush();
      modules.Flush();
      EXPECT_TRUE(sink.Finish().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  sinks.clear();
  End();
  for (std::string name : {"npu_mem", "npu_module_mem"}) {
    std::string text = Csv(name);
    EXPECT_EQ(std::ranges::count(text, '\n'), kDevices * 20000 + 1) << name;
  }
}

Event IterationEvent(int64_t number, int64_t t_ns, int64_t dur_ns) {
  Event event;
  event.kind = EventKind::kIteration;
  event.device = 0;
  event.value = number;
  event.tid = 7;
  event.t_ns = t_ns;
  event.dur_ns = dur_ns;
  return event;
}

constexpr std::string_view kStepTraceHeader =
    "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),"
    "FP to BP Time(us),Iteration Refresh(us),Data Aug Bound(us),Model ID,"
    "Reduce Start(us),Reduce Duration(us),Reduce Start(us),Reduce Duration(us)\n";

// The vendor's C++ has 0.000 for what is not known, and the first all-reduce from its end to its start without a sign:
// 2^64 - 15'000'000 ns.
TEST_F(RecordCsvTest, StepTraceWithTheDefectsOfTheVendor) {
  plan_.compat_msprof = true;
  auto sink = Open(0, "ts_track.data");
  Event full = IterationEvent(2, kStartNs + 1'000'000, 60'000'000);
  full.args = {{"Reduce Start", 10'000'000}, {"Reduce End", 25'000'000}, {"Reduce Start", 30'000'000},
               {"Reduce End", 30'001'000}};
  sink->TakeEvent(full);
  EXPECT_TRUE(sink->Finish().ok());
  sink.reset();
  End();
  EXPECT_EQ(Csv("step_trace"), std::string(kStepTraceHeader) +
                                   "0,2,0.000\t,0.000\t,1767225600061000.000\t,60000.000,0.000,0.000,0.000,7,"
                                   "1767225600011000.000\t,18446744073694551.616,1767225600031000.000\t,1.000\n");
}

TEST_F(RecordCsvTest, ModuleMemoryWithTheDefectOfTheVendor) {
  plan_.compat_msprof = true;
  Feed(0, TableId::kModuleMem, [](BatchBuilder& rows) { rows.Add(kStartNs, 45, int64_t{-1}); });
  End();
  EXPECT_NE(Csv("npu_module_mem").find(",18014398509481983,"), std::string::npos) << Csv("npu_module_mem");
}

TEST_F(RecordCsvTest, StepTraceOfCpp) {
  auto sink = Open(0, "ts_track.data");
  Event step = IterationEvent(3, kStartNs, 5'000'000);
  step.kind = EventKind::kDeviceStep;
  step.tid = 4294967295;
  sink->TakeEvent(step);
  sink->TakeEvent(IterationEvent(1, kStartNs, 1'000'000));
  Event full = IterationEvent(2, kStartNs + 1'000'000, 60'000'000);
  full.args = {
      {"FP Start", 1'000},          {"BP End", 50'000'000},       {"Data Aug Bound", 2'500},
      {"Reduce Start", 10'000'000}, {"Reduce End", 25'000'000},   {"GetNext Start", 1},
      {"GetNext End", 2},           {"Reduce Start", 30'000'000}, {"Reduce End", 30'001'000}};
  sink->TakeEvent(full);
  EXPECT_TRUE(sink->Finish().ok());
  sink.reset();
  End();
  EXPECT_EQ(Csv("step_trace"),
            std::string(kStepTraceHeader) +
            "0,1,N/A,N/A,1767225600001000.000\t,1000.000,N/A,N/A,N/A,7,"
            "N/A,N/A,N/A,N/A\n"
            "0,2,1767225600001001.000\t,1767225600051000.000\t,1767225600061000.000\t,60000.000,"
            "49999.000,10000.000,2.500,7,1767225600011000.000\t,15000.000,"
            "1767225600031000.000\t,1.000\n"
            "0,3,N/A,N/A,1767225600005000.000\t,5000.000,N/A,N/A,N/A,4294967295,"
            "N/A,N/A,N/A,N/A\n");
}

TEST_F(RecordCsvTest, StepTraceOfPythonHasNotAvailable) {
  set_chip(4);
  PlaceOf(0).clock.device_hz = 38.4e6;
  auto sink = Open(0, "ts_track.data");
  Event event = IterationEvent(1, kStartNs, 26);  // one cycle
  event.args = {{"Reduce Start", 0}, {"Reduce End", 1'000'000}};
  sink->TakeEvent(event);
  EXPECT_TRUE(sink->Finish().ok());
  sink.reset();
  End();
  EXPECT_EQ(Csv("step_trace"),
            "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),"
            "FP to BP Time(us),Iteration Refresh(us),Data Aug Bound(us),Model ID,"
            "Reduce Start(us),Reduce Duration(us)\n"
            "0,1,N/A,N/A,1767225600000000.026\t,0.026041666666666668,N/A,N/A,N/A,7,"
            "1767225600000000.000\t,1000.0\n");
}

TEST_F(RecordCsvTest, MarksAreSortedByTheirStart) {
  auto sink = Open(-1, "marks.tsv");
  Event range;
  range.kind = EventKind::kRange;
  range.pid = 42;
  range.tid = 43;
  range.name = "load, then run";
  range.t_ns = kStartNs + 2000;
  range.dur_ns = 1500;
  sink->TakeEvent(range);
  range.name = "all-reduce";
  range.domain = "communication";
  range.lane = 0;
  range.t_ns += 1000;
  sink->TakeEvent(range);
  Event mark;
  mark.pid = 42;
  mark.tid = 42;
  mark.name = "begin";
  mark.t_ns = kStartNs + 1000;
  sink->TakeEvent(mark);
  Event loss;
  loss.kind = EventKind::kLoss;
  sink->TakeEvent(loss);
  EXPECT_TRUE(sink->Finish().ok());
  sink.reset();
  End();
  EXPECT_EQ(Csv("msprof_tx"),
            "Device_id,pid,tid,category,event_type,payload_type,payload_value,Start_time(us),"
            "End_time(us),message_type,message,domain,Device Start_time(us),Device End_time(us)\n"
            "host,42,42,N/A,marker_ex,N/A,N/A,1767225600000001.000\t,1767225600000001.000\t,N/A,"
            "begin,default,N/A,N/A\n"
            "host,42,43,N/A,push/pop,N/A,N/A,1767225600000002.000\t,1767225600000003.500\t,N/A,"
            "\"load, then run\",default,N/A,N/A\n"
            "host,42,43,N/A,start/end,N/A,N/A,1767225600000003.000\t,1767225600000004.500\t,N/A,"
            "all-reduce,communication,N/A,N/A\n");
  EXPECT_EQ(Csv("step_trace"), "");
}

TEST_F(RecordCsvTest, StatisticsOfStepsAndRanges) {
  dump().manifest.emplace().processes = {{42, 0, true, {0}, "train.py"}};
  auto sink = Open(-1, "marks.tsv");
  Event event;
  event.pid = 42;
  event.rank = 0;
  for (int64_t us : {100, 300, 200}) {
    event.kind = EventKind::kStep;
    event.name = "Step " + std::to_string(us);
    event.dur_ns = us * 1000;
    sink->TakeEvent(event);
    event.kind = EventKind::kRange;
    event.name = "a,b";
    event.dur_ns = us * 100;
    sink->TakeEvent(event);
  }
  event.dur_ns = 10'000'000;
  MarkPartial(&event);
  sink->TakeEvent(event);
  EXPECT_TRUE(sink->Finish().ok());
  sink = Open(0, "ts_track.data");
  event = IterationEvent(3, kStartNs, 5'000'000);
  event.kind = EventKind::kDeviceStep;
  sink->TakeEvent(event);
  MarkPartial(&event);
  sink->TakeEvent(event);
  EXPECT_TRUE(sink->Finish().ok());
  sink.reset();
  End();
  EXPECT_EQ(Csv("step_range_statistics"),
            "Device_id,Rank,Kind,Name,Count,Mean(us),P50(us),P99(us),Max(us)\n"
            "host,0,range,\"a,b\",3,20.000,20.000,30.000,30.000\n"
            "host,0,step,,3,200.000,200.000,300.000,300.000\n"
            "0,0,device_step,,1,5000.000,5000.000,5000.000,5000.000\n");
  // The vendor's has whole steps only.
  const std::string steps = Csv("step_trace");
  EXPECT_EQ(std::ranges::count(steps, '\n'), 2);
}

}  // namespace
}  // namespace profd::exporting
