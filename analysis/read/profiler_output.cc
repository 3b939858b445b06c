// `ASCEND_PROFILER_OUTPUT` of PyTorch and MindSpore, and msprof's `mindstudio_profiler_output` (analysis 2.1-2.3).
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>

#include "analysis/read/csv_file.h"
#include "analysis/read/each_record.h"
#include "analysis/read/readers.h"
#include "analysis/read/recorded.h"
#include "analysis/read/step_columns.h"
#include "analysis/read/trace_counters.h"
#include "analysis/times.h"
#include "base/text.h"
#include "dump/json_depth.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr uint64_t kMostJson = uint64_t{2} << 30;
constexpr uint64_t kMostMetadata = 64 << 20;  // variables, and the ranks of each group; parsed it takes twenty times as much

// `stem`.csv and stem_<timestamp>.csv, also cut into slices, by name; of several exports the newest, as NewestOf.
std::vector<fs::path> FilesOf(const fs::path& directory, std::string_view stem, std::string_view ending,
                              std::vector<std::string>* left_out = nullptr) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string filename = it->path().filename().string();
    std::string_view name = filename;
    if (!name.starts_with(stem) || !name.ends_with(ending)) continue;
    name.remove_prefix(stem.size());
    name.remove_suffix(ending.size());
    const std::string_view of_timestamp = "0123456789_slice";
    if (name.empty() || (name.starts_with('_') && name.find_first_not_of(of_timestamp) == std::string_view::npos)) {
      found.push_back(it->path());
    }
  }
  std::ranges::sort(found);
  return NewestOf(found, left_out);
}

// Operations of communication are called so on the timeline and among the kernels.
constexpr std::string_view kOperation = "hcom";

// The number of the group in "hcom_allReduce__586_0_1": the end of its name. Empty: there is none.
std::string_view GroupNumberIn(std::string_view name) {
  const size_t at = name.find("__");
  if (at == std::string_view::npos) return {};
  const std::string_view rest = name.substr(at + 2);
  const std::string_view number = rest.substr(0, rest.find('_'));
  return number.find_first_not_of("0123456789") == std::string_view::npos ? number : std::string_view();
}

// An operation that only its name and time are known of.
Collective OperationOf(std::string_view name, const Interval& time, Rank* rank) {
  Collective made;
  made.name = rank->Text(name);
  made.type = rank->Text(CollectiveTypeOf(name));
  if (const std::string_view group = GroupNumberIn(name); !group.empty()) made.group = rank->Text(group);
  made.start_ns = time.start_ns;
  made.elapse_ms = Ms(time.end_ns - time.start_ns);
  made.p2p = IsSendOrReceive(name);
  return made;
}

// kernel_details and op_summary.
class KernelReader {
 public:
  KernelReader(const CsvFile& file, Rank* rank, std::set<int>* devices, std::vector<Collective>* communication)
      : rank_(*rank), devices_(devices), communication_(communication) {
    name_ = file.Column({"Name", "Op Name"});
    type_ = file.Column({"Type", "OP Type"});
    core_ = file.Column({"Accelerator Core", "Task Type"});
    start_ = file.Column({"Start Time(us)", "Task Start Time(us)"});
    duration_ = file.Column({"Duration(us)", "Task Duration(us)"});
    stream_ = file.Column({"Stream ID"});
    device_ = file.Column({"Device_id"});
    in_shapes_ = file.Column({"Input Shapes"});
    in_types_ = file.Column({"Input Data Types"});
    out_shapes_ = file.Column({"Output Shapes"});
    out_types_ = file.Column({"Output Data Types"});
    state_ = file.Column({"OP State"});
    blocks_ = file.Column({"Block Dim", "Block Num"});
    mix_blocks_ = file.Column({"Mix Block Dim", "Mix Block Num"});
    for (size_t i = 0; i < file.header().size(); ++i) {
      const std::string_view column = file.header()[i];
      if (const auto name = Before(column, "_ratio")) ratios_.emplace_back(static_cast<int>(i), Rank::NumberIn(&rank_.ratio_names, *name));
      if (const auto name = Before(column, "_time(us)")) units_.emplace_back(static_cast<int>(i), Rank::NumberIn(&rank_.unit_names, *name));
    }
  }

