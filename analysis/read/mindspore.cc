// MindSpore's raw logs of its first releases (analysis 4.1-4.3): training_trace and HWTS records in binary, what the
// graph's operators are as text, the AI CPU's log as text.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <unordered_map>

#include "analysis/read/csv_file.h"
#include "analysis/read/mindspore_files.h"
#include "analysis/read/readers.h"
#include "analysis/times.h"
#include "base/count_text.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

using mindspore::Files;
using mindspore::kAiCpu;
using mindspore::kGraph;
using mindspore::kHwts;
using mindspore::kPoints;
using mindspore::kTasks;
using mindspore::kTrace;
using mindspore::ReadAll;

namespace fs = std::filesystem;

constexpr int64_t kNsPerCount = 10;

// MindSpore's types of numbers in releases with these logs; others are left as they are.
std::string TypeName(std::string_view number) {
  constexpr unsigned kFirst = 27;
  constexpr std::array<std::string_view, 15> kNames = {"BOOL",   "INT",    "INT8",   "INT16", "INT32",   "INT64",   "UINT",   "UINT8",
                                                       "UINT16", "UINT32", "UINT64", "FLOAT", "FLOAT16", "FLOAT32", "FLOAT64"};
  unsigned type = 0;
  if (!ParseNumber(number, &type) || type < kFirst || type >= kFirst + kNames.size()) return std::string(number);
  return fmt::format("NUMBER_TYPE_{}", kNames[type - kFirst]);
}

