#include "sim/framework/layouts.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "sim/framework/writer.h"
#include "sim/noise.h"

namespace profd::sim::framework {
namespace {

constexpr int64_t kStartNs = 5'000'000'000'000;  // of the session, CLOCK_MONOTONIC_RAW
constexpr int64_t kStartCount = 700'000'000;
constexpr int64_t kCounterMhz = 100;
constexpr int64_t kWallNs = 1'767'225'600'000'000'000;
constexpr uint64_t kPid = 4242, kThread = 4242, kQueueThread = 4250;
constexpr uint64_t kEndOfCallKey = 0xFEDCBA9876543210;  // of the ends of all of Python's calls
constexpr uint64_t kOperatorsOfAStep = 5;
constexpr std::array<std::string_view, kOperatorsOfAStep> kNames = {"aten::conv2d", "aten::batch_norm", "aten::relu",
                                                                   "aten::linear", "aten::cross_entropy"};

// One operator of the loop, times in CLOCK_MONOTONIC_RAW ns.
struct Operator {
  uint64_t number = 0;
  uint64_t step = 0;
  std::string name, shapes, stack;
  int64_t begin_ns = 0, end_ns = 0;
};

std::vector<Operator> Loop(const Spec& spec) {
  std::vector<Operator> operators;
  int64_t time = kStartNs + 1'000'000;
  for (uint64_t i = 0; i < spec.operators; ++i) {
    Operator op;
    op.number = i;
    op.step = i / kOperatorsOfAStep;
    op.name = kNames[i % kNames.size()];
    if (spec.damage == Damage::kNames && i % 3 == 1) op.name = "aten::\xff\xc3(\x80";
    const uint64_t hash = Hash(spec.seed, i, 11);
    op.shapes = fmt::format("{},3,224,224;64,3,7,7", 1 + hash % 64);
    op.stack = fmt::format("train.py({}): forward;train.py(10): main", 20 + hash % 80);
    op.begin_ns = time;
    op.end_ns = time + 10'000 + static_cast<int64_t>(hash % 90'000) / 10 * 10;  // whole counts of the counter
    time = op.end_ns + 5'000;
    operators.push_back(std::move(op));
  }
  return operators;
}

class Maker {
 public:
  explicit Maker(const Spec& spec) : spec_(spec), loop_(Loop(spec)) {}

  Directory Run() && {
    switch (spec_.layout) {
      case Layout::kTorch:
      case Layout::kTorchNoScope:
        Torch();
        break;
      case Layout::kMindSpore:
        MindSpore();
        break;
      default:
        MindSporeOld();
    }
    Info();
    return std::move(directory_);
  }

 private:
  bool torch() const { return spec_.layout == Layout::kTorch || spec_.layout == Layout::kTorchNoScope; }
  // As the files have it.
  int64_t Timestamp(int64_t ns) const {
    return spec_.counter ? kStartCount + (ns - kStartNs) * kCounterMhz / 1000 : ns;
  }

  // Records of one file; a line of the truth goes with each that a reader can find.
  class File {
   public:
    void Add(std::string record, std::string line) { records_.emplace_back(std::move(record), std::move(line)); }
    const std::vector<std::pair<std::string, std::string>>& records() const { return records_; }

   private:
    std::vector<std::pair<std::string, std::string>> records_;
  };

  void Write(const std::string& name, const File& file, bool has_lengths) {
    std::string& bytes = directory_.files["FRAMEWORK/" + name];
    const auto& records = file.records();
    for (size_t i = 0; i < records.size(); ++i) {
      const bool last = i + 1 == records.size();
      std::string record = records[i].first;
      if (last && spec_.damage == Damage::kCut) record.resize(record.size() / 2);
      // What follows it is lost, so it is the last.
      if (last && spec_.damage == Damage::kLength && has_lengths) {
        const uint32_t beyond = 0x7FFFFFFF;
        record.replace(sizeof(uint16_t), sizeof beyond, reinterpret_cast<const char*>(&beyond), sizeof beyond);
      }
      bytes += record;
      const bool damaged = last && (spec_.damage == Damage::kCut || (spec_.damage == Damage::kLength && has_lengths));
      if (!damaged) directory_.truth += fmt::format("{{\"file\":\"{}\",{}}}\n", name, records[i].second);
    }
  }

  static std::string Line(const Operator& op) {
    return fmt::format(R"("name":{},"begin_ns":{},"end_ns":{})", Quoted(op.name), op.begin_ns, op.end_ns);
  }

  void Torch() {
    TorchRanges();
    TorchMarks();
    TorchMemory();
    TorchPython();
    TorchRest();
  }