  bool Take(const CsvFile& file) {
    const auto start = file.MicrosAsNs(start_);
    const auto length = file.MicrosAsNs(duration_);
    int64_t end = 0;
    if (!start || !length || *length < 0 || __builtin_add_overflow(*start, *length, &end)) return false;
    const std::string_view core = file.Field(core_);
    // Those are no executions of an operator, but all of communication.
    if (core == "HCCL" || core == "COMMUNICATION" || core == "HCCL_AICPU") {
      rank_.longest_communication_ns = std::max(rank_.longest_communication_ns, *length);
      rank_.communication_sum_ns = BoundedTime(rank_.communication_sum_ns + *length);
      rank_.communication_at.push_back(static_cast<uint32_t>(rank_.executions.size()));
      // Kernels that an operation is made of are such rows, too.
      const std::string_view name = file.Field(name_);
      if (name.starts_with(kOperation)) communication_->push_back(OperationOf(name, {*start, end}, &rank_));
      return true;
    }
    if (!TakeValues(file, ratios_, kMostRatio, &ratio_values_) || !TakeValues(file, units_, static_cast<double>(kLatestNs) / 1e3, &unit_values_)) return false;
    const int32_t op = rank_.OperatorOf(rank_.Text(file.Field(name_)), rank_.Text(file.Field(type_)), rank_.Text(core),
                                        rank_.Text(Unquoted(file.Field(in_shapes_))));
    Describe(file, Ms(*length) * 1e6, &rank_.operators[static_cast<size_t>(op)]);
    const std::string_view stream = file.Field(stream_);
    const int32_t lane = rank_.LaneOf("Ascend Hardware", fmt::format("Stream {}", stream.empty() ? "?" : stream));
    rank_.executions.push_back({*start, end, op, lane, Blocks(file.Field(blocks_)), Blocks(file.Field(mix_blocks_))});
    const std::string_view state = file.Field(state_);
    if (!state.empty() && state != "N/A") rank_.op_states.emplace(state);
    int device = 0;
    if (!ParseNumber(file.Field(device_), &device)) return true;
    if (!rank_.device) rank_.device = device;
    devices_->insert(device);
    return true;
  }

 private:
  static std::optional<std::string_view> Before(std::string_view column, std::string_view ending) {
    return column.ends_with(ending) ? std::optional(column.substr(0, column.size() - ending.size())) : std::nullopt;
  }
  static uint16_t Blocks(std::string_view text) {
    uint16_t blocks = 0;
    return ParseNumber(text, &blocks) ? blocks : kNoBlocks;
  }

  using Columns = std::vector<std::pair<int, size_t>>;     // column, number of its name
  using Values = std::vector<std::pair<size_t, double>>;   // number, value
  // False: one of them cannot be.
  static bool TakeValues(const CsvFile& file, const Columns& columns, double most, Values* values) {
    values->clear();
    for (const auto& [column, number] : columns) {
      const auto value = file.Number(column);
      if (value && !(*value >= 0 && *value <= most)) return false;
      if (value) values->emplace_back(number, *value);
    }
    return true;
  }

  void Describe(const CsvFile& file, double ns, Operator* op) {
    if (op->input_types == kNoText) {
      op->input_types = rank_.Text(Unquoted(file.Field(in_types_)));
      op->output_shapes = rank_.Text(Unquoted(file.Field(out_shapes_)));
      op->output_types = rank_.Text(Unquoted(file.Field(out_types_)));
    } else if (rank_.TextOf(op->core) == kAiCpuCore) {
      op->AddTypes(rank_.Text(Unquoted(file.Field(in_types_))), rank_.Text(Unquoted(file.Field(out_types_))));
    }
    for (const auto& [number, us] : unit_values_) Rank::AddTo(&op->unit_ns, number, us * 1000);
    for (const auto& [number, ratio] : ratio_values_) op->AddRatio(number, ratio, ns);
    if (!ratio_values_.empty()) op->EndRatios(ns);
  }

