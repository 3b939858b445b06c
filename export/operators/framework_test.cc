#include "export/operators/framework.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dump/test_support.h"
#include "export/operators/framework_files.h"

namespace profd::exporting::operators {
namespace {

template <class T>
std::string Le(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xFF);
  return bytes;
}

std::string Part(uint16_t type, const std::string& body) {
  return Le(type) + Le(static_cast<uint32_t>(body.size())) + body;
}

// in-application 7.2: start, end, sequence, pid, startTid, endTid, fwdTid, scope, isAsync; fields.
std::string Range(bool scope, int64_t begin, int64_t end) {
  std::string body = Le(begin) + Le(end) + Le(int64_t{7}) + Le(uint64_t{42}) + Le(uint64_t{43}) + Le(uint64_t{44}) +
                     Le(uint64_t{45}) + (scope ? Le(uint8_t{0}) : "") + Le(uint8_t{0});
  return Part(1, body + Part(2, "aten::add") + Part(3, "float;int") + Part(4, "2,3;4") + Part(8, "a.py(1): f;b.py(2): g") +
                     Part(9, "Net") + Part(10, "later versions"));
}

class Framework : public testing::Test {
 protected:
  void Read(std::string_view base, const std::string& text) { ReadInto(&data, base, text, text.size()); }
  static void ReadInto(FrameworkData* into, std::string_view base, std::string_view text, size_t piece) {
    EXPECT_TRUE(FrameworkData::IsFile(base));
    into->Begin(base);
    for (size_t at = 0; at < text.size(); at += piece) {
      const std::string_view part = text.substr(at, piece);
      into->Feed(std::as_bytes(std::span(part.data(), part.size())));
    }
    into->End();
  }
  void Finish() { data.Finish([](int64_t timestamp) { return timestamp; }); }
  std::string_view Text(int32_t id) const { return data.texts.Text(id); }
  // Its time, numbers and texts.
  std::string Text(const FrameworkOperator& op) const {
    return fmt::format("{} to {}, sequence {}, threads {} and {}: {}, {}, {}, {}, {}", op.begin, op.end, op.sequence, op.thread, op.forward_thread,
                       Text(op.name), Text(op.types), Text(op.shapes), Text(op.stack), Text(op.modules));
  }
  static std::string PythonEvent(uint64_t time, uint8_t tag, uint64_t key, uint64_t thread = 43) {
    return Le(time) + Le(thread) + Le(uint64_t{42}) + Le(key) + Le(tag);
  }
  using Calls = std::vector<std::tuple<int64_t, int64_t, std::string>>;
  Calls CallsOfPython() const {
    Calls calls;
    for (const PythonCall& call : data.python.calls) calls.emplace_back(call.begin, call.end, data.NameOf(call));
    return calls;
  }
  FrameworkData data;
};

TEST_F(Framework, OperatorsOfBothTorchLayouts) {
  Read("torch.op_range", Range(true, 100, 200) + Range(false, 300, 300));
  ASSERT_EQ(data.operators.size(), 2u);
  const std::string rest = ", sequence 7, threads 43 and 45: aten::add, float;int, 2,3;4, a.py(1): f;b.py(2): g, Net";
  EXPECT_EQ(Text(data.operators[0]), "100 to 200" + rest);
  EXPECT_EQ(Text(data.operators[1]), "300 to 300" + rest);
  EXPECT_EQ(data.records, 2u);
  EXPECT_EQ(data.bad_records, 0u);
}

TEST_F(Framework, MarksOfTheQueue) {
  const auto mark = [](uint64_t kind) {
    return Part(2, Le(int64_t{50}) + Le(kind) + Le(uint64_t{9}) + Le(uint64_t{43}) + Le(uint64_t{42}) + Part(1, "add"));
  };
  Read("torch.op_mark", mark(0) + mark(3) + mark(4));
  ASSERT_EQ(data.marks.size(), 2u);
  EXPECT_EQ(data.marks[0].kind, QueueMark::Kind::kEnqueueBegin);
  EXPECT_EQ(data.marks[1].kind, QueueMark::Kind::kDequeueEnd);
  EXPECT_EQ(data.marks[1].time, 50);
  EXPECT_EQ(data.marks[1].correlation, 9u);
  EXPECT_EQ(data.marks[1].thread, 43u);
  EXPECT_EQ(Text(data.marks[1].name), "add");
  EXPECT_EQ(data.bad_records, 1u);
  EXPECT_EQ(data.bad_bytes, mark(4).size());
}

TEST_F(Framework, OperatorsOfMindSpore) {
  std::string body;
  for (const uint64_t value : std::array<uint64_t, 5>{43, 1, 2, 100, 200}) body += Le(value);
  body += std::string(14, '\0');
  Read("mindspore.op_range", Part(0, body + Part(13, "Conv2D")));
  ASSERT_EQ(data.operators.size(), 1u);
  EXPECT_EQ(data.operators[0].thread, 43u);
  EXPECT_EQ(data.operators[0].begin, 100);
  EXPECT_EQ(data.operators[0].end, 200);
  EXPECT_EQ(data.operators[0].sequence, -1);
  EXPECT_EQ(Text(data.operators[0].name), "Conv2D");
}

TEST_F(Framework, DamagedRecordCostsItselfOnly) {
  std::string broken = Range(true, 1, 2);
  broken[6 + 58 + 2] = '\x7F';  // length of the first field
  Read("torch.op_range", Range(true, 1, 2) + broken + Range(true, 2, 1) + Part(1, "short") + Range(true, 5, 6));
  EXPECT_EQ(data.operators.size(), 2u);
  EXPECT_EQ(data.records, 5u);
  EXPECT_EQ(data.bad_records, 3u);
}

TEST_F(Framework, CutAtEveryByte) {
  const std::string first = Range(true, 1, 2);
  const std::string all = first + Range(true, 3, 4);
  for (size_t cut = 0; cut < all.size(); ++cut) {
    FrameworkData read;
    ReadInto(&read, "torch.op_range", all.substr(0, cut), 7);
    EXPECT_EQ(read.operators.size(), cut < first.size() ? 0u : 1u) << cut;
    EXPECT_EQ(read.bad_bytes, cut < first.size() ? cut : cut - first.size()) << cut;
  }
}

TEST_F(Framework, OtherFilesAreNotRead) {
  EXPECT_FALSE(FrameworkData::IsFile("torch.unknown"));
  EXPECT_FALSE(FrameworkData::IsFile("truth.jsonl"));
}

// Wherever the pieces of a file end.
TEST_F(Framework, PiecesOfAnySize) {
  const std::string all = Range(true, 1, 2) + Part(1, "short") + Range(false, 3, 4) + Range(true, 5, 6).substr(0, 40);
  for (size_t piece = 1; piece <= all.size(); ++piece) {
    FrameworkData read;
    ReadInto(&read, "torch.op_range", all, piece);
    EXPECT_EQ(read.operators.size(), 2u) << piece;
    EXPECT_EQ(read.bad_records, 2u) << piece;
    EXPECT_EQ(read.bad_bytes, Part(1, "short").size() + 40) << piece;
  }
}

TEST_F(Framework, LengthBeyondAnyRecordEndsTheFile) {
  const std::string broken = Le(uint16_t{1}) + Le(uint32_t{0x7FFFFFFF});
  ReadInto(&data, "torch.op_range", Range(true, 1, 2) + broken + Range(true, 3, 4), 16);
  EXPECT_EQ(data.operators.size(), 1u);
  EXPECT_EQ(data.bad_records, 1u);
  EXPECT_EQ(data.bad_bytes, broken.size() + Range(true, 3, 4).size());
  Read("torch.op_range", Range(true, 7, 8));
  EXPECT_EQ(data.operators.size(), 2u) << "another file is complete";
}

// in-application 7.6: "<3q4Q?", "<3q6Q?", "<3q6Qb?"; under either name of the file.
TEST_F(Framework, OperatorsOfOlderMindSpores) {
  std::string all;
  for (const size_t more : {0, 16, 17}) {
    std::string body = Le(int64_t{100}) + Le(int64_t{200}) + Le(int64_t{7});
    for (const uint64_t value : {42, 43, 44, 45}) body += Le(value);
    body += std::string(more, '\1') + Le(uint8_t{0});
    all += Part(1, body + Part(3, "Add") + Part(4, "float") + Part(5, "2,3") + Part(6, "a.py(1): f") + Part(7, "Net"));
  }
  Read("op_range_3", all);
  Read("mindspore.op_range", all);
  EXPECT_EQ(data.bad_records, 0u);
  ASSERT_EQ(data.operators.size(), 6u);
  for (const FrameworkOperator& op : data.operators) {
    EXPECT_EQ(Text(op), "100 to 200, sequence 7, threads 43 and 45: Add, float, 2,3, a.py(1): f, Net");
  }
}

// The times of a thread are a tree; timestamps become wall clock.
TEST_F(Framework, InnermostOperatorOfAThread) {
  Read("torch.op_range", Range(true, 20, 30) + Range(true, 10, 50) + Range(true, 22, 25) + Range(true, 60, 70));
  data.Finish([](int64_t timestamp) { return timestamp + 1000; });
  ASSERT_EQ(data.operators.size(), 4u);
  EXPECT_EQ(data.operators[0].begin, 1010);
  EXPECT_EQ(data.operators[0].end, 1050);
  EXPECT_EQ(data.operators[2].parent, 1);
  EXPECT_EQ(data.operators[1].parent, 0);
  EXPECT_EQ(data.operators[3].parent, -1);
  EXPECT_EQ(data.Innermost(43, 1024), 2);
  EXPECT_EQ(data.Innermost(43, 1025), 2) << "its end is in it";
  EXPECT_EQ(data.Innermost(43, 1026), 1);
  EXPECT_EQ(data.Innermost(43, 1040), 0);
  EXPECT_EQ(data.Innermost(43, 1055), -1);
  EXPECT_EQ(data.Innermost(43, 1009), -1);
  EXPECT_EQ(data.Innermost(44, 1024), -1) << "of another thread";
}

// 7.2: what a thread launches is of the operator that had put it into the queue.
TEST_F(Framework, QueueTiesLaunchesToOperators) {
  const auto mark = [](int64_t time, uint64_t kind, uint64_t correlation, uint64_t thread) {
    return Part(2, Le(time) + Le(kind) + Le(correlation) + Le(thread) + Le(uint64_t{42}) + Part(1, "add"));
  };
  Read("torch.op_range", Range(true, 10, 50) + Range(true, 60, 70));
  Read("torch.op_mark", mark(80, 2, 9, 77) + mark(95, 3, 9, 77) + mark(12, 0, 9, 43) + mark(14, 1, 9, 43) +
                            mark(100, 2, 10, 77) + mark(105, 3, 10, 77) + mark(61, 0, 11, 43));
  Finish();
  ASSERT_EQ(data.queue.size(), 2u);
  EXPECT_EQ(data.queue[0].correlation, 9u);
  EXPECT_EQ(std::pair(data.queue[0].put.begin, data.queue[0].put.end), std::pair(int64_t{12}, int64_t{14}));
  EXPECT_EQ(std::pair(data.queue[0].taken.begin, data.queue[0].taken.end), std::pair(int64_t{80}, int64_t{95}));
  EXPECT_FALSE(data.queue[1].put.known);
  EXPECT_EQ(data.unpaired_marks, 1u);
  EXPECT_EQ(data.LauncherAt(77, 90), 0) << "the one of the enqueue, not the one at that time";
  EXPECT_EQ(data.LauncherAt(77, 96), -1);
  EXPECT_EQ(data.LauncherAt(77, 102), -1) << "who put it is not known";
  EXPECT_EQ(data.LauncherAt(43, 65), 1) << "without the queue";
}

// 7.2: "match op_mark correlation", whatever else the thread has begun.
TEST_F(Framework, TasksOfTheQueueWithANumberMayOverlap) {
  const auto mark = [](int64_t time, uint64_t kind, uint64_t correlation) {
    return Part(2, Le(time) + Le(kind) + Le(correlation) + Le(uint64_t{77}) + Le(uint64_t{42}) + Part(1, "add"));
  };
  Read("torch.op_mark", mark(80, 2, 9) + mark(85, 2, 10) + mark(90, 3, 9) + mark(95, 3, 10) + mark(96, 2, 11) + mark(97, 2, 11) + mark(99, 3, 11));
  Finish();
  std::vector<std::pair<int64_t, int64_t>> found;
  for (const QueueTask& task : data.queue) found.emplace_back(task.taken.begin, task.taken.end);
  const decltype(found) expected = {{80, 90}, {85, 95}, {96, 99}};
  EXPECT_EQ(found, expected) << "of two begins the first counts";
  EXPECT_EQ(data.unpaired_marks, 1u);
}

// As torch_npu writes them: a task has its number only once it is in the queue, the begin of putting it has 0.
TEST_F(Framework, PuttingIntoTheQueueBeginsWithoutANumber) {
  const auto mark = [](int64_t time, uint64_t kind, uint64_t correlation, uint64_t thread, const char* name) {
    return Part(2, Le(time) + Le(kind) + Le(correlation) + Le(thread) + Le(uint64_t{42}) + Part(1, name));
  };
  Read("torch.op_range", Range(true, 10, 50) + Range(true, 60, 70));
  Read("torch.op_mark", mark(12, 0, 0, 43, "add") + mark(14, 1, 9, 43, "add") + mark(61, 0, 0, 43, "mul") + mark(61, 0, 0, 44, "mul") +
                            mark(62, 1, 10, 43, "mul") + mark(63, 1, 11, 44, "mul") + mark(80, 2, 9, 77, "add") +
                            mark(95, 3, 9, 77, "add") + mark(96, 2, 10, 77, "mul") + mark(99, 3, 10, 77, "mul") + mark(65, 0, 0, 43, "lost"));
  Finish();
  ASSERT_EQ(data.queue.size(), 3u);
  EXPECT_EQ(data.unpaired_marks, 1u);
  EXPECT_EQ(data.queue[0].correlation, 9u);
  EXPECT_EQ(std::pair(data.queue[0].put.begin, data.queue[0].put.end), std::pair(int64_t{12}, int64_t{14}));
  EXPECT_EQ(data.queue[2].put.thread, 44u);
  EXPECT_FALSE(data.queue[2].taken.known);
  EXPECT_EQ(data.LauncherAt(77, 90), 0);
  EXPECT_EQ(data.LauncherAt(77, 97), 1);
}

// As PyTorch's profiler: workspaces taken by the queue's thread are of the operator that had put the task.
TEST_F(Framework, MemoryTakenForATaskOfTheQueue) {
  const auto mark = [](int64_t time, uint64_t kind, uint64_t thread) {
    return Part(2, Le(time) + Le(kind) + Le(uint64_t{9}) + Le(thread) + Le(uint64_t{42}) + Part(1, "add"));
  };
  const auto range = [](int64_t begin, int64_t end, uint64_t thread, const char* name) {
    return Part(1, Le(begin) + Le(end) + Le(int64_t{7}) + Le(uint64_t{42}) + Le(thread) + Le(thread) + Le(uint64_t{0}) +
                       Le(uint8_t{0}) + Le(uint8_t{0}) + Part(2, name));
  };
  Read("torch.op_range", range(10, 50, 43, "aten::add") + range(20, 30, 43, "malloc_workspace") +
                             range(32, 40, 43, "empty_tensor") + range(82, 84, 77, "malloc_workspace"));
  Read("torch.op_mark", mark(12, 0, 43) + mark(14, 1, 43) + mark(80, 2, 77) + mark(95, 3, 77));
  Finish();
  EXPECT_EQ(data.TakerAt(43, 25), 0);
  EXPECT_EQ(data.TakerAt(43, 35), 0);
  EXPECT_EQ(data.TakerAt(77, 83), 0) << "of the one that had put the task";
  EXPECT_EQ(data.TakerAt(77, 90), 0);
  EXPECT_EQ(data.TakerAt(77, 96), -1);
}

// 7.2: raw records of 33 bytes; 0 call, 1 return, 2 and 3 those of C.
TEST_F(Framework, CallsOfPython) {
  Read("torch.python_tracer_hash", Part(4, Le(uint64_t{5}) + Part(1, "a.py(1): f")));
  Read("torch.python_tracer_func", PythonEvent(10, 1, 9) + PythonEvent(20, 0, 5) + PythonEvent(30, 2, 6) + PythonEvent(40, 0, 7) +
                                       PythonEvent(50, 3, 6) + PythonEvent(60, 4, 5) + PythonEvent(70, 0, 5) + PythonEvent(80, 0, 8) +
                                       PythonEvent(90, 1, 8) + "cut");
  Finish();
  EXPECT_EQ(data.records, 10u);
  EXPECT_EQ(data.bad_records, 2u) << "a tag that is none, and what is cut off";
  EXPECT_EQ(data.bad_bytes, 33u + 3u);
  EXPECT_EQ(data.python.unpaired, 1u);
  EXPECT_EQ(CallsOfPython(), (Calls{{20, 90, "a.py(1): f"}, {30, 50, "6"}, {40, 50, "7"}, {70, 90, "a.py(1): f"}, {80, 90, "8"}}))
      << "what has no end of its own has that of the call around it, or the last";
}

// As torch_npu writes them: all ends have the key of "__torch_npu_profiler_python_tracer_exit".
TEST_F(Framework, EndsOfPythonCallsWithAKeyOfTheirOwn) {
  constexpr uint64_t kExit = 0xFEDCBA9876543210;
  Read("torch.python_tracer_hash", Part(4, Le(uint64_t{5}) + Part(1, "a.py(1): f")));
  Read("torch.python_tracer_func", PythonEvent(10, 0, 5) + PythonEvent(20, 2, 6) + PythonEvent(25, 0, 8, 44) +
                                       PythonEvent(30, 3, kExit) + PythonEvent(40, 0, 5) + PythonEvent(50, 1, kExit) +
                                       PythonEvent(55, 1, kExit, 44) + PythonEvent(60, 1, kExit) + PythonEvent(70, 1, kExit));
  Finish();
  EXPECT_EQ(data.python.unpaired, 1u);
  EXPECT_EQ(CallsOfPython(), (Calls{{10, 60, "a.py(1): f"}, {20, 30, "6"}, {40, 50, "a.py(1): f"}, {25, 55, "8"}}));
}

// Ends of calls of another thread are looked for in no time, however many calls of their own have not ended.
TEST_F(Framework, ManyEndsOfPythonCallsWithoutABegin) {
  constexpr uint64_t kMany = 200'000;
  std::string events;
  const auto add = [&events](uint64_t time, uint8_t tag, uint64_t key, uint64_t thread) {
    for (const uint64_t value : {time, thread, uint64_t{42}, key}) events += Le(value);
    events += Le(tag);
  };
  add(1, 0, 7, 44);
  for (uint64_t i = 0; i < kMany; ++i) add(2, 0, 100 + i, 43);
  for (uint64_t i = 0; i < kMany; ++i) add(3, 1, 7, 43);
  Read("torch.python_tracer_func", events);
  EXPECT_EQ(data.python.unpaired, kMany);
  Finish();
  EXPECT_EQ(data.python.calls.size(), kMany + 1);
}

// 7.2: ptr, time, size, totals of allocated, reserved, active, stream; types; tid, pid.
TEST_F(Framework, MemoryOfTheAllocator) {
  const auto report = [](int64_t time, uint8_t kind, uint64_t address, uint8_t device_type = 20) {
    std::string body = Le(address) + Le(time) + Le(int64_t{512});
    for (const int64_t value : {1000, 2000, 1500, 77}) body += Le(value);
    for (const uint8_t value : {device_type, uint8_t{3}, uint8_t{0}, kind, uint8_t{0}}) body += Le(value);
    return Part(3, body + Le(uint64_t{43}) + Le(uint64_t{42}));
  };
  Read("torch.memory_usage", report(50, 1, 1) + report(10, 0, 1) + report(60, 1, 1) + report(49, 2, 1) +
                                 report(70, 0, 1) + report(5, 1, 2) + report(20, 0, 9, 0) + report(21, 3, 9));
  EXPECT_EQ(data.bad_records, 1u);
  Finish();
  ASSERT_EQ(data.memory.records.size(), 6u) << "not that of the host";
  EXPECT_EQ(data.memory.records[1].device, 3);
  EXPECT_EQ(data.memory.records[1].bytes, 512);
  EXPECT_EQ(data.memory.records[1].reserved, 2000);
  EXPECT_EQ(data.memory.records[1].thread, 43u);
  const std::vector<FrameworkAllocation> found = data.memory.Allocations();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].released->time, 50) << "the first";
  EXPECT_EQ(found[0].inactive->time, 49);
  EXPECT_EQ(found[1].taken->time, 70);
  EXPECT_EQ(found[1].released, nullptr);
}

