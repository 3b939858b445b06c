// Files that end anywhere, as those of a process that was killed: complete records are read, lost ones are counted.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "dump/test_support.h"
#include "export/fan_out.h"
#include "export/operators/model.h"

namespace profd::exporting::operators {
namespace {

constexpr size_t kRecords = 2;

// A record of so many bytes, its fields by their offsets.
class Bytes {
 public:
  explicit Bytes(size_t size) : text_(size, '\0') {}
  template <class T>
  Bytes& At(size_t at, T value) {
    std::memcpy(text_.data() + at, &value, sizeof value);
    return *this;
  }
  std::string Text() const { return text_; }

 private:
  std::string text_;
};

// Number `i` of a file; its time is 100 * (i + 1).
using Make = std::function<std::string(uint64_t i)>;
using CountOf = std::function<size_t(const Model& model)>;

struct CutFile {
  std::string_view name;
  size_t bytes;  // of a record
  Make make;
  CountOf count;  // of what the whole records are in the model
};

Bytes Host(size_t size, uint64_t i) {
  return Bytes(size).At<uint16_t>(0, 0x5A5A).At<uint32_t>(8, 77).At<uint64_t>(16, 100 * (i + 1));
}

Make Plain(size_t size) {
  return [size](uint64_t i) { return Host(size, i).Text(); };
}

// Those that are gone once tasks are made of them.
CountOf Read(HostFileKind kind) {
  return [kind](const Model& model) { return model.host.RecordsOf(kind); };
}

const CutFile kApis = {"aging.api_event.data", 40,
                       [](uint64_t i) {
                         const uint64_t end = 100 * i + 150;
                         return Host(40, i).At<uint16_t>(2, 10000).At<uint32_t>(4, 5).At(24, end).Text();
                       },
                       [](const Model& model) { return model.host.apis.size(); }};

const CutFile kHostFiles[] = {
    kApis,
    {"aging.compact.task_track", 64, Plain(64), [](const Model& model) { return model.host_tasks.tasks.size(); }},
    {"unaging.compact.node_basic_info", 64, Plain(64), Read(HostFileKind::kNode)},
    {"aging.compact.capture_stream_info", 64, Plain(64), [](const Model& model) { return model.host.captures.size(); }},
    {"aging.compact.hccl_op_info", 64, Plain(64),
     [](const Model& model) { return model.host.communication.op_infos.size(); }},
    {"aging.compact.memcpy_info", 64, Plain(64),
     [](const Model& model) { return model.host.communication.copies.size(); }},
    {"aging.additional.hccl_info", 256, Plain(256),
     [](const Model& model) { return model.host.communication.infos.size(); }},
    {"aging.additional.task_memory_info", 256, Plain(256),
     [](const Model& model) { return model.host.memory.memory.size(); }},
    {"aging.additional.memory_application", 256, Plain(256),
     [](const Model& model) { return model.host.memory.memory.size(); }},
    {"unaging.additional.static_op_mem", 256, Plain(256),
     [](const Model& model) { return model.host.memory.planned.size(); }},
    {"aging.additional.tensor_info", 256,
     [](uint64_t i) { return Host(256, i).At<uint32_t>(32, 5).Text(); },
     Read(HostFileKind::kTensors)},
    {"aging.additional.context_id_info", 256,
     [](uint64_t i) { return Host(256, i).At<uint32_t>(32, 55).Text(); },
     Read(HostFileKind::kContexts)},
    {"aging.compact.node_attr_info", 64, Plain(64), Read(HostFileKind::kAttributes)},
    {"unaging.additional.fusion_op_info", 256,
     [](uint64_t i) { return Host(256, i).At<uint32_t>(32, 8).Text(); },
     [](const Model& model) { return model.host.fused.size(); }},
    {"aging.additional.mc2_comm_info", 256,
     [](uint64_t i) { return Host(256, i).At(44, static_cast<uint32_t>(i)).Text(); },
     [](const Model& model) { return model.host.fused_communication_streams.size(); }},
    {"unaging.additional.graph_id_map", 256,
     [](uint64_t i) { return Host(256, i).At<uint64_t>(24, 1000 + i).At(32, static_cast<uint32_t>(i)).Text(); },
     [](const Model& model) {
       size_t named = 0;
       for (uint32_t graph = 0; graph < kRecords; ++graph) named += model.host.GraphName(graph) == "N/A" ? 0 : 1;
       return named;
     }},
};

// One pair a task; its start and its end.
std::string Stars(uint64_t i) {
  return Bytes(64).At(0, static_cast<uint16_t>(i % 2)).At<uint16_t>(2, 0x6BD3).At<uint16_t>(4, 2)
      .At(6, static_cast<uint16_t>(i / 2)).At<uint64_t>(8, 1000 + i).Text();
}

const CutFile kStarsFile = {"stars_soc.data", 64, Stars, [](const Model& model) { return model.rows.size(); }};
const CutFile kProfileFile = {"ffts_profile.data", 128,
                              [](uint64_t i) {
                                return Bytes(128).At<uint16_t>(0, 0b101000).At<uint16_t>(2, 0x6BD3).At<uint16_t>(4, 2)
                                    .At(6, static_cast<uint16_t>(i)).At<uint64_t>(32, 5).At<uint64_t>(112, 1000 + 2 * i)
                                    .At<uint64_t>(120, 1001 + 2 * i).Text();
                              },
                              [](const Model& model) {
                                return static_cast<size_t>(std::ranges::count_if(
                                    model.rows, [](const TaskRow& row) { return row.pmu >= 0; }));
                              }};
const CutFile kCpuFile = {"aicpu.data", 256,
                          [](uint64_t i) { return Host(256, i).At<uint64_t>(40, 9).At<uint64_t>(80, 10).Text(); },
                          [](const Model& model) {
                            return model.cpu.empty() ? 0 : model.cpu.at(0).records.nodes.size();
                          }};
const CutFile kCacheFile = {"l2_cache.data", 72, [](uint64_t) { return Bytes(72).Text(); },
                            [](const Model& model) {
                              return model.cache.empty() ? 0 : model.cache.at(0).records.size();
                            }};
// Each the wrap of the stream's task ids, between two tasks.
const CutFile kFlips = {"ts_track.data", 40,
                        [](uint64_t i) {
                          return Bytes(40).At<uint8_t>(1, 14).At<uint64_t>(8, 1001 + 2 * i).At<uint16_t>(16, 2)
                              .At(18, static_cast<uint16_t>(i + 1)).Text();
                        },
                        [](const Model& model) {
                          size_t last = 0;
                          for (const TaskRow& row : model.rows) last = std::max<size_t>(last, row.batch);
                          return last;
                        }};

class CutRecords : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* sub : {"host/data", "device_0/data"}) std::filesystem::create_directories(Root() + "/" + sub);
    const std::string start = R"({"collectionTimeBegin":"1767225600000000","clockMonotonicRaw":"50"})";
    const std::string sample = R"({"prof_level":"l1","ai_core_profiling_mode":"task-based"})";
    WriteText(Root() + "/host/info.json", R"({"DeviceInfo":[],"CPU":[{"Frequency":"100.0"}],"platform_version":"5"})");
    WriteText(Root() + "/host/sample.json", sample);
    WriteText(Root() + "/host/start_info", start);
    WriteText(Root() + "/host/host_start.log", "[Host]\nclock_monotonic_raw: 100\ncntvct: 0\n");
    WriteText(Root() + "/device_0/info.json.0",
              R"({"DeviceInfo":[{"hwts_frequency":"50","aic_frequency":"1800"}],"platform_version":"5"})");
    WriteText(Root() + "/device_0/sample.json", sample);
    WriteText(Root() + "/device_0/start_info.0", start);
    WriteText(Root() + "/device_0/host_start.log.0", "[Device0]\nclock_monotonic_raw: 100\ncntvct: 0\n");
    WriteText(Root() + "/device_0/dev_start.log.0", "clock_monotonic_raw: 100\ncntvct: 0\n");
  }

  std::string Root() const { return dir_ / "PROF_000001_20260101000000000_AAAAAAAAAAAAAAAA"; }
  std::string PathOf(std::string_view name, bool device) const {
    const std::string base = Root() + (device ? "/device_0/data/" : "/host/data/") + std::string(name);
    return base + (device ? ".0.slice_0" : ".slice_0");
  }
  static std::string All(const CutFile& file, size_t records) {
    std::string text;
    for (size_t i = 0; i < records; ++i) text += file.make(i);
    EXPECT_EQ(text.size(), records * file.bytes) << file.name;
    return text;
  }

  std::unique_ptr<Model> Load(LoadReport* report, const TimeWindow& window = {}) {
    Result<Dump> dump = Dump::Open(Root());
    EXPECT_TRUE(dump.ok()) << dump.status().ToString();
    RowFilter filter;
    filter.window = window;
    return LoadModel({dump->reader(), dump->info(), filter, true, true, false, 0,
                      [](const Place& place) { return ClockMap(place.clock); }, [](uint64_t) { return true; }},
                     report);
  }

  // `reported`: the model's reader says what is wrong in the file (else a decoder of its own does).
  void CutEverywhere(const CutFile& file, bool device, bool reported = true, size_t records = kRecords,
                     size_t in_one = 1) {
    const std::string whole = All(file, records);
    for (size_t length = file.bytes; length <= whole.size(); ++length) {
      WriteText(PathOf(file.name, device), whole.substr(0, length));
      LoadReport report;
      const std::unique_ptr<Model> model = Load(&report);
      ASSERT_NE(model, nullptr);
      const size_t left = length / file.bytes;
      const size_t rest = length % file.bytes;
      ASSERT_EQ(file.count(*model), left / in_one) << file.name << " of " << length << " bytes";
      for (const LoadReport::File& read : report.files) {
        const bool is_it = read.base == file.name;
        ASSERT_EQ(read.bad_bytes, is_it ? rest : 0) << read.base << ", " << file.name << " of " << length << " bytes";
        ASSERT_EQ(read.bad_records, is_it && rest > 0 ? 1u : 0u);
        ASSERT_TRUE(!is_it || read.records == left) << file.name << " of " << length << " bytes";
      }
      const bool listed = std::ranges::any_of(report.files, [&](const auto& read) { return read.base == file.name; });
      ASSERT_EQ(listed, reported) << file.name;
    }
    std::filesystem::remove(PathOf(file.name, device));
  }

  TempDir dir_;
};