  Rank& rank_;
  std::set<int>* devices_;  // that the rows are of
  std::vector<Collective>* communication_;
  int name_, type_, core_, start_, duration_, stream_, device_, in_shapes_, in_types_, out_shapes_, out_types_, state_, blocks_, mix_blocks_;
  Columns ratios_;  // of ratio_names
  Columns units_;   // of unit_names
  Values ratio_values_;  // of the record
  Values unit_values_;
};

bool ReadKernels(const fs::path& path, const ReadContext& context, Rank* rank, std::vector<Collective>* communication) {
  std::set<int> devices;
  const auto prepare = [=, &devices](const CsvFile& file) {
    return [reader = KernelReader(file, rank, &devices, communication)](const CsvFile& record) mutable { return reader.Take(record); };
  };
  const bool empty = EachRecord(path, {{"Start Time(us)", "Task Start Time(us)"}, {"Duration(us)", "Task Duration(us)"}, {"Name", "Op Name"},
                                       {"Type", "OP Type"}, {"Accelerator Core", "Task Type"}}, context, prepare);
  if (devices.size() > 1) context.AddProblem(path, fmt::format("has rows of the devices {}: they are read as one rank", fmt::join(devices, ", ")));
  return empty;
}

bool ReadStepShares(const fs::path& path, const ReadContext& context, Rank* rank) {
  std::set<int> devices;
  std::optional<int> first;
  const bool empty = EachRecord(path, {{"Computing"}, {"Communication"}, {"Communication(Not Overlapped)"}, {"Free"}, {"Step"}}, context, [rank, &devices, &first](const CsvFile& file) {
    return [rank, &devices, &first, columns = StepColumns(file), step = file.Column({"Step"}), of_device = file.Column({"Device_id"})](const CsvFile& record) {
      // Each device has a row of the step; sums of what ran at the same time are no time.
      if (int device = 0; ParseNumber(record.Field(of_device), &device)) {
        if (!first) first = device;
        devices.insert(device);
        if (device != *first) return true;
      }
      const auto shares = columns.Get(record);
      // A run without steps has one line without a number.
      if (shares) rank->shares[record.Integer(step).value_or(-1)] = *shares;
      return shares.has_value();
    };
  });
  if (devices.size() > 1) context.AddProblem(path, fmt::format("has rows of the devices {}: those of device {} are read", fmt::join(devices, ", "), *first));
  return empty;
}

// A column in MB, or in KB where its name has that.
struct MemoryColumn {
  MemoryColumn(const CsvFile& file, const std::string& name) : kb(file.Column({name + "(KB)"})), mb(file.Column({name + "(MB)"})) {}
  std::optional<double> Megabytes(const CsvFile& record) const {
    const auto value = record.Number(mb < 0 ? kb : mb);
    return value && mb < 0 ? std::optional(*value / 1024) : value;
  }
  int kb;
  int mb;
};

void TakeDevice(std::string_view text, Rank* rank) {
  constexpr std::string_view kNpu = "NPU:";
  int device = 0;
  if (!rank->device && text.starts_with(kNpu) && ParseNumber(text.substr(kNpu.size()), &device)) rank->device = device;
}

bool ReadMemoryRecord(const fs::path& path, const ReadContext& context, Rank* rank) {
  return EachRecord(path, {{"Timestamp(us)"}, {"Component"}}, context, [rank](const CsvFile& file) {
    const int component = file.Column({"Component"});
    const int time = file.Column({"Timestamp(us)"});
    const MemoryColumn allocated(file, "Total Allocated");
    const MemoryColumn reserved(file, "Total Reserved");
    const MemoryColumn active(file, "Total Active");
    const int device = file.Column({"Device Type", "Device"});
    return [=](const CsvFile& record) {
      const auto t_ns = record.MicrosAsNs(time);
      if (!t_ns) return false;
      TakeDevice(record.Field(device), rank);
      rank->memory[std::string(record.Field(component))].push_back(
          {*t_ns, allocated.Megabytes(record), reserved.Megabytes(record), active.Megabytes(record)});
      return true;
    };
  });
}

