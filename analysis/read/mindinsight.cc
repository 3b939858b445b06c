// What MindInsight's profiler made of MindSpore's raw logs (analysis 4.1, 4.2): its `profiler` directory.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/read/csv_file.h"
#include "analysis/read/each_record.h"
#include "analysis/read/readers.h"
#include "analysis/times.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNsPerCount = 10;
constexpr uint64_t kMostText = 64 << 20;

class MindInsightReader {
 public:
  MindInsightReader(const fs::path& directory, int device, const ReadContext& context, Rank* rank)
      : directory_(directory), device_(std::to_string(device)), context_(context), rank_(*rank) {}

  void Read() {
    ReadOperators();
    ReadExecutions();
    ReadSteps();
    ReadShares();
    ReadPoints();
    ReadAiCpu();
  }

 private:
  // Calls `take` with each record of the file, if there is one.
  template <class Open>
  void Each(const std::string& name, const Open& open) {
    std::error_code error;
    if (fs::exists(directory_ / name, error)) EachRecord(directory_ / name, {}, context_, open);
  }

  // {"input_0": {"format": .., "data_type": .., "shape": "1,2"}, "input_1": ..} as "1,2;3"; the shape of a scalar is empty.
  TextId Listed(const nlohmann::json& info, std::string_view what, const char* key) {
    std::vector<std::string> values;
    for (auto tensor = info.find(fmt::format("{}_0", what)); tensor != info.end() && tensor->is_object();
         tensor = info.find(fmt::format("{}_{}", what, values.size()))) {
      const auto value = tensor->find(key);
      values.push_back(value != tensor->end() && value->is_string() ? value->get<std::string>() : "");
    }
    return rank_.Text(fmt::format("{}", fmt::join(values, ";")));
  }

  int32_t OperatorOf(std::string_view name) {
    const auto known = operators_.find(name);
    if (known != operators_.end()) return known->second;
    return rank_.OperatorOf(rank_.Text(name), kNoText, rank_.Text("AI_CORE"));
  }

  void ReadOperators() {
    Each("framework_raw_" + device_ + ".csv", [this](const CsvFile& header) {
      const int name = header.Column({"full_op_name"});
      const int type = header.Column({"op_type"});
      const int info = header.Column({"op_info"});
      return [=, this](const CsvFile& record) {
        if (record.Field(name).empty()) return false;
        const int32_t op = rank_.OperatorOf(rank_.Text(record.Field(name)), rank_.Text(record.Field(type)), rank_.Text("AI_CORE"));
        operators_.emplace(record.Field(name), op);
        const auto tensors = nlohmann::json::parse(record.Field(info), nullptr, false);
        if (!tensors.is_object()) return record.Field(info).empty();
        Operator& made = rank_.operators[static_cast<size_t>(op)];
        made.input_shapes = Listed(tensors, "input", "shape");
        made.input_types = Listed(tensors, "input", "data_type");
        made.input_formats = Listed(tensors, "input", "format");
        made.output_shapes = Listed(tensors, "output", "shape");
        made.output_types = Listed(tensors, "output", "data_type");
        made.output_formats = Listed(tensors, "output", "format");
        return true;
      };
    });
  }

  // Times are milliseconds with the five decimals of the clock.
  static std::optional<int64_t> NsOf(std::optional<double> ms) {
    constexpr double kCountsPerMs = 1e5;
    constexpr double kMost = 9e16;  // counts
    if (!ms || !(*ms >= 0) || *ms * kCountsPerMs > kMost) return std::nullopt;
    return std::llround(*ms * kCountsPerMs) * kNsPerCount;
  }

  void ReadExecutions() {
    Each("output_timeline_data_" + device_ + ".txt", [this](const CsvFile& header) {
      const int name = header.Column({"op_name"});
      const int stream = header.Column({"stream_id"});
      const int start = header.Column({"start_time(ms)"});
      const int duration = header.Column({"duration(ms)"});
      return [=, this](const CsvFile& record) {
        const auto begin = NsOf(record.Number(start));
        const auto length = NsOf(record.Number(duration));
        if (!begin || !length) return false;
        rank_.executions.push_back({*begin, *begin + *length, OperatorOf(record.Field(name)),
                                    rank_.LaneOf("Ascend Hardware", fmt::format("Stream {}", record.Field(stream)))});
        return true;
      };
    });
  }

  struct ReduceColumns {
    std::string name;
    int start = -1;
    int end = -1;
  };

  void ReadSteps() {
    Each("step_trace_raw_" + device_ + "_detail_time.csv", [this](const CsvFile& header) {
      std::vector<ReduceColumns> reduces;
      constexpr std::string_view kEnding = "_start_point";
      for (const std::string& column : header.header()) {
        if (!column.ends_with(kEnding)) continue;
        const std::string name = column.substr(0, column.size() - kEnding.size());
        reduces.push_back({name, header.Column({column}), header.Column({name + "_end_point"})});
      }
      rank_.first_step_is_short = true;
      rank_.count_ns = kNsPerCount;
      // Of inference there is no backward: `fp` is the time to the end of the step.
      const bool inference = header.Column({"fp"}) >= 0 && header.Column({"bp_point"}) < 0;
      const std::array<int, 5> columns = {header.Column({"step_num"}), header.Column({"start_point"}), header.Column({"end_point"}),
                                          header.Column({"fp_point"}), header.Column({inference ? "end_point" : "bp_point"})};
      return [=, this](const CsvFile& record) { return TakeStep(record, columns, reduces); };
    });
  }