TEST_F(CutRecords, OfTheHost) {
  for (const CutFile& file : kHostFiles) CutEverywhere(file, false);
}

TEST_F(CutRecords, OfADevice) {
  WriteText(PathOf(kApis.name, false), All(kApis, kRecords));
  CutEverywhere(kCpuFile, true);
  CutEverywhere(kCacheFile, true);
  CutEverywhere(kStarsFile, true, true, 2 * kRecords, 2);
  WriteText(PathOf(kStarsFile.name, true), All(kStarsFile, 6));
  CutEverywhere(kProfileFile, true);
  CutEverywhere(kFlips, true, false);
}

// Both ends belong to the window.
TEST_F(CutRecords, TotalsAreOfTheCallsThatBeginInTheWindow) {
  WriteText(PathOf(kApis.name, false), All(kApis, kRecords));
  LoadReport report;
  const auto count_in = [&](const TimeWindow& window) {
    uint64_t count = 0;
    for (const auto& [name, total] : Load(&report, window)->host.ApiTotals()) count += total.count;
    return count;
  };
  // D = 1767225600000000000 - 50, and 100 MHz: 1000 and 2000 ns behind 100 ns (operator-data a.5).
  constexpr int64_t kFirst = 1'767'225'600'000'001'050;
  constexpr int64_t kSecond = kFirst + 1000;
  EXPECT_EQ(count_in({}), 2u);
  EXPECT_EQ(count_in({kFirst, kSecond}), 2u);
  EXPECT_EQ(count_in({kFirst + 1, kSecond}), 1u);
  EXPECT_EQ(count_in({kFirst, kSecond - 1}), 1u);
  EXPECT_EQ(count_in({kSecond + 1, kSecond + 100}), 0u);
}

