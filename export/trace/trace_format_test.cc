#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "export/trace/trace_test_support.h"

namespace profd::exporting {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TraceFormatTest : public TraceFixture {
 protected:
  TraceFormatTest() : TraceFixture(MakeTraceFormat()) {}

  // The events' lines without the metadata, after the array was found to be JSON.
  std::vector<std::string> Events() {
    std::vector<OutputFile> files = End();
    EXPECT_EQ(files.size(), 1U);
    text_ = ReadText(files[0].path);
    EXPECT_EQ(files[0].bytes, text_.size());
    all_ = json::parse(text_, nullptr, false);
    EXPECT_TRUE(all_.is_array()) << text_;
    EXPECT_EQ(all_.size(), files[0].rows);
    std::vector<std::string> events;
    std::istringstream in(text_);
    for (std::string line; std::getline(in, line);) {
      if (line.empty() || line == "[" || line == "]") continue;
      if (line.back() == ',') line.pop_back();
      if (line.find("\"ph\":\"M\"") == std::string::npos) events.push_back(line);
    }
    return events;
  }

  std::string text_;
  json all_;
};

// (4242 << 10) | (sort << 5) | device
constexpr uint32_t Pid(uint32_t sort, uint32_t device) { return 4242U << 10 | sort << 5 | device; }

std::string Counter(const std::string& name, uint32_t pid, const std::string& args,
                    const std::string& ts = "1767225600040000.000", int tid = 0) {
  return "{\"name\":\"" + name + "\",\"pid\":" + std::to_string(pid) +
         ",\"tid\":" + std::to_string(tid) + ",\"ts\":\"" + ts + "\",\"ph\":\"C\",\"args\":{" +
         args + "}}";
}

TEST_F(TraceFormatTest, NothingIsAnEmptyArray) {
  Begin();
  EXPECT_TRUE(Events().empty());
  EXPECT_EQ(all_.size(), 0U);
}

TEST_F(TraceFormatTest, ProcessesAreNamedOnceAsTheVendorsAre) {
  for (int i = 0; i < 2; ++i) {
    auto sink = Open(0, 1);
    Put(sink.get(), TableId::kHccs, 1, 40000 + i, 51338.985, 2.5);
    ASSERT_TRUE(sink->Finish().ok());
  }
  EXPECT_EQ(Events().size(), 4U);
  std::string pid = std::to_string(Pid(20, 1));
  EXPECT_THAT(text_, HasSubstr("[\n{\"name\":\"process_name\",\"pid\":" + pid +
                               ",\"tid\":0,\"ph\":\"M\",\"args\":{\"name\":\"HCCS\"}},\n"
                               "{\"name\":\"process_labels\",\"pid\":" +
                               pid +
                               ",\"tid\":0,\"ph\":\"M\",\"args\":{\"labels\":\"NPU 1\"}},\n"
                               "{\"name\":\"process_sort_index\",\"pid\":" +
                               pid + ",\"tid\":0,\"ph\":\"M\",\"args\":{\"sort_index\":20}},\n"));
  EXPECT_EQ(all_.size(), 7U);
}

TEST_F(TraceFormatTest, ARangeWithoutAnEndGoesToThatOfTheRecording) {
  ClockFacts& clock = dumps_[0]->places[0].clock;
  clock.end_us = kBeginNs / 1000 + 1050;
  clock.stop_raw_ns = 1'000'000;  // 1 ms before the session's end
  clock.end_raw_ns = 2'000'000;
  const int64_t name = strings_.Intern("forward");
  auto sink = Open(0, -1);
  Put(sink.get(), TableId::kMarker, -1, 2, name, name, 0, 1, 7, -1, 77, 0, 43);
  ASSERT_TRUE(sink->Finish().ok());
  EXPECT_THAT(Events(), ElementsAre(AllOf(HasSubstr("\"name\":\"forward (partial)\""),
                                          HasSubstr("\"ts\":\"1767225600000002.000\",\"dur\":48.0"))));
}

// chrome://tracing and Perfetto take the first begin of a flow and report the others.
TEST_F(TraceFormatTest, AFlowBeginsOnce) {
  const int64_t name = strings_.Intern("MatMul");
  auto calls = Open(0, -1);
  Put(calls.get(), TableId::kApi, -1, 2, name, 3, 1000, 77, 0, 43, 9);
  Put(calls.get(), TableId::kApi, -1, 1, name, 2, 4000, 77, 0, 43, 9);  // the operator around the launch
  ASSERT_TRUE(calls->Finish().ok());
  auto kernels = Open(0, -1);
  Put(kernels.get(), TableId::kKernel, 0, 5, name, name, 2000, 5, 77, 0, 43, 9);
  ASSERT_TRUE(kernels->Finish().ok());
  std::vector<std::string> flows;
  for (const std::string& event : Events()) {
    const json parsed = json::parse(event);
    if (parsed.contains("id")) flows.push_back(parsed["ph"].get<std::string>() + " " + parsed["id"].get<std::string>() + " " + parsed["ts"].get<std::string>());
  }
  EXPECT_THAT(flows, ElementsAre("s HostToDevice 0 77_9 1767225600000002.000", "f HostToDevice 0 77_9 1767225600000005.000"));
}

TEST_F(TraceFormatTest, HccsPcieHbmDdrLlc) {
  auto sink = Open();
  Put(sink.get(), TableId::kHccs, 0, 40000, 51338.985, 0.1 + 0.2);
  // 22 columns of 1048576 / 15625 B/us and so on: only the averages are shown.
  Put(sink.get(), TableId::kPcie, 0, 40000, 1, 1, 16384, 1, 1, 32768, 1, 1, 3, 1, 1, 1500, 1, 1,
      16384, 1, 1, 0, 1, 1, 49152);
  Put(sink.get(), TableId::kHbm, 0, 40000, 3, 1, 190904.929);
  Put(sink.get(), TableId::kDdr, 0, 40000, 0, 1.5, 2.0);
  Put(sink.get(), TableId::kLlc, 0, 40000, 1, 0, 1.023, 8328.353);
  ASSERT_TRUE(sink->Finish().ok());
  EXPECT_THAT(
      Events(),
      ElementsAre(Counter("Rx", Pid(20, 0), "\"Rx(MB/s)\":0.30000000000000004"),
                  Counter("Tx", Pid(20, 0), "\"Tx(MB/s)\":51338.985"),
                  Counter("PCIe_cpl", Pid(23, 0), "\"Tx\":2.86102294921875,\"Rx\":46875.0"),
                  Counter("PCIe_nonpost", Pid(23, 0), "\"Tx\":31250.0,\"Rx\":0.0"),
                  Counter("PCIe_nonpost_latency", Pid(23, 0), "\"Tx\":1.5,\"Rx\":0.0"),
                  Counter("PCIe_post", Pid(23, 0), "\"Tx\":15625.0,\"Rx\":15625.0"),
                  Counter("HBM 3/Write", Pid(24, 0), "\"Write(MB/s)\":190904.929"),
                  Counter("DDR/Read", Pid(18, 0), "\"Read(MB/s)\":1.5"),
                  Counter("DDR/Write", Pid(18, 0), "\"Write(MB/s)\":2.0"),
                  Counter("LLC 1 Read/Hit Rate", Pid(27, 0), "\"Hit Rate(%)\":1.023"),
                  Counter("LLC 1 Read/Throughput", Pid(27, 0), "\"Throughput(MB/s)\":8328.353")));
}

TEST_F(TraceFormatTest, NetworkMemoryFrequencyQos) {
  auto sink = Open();
  for (TableId id : {TableId::kNic, TableId::kRoce}) {
    Put(sink.get(), id, 0, 40000, 2, 100000, 10.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 0.5, 20.0, 0.0, 0.0, 0.0, 0.0, 0.0,
        0.0, 0.125, 0.00212, 0.0005);
  }
  Put(sink.get(), TableId::kNpuMem, 0, 40000, 1, 1024, 2560);
  Put(sink.get(), TableId::kAicoreFreq, 0, 40000, -1, 1800.0);
  Put(sink.get(), TableId::kAicoreFreq, 0, 40000, 1, 1650.0);
  Put(sink.get(), TableId::kQos, 0, 40000, strings_.Intern("SDMA"), -1, 5000);
  ASSERT_TRUE(sink->Finish().ok());
  std::string rx =
      "\"Rx Bandwidth Efficiency\":0.002,\"Rx Packets\":10.0,\"Rx Error Rate\":0.25,"
      "\"Rx Dropped Rate\":0.5";
  std::string tx =  // 0.0005 lies above the half as a double
      "\"Tx Bandwidth Efficiency\":0.001,\"Tx Packets\":20.0,\"Tx Error Rate\":0.0,"
      "\"Tx Dropped Rate\":0.125";
  EXPECT_THAT(
      Events(),
      ElementsAre(Counter("Port 2/Rx", Pid(21, 0), rx), Counter("Port 2/Tx", Pid(21, 0), tx),
                  Counter("Port 2/Rx", Pid(22, 0), rx), Counter("Port 2/Tx", Pid(22, 0), tx),
                  Counter("Device/DDR", Pid(17, 0), "\"KB\":1.0"),
                  Counter("Device/HBM", Pid(17, 0), "\"KB\":2.5"),
                  Counter("Device/Memory", Pid(17, 0), "\"KB\":3.5"),
                  Counter("AI Core Freq", Pid(15, 0), "\"MHz\":1800"),
                  Counter("AI Core Freq Die 1", Pid(15, 0), "\"MHz\":1650"),
                  Counter("QoS SDMA", Pid(29, 0), "\"value\":5000")));
}

TEST_F(TraceFormatTest, SocProfile) {
  auto sink = Open();
  Put(sink.get(), TableId::kAccPmu, 0, 40000, 3, 10, 11, 12, 13);
  Put(sink.get(), TableId::kChipTrans, 0, 40000, 0, 4, 20, 21);
  Put(sink.get(), TableId::kChipTrans, 0, 40000, 1, 5, 30, 31);
  Put(sink.get(), TableId::kSocLevel, 0, 40000, 6, 7);
  ASSERT_TRUE(sink->Finish().ok());
  const std::string ts = "1767225600040000.000";
  EXPECT_THAT(
      Events(),
      ElementsAre(
          Counter("Acc 3/read_bandwidth", Pid(19, 0), "\"value\":10"),
          Counter("Acc 3/read_ost", Pid(19, 0), "\"value\":12"),
          Counter("Acc 3/write_bandwidth", Pid(19, 0), "\"value\":11"),
          Counter("Acc 3/write_ost", Pid(19, 0), "\"value\":13"),
          Counter("PA Link Rx", Pid(26, 0), "\"PA Link ID\":4,\"PA Link Rx\":20", ts, 111111),
          Counter("PA Link Tx", Pid(26, 0), "\"PA Link ID\":4,\"PA Link Tx\":21", ts, 111111),
          Counter("PCIE Read Bandwidth", Pid(26, 0), "\"PCIE ID\":5,\"PCIE Read Bandwidth\":31", ts,
                  100010),
          Counter("PCIE Write Bandwidth", Pid(26, 0), "\"PCIE ID\":5,\"PCIE Write Bandwidth\":30",
                  ts, 100010),
          Counter("L2 Buffer Bw Level", Pid(25, 0), "\"L2 Buffer Bw Level\":6"),
          Counter("Mata Bw Level", Pid(25, 0), "\"Mata Bw Level\":7")));
}

TEST_F(TraceFormatTest, SioPutsDiesOfOneTimestampTogetherAndShowsEveryDevice) {
  for (int device = 0; device < 2; ++device) {
    auto sink = Open(0, device);
    for (int die : {0, 1, 0}) {
      Put(sink.get(), TableId::kSio, device, 40000, die, 1.0 + die, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
          8.0);
    }
    ASSERT_TRUE(sink->Finish().ok());
  }
  std::vector<std::string> events = Events();
  ASSERT_EQ(events.size(), 32U);
  EXPECT_EQ(events[0], Counter("req_rx", Pid(28, 0), "\"die 0\":1.0,\"die 1\":2.0"));
  EXPECT_EQ(events[7], Counter("dat_tx", Pid(28, 0), "\"die 0\":8.0,\"die 1\":8.0"));
  // The second record of die 0 at this timestamp is an event of its own.
  EXPECT_EQ(events[8], Counter("req_rx", Pid(28, 0), "\"die 0\":1.0"));
  EXPECT_EQ(events[16], Counter("req_rx", Pid(28, 1), "\"die 0\":1.0,\"die 1\":2.0"));
}

TEST_F(TraceFormatTest, NewChipsNameDiesDifferently) {
  AddDump("PROF_2", "node-2", 7, 15);
  auto sink = Open(1, 0);
  Put(sink.get(), TableId::kSio, 0, 40000, 3, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
  Put(sink.get(), TableId::kChipTrans, 0, 40000, 1, 2, 30, 31);
  ASSERT_TRUE(sink->Finish().ok());
  std::vector<std::string> events = Events();
  ASSERT_EQ(events.size(), 10U);
  EXPECT_THAT(events[0], HasSubstr("{\"U-Die2\":31}"));
  EXPECT_THAT(events[2], HasSubstr("{\"U-DIE1\":1.0}"));
}

TEST_F(TraceFormatTest, HostUsage) {
  auto sink = Open(0, -1);
  Put(sink.get(), TableId::kHostCpu, -1, 40000, 3, 12.5);
  Put(sink.get(), TableId::kHostCpu, -1, 40000, -1, 7.529);
  Put(sink.get(), TableId::kHostMem, -1, 40000, 0.5);
  Put(sink.get(), TableId::kHostDisk, -1, 40000, 1.0, 2.0, 3.0);
  Put(sink.get(), TableId::kHostNetwork, -1, 40000, 4.0, 5.0);
  ASSERT_TRUE(sink->Finish().ok());
  EXPECT_THAT(Events(), ElementsAre(Counter("CPU 3", Pid(9, 31), "\"Usage(%)\":12.5"),
                                    Counter("CPU Avg", Pid(9, 31), "\"Usage(%)\":7.529"),
                                    Counter("Memory Usage", Pid(10, 31), "\"Usage(%)\":0.5"),
                                    Counter("Disk Usage", Pid(12, 31), "\"Usage(%)\":3.0"),
                                    Counter("Network Usage", Pid(11, 31), "\"Usage(%)\":4.0")));
  EXPECT_THAT(text_, HasSubstr("{\"labels\":\"CPU\"}"));
}

TEST_F(TraceFormatTest, TablesWithoutAVendorsProcessAreShownInOurOwn) {
  auto sink = Open();
  Put(sink.get(), TableId::kDvpp, 0, 40000, 1, 4, 0, 699300.0, 1998.0, 90.0, 1.0, 2.0, 3.0, 4.0,
      5.0);
  Put(sink.get(), TableId::kModuleMem, 0, 40000, 10, 2048);
  Put(sink.get(), TableId::kModuleMem, 0, 40000, 12, 1024);
  Put(sink.get(), TableId::kVoltage, 0, 40000, 1, 800.0);
  Put(sink.get(), TableId::kUb, 0, 40000, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
  Put(sink.get(), TableId::kInstrCycles, 0, 40000, 3, 0, 0, 20, 30, 40, 50, 60);
  Put(sink.get(), TableId::kInstrCycles, 0, 40000, 3, 2, 10, 20, 0, 40, 50, 60);
  Put(sink.get(), TableId::kInstrFlow, 0, 40000, 3, 500, 600, 300, 400, 1, 2, 7, 8, 9);
  Put(sink.get(), TableId::kSysMem, 0, 40000, 1, 2, 3, 4, 5, 6, 7, 8, 9);
  Put(sink.get(), TableId::kProcMem, 0, 40000, 42, strings_.Intern("py\"thon\n"), 1, 2, 3);
  Put(sink.get(), TableId::kLowPower, 0, 40000, 1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
      18, 19, 20, 21, 22, 23, 24);
  Put(sink.get(), TableId::kSample, 0, 40000, strings_.Intern("atlas_npu_power_watts"),
      strings_.Intern(""), 310.5);
  ASSERT_TRUE(sink->Finish().ok());
  std::vector<std::string> events = Events();
  auto has = [&](const std::string& event) { EXPECT_THAT(events, testing::Contains(event)); };
  has(Counter("DVPP 1 VPC 0/Utilization", Pid(0, 0), "\"all(%)\":90.0,\"proc(%)\":3.0"));
  has(Counter("DVPP 1 VPC 0/Frames", Pid(0, 0), "\"all\":1998.0,\"proc\":2.0,\"last\":5.0"));
  has(Counter("DRV", Pid(2, 0), "\"KB\":2.0"));
  has(Counter("12", Pid(2, 0), "\"KB\":1.0"));
  has(Counter("Bus Voltage", Pid(1, 0), "\"mV\":800.0"));
  has(Counter("UB Port007", Pid(5, 0), "\"bandwidth_rx(MB/s)\":1,\"bandwidth_tx(MB/s)\":2"));
  has(Counter("UNIC-Port007", Pid(5, 0), "\"bandwidth_rx(MB/s)\":3,\"bandwidth_tx(MB/s)\":9"));
  has(Counter("Group 3 AIC cycles", Pid(5, 0),
              "\"Cube\":30,\"Scalar\":20,\"Mte1\":40,\"Mte2\":50,\"Mte3\":60"));
  has(Counter("Group 3 AIV1 cycles", Pid(5, 0),
              "\"Vector\":10,\"Scalar\":20,\"Mte1\":40,\"Mte2\":50,\"Mte3\":60"));
  has(Counter("Group 3 Bandwidth Read", Pid(5, 0), "\"flow\":500"));
  has(Counter("Group 3 Latency Write", Pid(5, 0), "\"flow\":400"));
  has(Counter("Commit", Pid(8, 0), "\"limit(kB)\":6,\"committed(kB)\":7"));
  has(Counter("py\\\"thon\\u000a (42) pages", Pid(10, 0),
              "\"size\":1,\"resident\":2,\"shared\":3"));
  has(Counter("die 1/v16", Pid(3, 0), "\"v16\":21"));
  has(Counter("atlas_npu_power_watts", Pid(11, 0), "\"value\":310.5"));
}

TEST_F(TraceFormatTest, RowsBeforeTheCollectionAreLeftOut) {
  auto sink = Open();
  Put(sink.get(), TableId::kHbm, 0, -1, 0, 0, 1.0);
  Put(sink.get(), TableId::kHbm, 0, 0, 0, 0, 2.0);
  ASSERT_TRUE(sink->Finish().ok());
  EXPECT_THAT(Events(), ElementsAre(Counter("HBM 0/Read", Pid(24, 0), "\"Read(MB/s)\":2.0",
                                            "1767225600000000.000")));
}

TEST_F(TraceFormatTest, AicoreSamples) {
  auto sink = Open();
  for (int i = 0; i < 2; ++i) {
    for (int core : {0, 1}) {
      // 1800 MHz and 1000 us between samples: 900,000 cycles are 50 %.
      Put(sink.get(), TableId::kAicorePmu, 0, 1000 * i, core, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
          900000 * (core + 1), 1);
    }
  }
  ASSERT_TRUE(sink->Finish().ok());
  const std::string ts = "1767225600001000.000";
  EXPECT_THAT(Events(), ElementsAre(Counter("Core 0", Pid(4, 0), "\"Utilization(%)\":50.0", ts),
                                    Counter("Core 1", Pid(4, 0), "\"Utilization(%)\":100.0", ts),
                                    Counter("Average", Pid(4, 0), "\"Utilization(%)\":75.0", ts)));
}

TEST_F(TraceFormatTest, ValuesThatAreNotNumbersAreValidJson) {
  auto sink = Open();
  Put(sink.get(), TableId::kHbm, 0, 1, 0, 0, std::nan(""));
  Put(sink.get(), TableId::kHbm, 0, 2, 0, 0, INFINITY);
  Put(sink.get(), TableId::kHbm, 0, 3, -7, 9, 1e300);
  Put(sink.get(), TableId::kAicoreFreq, 0, 4, -1, -INFINITY);
  ASSERT_TRUE(sink->Finish().ok());
  EXPECT_EQ(Events().size(), 4U);
}

// As earlier releases of the vendor's analyser: a file of them alone, beside the timeline that has them, too.
TEST_F(TraceFormatTest, MarksInAFileOfTheirOwn) {
  Begin(false, true);
  auto sink = Open(0, -1);
  sink->TakeEvent({EventKind::kMark, kBeginNs + 5000, 0, -1, 77, 78, "load", 0, {}});
  sink->TakeEvent({EventKind::kStep, kBeginNs, 1000000, -1, 77, 78, "", 12, {}});
  ASSERT_TRUE(sink->Finish().ok());
  const std::vector<OutputFile> files = End();
  ASSERT_EQ(files.size(), 2U) << "no file of anything else";
  EXPECT_THAT(files[0].path, HasSubstr("/msprof_20260101000000.json"));
  EXPECT_THAT(files[1].path, HasSubstr("/msprof_tx.json"));
  const json marks = json::parse(ReadText(files[1].path));
  EXPECT_EQ(marks.size(), files[1].rows);
  EXPECT_EQ(marks.back()["name"], "load");
  EXPECT_EQ(std::ranges::count(marks, "M", [](const json& event) { return event["ph"]; }), marks.size() - 1);
  EXPECT_THAT(ReadText(files[0].path), HasSubstr("\"load\""));
}

TEST_F(TraceFormatTest, SlicesOfEveryKind) {
  auto sink = Open(0, -1);
  Event mark{EventKind::kMark, kBeginNs + 5000, 0, -1, 77, 78, "load", 0, {}};
  sink->TakeEvent(mark);
  Event range{EventKind::kRange, kBeginNs, 599980, -1, 77, 78, "for\"ward", 0, {}};
  sink->TakeEvent(range);
  Event step{EventKind::kStep, kBeginNs, 1000000, -1, 77, 78, "", 12, {}};
  sink->TakeEvent(step);
  Event loss{EventKind::kLoss, kBeginNs, 2000000, 1, 0, 0, "hbm", 50, {}};
  sink->TakeEvent(loss);
  ASSERT_TRUE(sink->Finish().ok());
  std::vector<std::string> events = Events();
  std::string marks = std::to_string(Pid(26, 31));
  EXPECT_THAT(
      events,
      ElementsAre(
          "{\"name\":\"load\",\"pid\":" + marks +
              ",\"tid\":78,\"ts\":\"1767225600000005.000\",\"ph\":\"I\",\"s\":\"t\",\"args\":{}}",
          "{\"name\":\"for\\\"ward\",\"pid\":" + marks +
              ",\"tid\":78,\"ts\":\"1767225600000000.000\",\"dur\":599.98,\"ph\":\"X\",\"args\":{}"
              "}",
          "{\"name\":\"Step 12\",\"pid\":" + marks +
              ",\"tid\":1073741901,\"ts\":\"1767225600000000.000\",\"dur\":1000.0,\"ph\":\"X\","
              "\"args\":{\"Step\":12}}",
          testing::AllOf(HasSubstr("\"Lost hbm\""), HasSubstr("\"dur\":2000.0"),
                         HasSubstr("{\"Records\":50}"),
                         HasSubstr("\"pid\":" + std::to_string(Pid(30, 1))))));
  EXPECT_THAT(text_, HasSubstr("{\"name\":\"thread_name\",\"pid\":" + marks +
                               ",\"tid\":78,\"ph\":\"M\",\"args\":{\"name\":\"pid 77: thread 78\"}}"));
}

TEST_F(TraceFormatTest, StepTrace) {
  auto sink = Open();
  Event iteration{EventKind::kIteration,
                  kBeginNs + 1000,
                  9000,
                  0,
                  0,
                  1,
                  "Iteration 2",
                  2,
                  {{"FP Start", 1000}, {"BP End", 5000}, {"Data Aug Bound", 2000}}};
  sink->TakeEvent(iteration);
  ASSERT_TRUE(sink->Finish().ok());
  std::string head = "\"pid\":" + std::to_string(Pid(13, 0)) + ",\"tid\":70001,";
  EXPECT_THAT(
      Events(),
      ElementsAre(
          "{\"name\":\"Iteration 2\"," + head +
              "\"ts\":\"1767225600000001.000\",\"dur\":9.0,\"ph\":\"X\",\"cat\":\"Iteration Time\","
              "\"args\":{\"Iteration ID\":2,\"FP Start\":\"1767225600000002.000\",\"BP End\":"
              "\"1767225600000006.000\",\"Iteration End\":\"1767225600000010.000\","
              "\"Iteration Time(us)\":9.0}}",
          "{\"name\":\"FP_BP Time 2\"," + head +
              "\"ts\":\"1767225600000002.000\",\"dur\":4.0,\"ph\":\"X\",\"cat\":\"FP_BP Time\","
              "\"args\":{\"Iteration ID\":2,\"FP Start\":\"1767225600000002.000\",\"BP End\":"
              "\"1767225600000006.000\",\"FP_BP Time(us)\":4.0}}",
          "{\"name\":\"Iteration Refresh 2\"," + head +
              "\"ts\":\"1767225600000006.000\",\"dur\":4.0,\"ph\":\"X\",\"cat\":\"Iteration "
              "Refresh\","
              "\"args\":{\"Iteration ID\":2,\"BP End\":\"1767225600000006.000\",\"Iteration End\":"
              "\"1767225600000010.000\",\"Iteration Refresh(us)\":4.0}}",
          "{\"name\":\"Data_aug Bound 1\"," + head +
              "\"ph\":\"t\",\"cat\":\"Data_aug Bound\",\"id\":\"Data_aug Bound " +
              std::to_string(Pid(13, 0)) +
              "_70001\",\"ts\":\"1767225600000002.000\",\"args\":{\"Iteration ID\":2}}",
          "{\"name\":\"Data_aug Bound 2\"," + head +
              "\"ph\":\"s\",\"cat\":\"Data_aug Bound\",\"id\":\"Data_aug Bound " +
              std::to_string(Pid(13, 0)) +
              "_70001\",\"ts\":\"1767225600000007.000\",\"args\":{\"Data_aug Bound(us)\":2.0}}"));
  EXPECT_THAT(text_, HasSubstr("{\"name\":\"Step Trace\"}"));
  EXPECT_THAT(text_, HasSubstr("{\"name\":\"Model ID:1\"}"));
}

TEST_F(TraceFormatTest, DumpsOnOneTimelineDoNotClash) {
  AddDump("PROF_2", "node-2", 4242, 5);
  dumps_[0]->rank = 0;
  dumps_[1]->rank = 8;
  for (size_t dump = 0; dump < 2; ++dump) {
    auto sink = Open(dump, 0);
    Put(sink.get(), TableId::kHbm, 0, 1, 0, 0, 1.0);
    ASSERT_TRUE(sink->Finish().ok());
  }
  EXPECT_EQ(Events().size(), 2U);
  std::set<uint64_t> pids;
  for (const json& event : all_) pids.insert(event["pid"].get<uint64_t>());
  EXPECT_EQ(pids.size(), 2U);
  EXPECT_THAT(text_, HasSubstr("{\"labels\":\"NPU 0 node-1 rank 0\"}"));
  EXPECT_THAT(text_, HasSubstr("{\"labels\":\"NPU 0 node-2 rank 8\"}"));
}

TEST_F(TraceFormatTest, ManySinksAtOnceMakeOneArray) {
  constexpr int kRows = 20000;
  PutByThreads(4, kRows);
  EXPECT_EQ(Events().size(), 4U * kRows);
}

TEST_F(TraceFormatTest, AnInterruptEndsTheNextWrite) { ExpectAnInterruptEndsTheNextWrite(); }

TEST_F(TraceFormatTest, AnIncompleteExportLeavesNothing) {
  auto sink = Open();
  Put(sink.get(), TableId::kHbm, 0, 1, 0, 0, 1.0);
  ASSERT_TRUE(sink->Finish().ok());
  sink.reset();
  EXPECT_TRUE(End(false).empty());
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

TEST_F(TraceFormatTest, AFullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  Begin();
  std::filesystem::path part = dir_ / "msprof_20260101000000.json.part";
  ASSERT_TRUE(std::filesystem::exists(part));
  std::filesystem::remove(part);
  End(false);
  std::filesystem::create_symlink("/dev/full", part);
  ExportPlan plan;
  plan.out_dir = dir_.path();
  plan.timestamp = "20260101000000";
  EXPECT_FALSE(format_->Begin(plan).ok());
}

}  // namespace
}  // namespace profd::exporting