void ReadOperatorMemory(const fs::path& path, const ReadContext& context, Rank* rank) {
  EachRecord(path, {{"Size(KB)"}, {"Allocation Time(us)"}, {"Name"}}, context, [rank](const CsvFile& file) {
    const int name = file.Column({"Name"});
    const int size = file.Column({"Size(KB)"});
    const int taken = file.Column({"Allocation Time(us)"});
    const int released = file.Column({"Release Time(us)"});
    const int duration = file.Column({"Duration(us)"});
    return [=](const CsvFile& record) {
      const auto kb = record.Number(size);
      const auto begin = record.MicrosAsNs(taken);
      // What was taken before the collection has no begin.
      if (!kb || !begin) return kb.has_value();
      std::optional<int64_t> end = record.MicrosAsNs(released);
      if (!end && released < 0) {
        const auto length = record.MicrosAsNs(duration);
        if (length && *length > 0) end = *begin + *length;
      }
      rank->blocks.push_back({rank->Text(record.Field(name)), *kb, *begin, end});
      return true;
    };
  });
}

// Name of the group in "Group 17522688603477080586 Communication"; older writers only number them within the file.
std::string_view GroupOfLane(std::string_view lane) {
  constexpr std::string_view kBegin = "Group ";
  constexpr std::string_view kEnd = " Communication";
  constexpr size_t kMostDigits = 4;  // of a number within the file
  if (!lane.starts_with(kBegin) || !lane.ends_with(kEnd) || lane.size() <= kBegin.size() + kEnd.size()) return {};
  const std::string_view group = lane.substr(kBegin.size(), lane.size() - kBegin.size() - kEnd.size());
  const bool is_number = group.size() <= kMostDigits && group.find_first_not_of("0123456789") == std::string_view::npos;
  return group == "N/A" || is_number ? std::string_view() : group;
}

// Where no communication.json has them: operations of the timeline, else of the rows between the kernels. Both have all.
void AddOperations(std::vector<Collective> rows, Rank* rank) {
  if (!rank->collectives.empty()) return;
  std::vector<Collective> found;
  std::set<std::pair<TextId, int64_t>> known;  // of several timelines
  for (const Slice& slice : rank->slices) {
    const Lane& lane = rank->lanes[static_cast<size_t>(slice.lane)];
    if (lane.group != "Communication" || !rank->TextOf(slice.name).starts_with(kOperation)) continue;
    if (!known.emplace(slice.name, slice.start_ns).second) continue;
    Collective& made = found.emplace_back(OperationOf(std::string(rank->TextOf(slice.name)), {slice.start_ns, slice.end_ns}, rank));
    if (const std::string_view group = GroupOfLane(lane.name); !group.empty()) made.group = rank->Text(group);
  }
  rank->collectives = found.empty() ? std::move(rows) : std::move(found);
  std::ranges::stable_sort(rank->collectives, {}, &Collective::start_ns);
}

// Computing and communication of what was read, where the timeline that has them is not there.
void AddOverlap(Rank* rank) {
  if (!rank->overlap[0].empty() || !rank->overlap[1].empty()) return;
  Intervals computing;
  for (const Execution& execution : rank->executions) computing.push_back({execution.start_ns, execution.end_ns});
  Intervals communication;
  for (const Collective& each : rank->collectives) {
    communication.push_back({each.start_ns, EndOf(each.start_ns, each.elapse_ms)});
  }
  // Communication alone does not show the rest of a step.
  if (computing.empty() && (communication.empty() || !rank->shares.empty())) return;
  Intervals& free = rank->overlap[OverlapKind::kFree];
  Intervals recorded = std::move(free);
  rank->overlap = exporting::operators::MakeOverlap(std::move(computing), std::move(communication), {});
  if (!recorded.empty()) free = std::move(recorded);
}

// Tables that have a header alone.
struct EmptyTables {
  std::vector<fs::path> kernels;
  std::vector<fs::path> steps;
  std::vector<fs::path> memory;
};