// The ids of a stream wrap before the second and third of three tasks, which all have the id 0 (operator-data b.2).
class MissingFlips : public CutRecords {
 protected:
  // Kernels of the device's tasks, 0: none. The host has tasks and flips from batch `host_from` on, the device has the
  // flips with the numbers `device_from` to `device_to`.
  std::vector<uint64_t> KernelsWith(uint64_t host_from, uint64_t device_from, LoadReport* report, uint16_t device_counts_from = 0,
                                    uint64_t device_to = 2) {
    std::string host;
    std::string flips;
    std::string stars;
    const auto of_host = [](uint64_t i) { return Host(64, i).At<uint16_t>(26, 2); };
    for (uint64_t batch = 0; batch < 3; ++batch) {
      const auto number = static_cast<uint16_t>(batch);
      if (batch > host_from) host += of_host(2 * batch).At(30, number).At<uint64_t>(32, 98).Text();
      if (batch >= host_from) host += of_host(2 * batch + 1).At<uint64_t>(40, 11 + batch).Text();
      if (batch > 0 && batch >= device_from && batch <= device_to) {
        flips += Bytes(40).At<uint8_t>(1, 14).At<uint64_t>(8, 999 + 2 * batch).At<uint16_t>(16, 2).At(18, static_cast<uint16_t>(number + device_counts_from)).Text();
      }
      for (const uint16_t function : {uint16_t{0}, uint16_t{1}}) {
        stars += Bytes(64).At(0, function).At<uint16_t>(2, 0x6BD3).At<uint16_t>(4, 2)
                     .At<uint64_t>(8, 1000 + 2 * batch + function).Text();
      }
    }
    WriteText(PathOf(kApis.name, false), All(kApis, kRecords));
    WriteText(PathOf("aging.compact.task_track", false), host);
    WriteText(PathOf(kStarsFile.name, true), stars);
    WriteText(PathOf(kFlips.name, true), flips);
    const std::unique_ptr<Model> model = Load(report);
    std::vector<uint64_t> kernels;
    for (const TaskRow& row : model->rows) {
      const HostTask* task = model->HostOf(row);
      kernels.push_back(task == nullptr ? 0 : task->kernel);
    }
    return kernels;
  }
  static size_t Warnings(const LoadReport& report) {
    return static_cast<size_t>(std::ranges::count_if(
        report.problems, [](const auto& problem) { return !problem.broken && problem.what.find("flips") != std::string::npos; }));
  }
};

