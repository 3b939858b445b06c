#include <gmock/gmock.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "export/trace/trace_test_support.h"

namespace profd::exporting {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// A reader of its own: knows the wire format and the public field numbers only.
struct Field {
  uint32_t number = 0;
  uint64_t value = 0;  // varint, or the bits of a fixed one
  std::string_view bytes;
};

std::vector<Field> Parse(std::string_view text) {
  std::vector<Field> fields;
  auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; !text.empty() && shift < 70; shift += 7) {
      auto byte = static_cast<unsigned char>(text.front());
      text.remove_prefix(1);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    ADD_FAILURE() << "a varint without an end";
    text = {};
    return value;
  };
  while (!text.empty()) {
    uint64_t tag = varint();
    Field field{static_cast<uint32_t>(tag >> 3), 0, {}};
    size_t size = 0;
    if ((tag & 7) == 0) {
      field.value = varint();
    } else if ((tag & 7) == 1) {
      size = 8;
    } else if ((tag & 7) == 2) {
      size = varint();
    } else {
      ADD_FAILURE() << "wire type " << (tag & 7);
      break;
    }
    EXPECT_LE(size, text.size());
    field.bytes = text.substr(0, size);
    if ((tag & 7) == 1) std::memcpy(&field.value, field.bytes.data(), 8);
    text.remove_prefix(std::min(size, text.size()));
    fields.push_back(field);
  }
  return fields;
}

const Field* Find(const std::vector<Field>& fields, uint32_t number) {
  for (const Field& field : fields) {
    if (field.number == number) return &field;
  }
  return nullptr;
}

struct Sample {
  std::string process;
  std::string track;
  std::string unit;
  uint64_t t_ns = 0;
  uint64_t type = 0;
  double value = 0;
  std::string name;
  std::string annotations;
  std::vector<uint64_t> flows_from;
  std::vector<uint64_t> flows_to;
  bool operator==(const Sample&) const = default;
};

// Reads the trace the way a viewer does.
class Reader {
 public:
  explicit Reader(std::string_view trace) {
    for (const Field& field : Parse(trace)) {
      EXPECT_EQ(field.number, 1U);
      packets_.push_back(Parse(field.bytes));
    }
    for (const auto& packet : packets_) Describe(packet);
    for (const auto& packet : packets_) Walk(packet);
  }
  // Processes by their sort index, and below each its rows by their rank; counters left out.
  std::vector<std::string> Rows() const {
    std::vector<std::string> rows;
    for (const auto& [order, process] : order_) {
      rows.push_back(tracks_.at(process).process);
      std::map<std::pair<uint64_t, uint64_t>, std::string> below;
      for (const auto& [uuid, parent] : parents_) {
        if (parent == process) below[{ranks_.at(uuid), uuid}] = tracks_.at(uuid).track;
      }
      for (const auto& [key, name] : below) rows.push_back(tracks_.at(process).process + " > " + name);
    }
    return rows;
  }
  std::vector<Sample> samples_;
  std::map<uint64_t, std::string> processes_;  // by pid

 private:
  void Describe(const std::vector<Field>& packet) {
    const Field* descriptor = Find(packet, 60);
    if (descriptor == nullptr) return;
    std::vector<Field> track = Parse(descriptor->bytes);
    Sample known;
    if (const Field* name = Find(track, 2)) known.track = name->bytes;
    if (const Field* parent = Find(track, 5)) parents_[Find(track, 1)->value] = parent->value;
    if (const Field* process = Find(track, 3)) {
      std::vector<Field> fields = Parse(process->bytes);
      known.process = Find(fields, 6)->bytes;
      processes_[Find(fields, 1)->value] = known.process;
      order_[Find(fields, 3)->value] = Find(track, 1)->value;
      EXPECT_EQ(Find(track, 11)->value, 3U) << "rows in the order of their ranks";
    }
    if (const Field* rank = Find(track, 12)) ranks_[Find(track, 1)->value] = rank->value;
    if (const Field* counter = Find(track, 8)) {
      std::vector<Field> fields = Parse(counter->bytes);
      if (const Field* unit = Find(fields, 6)) known.unit = unit->bytes;
    }
    EXPECT_TRUE(tracks_.try_emplace(Find(track, 1)->value, known).second) << "described twice";
  }