template <class T>
T Load(std::span<const char> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Task {
  std::string name;
  int32_t op = -1;
};

class MindSporeReader {
 public:
  MindSporeReader(const Files& files, int device, const ReadContext& context, Rank* rank)
      : files_(files), device_(device), context_(context), rank_(*rank) {}

  void Read() {
    ReadGraph();
    ReadTasks();
    ReadPoints();
    ReadHwts();
    ReadTrainingTrace();
    ReadAiCpu();
  }

 private:
  std::string All(std::string_view prefix, size_t record, std::set<size_t>* gaps) { return ReadAll(files_.Of(prefix, device_), record, context_, gaps); }
  std::string All(std::string_view prefix) {
    std::set<size_t> gaps;
    return All(prefix, 1, &gaps);
  }

  // `log`: of all its slices, "<directory>/training_trace.46.dev.profiler_default_tag.0".
  void Problem(std::string_view log, std::string what) {
    const auto [path, is_new] = paths_.try_emplace(std::string(log), log);
    if (is_new) {
      const std::map<uint64_t, fs::path> files = files_.Of(log, device_);
      if (!files.empty()) path->second = files.begin()->second.string();
      path->second.resize(std::min(path->second.rfind(".slice_"), path->second.size()));
    }
    context_.AddProblem(path->second, std::move(what));
  }

  // "op_name:Default/Mul-op29 op_type:Mul input_id:0 ... input_shape:"1""
  void ReadGraph() {
    const std::string text = All(kGraph);
    std::string_view rest = text;
    for (std::string_view line; NextLine(&rest, &line);) {
      std::string_view name;
      Kind kind;
      for (std::string_view word = NextToken(&line); !word.empty(); word = NextToken(&line)) {
        const size_t colon = word.find(':');
        if (colon == std::string_view::npos) continue;
        const std::string_view key = word.substr(0, colon);
        std::string_view value = word.substr(colon + 1);
        if (value.size() > 1 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
        if (key == "op_name") name = value;
        if (key == "op_type") kind.type = value;
        if (key == "input_format") AddListed(&kind.input.formats, value);
        if (key == "input_data_type") AddListed(&kind.input.types, TypeName(value));
        if (key == "input_shape") AddListed(&kind.input.shapes, value);
        if (key == "output_format") AddListed(&kind.output.formats, value);
        if (key == "output_data_type") AddListed(&kind.output.types, TypeName(value));
        if (key == "output_shape") AddListed(&kind.output.shapes, value);
      }
      if (name.empty()) continue;
      if (name.starts_with("Default/InitDataSetQueue")) sinks_ = true;
      kinds_.emplace(name, std::move(kind));
    }
  }

  // "Default/AssignAdd-op414 1 30092 3": name, blocks, task, stream.
  void ReadTasks() {
    const std::string text = All(kTasks);
    std::string_view rest = text;
    uint64_t number = 0;
    BadLines bad;
    for (std::string_view line; NextLine(&rest, &line);) {
      ++number;
      const std::string_view name = NextToken(&line);
      if (name.empty()) continue;
      NextToken(&line);
      uint32_t task = 0;
      uint32_t stream = 0;
      if (!ParseNumber(NextToken(&line), &task) || !ParseNumber(NextToken(&line), &stream)) {
        bad.Add(number);
        continue;
      }
      const auto known = kinds_.find(name);
      Kind kind = known == kinds_.end() ? Kind() : known->second;
      const int32_t op = rank_.OperatorOf(rank_.Text(name), rank_.Text(kind.type), rank_.Text("AI_CORE"));
      Operator& made = rank_.operators[static_cast<size_t>(op)];
      const auto listed = [this](const std::optional<std::string>& list) { return rank_.Text(list.value_or("")); };
      made.input_shapes = listed(kind.input.shapes);
      made.input_types = listed(kind.input.types);
      made.input_formats = listed(kind.input.formats);
      made.output_shapes = listed(kind.output.shapes);
      made.output_types = listed(kind.output.types);
      made.output_formats = listed(kind.output.formats);
      tasks_.emplace(IdOf(task, stream), op);
    }
    if (bad.count() > 0) Problem(kTasks, bad.Text());
  }

  // "1 Default/Cast-op6"
  void ReadPoints() {
    const std::string text = All(kPoints);
    std::string_view rest = text;
    for (std::string_view line; NextLine(&rest, &line);) {
      uint64_t tag = 0;
      if (!ParseNumber(NextToken(&line), &tag)) continue;
      const std::string_view name = NextToken(&line);
      if (tag == 1) rank_.fp_point = rank_.Text(name);
      if (tag == 2) rank_.bp_point = rank_.Text(name);
    }
  }

  // Ids from 25000 on are the graph's, others belong to their stream.
  static uint64_t IdOf(uint32_t task, uint32_t stream) {
    constexpr uint32_t kFirstOfGraph = 25000;
    return task < kFirstOfGraph ? (uint64_t{stream} << 32) | task : task;
  }

  // An execution is a start that the end of the same operator follows at once.
  void ReadHwts() {
    constexpr size_t kRecord = 64;
    std::set<size_t> gaps;
    const std::string bytes = All(kHwts, kRecord, &gaps);
    struct Open {
      int32_t op = -1;
      uint64_t count = 0;
      uint32_t stream = 0;
    } open;
    bool recorded = false;
    bool named = false;
    for (size_t at = 0; at + kRecord <= bytes.size(); at += kRecord) {
      const std::span<const char> record(bytes.data() + at, kRecord);
      if (gaps.contains(at)) open.op = -1;
      const int type = static_cast<unsigned char>(record[0]) & 7;
      if (type > 1) continue;
      recorded = true;
      const auto count = Load<uint64_t>(record, 8);
      const auto stream = Load<uint32_t>(record, 16);
      const auto found = tasks_.find(IdOf(Load<uint16_t>(record, 6), stream));
      if (found == tasks_.end()) continue;
      named = true;
      if (type == 0) {
        open = {found->second, count, stream};
        continue;
      }
      if (open.op == found->second && count >= open.count && count < kLatestNs / kNsPerCount) {
        rank_.executions.push_back({NsOf(open.count), NsOf(count), open.op,
                                    rank_.LaneOf("Ascend Hardware", fmt::format("Stream {}", open.stream))});
      }
      open.op = -1;
    }
    // Real logs have many more tasks than names, so that some lack is no sign of damage.
    if (recorded && !named) Problem(kHwts, "task_desc_info names none of its tasks: they are left out");
    AddCut(kHwts, bytes.size() % kRecord);
  }

  static int64_t NsOf(uint64_t count) {
    return static_cast<int64_t>(std::min<uint64_t>(count, kLatestNs / kNsPerCount)) * kNsPerCount;
  }

  void AddCut(std::string_view what, size_t bytes) {
    if (bytes > 0) Problem(what, fmt::format("ends in {} of a record", CountText(bytes, "byte")));
  }

  struct Raw {
    uint64_t tag = 0;
    uint16_t stream = 0;
    uint64_t count = 0;
    bool lost = false;  // records are missing before it
  };

  std::vector<Raw> ReadRecords() {
    constexpr size_t kRecord = 20;
    std::set<size_t> gaps;
    const std::string bytes = All(kTrace, kRecord, &gaps);
    std::vector<Raw> records;
    for (size_t at = 0; at + kRecord <= bytes.size(); at += kRecord) {
      const std::span<const char> record(bytes.data() + at, kRecord);
      records.push_back({Load<uint64_t>(record, 0), Load<uint16_t>(record, 10), Load<uint64_t>(record, 12), gaps.contains(at)});
    }
    AddCut(kTrace, bytes.size() % kRecord);
    inference_ = std::ranges::none_of(records, [](const Raw& record) { return record.tag == 2; });
    return records;
  }

  void ReadTrainingTrace() {
    std::vector<Raw> records = ReadRecords();
    if (records.empty()) return;
    const uint64_t end_tag = EndTag(records);
    MarkForeign(end_tag, &records);
    std::vector<Raw> step;
    std::optional<int64_t> before;
    uint64_t left_out = 0;
    int64_t number = sinks_ ? -1 : 0;  // the step that fills the queue is none of the training, complete or not
    bool has_start = true;
    bool has_forward = false;
    uint64_t backward_end = UINT64_MAX;  // the first one
    uint64_t without_end = 0;
    int64_t first_without_end = 0;
    int64_t first_lost = 0;
    for (const Raw& record : records) {
      if (record.lost) {
        // The step under way has no end, and the one that ends next no start.
        if (first_lost == 0) first_lost = number + 1;
        has_start = false;
        has_forward = false;
        step.clear();
        backward_end = UINT64_MAX;
      }
      if (record.tag == 0 || record.tag > end_tag) continue;  // the job's id
      if (record.tag != end_tag) {
        // Forward does not start behind the end of backward of the same step: the record of the step's end is lost, which
        // is where the next one starts.
        if (record.tag == 1 && has_forward && record.count >= backward_end) {
          ++number;
          if (++without_end == 1) first_without_end = number;
          has_start = false;
          step.clear();
          backward_end = UINT64_MAX;
        }
        if (record.tag == 1) has_forward = true;
        if (record.tag == 2) backward_end = std::min(backward_end, record.count);
        step.push_back(record);
        continue;
      }
      ++number;
      if (has_start && number > 0 && !AddStep(step, before, NsOf(record.count), number)) ++left_out;
      has_start = true;
      has_forward = false;
      backward_end = UINT64_MAX;
      before = NsOf(record.count);
      step.clear();
    }
    rank_.first_step_is_short = true;
    rank_.count_ns = kNsPerCount;
    AddProblems(first_lost, left_out, without_end, first_without_end);
  }

  // Of steps that are left out; `first_...`: their numbers.
  void AddProblems(int64_t first_lost, uint64_t left_out, uint64_t without_end, int64_t first_without_end) {
    if (first_lost > 0) {
      Problem(kTrace, fmt::format("steps of which records are missing are left out; numbers from {} on may have been higher", first_lost));
    }
    if (left_out > 0) {
      Problem(kTrace, CountText(left_out, "step lacks", "steps lack") + " where forward starts or backward ends: left out");
    }
    if (without_end > 0) {
      Problem(kTrace, fmt::format("{} start (the first are steps {} and {}): left out",
                                  CountText(without_end, "step lacks its end, and so that behind it its", "steps lack their end, and so those behind them their"),
                                  first_without_end, first_without_end + 1));
    }
    for (const auto& [stream, odd] : odd_) {
      Problem(kTrace, fmt::format("a point of stream {} has no partner in {} (the first is step {}): its reduces are left out there", stream,
                                  CountText(odd.steps, "step"), odd.first));
    }
  }

  // A trace is of one job, whose id most of those have that begin a step. Damaged records look like other ids: each stands
  // for what it was.
  void MarkForeign(uint64_t end_tag, std::vector<Raw>* records) {
    std::vector<uint64_t> ids;
    for (const Raw& record : *records) {
      if (record.tag > end_tag) ids.push_back(record.tag);
    }
    std::ranges::sort(ids);
    uint64_t job = 0;
    size_t most = 0;
    for (size_t i = 0, end = 0; i < ids.size(); i = end) {
      while (end < ids.size() && ids[end] == ids[i]) ++end;
      if (end - i > most) job = ids[i];
      most = std::max(most, end - i);
    }
    for (Raw& record : *records) record.lost = record.lost || (record.tag > end_tag && record.tag != job);
    if (most < ids.size()) {
      Problem(kTrace, CountText(ids.size() - most, "record has the id of another job, or is damaged", "records have the id of another job, or are damaged") + ": left out");
    }
  }

  // 255, of data since the end of 2020 65535, where 255 is a point like others, once in a step. So there are no fewer of
  // 65535 than steps, and a few among many of 255 are damaged records.
  static uint64_t EndTag(const std::vector<Raw>& records) {
    constexpr uint64_t kOld = 255;
    constexpr uint64_t kNew = 65535;
    const auto ends = std::ranges::count(records, kNew, &Raw::tag);
    return ends == 0 || 2 * ends < std::ranges::count(records, kOld, &Raw::tag) ? kOld : kNew;
  }

  bool AddStep(const std::vector<Raw>& records, std::optional<int64_t> before, int64_t end, int64_t number) {
    Step step;
    step.number = number;
    step.end_ns = end;
    std::map<uint16_t, std::vector<Raw>> points;  // of all-reduces, by stream
    for (const Raw& record : records) {
      if (record.tag == 1) step.fp_ns = NsOf(record.count);
      if (record.tag == 2) step.bp_ns = NsOf(record.count);
      if (record.tag > 2) points[record.stream].push_back(record);
    }
    // As in MindInsight's table of it, forward lasts to the end.
    if (inference_) step.bp_ns = end;
    if (!step.fp_ns || !step.bp_ns) return false;
    step.start_ns = before.value_or(*step.fp_ns);
    for (auto& [stream, of_stream] : points) {
      std::ranges::stable_sort(of_stream, {}, &Raw::tag);
      if (of_stream.size() % 2 != 0) {
        Odd& odd = odd_.try_emplace(stream, Odd{0, number}).first->second;
        ++odd.steps;
        continue;
      }
      for (size_t i = 0; i + 1 < of_stream.size(); i += 2) {
        const TextId name = rank_.Text(fmt::format("stream_{}_parallel_{}", stream, i / 2));
        step.reduces.push_back({name, NsOf(of_stream[i].count), NsOf(of_stream[i + 1].count)});
      }
    }
    rank_.steps.push_back(std::move(step));
    return true;
  }

  static std::optional<int64_t> After(std::string_view text, std::string_view key) {
    const size_t at = text.find(key);
    if (at == std::string_view::npos) return std::nullopt;
    text = Trim(text.substr(at + key.size()));
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() ? std::optional(value) : std::nullopt;
  }

  static uint64_t TimesIn(std::string_view text, std::string_view key) {
    uint64_t count = 0;
    for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + key.size())) ++count;
    return count;
  }

  // "[...] Node:GetNext, Run start:1, Run end:2" then "Thread[ 1] ... dispatchTime=87 us, totalTime=989 us", all in a
  // row, with blanks between or line breaks. A thread's line has no name of its own, nor has anything else its operator's.
  void ReadAiCpu() {
    const std::string text = All(kAiCpu);
    std::string_view rest = text;
    constexpr std::string_view kNode = "Node:";
    uint64_t without_times = 0;
    std::string first;
    uint64_t without_node = TimesIn(text, "totalTime=") + TimesIn(text, "total time =");
    for (size_t at = rest.find(kNode); at != std::string_view::npos; at = rest.find(kNode)) {
      rest.remove_prefix(at + kNode.size());
      const std::string_view one = rest.substr(0, rest.find(kNode));
      std::string_view name = Trim(one.substr(0, one.find(',')));
      // "Default/TruncatedNormal-op0" is shown by its kind.
      if (const size_t slash = name.rfind('/'); slash != std::string_view::npos) {
        name.remove_prefix(slash + 1);
        name = name.substr(0, name.rfind("-op"));
      }
      CpuOperator op;
      op.type = rank_.Text(name);
      // The log itself has "Run tart".
      const auto start = After(one, "Run start:");
      op.run_start = start ? *start : After(one, "Run tart:").value_or(0);
      op.run_end = After(one, "Run end:").value_or(0);
      // Later releases write them with blanks.
      const auto either = [one](std::string_view key, std::string_view later) { return After(one, After(one, key) ? key : later); };
      const auto total = either("totalTime=", "total time =");
      const auto dispatch = either("dispatchTime=", "dispatch time =");
      if (total) --without_node;
      if (!total || !dispatch) {
        if (without_times++ == 0) first = name;
        continue;
      }
      op.total_ms = static_cast<double>(*total) / 1000;
      op.dispatch_ms = static_cast<double>(*dispatch) / 1000;
      rank_.cpu_operators.push_back(op);
    }
    if (without_times > 0) {
      Problem(kAiCpu, fmt::format("{} no times: left out, the first is {}", CountText(without_times, "operator has", "operators have"), first));
    }
    if (without_node > 0) {
      Problem(kAiCpu, fmt::format("{} no node in front: left out, the operator is not known", CountText(without_node, "line of a thread has", "lines of threads have")));
    }
  }

  // Of each tensor, with ';' between; a scalar's shape is empty.
  struct Tensors {
    std::optional<std::string> shapes;
    std::optional<std::string> types;
    std::optional<std::string> formats;
  };
  struct Kind {
    std::string type;
    Tensors input;
    Tensors output;
  };
  static void AddListed(std::optional<std::string>* list, std::string_view value) {
    *list = *list ? fmt::format("{};{}", **list, value) : std::string(value);
  }

  // Steps with an odd number of points of a stream's reduces.
  struct Odd {
    uint64_t steps = 0;
    int64_t first = 0;
  };

  const Files& files_;
  int device_;
  const ReadContext& context_;
  Rank& rank_;
  std::map<std::string, Kind, std::less<>> kinds_;  // by operator
  std::unordered_map<uint64_t, int32_t> tasks_;     // operator by id
  std::map<uint16_t, Odd> odd_;                     // by stream
  std::map<std::string, std::string> paths_;        // of logs, for problems
  bool sinks_ = false;                              // the data set is a queue of the graph
  bool inference_ = false;                          // no step has an end of backward
};

}  // namespace

bool IsMindSpore(const fs::path& directory) { return !Files(directory).Devices().empty(); }

Status ReadMindSpore(const fs::path& directory, const ReadContext& context, Ranks* ranks) {
  const Files files(directory);
  for (const int device : files.Devices()) {
    auto rank = std::make_unique<Rank>();
    rank->device = device;
    rank->rank = device;
    rank->source = files.HasRaw() ? "MindSpore, raw logs" : "MindInsight, parsed";
    rank->path = directory.string();
    if (files.HasRaw()) {
      MindSporeReader(files, device, context, rank.get()).Read();
    } else {
      ReadMindInsight(directory, device, context, rank.get());
    }
    ReadPipeline(directory, device, context, rank.get());
    ranks->push_back(std::move(rank));
  }
  return Status::Ok();
}

}  // namespace profd::analysis
