// Writes a PROF directory of operator-level records as large as asked for: what the benchmark of their export reads.
// One device of an Atlas A2; each task has three API intervals, a task record, a node record, one or two tensor
// records and counters of its core, in slices of 2 MiB as the vendor's in-process profiler makes them (operator-data a).
//
// usage: make_operators DIR TASKS      DIR must not exist; prints the bytes written
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace profd::bench {
namespace {

constexpr uint64_t kHostCount = 87'611'720'866'377;
constexpr uint64_t kDeviceCount = 8'808'394'495'063;
constexpr uint64_t kHostTicksPerUs = 100;
constexpr uint64_t kDeviceTicksPerUs = 50;
constexpr uint64_t kTaskUs = 60;
constexpr uint32_t kNames = 500;  // distinct operators
constexpr size_t kSliceBytes = 2 << 20;
constexpr uint16_t kStars = 0x6BD3;

[[noreturn]] void Fail(const std::string& what) {
  std::perror(what.c_str());
  std::_Exit(1);
}

uint64_t g_written = 0;

void WriteFile(const std::string& path, std::string_view text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fclose(file) != 0) Fail(path);
  g_written += text.size();
}

// One data file in its slices.
class Sliced {
 public:
  explicit Sliced(std::string path) : path_(std::move(path)) {}
  ~Sliced() { Close(); }
  // `fields`: in the order of the record, packed; the rest of `size` is 0.
  template <class... Fields>
  void Put(size_t size, Fields... fields) {
    const size_t at = bytes_.size();
    (Append(fields), ...);
    bytes_.resize(at + size, '\0');
    if (bytes_.size() + size > kSliceBytes) Close();
  }
  void Text(std::string_view line) { bytes_ += line; }

 private:
  template <class Field>
  void Append(const Field& field) {
    bytes_.append(reinterpret_cast<const char*>(&field), sizeof field);
  }
  void Close() {
    if (bytes_.empty()) return;
    WriteFile(fmt::format("{}.slice_{}", path_, slice_++), bytes_);
    bytes_.clear();
  }
  std::string path_;
  std::string bytes_;
  int slice_ = 0;
};

struct Words {
  uint32_t words[11] = {};
};

Words TensorOf(uint32_t output, uint32_t rows, uint32_t columns) { return {{output, 2, 1, rows, columns}}; }

class Maker {
 public:
  explicit Maker(const std::string& root)
      : apis_(root + "/host/data/aging.api_event.data"),
        tasks_(root + "/host/data/aging.compact.task_track"),
        nodes_(root + "/host/data/unaging.compact.node_basic_info"),
        tensors_(root + "/host/data/unaging.additional.tensor_info"),
        names_(root + "/host/data/unaging.additional.hash_dic"),
        types_(root + "/host/data/unaging.additional.type_info_dic"),
        stars_(root + "/device_0/data/stars_soc.data.0"),
        counters_(root + "/device_0/data/ffts_profile.data.0"),
        flips_(root + "/device_0/data/ts_track.data.0") {
    for (const char* line : {"5000_1003:KernelLaunch\n", "10000_5:launch\n", "20000_327681:ACL_NN\n",
                             "5000_0:KERNEL_AICORE\n", "5000_66:KERNEL_AIVEC\n", "5000_98:TASK_FLIP\n"}) {
      types_.Text(line);
    }
    for (uint32_t i = 0; i < kNames; ++i) {
      names_.Text(fmt::format("{}:aclnnMatMulV2_{}_MatMulV2\n{}:aclnnOperator{}\n{}:Type{}\n{}:kernel_{}_mm\n", Name(i), i,
                              Name(i) + 1, i, Name(i) + 2, i % 60, Name(i) + 3, i));
    }
  }

  void Task(uint64_t number) {
    const uint64_t host = kHostCount + (1000 + number * kTaskUs) * kHostTicksPerUs;
    const uint64_t name = Name(static_cast<uint32_t>(number * 7 % kNames));
    const bool vector = number % 2 == 1;
    const auto task = static_cast<uint16_t>(number);
    if (number > 0 && task == 0) Flip(host, number);
    Api(20000, 0x50001, host + 200, host + 5000, name + 1);
    Api(10000, 5, host + 1000, host + 4800, name);
    Api(5000, 1003, host + 1900, host + 4000, 0);
    Put(&tasks_, 64, {5000, 802, 24, host + 2000}, uint16_t{0}, uint16_t{2}, task, uint16_t{0},
         uint64_t{vector ? 66u : 0u}, name + 3);
    Put(&nodes_, 64, {10000, 0, 40, host + 4700}, name, uint32_t{vector ? 2u : 0u}, name + 2, uint32_t{24}, uint32_t{0});
    for (uint64_t i = 0; i <= (number % 4 == 0 ? 1u : 0u); ++i) {
      Put(&tensors_, 256, {10000, 1, 232, host + 4600}, name, uint32_t{3}, TensorOf(0, 1024, 512),
           TensorOf(0, 512, 64 + static_cast<uint32_t>(number % 32)), TensorOf(1, 1024, 2048));
    }
    Device(number, task, vector);
  }

 private:
  static uint64_t Name(uint32_t i) { return 0x1234567800000000 + uint64_t{i} * 16 + 1; }

  void Api(uint16_t level, uint32_t type, uint64_t begin, uint64_t end, uint64_t item) {
    apis_.Put(40, uint16_t{0x5A5A}, level, type, uint32_t{77}, uint32_t{0}, begin, end, item);
  }
  struct Head {
    uint16_t level;
    uint32_t type;
    uint32_t length;
    uint64_t time;
  };
  template <class... Fields>
  static void Put(Sliced* file, size_t size, const Head& head, Fields... fields) {
    file->Put(size, uint16_t{0x5A5A}, head.level, head.type, uint32_t{77}, head.length, head.time, fields...);
  }
  void Flip(uint64_t host, uint64_t number) {
    const auto flip = static_cast<uint16_t>(number >> 16);
    Put(&tasks_, 64, {5000, 802, 24, host + 1950}, uint16_t{0}, uint16_t{2}, uint16_t{0}, flip, uint64_t{98}, uint64_t{0});
    flips_.Put(40, uint8_t{0}, uint8_t{14}, uint16_t{0}, uint32_t{0}, Count(number) - 1, uint16_t{2}, flip, uint16_t{0},
               uint16_t{0});
  }
  static uint64_t Count(uint64_t number) { return kDeviceCount + (1505 + number * kTaskUs) * kDeviceTicksPerUs; }

  void Device(uint64_t number, uint16_t task, bool vector) {
    const uint64_t start = Count(number);
    const uint64_t end = start + (20 + number % 31) * kDeviceTicksPerUs;
    const auto sqe = static_cast<uint16_t>((vector ? 2 : 0) << 10);
    stars_.Put(64, sqe, kStars, uint16_t{2}, task, start);
    stars_.Put(64, static_cast<uint16_t>(sqe | 1), kStars, uint16_t{2}, task, end);
    const uint64_t cycles = 900'000 + number * 31 % 90'000;
    counters_.Put(128, uint16_t{0b101000}, kStars, uint16_t{2}, task, uint64_t{0}, uint16_t{0}, uint16_t{0},
                  static_cast<uint16_t>((vector ? 1 : 0) << 13), uint16_t{0}, uint64_t{0}, cycles, uint64_t{0}, cycles / 2,
                  cycles / 3, cycles / 5, cycles / 7, cycles / 4, cycles / 9, cycles / 100, cycles / 900, start, end);
  }

  Sliced apis_;
  Sliced tasks_;
  Sliced nodes_;
  Sliced tensors_;
  Sliced names_;
  Sliced types_;
  Sliced stars_;
  Sliced counters_;
  Sliced flips_;
};

void WriteControls(const std::string& root) {
  constexpr std::string_view kStart = R"({"collectionTimeBegin": "1767225600000000", "clockMonotonicRaw": "876117208663770"})";
  const std::string end = R"({"collectionTimeEnd": "1767325600000000", "clockMonotonicRaw": "976117208663770"})";
  const std::string count = "clock_monotonic_raw: 876117208663770\ncntvct: 87611720866377\ncntvct_diff: 0\n";
  const std::string sample =
      R"({"ai_core_profiling_mode": "task-based", "prof_level": "l1", "ai_core_profiling": "on", "ai_core_metrics": )"
      R"("PipeUtilizationExct", "aiv_metrics": "PipeUtilizationExct", "ai_core_profiling_events": )"
      R"("0x416,0x417,0x9,0x302,0xc,0x303,0x54,0x55", "aiv_profiling_events": "0x8,0xa,0x9,0xb,0xc,0xd,0x54,0x55", )"
      R"("devices": "0"})";
  const auto info = [](std::string_view devices) {
    return fmt::format(R"({{"platform_version": "5", "CPU": [{{"Frequency": "100.000000"}}], "DeviceInfo": [{}], )"
                       R"("hostname": "bench", "pid": "4242", "pid_name": "python3", "rank_id": -1, "drvVersion": 467473, )"
                       R"("devices": "0"}})", devices);
  };
  WriteFile(root + "/host/start_info", kStart);
  WriteFile(root + "/host/end_info", end);
  WriteFile(root + "/host/host_start.log", "[Host]\n" + count);
  WriteFile(root + "/host/info.json", info(""));
  WriteFile(root + "/host/sample.json", sample);
  WriteFile(root + "/device_0/start_info.0", kStart);
  WriteFile(root + "/device_0/end_info.0", end);
  WriteFile(root + "/device_0/host_start.log.0", "[Device0]\n" + count);
  WriteFile(root + "/device_0/dev_start.log.0", "clock_monotonic_raw: 176167889901260\ncntvct: 8808394495063\n");
  WriteFile(root + "/device_0/info.json.0",
            info(R"({"ctrl_cpu": "0", "ai_cpu": "2,3", "hwts_frequency": "50", "aic_frequency": "1800", "ai_core_num": 20, )"
                 R"("aiv_num": 40})"));
  WriteFile(root + "/device_0/sample.json", sample);
}

void MakeFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0) Fail(path);
}

}  // namespace
}  // namespace profd::bench

int main(int argc, char** argv) {
  using namespace profd::bench;
  const uint64_t tasks = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (tasks == 0) {
    std::fprintf(stderr, "usage: make_operators DIR TASKS\n");
    return 2;
  }
  const std::string root = std::string(argv[1]) + "/PROF_000001_20260101000000000_BENCH";
  MakeFolder(argv[1]);
  for (const char* folder : {"", "/host", "/host/data", "/device_0", "/device_0/data"}) MakeFolder(root + folder);
  WriteControls(root);
  {
    Maker maker(root);
    for (uint64_t i = 0; i < tasks; ++i) maker.Task(i);
  }
  std::printf("%s\n%llu bytes\n", root.c_str(), static_cast<unsigned long long>(g_written));
  return 0;
}