// Problems of those of which other files show that there was something.
void AddEmpty(const EmptyTables& empty, const Rank& rank, const ReadContext& context) {
  const auto add = [&context](const std::vector<fs::path>& tables, bool expected, std::string_view what) {
    if (!expected) return;
    for (const fs::path& path : tables) context.AddProblem(path, fmt::format("has a header alone, though other files have {}", what));
  };
  const bool computes = std::ranges::any_of(rank.shares, [](const auto& each) { return each.second.computing > 0; });
  add(empty.kernels, computes || !rank.executions.empty(), "kernels: what it describes of them is left out");
  add(empty.steps, rank.shares.empty() && !rank.executions.empty(), "kernels: the shares of steps are left out");
  add(empty.memory, rank.memory.empty() && !rank.blocks.empty(), "memory of operators: memory over time is left out");
}

// What profd recorded itself. The vendor's profiler records the same tasks, and the timeline has calls and collectives.
template <class FilesOfStem>
void ReadRecorded(const fs::path& directory, const FilesOfStem& files_of, const ReadContext& context, Rank* rank) {
  const auto has = [&directory](const char* stem) { return !FilesOf(directory, stem, ".json").empty(); };
  const bool has_tasks = !rank->executions.empty() || !rank->communication_at.empty() || has("communication");
  const bool has_timeline = has("trace_view") || has("msprof");
  const auto unless = [&files_of](bool elsewhere, const char* stem) { return elsewhere ? std::vector<fs::path>() : files_of(stem, ".csv"); };
  ReadRecordedTables({unless(has_tasks, "kernel"), unless(has_tasks, "communication"), unless(has_timeline, "api")}, context, rank);
  if (has_timeline) rank->slices.clear();
}

// Runs `take` on the text of a file that can be read and has no more than `most` bytes.
template <class Take>
void TakeWhole(const fs::path& path, uint64_t most, const ReadContext& context, const Take& take) {
  const Result<std::string> text = ReadWhole(path, most);
  if (text.ok()) return take(*text);
  context.AddProblem(path, text.status());
}

void TakeMetadata(const fs::path& path, std::string_view text, const ReadContext& context, Rank* rank) {
  const Json json = NestsTooDeep(text, kDeepestJson) ? Json() : Json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return context.AddProblem(path, "no JSON object: environment variables, groups of ranks and sizes of parallelism are left out");
  }
  for (const char* name : {"ENV_VARIABLES", "parallel_group_info", "distributed_args"}) {
    if (const auto found = json.find(name); found != json.end()) AddMetadata(name, found->dump(-1, ' ', false, Json::error_handler_t::replace), rank);
  }
}

// Of <host>_<pid>_<time>_ascend_pt; empty: it is called otherwise.
std::string HostOf(std::string_view folder) {
  for (const std::string_view ending : {"_ascend_pt", "_ascend_ms"}) {
    if (folder.ends_with(ending)) folder.remove_suffix(ending.size());
  }
  constexpr size_t kLeastTimestamp = 14;
  for (const size_t least : {kLeastTimestamp, size_t{1}}) {
    const size_t at = folder.rfind('_');
    const std::string_view number = at == std::string_view::npos ? std::string_view() : folder.substr(at + 1);
    if (number.size() < least || number.find_first_not_of("0123456789") != std::string_view::npos) return {};
    folder.remove_suffix(number.size() + 1);
  }
  return std::string(folder);
}

}  // namespace

void ReadProfilerInfo(const fs::path& directory, const ReadContext& context, Rank* rank) {
  constexpr uint64_t kMostInfo = 1 << 20;
  std::set<int> numbers;
  for (const fs::path& path : FilesOf(directory, "profiler_info", ".json")) {
    const std::string name = path.stem().string();
    int number = 0;
    const size_t at = name.rfind('_');
    if (ParseNumber(std::string_view(name).substr(at + 1), &number) && number >= 0) numbers.insert(number);
    const Result<std::string> text = ReadWhole(path, kMostInfo);
    if (!text.ok() || !AddProfilerInfo(*text, rank)) context.AddProblem(path, text.ok() ? "no JSON object" : text.status().message());
  }
  if (numbers.size() == 1) rank->rank = *numbers.begin();
  if (rank->host.empty()) rank->host = HostOf(directory.filename().string());
  const fs::path metadata = directory / "profiler_metadata.json";
  std::error_code error;
  if (fs::is_regular_file(metadata, error)) TakeWhole(metadata, kMostMetadata, context, [&](std::string_view text) { TakeMetadata(metadata, text, context, rank); });
}