  bool TakeStep(const CsvFile& record, const std::array<int, 5>& columns, const std::vector<ReduceColumns>& reduces) {
    if (record.Field(columns[0]) == "-") return true;  // the average
    const auto at = [&record](int column) -> std::optional<int64_t> {
      uint64_t count = 0;
      if (!ParseNumber(record.Field(column), &count) || count > kLatestNs / kNsPerCount) return std::nullopt;
      return static_cast<int64_t>(count) * kNsPerCount;
    };
    Step step;
    const auto start = at(columns[1]);
    const auto end = at(columns[2]);
    if (!ParseNumber(record.Field(columns[0]), &step.number) || !start || !end || *end < *start) return false;
    step.start_ns = *start;
    step.end_ns = *end;
    // MindInsight writes 0 for what a step lacks.
    const auto within = [&](std::optional<int64_t> point) { return point && *point >= *start && *point <= *end ? point : std::nullopt; };
    step.fp_ns = within(at(columns[3]));
    step.bp_ns = within(at(columns[4]));
    for (const ReduceColumns& reduce : reduces) {
      const auto from = at(reduce.start);
      const auto to = at(reduce.end);
      if (from && to && *from > 0 && *to >= *from) step.reduces.push_back({rank_.Text(reduce.name), *from, *to});
    }
    steps_by_line_.emplace(record.line(), rank_.steps.size());
    rank_.steps.push_back(std::move(step));
    return true;
  }

  // ascend_cluster_analyse_<parallelism>_<stages>_<ranks>_<rank>.csv: of each step, in order, what it was made of, ms; then the
  // average.
  void ReadShares() {
    std::error_code error;
    for (fs::directory_iterator it(directory_, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (!name.starts_with("ascend_cluster_analyse_") || !name.ends_with("_" + device_ + ".csv")) continue;
      Each(name, [this](const CsvFile& header) {
        const std::array<int, 5> columns = {header.Column({"computation_time"}), header.Column({"communication_alone_time"}), header.Column({"stage_time"}),
                                            header.Column({"receive_alone_time"}), header.Column({"collective_communication_alone_time"})};
        return [columns, this](const CsvFile& record) { return TakeShares(record, columns); };
      });
      return;
    }
  }

  bool TakeShares(const CsvFile& record, const std::array<int, 5>& columns) {
    // By its line, because those that are left out, here or of the steps, are of steps, too.
    const auto step = steps_by_line_.find(record.line());
    if (step == steps_by_line_.end()) return true;
    const auto computing = record.Number(columns[0]);
    const auto alone = record.Number(columns[1]);
    if (!computing || !alone) return false;
    const Step& of = rank_.steps[step->second];
    // Only communication that nothing covers is in the file.
    Shares& shares = rank_.shares[of.number];
    shares = {*computing, *alone, *alone, std::max(Ms(of.end_ns - of.start_ns) - *computing - *alone, 0.0)};
    shares.stage = record.Number(columns[2]);
    shares.bubble = record.Number(columns[3]);
    shares.without_receive = record.Number(columns[4]);
    return true;
  }

  void ReadPoints() {
    for (const std::string& name : {"step_trace_point_info_" + device_ + ".json", std::string("step_trace_point_info.json")}) {
      std::error_code error;
      if (!fs::exists(directory_ / name, error)) continue;
      const Result<std::string> text = ReadWhole(directory_ / name, kMostText);
      const auto json = text.ok() ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
      if (!json.is_object()) context_.AddProblem(directory_ / name, text.ok() ? "no JSON object: points of steps are left out" : text.status().message());
      const auto point = [&](const char* key) { return json.is_object() && json.contains(key) && json[key].is_string() ? rank_.Text(json[key].get<std::string>()) : kNoText; };
      rank_.fp_point = point("fp_start");
      rank_.bp_point = point("bp_end");
      return;
    }
  }

  // A table of words under a line of names and one of dashes.
  void ReadAiCpu() {
    const fs::path path = directory_ / ("output_data_preprocess_aicpu_" + device_ + ".txt");
    std::error_code error;
    if (!fs::exists(path, error)) return;
    const Result<std::string> text = ReadWhole(path, kMostText);
    if (!text.ok()) return context_.AddProblem(path, text.status());
    std::string_view rest = *text;
    uint64_t number = 0;
    BadLines bad;
    for (std::string_view line; NextLine(&rest, &line);) {
      ++number;
      int64_t serial = 0;
      if (!ParseNumber(NextToken(&line), &serial)) continue;
      CpuOperator op;
      op.type = rank_.Text(NextToken(&line));
      const bool complete = ParseNumber(NextToken(&line), &op.total_ms) &&
                            ParseNumber(NextToken(&line), &op.dispatch_ms) &&
                            ParseNumber(NextToken(&line), &op.run_start) && ParseNumber(NextToken(&line), &op.run_end);
      if (complete && std::isfinite(op.total_ms) && std::isfinite(op.dispatch_ms)) {
        rank_.cpu_operators.push_back(op);
      } else {
        bad.Add(number);
      }
    }
    if (bad.count() > 0) context_.AddProblem(path, bad.Text());
  }

  const fs::path& directory_;
  const std::string device_;
  const ReadContext& context_;
  Rank& rank_;
  std::map<std::string, int32_t, std::less<>> operators_;  // by name
  std::map<uint64_t, size_t> steps_by_line_;               // of their file
};

}  // namespace

void ReadMindInsight(const fs::path& directory, int device, const ReadContext& context, Rank* rank) {
  MindInsightReader(directory, device, context, rank).Read();
}

}  // namespace profd::analysis