  void Walk(const std::vector<Field>& packet) {
    uint64_t sequence = Find(packet, 10)->value;
    const Field* flags = Find(packet, 13);
    if (const Field* snapshot = Find(packet, 6)) {
      EXPECT_EQ(flags->value, 1U);
      std::map<uint64_t, uint64_t> clocks;
      for (const Field& clock : Parse(snapshot->bytes)) {
        std::vector<Field> fields = Parse(clock.bytes);
        clocks[Find(fields, 1)->value] = Find(fields, 2)->value;
      }
      EXPECT_EQ(clocks[1], clocks[6]);
      EXPECT_EQ(Find(Parse(Find(packet, 59)->bytes), 58)->value, 64U);
      now_[sequence] = clocks[64];
    }
    const Field* event = Find(packet, 11);
    if (event == nullptr) return;
    ASSERT_NE(flags, nullptr);
    EXPECT_EQ(flags->value, 2U);
    ASSERT_TRUE(now_.contains(sequence)) << "an event before its sequence's clock";
    uint64_t timestamp = Find(packet, 8)->value;
    if (const Field* clock = Find(packet, 58)) {
      EXPECT_EQ(clock->value, 6U);
    } else {
      timestamp = now_[sequence] += timestamp;
    }
    Keep(Parse(event->bytes), timestamp);
  }

  void Keep(const std::vector<Field>& event, uint64_t timestamp) {
    uint64_t uuid = Find(event, 11)->value;
    ASSERT_TRUE(tracks_.contains(uuid)) << "an event of an unknown track";
    Sample sample = tracks_[uuid];
    std::string above;
    for (uint64_t up = parents_[uuid]; up != 0; up = parents_.contains(up) ? parents_[up] : 0) {
      const Sample& track = tracks_[up];
      above = (track.process.empty() ? track.track : track.process) + (above.empty() ? "" : " > ") + above;
    }
    sample.process = above;
    sample.t_ns = timestamp;
    sample.type = Find(event, 9)->value;
    if (const Field* value = Find(event, 44)) std::memcpy(&sample.value, &value->value, 8);
    if (const Field* name = Find(event, 23)) sample.name = name->bytes;
    for (const Field& field : event) {
      if (field.number == 4)
        sample.annotations += std::string(Find(Parse(field.bytes), 10)->bytes) + ";";
      if (field.number == 47) sample.flows_from.push_back(field.value);
      if (field.number == 48) sample.flows_to.push_back(field.value);
    }
    samples_.push_back(sample);
  }

  std::vector<std::vector<Field>> packets_;
  std::map<uint64_t, Sample> tracks_;
  std::map<uint64_t, uint64_t> parents_;
  std::map<uint64_t, uint64_t> order_;  // processes by sort index
  std::map<uint64_t, uint64_t> ranks_;
  std::map<uint64_t, uint64_t> now_;
};