TEST_F(Framework, CollectionsOfGarbage) {
  Read("torch.gc_record", Le(uint64_t{42}) + Le(int64_t{30}) + Le(int64_t{40}) + Le(uint64_t{42}) + Le(int64_t{10}) +
                              Le(int64_t{20}) + Le(uint64_t{42}) + Le(int64_t{20}) + Le(int64_t{10}));
  data.Finish([](int64_t timestamp) { return timestamp + 1; });
  EXPECT_EQ(data.bad_records, 1u);
  ASSERT_EQ(data.collections.size(), 2u);
  EXPECT_EQ(std::pair(data.collections[0].begin, data.collections[1].end), std::pair(int64_t{11}, int64_t{41}));
}

TEST_F(Framework, TimesBeforeTheEpochAreNone) {
  Read("torch.op_range", Range(true, 10, 50) + Range(true, 20, 30));
  data.Finish([](int64_t timestamp) { return timestamp - 15; });
  EXPECT_EQ(data.operators.size(), 1u);
  EXPECT_EQ(data.bad_times, 1u);
}

// in-application 7.1: counts when syscnt_enable, else CLOCK_MONOTONIC_RAW in ns; only profiler_info says which.
TEST(FrameworkClock, WithoutProfilerInfoItIsTheOneThatFitsTheCollection) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "FRAMEWORK");
  const std::optional<FrameworkFiles> files = FindFramework(dir.path());
  ASSERT_TRUE(files);
  constexpr int64_t kRawNs = 876'117'208'001'300;
  ClockFacts facts;
  facts.begin_us = 1'767'225'600'000'000;
  facts.begin_raw_ns = facts.host_ns = kRawNs;
  facts.host_count = kRawNs / 10;
  facts.host_hz = 100e6;
  const ClockMap host(facts);
  constexpr int64_t kLaterNs = 5'000'000;
  constexpr int64_t kFirstNs = kRawNs + kLaterNs;
  for (const auto& [first, are_counts] : {std::pair{kFirstNs, false}, std::pair{kFirstNs / 10, true}}) {
    EXPECT_EQ(files->AreCounts(host, first), are_counts);
    EXPECT_EQ(files->ClockOf(host, are_counts)(first) / 1000, facts.begin_us + kLaterNs / 1000);
  }
  EXPECT_TRUE(files->AreCounts(host, std::nullopt));
  facts.host_hz = 0;
  EXPECT_FALSE(files->AreCounts(ClockMap(facts), kRawNs / 10)) << "records of the host are ns, too";
  WriteText(dir / "profiler_info_0.json", R"({"start_info": {"syscnt_enable": true}})");
  EXPECT_TRUE(FindFramework(dir.path())->AreCounts(host, kRawNs + kLaterNs));
}

}  // namespace
}  // namespace profd::exporting::operators