  void TorchRanges() {
    File file;
    for (const Operator& op : loop_) {
      Bytes fixed;
      fixed.Put(Timestamp(op.begin_ns)).Put(Timestamp(op.end_ns)).Put(static_cast<int64_t>(op.number));
      fixed.Put(kPid).Put(kThread).Put(kThread).Put(uint64_t{0});
      if (spec_.layout == Layout::kTorch) fixed.Put(uint8_t{0});
      fixed.Put(uint8_t{0});
      const Fields fields = {{2, op.name}, {3, "float;float"}, {4, op.shapes}, {8, op.stack}, {9, "Net/conv1"}};
      file.Add(Record(1, fixed, fields),
               fmt::format(R"({},"sequence":{},"shapes":{},"stack":{})", Line(op), op.number, Quoted(op.shapes),
                           Quoted(op.stack)));
    }
    Write("torch.op_range", file, true);
  }

  // Put into the queue on the thread of Python, taken out on the queue's.
  void TorchMarks() {
    File file;
    for (const Operator& op : loop_) {
      for (uint64_t category = 0; category < 4; ++category) {
        const int64_t time = op.begin_ns + 1000 + static_cast<int64_t>(category) * 500;
        const uint64_t thread = category < 2 ? kThread : kQueueThread;
        const uint64_t number = category > 0 ? op.number + 1 : 0;  // it has one only once it is in the queue
        Bytes fixed;
        fixed.Put(Timestamp(time)).Put(category).Put(number).Put(thread).Put(kPid);
        file.Add(Record(2, fixed, {{1, op.name}}),
                 fmt::format(R"("name":{},"time_ns":{},"category":{},"correlation":{},"thread":{})", Quoted(op.name), time,
                             category, number, thread));
      }
    }
    Write("torch.op_mark", file, true);
  }

  void TorchMemory() {
    File file;
    for (const Operator& op : loop_) {
      const auto bytes = static_cast<int64_t>(512 * (1 + op.number));
      Bytes fixed;
      fixed.Put(static_cast<int64_t>(0x1000 * (1 + op.number))).Put(Timestamp(op.begin_ns)).Put(bytes);
      fixed.Put(bytes).Put(2 * bytes).Put(bytes).Put(int64_t{0});
      fixed.Put(int8_t{20}).Put(uint8_t{0}).Put(uint8_t{0}).Put(uint8_t{0}).Put(uint8_t{0});
      fixed.Put(kThread).Put(kPid);
      file.Add(Record(3, fixed), fmt::format(R"("time_ns":{},"bytes":{})", op.begin_ns, bytes));
    }
    Write("torch.memory_usage", file, true);
  }

  void TorchPython() {
    File calls, names;
    for (const Operator& op : loop_) {
      const uint64_t call_key = Hash(spec_.seed, op.number % 3, 12);
      for (const bool end : {false, true}) {
        const uint64_t key = end ? kEndOfCallKey : call_key;
        const int64_t time = end ? op.end_ns : op.begin_ns;
        Bytes raw;
        raw.Put(static_cast<uint64_t>(Timestamp(time))).Put(kThread).Put(kPid).Put(key).Put(static_cast<uint8_t>(end));
        calls.Add(raw.text(), fmt::format(R"("time_ns":{},"key":{},"tag":{})", time, key, end ? 1 : 0));
      }
      if (op.number >= 3) continue;
      Bytes fixed;
      fixed.Put(call_key);
      const std::string text = fmt::format("train.py({}): forward", 20 + op.number);
      names.Add(Record(4, fixed, {{1, text}}), fmt::format(R"("key":{},"text":{})", call_key, Quoted(text)));
    }
    Write("torch.python_tracer_func", calls, false);
    Write("torch.python_tracer_hash", names, true);
  }

  void TorchRest() {
    File parameters, gc;
    Bytes fixed;
    fixed.Put(uint64_t{1});
    parameters.Add(Record(5, fixed, {{1, "conv1.weight"}, {2, "SGD"}}), R"("id":1,"module":"conv1.weight")");
    Write("torch.param_tensor_info", parameters, true);
    Bytes raw;
    raw.Put(kPid).Put(Timestamp(kStartNs)).Put(Timestamp(kStartNs + 2'000'000));
    gc.Add(raw.text(), fmt::format(R"("begin_ns":{},"end_ns":{})", kStartNs, kStartNs + 2'000'000));
    Write("torch.gc_record", gc, false);
  }