std::string Inflate(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out;
  std::string piece(65536, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  int code = Z_OK;
  while (code == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    code = inflate(&stream, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - stream.avail_out);
  }
  EXPECT_EQ(code, Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0U) << "one member, nothing behind it";
  inflateEnd(&stream);
  return out;
}

class PerfettoFormatTest : public TraceFixture {
 protected:
  PerfettoFormatTest() : TraceFixture(MakePerfettoFormat()) {}
};

TEST_F(PerfettoFormatTest, CountersComeBackAsTheyWere) {
  auto sink = Open();
  Put(sink.get(), TableId::kHbm, 0, 20, 3, 1, 190904.929);
  Put(sink.get(), TableId::kHbm, 0, 40, 3, 1, 1.0 / 3);
  Put(sink.get(), TableId::kHbm, 0, 30, 2, 0, -0.5);  // goes back
  Put(sink.get(), TableId::kHbm, 0, 50, 3, 1, 7.0);
  Put(sink.get(), TableId::kHbm, 0, -5, 3, 1, 7.0);  // before the collection
  ASSERT_TRUE(sink->Finish().ok());
  std::vector<OutputFile> files = End();
  ASSERT_EQ(files.size(), 1U);
  EXPECT_THAT(files[0].path, testing::EndsWith("/trace_20260101000000.perfetto-trace"));
  EXPECT_EQ(files[0].rows, 4U);
  std::string trace = ReadText(files[0].path);
  EXPECT_EQ(files[0].bytes, trace.size());
  auto sample = [](const char* track, uint64_t micros, double value) {
    return Sample{"NPU 0 > HBM", track, "MB/s", uint64_t{kBeginNs} + micros * 1000, 4,
                  value,         "",    "",
                  {},            {}};
  };
  EXPECT_THAT(Reader(trace).samples_,
              ElementsAre(sample("HBM 3/Write", 20, 190904.929), sample("HBM 3/Write", 40, 1.0 / 3),
                          sample("HBM 2/Read", 30, -0.5), sample("HBM 3/Write", 50, 7)));
}

TEST_F(PerfettoFormatTest, EveryArgIsATrack) {
  auto sink = Open();
  Put(sink.get(), TableId::kSio, 0, 1, 1, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0);
  Put(sink.get(), TableId::kAccPmu, 0, 1, 3, 10, 11, 12, 13);
  Put(sink.get(), TableId::kNpuMem, 0, 1, 0, 1024, 2048);
  ASSERT_TRUE(sink->Finish().ok());
  Reader reader(ReadText(End()[0].path));
  ASSERT_EQ(reader.samples_.size(), 15U);
  EXPECT_EQ(reader.samples_[0].track, "req_rx die 1");
  EXPECT_EQ(reader.samples_[8].track, "Acc 3/read_bandwidth");
  EXPECT_EQ(reader.samples_[8].value, 10);
  EXPECT_EQ(reader.samples_[14].track, "APP/Memory");
  EXPECT_EQ(reader.samples_[14].unit, "KB");
  EXPECT_EQ(reader.samples_[14].value, 3);
}

TEST_F(PerfettoFormatTest, SlicesBeginAndEnd) {
  auto sink = Open(0, -1);
  sink->TakeEvent({EventKind::kRange, kBeginNs + 1000, 500, -1, 77, 78, "forward", 0, {{"n", 1}}});
  sink->TakeEvent({EventKind::kMark, kBeginNs + 1200, 0, -1, 77, 78, "load", 0, {}});
  sink->TakeEvent({EventKind::kIteration,
                   kBeginNs,
                   9000,
                   0,
                   0,
                   1,
                   "",
                   2,
                   {{"FP Start", 1000}, {"BP End", 5000}}});
  ASSERT_TRUE(sink->Finish().ok());
  Reader reader(ReadText(End()[0].path));
  std::vector<std::string> seen;
  for (const Sample& sample : reader.samples_) {
    seen.push_back(std::to_string(sample.type) + " " + std::to_string(sample.t_ns - kBeginNs) +
                   " " + sample.track + " " + sample.name);
  }
  EXPECT_THAT(seen, ElementsAre("1 1000 thread 78 forward", "2 1500 thread 78 ",
                                "3 1200 thread 78 load", "1 0 Model 1 Iteration 2",
                                "1 1000 Model 1 FP_BP Time 2", "2 5000 Model 1 ",
                                "1 5000 Model 1 Iteration Refresh 2", "2 9000 Model 1 ",
                                "2 9000 Model 1 "));
  EXPECT_EQ(reader.samples_[0].annotations, "n;");
  EXPECT_EQ(reader.samples_[0].process, "pid 77");
  EXPECT_EQ(reader.samples_[3].process, "NPU 0");
  EXPECT_EQ(reader.samples_[3].annotations,
            "Iteration ID;FP Start;BP End;Iteration End;Iteration Time(us);");
}

// Perfetto ends the slice of a row that began last, so what overlaps is on further rows: an all-reduce that ends in the
// tail, and the iteration that begins before the one before it has ended.
TEST_F(PerfettoFormatTest, PartsOfStepsAndIterationsMayOverlap) {
  auto sink = Open(0, -1);
  auto iteration = [&](int64_t t_ns, int64_t number, std::vector<Event::Arg> args) {
    sink->TakeEvent({EventKind::kIteration, t_ns, 9000, 0, 0, 1, "", number, std::move(args)});
  };
  iteration(kBeginNs, 1,
            {{"FP Start", 1000}, {"BP End", 5000}, {"Reduce Start", 4000}, {"Reduce End", 6000},
             {"Reduce Start", 7000}, {"Reduce End", 8000}});
  iteration(kBeginNs + 8500, 2, {});
  ASSERT_TRUE(sink->Finish().ok());
  std::vector<Sample> samples = Reader(ReadText(End()[0].path)).samples_;
  std::ranges::stable_sort(samples, {}, &Sample::t_ns);
  std::map<std::string, std::vector<Sample>> open;
  std::vector<std::string> seen;
  for (const Sample& sample : samples) {
    std::vector<Sample>& of = open[sample.track];
    if (sample.type == 1) {
      of.push_back(sample);
      continue;
    }
    ASSERT_EQ(sample.type, 2);
    ASSERT_FALSE(of.empty());
    seen.push_back(std::to_string(of.back().t_ns - kBeginNs) + "-" + std::to_string(sample.t_ns - kBeginNs) + " " +
                   sample.track + " " + of.back().name);
    of.pop_back();
  }
  EXPECT_THAT(seen, UnorderedElementsAre("0-9000 Model 1 Iteration 1", "1000-5000 Model 1 FP_BP Time 1",
                                         "4000-6000 Model 1 (2) Reduce_1_0", "5000-9000 Model 1 Iteration Refresh 1",
                                         "7000-8000 Model 1 Reduce_1_1", "8500-17500 Model 1 (2) Iteration 2"));
}

// Below a process: its steps, then its marks. Below an NPU: its steps, then groups of counters. No row
// is called by the number that stands for "no model".
TEST_F(PerfettoFormatTest, ProcessesComeFirstAndStepsAboveAll) {
  dumps_[0]->manifest.emplace().processes = {{78, 1, true, {1}, "train.py"},
                                             {77, 0, true, {0}, "train.py"}};
  auto sink = Open();
  Put(sink.get(), TableId::kHbm, 1, 1, 0, 0, 1.0);
  Put(sink.get(), TableId::kHccs, 1, 1, 1.0, 2.0);
  sink->TakeEvent({EventKind::kDeviceStep, kBeginNs, 9000, 1, 0, 4294967295, "Step 2", 2, {}});
  for (int rank : {1, 0}) {
    Event step{EventKind::kStep, kBeginNs, 9000, -1, 77 + rank, 5, "Step 2", 2, {}};
    step.rank = rank;
    sink->TakeEvent(step);
    step.kind = EventKind::kMark;
    sink->TakeEvent(step);
  }
  ASSERT_TRUE(sink->Finish().ok());
  Reader reader(ReadText(End()[0].path));
  EXPECT_THAT(reader.Rows(),
              ElementsAre("rank 0, train.py, pid 77", "rank 0, train.py, pid 77 > Steps",
                          "rank 0, train.py, pid 77 > thread 5", "rank 1, train.py, pid 78",
                          "rank 1, train.py, pid 78 > Steps", "rank 1, train.py, pid 78 > thread 5",
                          "NPU 1 (rank 1)", "NPU 1 (rank 1) > Steps", "NPU 1 (rank 1) > HCCS",
                          "NPU 1 (rank 1) > HBM"));
}

TEST_F(PerfettoFormatTest, TextsAreUtf8WhateverTheDumpHas) {
  auto sink = Open();
  Put(sink.get(), TableId::kQos, 0, 1,
      strings_.Intern("\xFF"
                      "a\xB6"),
      -1, 5);
  sink->TakeEvent(
      {EventKind::kMark, kBeginNs, 0, -1, 77, 78, std::string(2000, 'x') + "\xE6", 0, {}});
  ASSERT_TRUE(sink->Finish().ok());
  Reader reader(ReadText(End()[0].path));
  ASSERT_EQ(reader.samples_.size(), 2U);
  EXPECT_EQ(reader.samples_[0].track,
            "QoS \xEF\xBF\xBD"
            "a\xEF\xBF\xBD");
  EXPECT_EQ(reader.samples_[1].name, std::string(1024, 'x'));
}

// Each file is a sink; a flow joins a call and its kernel by an id of both.
TEST_F(PerfettoFormatTest, ActivityOfAProcess) {
  dumps_[0]->manifest.emplace().processes = {{77, 0, true, {0}, "train.py"}};
  const int64_t name = strings_.Intern("MatMul");
  auto calls = Open(0, -1);
  Put(calls.get(), TableId::kApi, -1, 1, name, 2, 3000, 77, 0, 43, 9);
  ASSERT_TRUE(calls->Finish().ok());
  auto kernels = Open(0, -1);
  Put(kernels.get(), TableId::kKernel, 0, 5, name, name, 2000, 5, 77, 0, 43, 9);
  Put(kernels.get(), TableId::kKernel, 0, 6, name, name, 2000, 5, 77, 0, 43, 0);  // overlaps
  Put(kernels.get(), TableId::kKernel, 0, -1, name, name, 2000, 5, 77, 0, 43, 9);  // before the collection
  ASSERT_TRUE(kernels->Finish().ok());
  auto markers = Open(0, -1);
  Put(markers.get(), TableId::kMarker, -1, 2, name, name, 0, 0, 1, -1, 77, 0, 43);
  ASSERT_TRUE(markers->Finish().ok());
  Reader reader(ReadText(End()[0].path));
  std::vector<std::string> seen;
  for (const Sample& sample : reader.samples_) {
    seen.push_back(std::to_string(sample.type) + " " + std::to_string(sample.t_ns - kBeginNs) + " " + sample.process +
                   " > " + sample.track);
  }
  const std::string process = "rank 0, train.py, pid 77 > ";
  EXPECT_THAT(seen, ElementsAre("1 1000 " + process + "API calls of thread 43",
                                "2 4000 " + process + "API calls of thread 43", "1 5000 NPU 0 (rank 0) > Stream 5",
                                "1 6000 NPU 0 (rank 0) > Stream 5 (2)", "2 7000 NPU 0 (rank 0) > Stream 5",
                                "2 8000 NPU 0 (rank 0) > Stream 5 (2)",
                                "3 2000 " + process + "Markers of thread 43"));
  EXPECT_EQ(reader.samples_[0].annotations, "rank;pid;correlation;level;");
  EXPECT_EQ(reader.samples_[0].flows_from.size(), 1U);
  EXPECT_EQ(reader.samples_[0].flows_from, reader.samples_[2].flows_to);
  EXPECT_EQ(reader.samples_[2].name, "MatMul");
  EXPECT_TRUE(reader.samples_[3].flows_to.empty());
}

TEST_F(PerfettoFormatTest, ARangeWithoutAnEndGoesToThatOfTheSession) {
  dumps_[0]->places[0].clock.end_us = kBeginNs / 1000 + 50;
  const int64_t name = strings_.Intern("forward");
  auto sink = Open(0, -1);
  Put(sink.get(), TableId::kMarker, -1, 2, name, name, 0, 1, 7, -1, 77, 0, 43);
  ASSERT_TRUE(sink->Finish().ok());
  Reader reader(ReadText(End()[0].path));
  ASSERT_EQ(reader.samples_.size(), 2U);
  EXPECT_EQ(reader.samples_[0].name, "forward (partial)");
  EXPECT_EQ(reader.samples_[0].t_ns, kBeginNs + 2000U);
  EXPECT_EQ(reader.samples_[1].t_ns, kBeginNs + 50'000U);
}

TEST_F(PerfettoFormatTest, DumpsOnOneTimelineDoNotClash) {
  AddDump("PROF_2", "node-2", 4242, 5);
  for (size_t dump = 0; dump < 2; ++dump) {
    auto sink = Open(dump);
    Put(sink.get(), TableId::kHbm, 0, 1, 0, 0, 1.0);
    ASSERT_TRUE(sink->Finish().ok());
  }
  Reader reader(ReadText(End()[0].path));
  ASSERT_EQ(reader.samples_.size(), 2U);
  EXPECT_EQ(reader.samples_[0].process, "NPU 0 (node-1) > HBM");
  EXPECT_EQ(reader.samples_[1].process, "NPU 0 (node-2) > HBM");
  EXPECT_EQ(reader.processes_.size(), 2U);
  for (const auto& [pid, name] : reader.processes_) EXPECT_LT(pid, 1U << 31);
}

TEST_F(PerfettoFormatTest, GzipByManyThreadsIsOneMember) {
  Begin(true);
  constexpr int kRows = 40000;  // more than one buffer
  PutByThreads(3, kRows);
  std::vector<OutputFile> files = End();
  EXPECT_THAT(files[0].path, testing::EndsWith(".perfetto-trace.gz"));
  Reader reader(Inflate(ReadText(files[0].path)));
  EXPECT_EQ(reader.samples_.size(), 3U * kRows);
  double sum = 0;
  for (const Sample& sample : reader.samples_) sum += sample.value;
  EXPECT_NEAR(sum, kRows * (kRows - 1.0) / 2, 1);
}

TEST_F(PerfettoFormatTest, AnInterruptEndsTheNextWrite) { ExpectAnInterruptEndsTheNextWrite(); }

TEST_F(PerfettoFormatTest, AnIncompleteExportLeavesNothing) {
  Begin(true);
  auto sink = Open();
  ASSERT_TRUE(sink->Finish().ok());
  sink.reset();
  EXPECT_TRUE(End(false).empty());
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

}  // namespace
}  // namespace profd::exporting