TEST_F(MissingFlips, MakeNoWrongNames) {
  using Kernels = std::vector<uint64_t>;
  LoadReport report;
  EXPECT_EQ(KernelsWith(0, 0, &report), (Kernels{11, 12, 13}));
  EXPECT_EQ(Warnings(report), 0u);
  // Before the device's second flip there may be tasks of two batches.
  EXPECT_EQ(KernelsWith(0, 2, &report), (Kernels{0, 0, 13}));
  EXPECT_EQ(Warnings(report), 1u);
  // What the host has begins behind its first flip.
  LoadReport of_host;
  EXPECT_EQ(KernelsWith(1, 0, &of_host), (Kernels{0, 12, 13}));
  EXPECT_EQ(Warnings(of_host), 1u);
  // A device that numbers its flips otherwise has all of them.
  LoadReport otherwise;
  EXPECT_EQ(KernelsWith(0, 0, &otherwise, 1), (Kernels{11, 12, 13}));
  EXPECT_EQ(Warnings(otherwise), 0u);
  // Behind the device's only flip, or without any, the id is there again.
  LoadReport of_end;
  EXPECT_EQ(KernelsWith(0, 0, &of_end, 0, 1), (Kernels{11, 0, 0}));
  EXPECT_EQ(Warnings(of_end), 1u);
  LoadReport of_all;
  EXPECT_EQ(KernelsWith(0, 3, &of_all), (Kernels{0, 0, 0}));
  EXPECT_EQ(Warnings(of_all), 1u);
}