bool IsProfilerOutput(const fs::path& directory) {
  for (const std::string_view stem : {"kernel_details", "op_summary", "step_trace_time", "memory_record"}) {
    if (!FilesOf(directory, stem, ".csv").empty()) return true;
  }
  return std::ranges::any_of(std::array{"trace_view", "msprof", "communication"}, [&directory](const char* stem) { return !FilesOf(directory, stem, ".json").empty(); });
}

bool HasRecordedTables(const fs::path& directory) {
  return std::ranges::any_of(std::array{"kernel", "communication"}, [&directory](const char* stem) {
    return std::ranges::any_of(FilesOf(directory, stem, ".csv"), IsRecordedTable);
  });
}

Status ReadProfilerOutput(const fs::path& directory, const ReadContext& context, Ranks* ranks) {
  auto rank = std::make_unique<Rank>();
  std::vector<std::string> left_out;
  const auto files_of = [&](std::string_view stem, std::string_view ending) {
    std::vector<fs::path> files = FilesOf(directory, stem, ending, &left_out);
    ReportMissingSlices(files, context);
    return files;
  };
  const fs::path parent = AboveOf(directory);
  rank->path = directory.string();
  const std::string folder = NamedPathOf(directory).filename().string();
  rank->source = folder == "mindstudio_profiler_output" || folder == "timeline" ? "msprof, text"
                 : parent.native().ends_with("_ascend_ms")            ? "MindSpore, text"
                                                                      : "PyTorch, text";
  ReadProfilerInfo(parent, context, rank.get());
  ReadDeviceFacts(parent, context, rank.get());
  constexpr std::string_view kDevice = "device_";
  const std::string of = parent.filename().string();
  int device = 0;
  if (folder == "timeline" && of.starts_with(kDevice) && ParseNumber(std::string_view(of).substr(kDevice.size()), &device)) rank->device = device;
  std::vector<Collective> communication;
  EmptyTables empty;
  for (const std::string_view stem : {"kernel_details", "op_summary"}) {
    // In one directory, as profctl export writes them, both have the same executions.
    if (!rank->executions.empty() || !rank->communication_at.empty()) break;
    for (const fs::path& path : files_of(stem, ".csv")) {
      if (ReadKernels(path, context, rank.get(), &communication)) empty.kernels.push_back(path);
    }
  }
  if (!rank->executions.empty() || !rank->communication_at.empty()) empty.kernels.clear();  // a slice may have none
  ReadRecorded(directory, files_of, context, rank.get());
  ReadShapeStates(parent, context, rank.get());
  for (const std::string_view stem : {"trace_view", "msprof"}) {
    const bool kernels = rank->executions.empty();
    TraceCounters counters(rank.get());
    for (const fs::path& path : files_of(stem, ".json")) ReadTrace(path, kernels, context, &counters, rank.get());
    counters.Finish();
  }
  for (const fs::path& path : files_of("step_trace_time", ".csv")) {
    if (ReadStepShares(path, context, rank.get())) empty.steps.push_back(path);
  }
  for (const fs::path& path : files_of("communication", ".json")) {
    TakeWhole(path, kMostJson, context, [&](std::string_view text) { ReadCommunication(text, path.string(), context, rank.get()); });
  }
  for (const fs::path& path : files_of("communication_matrix", ".json")) {
    TakeWhole(path, kMostJson, context, [&](std::string_view text) { ReadCommunicationMatrix(text, path.string(), context, rank.get()); });
  }
  for (const fs::path& path : files_of("memory_record", ".csv")) {
    if (ReadMemoryRecord(path, context, rank.get())) empty.memory.push_back(path);
  }
  for (const fs::path& path : files_of("operator_memory", ".csv")) ReadOperatorMemory(path, context, rank.get());
  if (!left_out.empty()) context.AddProblem(directory, EarlierExports(left_out));
  AddEmpty(empty, *rank, context);
  AddOperations(std::move(communication), rank.get());
  AddOverlap(rank.get());
  ranks->push_back(std::move(rank));
  return Status::Ok();
}

}  // namespace profd::analysis