  void MindSpore() {
    File ranges, stacks, memory, shapes;
    for (const Operator& op : loop_) {
      for (const bool is_stack : {false, true}) {
        Bytes fixed;
        fixed.Put(kThread).Put(op.number).Put(op.step);
        fixed.Put(static_cast<uint64_t>(Timestamp(op.begin_ns))).Put(static_cast<uint64_t>(Timestamp(op.end_ns)));
        fixed.Put(static_cast<int32_t>(kPid)).Put(uint16_t{1}).Put(uint16_t{2}).Put(uint16_t{3}).Put(int8_t{0});
        fixed.Put(uint8_t{0}).Put(uint8_t{0}).Put(static_cast<uint8_t>(is_stack));
        const std::string line = fmt::format(R"({},"step":{},"flow":{})", Line(op), op.step, op.number);
        if (is_stack) {
          stacks.Add(Record(1, fixed, {{13, op.name}}), line);
        } else {
          ranges.Add(Record(0, fixed, {{13, op.name}, {14, "Default/" + op.name}, {15, "Kernel"}, {16, "Launch"},
                                       {17, "stream:1"}}),
                     line);
        }
      }
      Bytes usage;
      usage.Put(int32_t{0});
      const uint64_t bytes = 512 * (1 + op.number);
      for (const uint64_t word : {kThread, kPid, static_cast<uint64_t>(Timestamp(op.begin_ns)), 0x1000 * (1 + op.number), bytes,
                                  bytes, bytes, bytes, uint64_t{0}, uint64_t{0}, uint64_t{0}}) {
        usage.Put(word);
      }
      usage.Put(uint32_t{1}).Put(uint32_t{0});
      memory.Add(Record(2, usage, {{13, op.name}}),
                 fmt::format(R"("name":{},"time_ns":{},"bytes":{})", Quoted(op.name), op.begin_ns, bytes));
      shapes.Add(Record(3, Bytes(), {{0, op.name}, {1, op.shapes}, {2, "Float32"}}),
                 fmt::format(R"("name":{},"shapes":{})", Quoted(op.name), Quoted(op.shapes)));
    }
    Write("mindspore.op_range", ranges, true);
    Write("mindspore.py_stack", stacks, true);
    Write("mindspore.memory_usage", memory, true);
    Write("mindspore.record_shapes", shapes, true);
  }

  // <3q4Q?, then <3q6Q? with id and step, then <3q6Qb? with level.
  void MindSporeOld() {
    File file;
    for (const Operator& op : loop_) {
      Bytes fixed;
      fixed.Put(Timestamp(op.begin_ns)).Put(Timestamp(op.end_ns)).Put(static_cast<int64_t>(op.number));
      fixed.Put(kPid).Put(kThread).Put(kThread).Put(uint64_t{0});
      if (spec_.layout != Layout::kMindSpore57) fixed.Put(op.number).Put(op.step);
      if (spec_.layout == Layout::kMindSpore74) fixed.Put(int8_t{0});
      fixed.Put(uint8_t{0});
      const Fields fields = {{3, op.name}, {4, "float;float"}, {5, op.shapes}, {6, op.stack}, {7, "Net/conv1"}};
      file.Add(Record(1, fixed, fields), fmt::format(R"({},"shapes":{},"stack":{})", Line(op), Quoted(op.shapes),
                                                     Quoted(op.stack)));
    }
    Write(fmt::format("op_range_{}", spec_.rank), file, true);
  }

  void Info() {
    const bool counter = spec_.counter;
    const int64_t end = loop_.empty() ? kStartNs : loop_.back().end_ns;
    directory_.files[fmt::format("profiler_info_{}.json", spec_.rank)] = fmt::format(
        R"({{"config":{{"common_config":{{"record_shapes":true,"with_stack":true}}}},"start_info":{{"syscnt_enable":{},)"
        R"("freq":{},"start_cnt":{},"start_monotonic":{}}},"end_info":{{"collectionTimeEnd":{},"MonotonicTimeEnd":{}}},)"
        R"("{}":"2.7.0","rank_id":{}}})",
        counter, counter ? kCounterMhz : 0, counter ? kStartCount : 0, kStartNs, kWallNs + end - kStartNs, end,
        torch() ? "torch_npu_version" : "ms_version", spec_.rank);
    directory_.files["profiler_metadata.json"] = R"({"parallel_group_info":{}})";
  }

  const Spec& spec_;
  const std::vector<Operator> loop_;
  Directory directory_;
};

template <class Enum, size_t count>
bool Find(const std::array<std::pair<std::string_view, Enum>, count>& names, std::string_view name, Enum* found) {
  for (const auto& [known, value] : names) {
    if (known != name) continue;
    *found = value;
    return true;
  }
  return false;
}

}  // namespace

bool LayoutOf(std::string_view name, Layout* layout) {
  constexpr std::array<std::pair<std::string_view, Layout>, 6> kLayouts = {
      {{"torch", Layout::kTorch},
       {"torch-57", Layout::kTorchNoScope},
       {"mindspore", Layout::kMindSpore},
       {"mindspore-57", Layout::kMindSpore57},
       {"mindspore-73", Layout::kMindSpore73},
       {"mindspore-74", Layout::kMindSpore74}}};
  return Find(kLayouts, name, layout);
}

bool DamageOf(std::string_view name, Damage* damage) {
  constexpr std::array<std::pair<std::string_view, Damage>, 4> kDamages = {
      {{"none", Damage::kNone}, {"cut", Damage::kCut}, {"length", Damage::kLength}, {"names", Damage::kNames}}};
  return Find(kDamages, name, damage);
}

Directory Make(const Spec& spec) { return Maker(spec).Run(); }

}  // namespace profd::sim::framework