// A kernel of a call, in all that it takes for a row of an operator, less one of these.
TEST_F(CutRecords, PartsThatOperatorsNeedAreReported) {
  const std::pair<std::string, std::string> parts[] = {
      {PathOf("aging.compact.task_track", false), Host(64, 0).At<uint64_t>(16, 110).At<uint16_t>(26, 2).At<uint64_t>(40, 11).Text()},
      {PathOf("unaging.compact.node_basic_info", false), Host(64, 0).At<uint64_t>(16, 110).Text()},
      {PathOf(kStarsFile.name, true), All(kStarsFile, 2)}};
  const std::string_view names[] = {"compact.task_track of device 0", "compact.node_basic_info", "stars_soc.data", ""};
  WriteText(PathOf(kApis.name, false), All(kApis, 1));
  for (size_t missing = 0; missing < std::size(names); ++missing) {
    for (const auto& [path, text] : parts) WriteText(path, text);
    if (missing < std::size(parts)) std::filesystem::remove(parts[missing].first);
    LoadReport report;
    ASSERT_NE(Load(&report), nullptr);
    std::vector<std::string> what;
    for (const auto& problem : report.problems) what.push_back(problem.what);
    if (names[missing].empty()) {
      EXPECT_TRUE(what.empty()) << what.front();
      continue;
    }
    ASSERT_EQ(what.size(), 1u) << names[missing];
    EXPECT_TRUE(what[0].starts_with("has no " + std::string(names[missing]) + ":")) << what[0];
  }
}

// dump-format 7.2: without a host directory, everything of the devices.
TEST_F(CutRecords, TasksOfADeviceWithoutTheHost) {
  std::filesystem::remove_all(Root() + "/host");
  WriteText(PathOf(kStarsFile.name, true), All(kStarsFile, 4));
  WriteText(PathOf(kCpuFile.name, true), All(kCpuFile, 1));
  LoadReport report;
  const std::unique_ptr<Model> model = Load(&report);
  ASSERT_NE(model, nullptr);
  ASSERT_EQ(model->rows.size(), 2u);
  const TaskRow first = std::ranges::min(model->rows, {}, &TaskRow::start_ns);
  EXPECT_EQ(first.start_ns, 1767225600000000000 - 50 + 100 + 1000 * 20);
  EXPECT_EQ(model->TaskType(first), "AI_CORE");
  EXPECT_EQ(kCpuFile.count(*model), 1u);
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems[0].file, "host");
}

// Some dumps lack the mode of the counters.
TEST_F(CutRecords, CountersWithoutAModeAreOfTasks) {
  WriteText(Root() + "/device_0/sample.json", R"({"prof_level":"l1"})");
  WriteText(PathOf(kApis.name, false), All(kApis, kRecords));
  WriteText(PathOf(kStarsFile.name, true), All(kStarsFile, 6));
  CutEverywhere(kProfileFile, true);
}

// Of what ended within a line only that line is lost or short.
TEST_F(CutRecords, Dictionaries) {
  WriteText(PathOf(kApis.name, false), All(kApis, kRecords));
  const std::string names = "11:first\n22:second\n33:third\n";
  const size_t ends[] = {names.find('\n') + 1, names.rfind("33:"), names.size()};
  for (size_t length = 1; length <= names.size(); ++length) {
    WriteText(PathOf("unaging.additional.hash_dic", false), names.substr(0, length));
    LoadReport report;
    const std::unique_ptr<Model> model = Load(&report);
    ASSERT_NE(model, nullptr);
    const auto is = [&model](uint64_t hash, std::string_view name) { return model->host.NameOf(hash) == name; };
    ASSERT_TRUE(length < ends[0] || is(11, "first")) << length;
    ASSERT_TRUE(length < ends[1] || is(22, "second")) << length;
    ASSERT_TRUE(length < ends[2] || is(33, "third")) << length;
    ASSERT_TRUE(length >= ends[1] + 3 || is(33, "33")) << length;
    const bool is_reported = std::ranges::any_of(report.problems, [](const auto& problem) {
      return problem.broken && problem.file.ends_with("hash_dic") && problem.what.starts_with("its last line is cut off");
    });
    ASSERT_EQ(is_reported, names[length - 1] != '\n') << length;
  }
}

// A name may be cut within a character, or damaged. Long ones stay.
TEST_F(CutRecords, NamesAreValidUtf8) {
  WriteText(PathOf(kApis.name, false), All(kApis, 1));
  const std::string long_name(3000, 'x');
  WriteText(PathOf("unaging.additional.hash_dic", false), "11:a\xFF:b\n22:" + long_name + "\n33:\xE6\xBC");
  LoadReport report;
  const std::unique_ptr<Model> model = Load(&report);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->host.NameOf(11), "a\xEF\xBF\xBD:b");
  EXPECT_EQ(model->host.NameOf(22), long_name);
  EXPECT_EQ(model->host.NameOf(33), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace profd::exporting::operators
